//! The output of a machine.

use std::{ops::Range, sync::Arc};

use crate::{Buffer, Finished, Job, Kind, Message, Part, Place, Rank, Realm, Span, Table, Tag};

/// What a window holds, for its transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contents {
    /// The image of the realm's bytes in the window's range.
    Image,
    /// The parts of ranks, one after the other from the start of the buffer
    /// on, each in the order of the file. For windows whose data is sparse.
    Packed,
}

/// One rank's bytes between a staging slice and a window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Whose bytes, and how many.
    pub part: Part,
    /// Where they lie in the slice, one after the other.
    pub at: u64,
    /// Where they lie in the window.
    pub place: Place,
}

/// An action. Copies and transfers go to the file or from it as the call's
/// direction says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Make the plan from these entries, or take the one that another rank of
    /// the node has made; then give [`Event::Planned`](crate::Event::Planned),
    /// or [`Event::MovedAlone`](crate::Event::MovedAlone) where every rank
    /// moves its own data.
    Plan(Arc<Table>),
    /// Send a control message to a rank of another group. The payload is
    /// short; its bytes are taken at once.
    Control {
        /// The receiver.
        to: Rank,
        /// The message.
        message: Message,
        /// Bytes that follow it.
        payload: Vec<Span>,
    },
    /// Hand a note to a rank of this group.
    Notify {
        /// The receiver.
        to: Rank,
        /// The message.
        message: Message,
        /// Bytes that it may use where they are.
        payload: Vec<Span>,
    },
    /// Post a receive. The message is exactly as long as the span.
    Receive {
        /// Named by the event when it is complete.
        job: Job,
        /// The sender.
        from: Rank,
        /// The tag.
        tag: Tag,
        /// Its place in a buffer.
        span: Span,
    },
    /// Send data.
    Send {
        /// Named by the event when the bytes may be overwritten.
        job: Job,
        /// The receiver.
        to: Rank,
        /// The tag.
        tag: Tag,
        /// The bytes.
        span: Span,
    },
    /// Copy this rank's data in a range of a realm between its memory and a
    /// buffer, which may belong to another rank of the group. The ranks that do
    /// so are counted, so that the last one is known.
    Copy {
        /// Named by the event when it is complete.
        job: Job,
        /// The realm.
        realm: Realm,
        /// The range.
        file: Range<u64>,
        /// The buffer.
        buffer: Buffer,
        /// The place in it.
        place: Place,
        /// How many ranks of the group are asked to do so.
        among: u32,
    },
    /// Copy the parts of a slice between a staging buffer and a window.
    Arrange {
        /// Named by the event when it is complete.
        job: Job,
        /// The realm.
        realm: Realm,
        /// The range.
        file: Range<u64>,
        /// The slice, packed.
        staging: Buffer,
        /// The window.
        window: Buffer,
        /// The parts.
        parts: Vec<Placement>,
    },
    /// Move a window between its buffer and the file: as its runs, or with
    /// holes read or rewritten where the rules allow.
    Transfer {
        /// Named by the event when it is over.
        job: Job,
        /// The realm.
        realm: Realm,
        /// The range. Its image starts at the start of the buffer.
        file: Range<u64>,
        /// The window.
        buffer: Buffer,
        /// Its contents.
        contents: Contents,
        /// The ranks with data in it, in the order in which a packed window
        /// holds their parts.
        parts: Vec<Part>,
    },
    /// Pack all of this rank's data.
    Pack {
        /// Named by the event when it is complete.
        job: Job,
        /// The buffer, filled from its start.
        buffer: Buffer,
    },
    /// Move the ranks' data of an eager call between spans and the file.
    TransferEager {
        /// Named by the event when it is over.
        job: Job,
        /// The entries of all ranks.
        table: Arc<Table>,
        /// All data of each rank, packed; ascending by rank.
        parts: Vec<(Rank, Vec<Span>)>,
    },
    /// Unpack this rank's data of an eager read as far as it lies below
    /// `stop`.
    Unpack {
        /// Named by the event when it is complete.
        job: Job,
        /// All its data, packed.
        spans: Vec<Span>,
        /// The first byte of the file that was not read.
        stop: u64,
    },
    /// Request one more buffer of a kind, answered at once by
    /// [`Acquired`](crate::Event::Acquired) or
    /// [`Refused`](crate::Event::Refused), without waiting.
    TryAcquire(Kind),
    /// A buffer that was acquired or that came with a message is free again.
    Release(Buffer),
    /// The call is over: nothing is outstanding, and nothing follows.
    Finish(Finished),
}
