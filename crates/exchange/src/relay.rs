//! The rank that sends and receives for its group what belongs to a realm.
//! A group of one rank has one too: itself.
//!
//! Grants and offers of a realm are served in the order in which they came.
//! One buffer is reserved for each realm, and whatever is in it can always
//! move on: a granted slice has its receive posted, and the ranks that fill
//! or empty a buffer wait for nothing else. So relays cannot wait for each
//! other's buffers in a cycle.

use std::collections::{BTreeMap, VecDeque};

use crate::{
    Accesses, Action, Buffer, Job, Kind, Message, Rank, Realm, Slice, Span, Tag, core::Core,
    jobs::Doing, pool::Pool,
};

/// A slice that waits for a buffer.
#[derive(Debug)]
enum Pending {
    /// To be sent with this tag.
    Grant(Slice, Tag),
    /// To be received.
    Offer(Slice, Job),
}

impl Pending {
    fn slice(&self) -> &Slice {
        match self {
            Pending::Grant(slice, _) | Pending::Offer(slice, _) => slice,
        }
    }
}

#[derive(Debug)]
struct RealmQueue {
    waiting: VecDeque<Pending>,
    buffers: Pool,
}

/// What a rank relays, by realm.
#[derive(Debug, Default)]
pub(crate) struct Relay {
    realms: BTreeMap<Realm, RealmQueue>,
}

impl Relay {
    pub(crate) fn pools(&mut self) -> impl Iterator<Item = &mut Pool> {
        self.realms.values_mut().map(|queue| &mut queue.buffers)
    }

    /// The number of realms that it serves.
    pub(crate) fn realms(&self) -> u64 {
        self.realms.len() as u64
    }

    pub(crate) fn grant<A: Accesses>(&mut self, core: &mut Core<A>, slice: Slice, tag: Tag) {
        self.enqueue(core, Pending::Grant(slice, tag));
    }

    pub(crate) fn offer<A: Accesses>(&mut self, core: &mut Core<A>, slice: Slice, key: Job) {
        self.enqueue(core, Pending::Offer(slice, key));
    }

    fn enqueue<A: Accesses>(&mut self, core: &mut Core<A>, pending: Pending) {
        let realm = pending.slice().realm;
        let limits = &core.setting.limits;
        let (bytes, max) = (limits.slice_bytes, limits.node_buffers);
        let queue = self.realms.entry(realm).or_insert_with(|| RealmQueue {
            waiting: VecDeque::new(),
            buffers: Pool::new(core.me, Kind::Node(realm), bytes, max),
        });
        queue.waiting.push_back(pending);
        queue.advance(core);
    }

    /// After something has become free that any realm may need.
    pub(crate) fn advance<A: Accesses>(&mut self, core: &mut Core<A>) {
        for queue in self.realms.values_mut() {
            queue.advance(core);
        }
    }

    /// All parts of a buffer are filled, or all are emptied.
    pub(crate) fn loaded<A: Accesses>(
        &mut self,
        core: &mut Core<A>,
        slice: &Slice,
        buffer: Buffer,
        send: Option<(Rank, Tag)>,
    ) {
        let Some((to, tag)) = send else {
            return self.free(core, slice.realm, buffer);
        };
        let job = core.jobs.start(Doing::RelaySend {
            realm: slice.realm,
            buffer,
        });
        core.counters.data_messages += 1;
        core.counters.data_bytes += slice.bytes;
        let range = 0..slice.bytes;
        let span = Span { buffer, range };
        core.out.push(Action::Send { job, to, tag, span });
    }

    pub(crate) fn free<A: Accesses>(&mut self, core: &mut Core<A>, realm: Realm, buffer: Buffer) {
        let queue = self.realms.get_mut(&realm);
        let queue = queue.expect("a realm with a buffer is known");
        core.put(&mut queue.buffers, buffer);
        queue.advance(core);
    }

    /// A slice of a read has arrived.
    pub(crate) fn received<A: Accesses>(
        core: &mut Core<A>,
        slice: Slice,
        buffer: Buffer,
        tag: Tag,
    ) {
        core.tags.put(tag);
        load(core, slice, buffer, None);
    }

    /// Tells ranks of the group that their data is not moved.
    pub(crate) fn discard<A: Accesses>(
        core: &mut Core<A>,
        realm: Realm,
        file: std::ops::Range<u64>,
        ranks: Vec<Rank>,
    ) {
        for rank in ranks {
            let file = file.clone();
            core.tell(rank, Message::Skip { realm, file });
        }
    }
}

impl RealmQueue {
    fn advance<A: Accesses>(&mut self, core: &mut Core<A>) {
        while let Some(pending) = self.waiting.front() {
            let tag = match pending {
                Pending::Grant(_, tag) => Some(*tag),
                Pending::Offer(..) => core.tags.take(),
            };
            let buffer = tag.and_then(|_| core.take(&mut self.buffers));
            let (Some(tag), Some(buffer)) = (tag, buffer) else {
                if let (Pending::Offer(..), Some(tag)) = (pending, tag) {
                    core.tags.put(tag);
                }
                return;
            };
            match self.waiting.pop_front() {
                Some(Pending::Grant(slice, tag)) => {
                    let to = core.accesses().aggregator(slice.realm);
                    load(core, slice, buffer, Some((to, tag)));
                }
                Some(Pending::Offer(slice, key)) => receive(core, slice, buffer, tag, key),
                None => return,
            }
        }
    }
}

/// Asks the ranks with data in a slice to fill a buffer or to empty it.
fn load<A: Accesses>(core: &mut Core<A>, slice: Slice, buffer: Buffer, send: Option<(Rank, Tag)>) {
    let key = core.jobs.start(Doing::Load {
        slice: slice.clone(),
        buffer,
        send,
    });
    for (part, place) in slice.places() {
        let message = Message::Move {
            key,
            realm: slice.realm,
            file: slice.file.clone(),
            buffer,
            place,
            among: slice.parts.len() as u32,
        };
        core.tell(part.rank, message);
    }
}

/// Posts the receive of an offered slice, and tells the aggregator.
fn receive<A: Accesses>(core: &mut Core<A>, slice: Slice, buffer: Buffer, tag: Tag, key: Job) {
    let from = core.accesses().aggregator(slice.realm);
    let range = 0..slice.bytes;
    let job = core.jobs.start(Doing::RelayReceive { slice, buffer, tag });
    let span = Span { buffer, range };
    core.out.push(Action::Receive {
        job,
        from,
        tag,
        span,
    });
    core.tell(from, Message::Ready { key, tag });
}
