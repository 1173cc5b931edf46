//! The collectives and segments made by means of messages, over any transport.

use std::ops::Range;
use std::sync::Arc;

use super::{Case, Setting, collectives, segments};
use crate::{DataTag, Node, Posted, Rank, Result, Segment, Tag, Traffic, Transport};

/// A transport that has lost its own collectives and segments, so that the
/// provided ones are used.
#[derive(Debug)]
struct WithoutCollectives(Arc<dyn Transport>);

impl Transport for WithoutCollectives {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn rank(&self) -> Rank {
        self.0.rank()
    }

    fn size(&self) -> u32 {
        self.0.size()
    }

    fn node_of(&self, rank: Rank) -> Node {
        self.0.node_of(rank)
    }

    fn spans_processes(&self) -> bool {
        self.0.spans_processes()
    }

    fn send(&self, to: Rank, tag: Tag, bytes: &[u8]) -> Result<()> {
        self.0.send(to, tag, bytes)
    }

    fn receive(&self, from: Rank, tag: Tag) -> Result<Vec<u8>> {
        self.0.receive(from, tag)
    }

    fn try_receive(&self, from: Rank, tag: Tag) -> Result<Option<Vec<u8>>> {
        self.0.try_receive(from, tag)
    }

    fn try_receive_any(&self, tag: Tag) -> Result<Option<(Rank, Vec<u8>)>> {
        self.0.try_receive_any(tag)
    }

    fn post_receive(
        &self,
        from: Rank,
        tag: DataTag,
        memory: &Segment,
        range: Range<usize>,
    ) -> Result<Posted> {
        self.0.post_receive(from, tag, memory, range)
    }

    fn post_send(
        &self,
        to: Rank,
        tag: DataTag,
        memory: &Segment,
        range: Range<usize>,
    ) -> Result<Posted> {
        self.0.post_send(to, tag, memory, range)
    }

    fn is_complete(&self, posted: Posted) -> Result<bool> {
        self.0.is_complete(posted)
    }

    fn wait_until(&self, ready: &mut dyn FnMut() -> Result<bool>) -> Result<()> {
        self.0.wait_until(ready)
    }

    fn wake(&self) {
        self.0.wake();
    }

    fn traffic(&self) -> Traffic {
        self.0.traffic()
    }

    fn progress(&self) -> Result<()> {
        self.0.progress()
    }

    fn check(&self, rank: Rank) -> Result<()> {
        self.0.check(rank)
    }

    fn duplicates(&self, count: usize) -> Result<Vec<Arc<dyn Transport>>> {
        Ok(self.0.duplicates(count)?.iter().map(wrap).collect())
    }
}

pub(super) fn wrap(transport: &Arc<dyn Transport>) -> Arc<dyn Transport> {
    Arc::new(WithoutCollectives(Arc::clone(transport)))
}

pub(super) fn cases() -> Vec<Case> {
    let case = |name, check| Case {
        name,
        ranks: 1..=7,
        check,
    };
    vec![
        case("generic::all_gather", |setting: &Setting<'_>| {
            setting.run(|transport| collectives::all_gather(&wrap(transport), setting));
        }),
        case("generic::broadcast", |setting| {
            setting.run(|transport| collectives::broadcast(&wrap(transport), setting));
        }),
        case("generic::barrier", |setting| {
            setting.run(|transport| collectives::barrier(&wrap(transport)));
        }),
        case("generic::segments", |setting| {
            setting.run(|transport| segments::all(&wrap(transport)));
        }),
        case("generic::random_mix", |setting| {
            setting.run(|transport| collectives::random_mix(&wrap(transport), setting));
        }),
    ]
}
