//! Every rank's own data.

use std::ops::Range;

use crate::{Accesses, Action, Buffer, Job, Message, Place, Rank, Realm, core::Core, jobs::Doing};

#[derive(Debug)]
pub(crate) struct Member {
    /// Data bytes that have not been requested, or whose copy is not complete.
    /// So a rank needs no list of windows to know when it is done.
    remaining: u64,
}

impl Member {
    pub(crate) fn new(bytes: u64) -> Member {
        Member { remaining: bytes }
    }

    pub(crate) fn is_done(&self) -> bool {
        self.remaining == 0
    }

    pub(crate) fn copy<A: Accesses>(
        &self,
        core: &mut Core<A>,
        (asker, key): (Rank, Job),
        (realm, file): (Realm, Range<u64>),
        buffer: Buffer,
        (place, among): (Place, u32),
    ) {
        let bytes = core.bytes(core.me, realm, file.clone());
        let job = core.jobs.start(Doing::Copy { asker, key, bytes });
        core.counters.copies += 1;
        core.out.push(Action::Copy {
            job,
            realm,
            file,
            buffer,
            place,
            among,
        });
    }

    pub(crate) fn copied<A: Accesses>(
        &mut self,
        core: &mut Core<A>,
        (asker, key): (Rank, Job),
        bytes: u64,
        is_last: bool,
    ) {
        self.account(bytes);
        if is_last {
            core.tell(asker, Message::Moved { key });
        }
    }

    pub(crate) fn skip<A: Accesses>(&mut self, core: &Core<A>, realm: Realm, file: Range<u64>) {
        self.account(core.bytes(core.me, realm, file));
    }

    fn account(&mut self, bytes: u64) {
        let left = self.remaining.checked_sub(bytes);
        self.remaining = left.expect("no byte of a rank is asked for twice");
    }
}
