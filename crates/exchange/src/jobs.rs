//! Outstanding jobs, and the tags of receives.

use std::ops::Range;

use crate::{Buffer, Job, Placement, Rank, Realm, Slice, Tag};

/// A window of an aggregator.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WindowId {
    pub(crate) realm: Realm,
    pub(crate) number: u64,
}

/// A job, which determines what follows when it is complete.
#[derive(Debug)]
pub(crate) enum Doing {
    /// A member's copy: the last one tells who asked for it.
    Copy {
        asker: Rank,
        key: Job,
        bytes: u64,
    },
    /// An aggregator waits for the ranks of its group to fill or empty a window.
    Fill(WindowId),
    /// A relay waits for ranks of its group to fill or empty a node buffer;
    /// then a write is sent.
    Load {
        slice: Slice,
        buffer: Buffer,
        send: Option<(Rank, Tag)>,
    },
    /// A relay's message to an aggregator.
    RelaySend {
        realm: Realm,
        buffer: Buffer,
    },
    /// A relay's message from an aggregator.
    RelayReceive {
        slice: Slice,
        buffer: Buffer,
        tag: Tag,
    },
    /// A slice on its way to the window.
    Receive {
        window: WindowId,
        file: Range<u64>,
        parts: Vec<Placement>,
        staging: Option<Buffer>,
        tag: Tag,
    },
    /// A received slice is put in its places.
    Scatter {
        window: WindowId,
        staging: Buffer,
    },
    /// A slice waits for its receive to be posted.
    Offer {
        window: WindowId,
        rest: usize,
    },
    /// A slice is packed before it is sent.
    Gather {
        window: WindowId,
        rest: usize,
        staging: Buffer,
        tag: Tag,
        bytes: u64,
    },
    /// A slice is sent.
    Send {
        window: WindowId,
        rest: usize,
        staging: Option<Buffer>,
    },
    /// A window's transfer.
    Transfer(WindowId),
    /// The parts of an eager call.
    Pack,
    Unpack,
    TransferEager,
}

impl Doing {
    /// Whether no other rank takes part, so that it completes even if a rank
    /// is lost.
    pub(crate) fn is_local(&self) -> bool {
        match self {
            Doing::Copy { .. }
            | Doing::Scatter { .. }
            | Doing::Gather { .. }
            | Doing::Transfer(_)
            | Doing::Pack
            | Doing::Unpack
            | Doing::TransferEager => true,
            Doing::Fill(_)
            | Doing::Load { .. }
            | Doing::RelaySend { .. }
            | Doing::RelayReceive { .. }
            | Doing::Receive { .. }
            | Doing::Offer { .. }
            | Doing::Send { .. } => false,
        }
    }
}

/// All outstanding jobs.
#[derive(Debug, Default)]
pub(crate) struct Jobs {
    slots: Vec<Option<Doing>>,
    free: Vec<u32>,
}

impl Jobs {
    pub(crate) fn start(&mut self, doing: Doing) -> Job {
        let index = self.free.pop().unwrap_or(self.slots.len() as u32);
        match self.slots.get_mut(index as usize) {
            Some(slot) => *slot = Some(doing),
            None => self.slots.push(Some(doing)),
        }
        Job(index)
    }

    /// Removes a job that is complete.
    ///
    /// # Panics
    /// When there is no such job: the driver loop completed it twice.
    pub(crate) fn finish(&mut self, job: Job) -> Doing {
        let slot = self.slots.get_mut(job.0 as usize).and_then(Option::take);
        self.free.push(job.0);
        slot.unwrap_or_else(|| panic!("{job:?} is not outstanding"))
    }

    pub(crate) fn outstanding(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    pub(crate) fn local(&self) -> usize {
        let doing = self.slots.iter().flatten();
        doing.filter(|doing| doing.is_local()).count()
    }
}

/// The tags of a rank's receives in a call.
#[derive(Debug)]
pub(crate) struct Tags {
    unused: Range<u16>,
    free: Vec<Tag>,
    /// Whether a receive waits for a tag.
    is_wanted: bool,
}

impl Tags {
    pub(crate) fn new(range: Range<u16>) -> Tags {
        Tags {
            unused: range,
            free: Vec::new(),
            is_wanted: false,
        }
    }

    pub(crate) fn take(&mut self) -> Option<Tag> {
        let tag = self.free.pop().or_else(|| self.unused.next().map(Tag));
        self.is_wanted |= tag.is_none();
        tag
    }

    /// Whether a tag has become free while a receive waits for one; true once.
    pub(crate) fn is_relief(&mut self) -> bool {
        self.is_wanted && !self.free.is_empty() && std::mem::take(&mut self.is_wanted)
    }

    pub(crate) fn put(&mut self, tag: Tag) {
        self.free.push(tag);
    }
}
