//! One open description for all ranks of a node, so that independent writes may rewrite holes.
//!
//! Independent writes with holes cannot rewrite them unless nobody else can be writing. A lease
//! shows that if the ranks have one description of the file between them. So when a view has
//! holes that are worth rewriting, rank 0 hands its description to the others, which use it from
//! then on in place of theirs. Each rank announces its writes to the others before the ranks
//! agree that all of them do; only then may writes rewrite. The description stays shared until
//! the file is closed or a lock on the file is needed.

use std::sync::atomic::Ordering;

use pario_driver::Mailbox;
use pario_transport::Rank;

use super::{Atomicity, Inner};
use crate::{Result, access, agree, view::RankViews};

const ROOT: Rank = Rank(0);

const YES: &[u8] = &[1];

impl Inner {
    /// Whether independent writes through these views would rewrite holes if the ranks had one
    /// description, and that has not been tried. The same on all ranks.
    fn wants_shared_description(&self, views: &RankViews) -> bool {
        let is_possible = self.writers.may_have_lease
            && self.comm.size() > 1
            && !self.comm.spans_nodes()
            && !self.writers.has_tried_sharing.load(Ordering::Relaxed);
        is_possible
            && self.with_settings(|it| {
                let facts = self.handle.facts();
                let is_sieved = |outline| access::is_sieved(outline, views, facts, &it.hints);
                it.atomicity == Atomicity::NonAtomic
                    && views.shapes.iter().any(|it| is_sieved(it.outline()))
            })
    }

    /// Has all ranks use one description if writes through these views gain by it.
    /// *Collective*; nothing changes if some rank cannot.
    pub(super) fn share_description(&self, views: &RankViews) -> Result<()> {
        if !self.wants_shared_description(views) {
            return Ok(());
        }
        let comm = &*self.comm;
        self.writers
            .has_tried_sharing
            .store(true, Ordering::Relaxed);
        // Ranks that shared one before keep announcing to the same ranks until nobody rewrites.
        let is_idle = self.writer_lock.stop_rewriting();
        let mailbox = Mailbox::new().ok().filter(|_| is_idle);
        let address = mailbox.as_ref().map(Mailbox::address).unwrap_or_default();
        let addresses = agree::gather(comm, Ok(address.to_vec()))?;
        if addresses.iter().any(Vec::is_empty) {
            return Ok(());
        }
        let offer = || {
            let offer = self.handle.offer_description(addresses.len());
            let is_sent = offer.is_some_and(|offer| {
                let mut others = addresses.iter().skip(1);
                others.all(|address| offer.send(address).is_ok())
            });
            Ok(vec![u8::from(is_sent)])
        };
        let is_sent = agree::broadcast(comm, ROOT, offer)? == YES;
        let has_joined = is_sent && (comm.rank() == ROOT || self.adopt_description(mailbox));
        let group = self.handle.writer_group().filter(|_| has_joined);
        let is_ready = group.is_some_and(|group| self.writer_lock.try_join(group));
        let all = agree::gather(comm, Ok(vec![u8::from(is_ready)]))?;
        match all.iter().all(|it| it == YES) {
            true => self.writer_lock.allow_rewriting(),
            false => self.writer_lock.forget_group(),
        }
        Ok(())
    }

    fn adopt_description(&self, mailbox: Option<Mailbox>) -> bool {
        let received = mailbox.and_then(|mailbox| mailbox.receive().ok());
        received.is_some_and(|offer| self.handle.adopt_description(&offer))
    }
}
