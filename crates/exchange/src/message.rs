//! Messages between machines. The crate's description has their order.

use std::{ops::Range, sync::Arc};

use crate::{Buffer, Failure, Job, Kind, Rank, Realm, Table, Tag};

/// Bytes of one rank in a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The rank.
    pub rank: Rank,
    /// The number of its bytes.
    pub bytes: u64,
}

/// Where the bytes of a range lie in a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The buffer is an image of the realm from `origin` on: a byte lies at
    /// `at` plus the number of the realm's bytes between `origin` and it.
    Image {
        /// The byte of the file whose image is at `at`.
        origin: u64,
        /// Where the image starts.
        at: u64,
    },
    /// One after the other, from `at` on.
    Packed {
        /// Where the first byte lies.
        at: u64,
    },
}

/// The form of a data message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The parts of the ranks, one after the other.
    Parts,
    /// The realm's bytes in the range, once for all ranks that want them.
    Image,
}

/// A range of the file that one data message carries for a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slice {
    /// The realm.
    pub realm: Realm,
    /// The range.
    pub file: Range<u64>,
    /// The form of the message.
    pub form: Form,
    /// The ranks with data in it, ascending.
    pub parts: Vec<Part>,
    /// The length of the message.
    pub bytes: u64,
}

impl Slice {
    /// Where each rank's bytes lie in the message.
    pub(crate) fn places(&self) -> impl Iterator<Item = (Part, Place)> {
        let origin = self.file.start;
        self.parts.iter().scan(0, move |at, part| {
            let place = match self.form {
                Form::Image => Place::Image { origin, at: 0 },
                Form::Parts => Place::Packed { at: *at },
            };
            *at += part.bytes;
            Some((*part, place))
        })
    }
}

/// The result of a call: the lowest byte of the file that was not moved, and
/// the failure of the lowest rank that has one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The first byte that was not moved; `u64::MAX` if all were.
    pub stop: u64,
    /// The reason, unless the file ended there.
    pub failure: Option<Failure>,
}

impl Progress {
    /// Everything was moved.
    pub const ALL: Progress = Progress {
        stop: u64::MAX,
        failure: None,
    };

    pub(crate) fn merge(&mut self, other: Progress) {
        self.stop = self.stop.min(other.stop);
        self.failure = Failure::first(self.failure.take(), other.failure);
    }
}

/// The root's decision on the entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// All ranks plan from these entries.
    Plan(Arc<Table>),
    /// The call is over.
    Over(Progress),
}

/// A message between machines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// To the parent in the tree: the entries of a subtree. The data of an
    /// eager write is the payload.
    Up {
        /// Their entries.
        table: Table,
        /// Whether their data is all there, or for a read, may be sent with
        /// the answer.
        is_eager: bool,
    },
    /// To a child in the tree. The data of an eager read is the payload.
    Down(Decision),
    /// To the parent: the data of an eager read has been copied.
    Taken,
    /// From an aggregator: the receive of this slice is posted; fill it and
    /// send it with this tag.
    Grant {
        /// What to send.
        slice: Slice,
        /// The tag to use.
        tag: Tag,
    },
    /// From an aggregator: this slice has been read; post a receive.
    Offer {
        /// What will be sent.
        slice: Slice,
        /// Named in the answer.
        key: Job,
    },
    /// The receive of an offer is posted.
    Ready {
        /// The offer.
        key: Job,
        /// The tag to use.
        tag: Tag,
    },
    /// From an aggregator: the data of these ranks in this range is not
    /// moved.
    Discard {
        /// The realm.
        realm: Realm,
        /// The range.
        file: Range<u64>,
        /// The ranks of the receiver's group that have data there.
        ranks: Vec<Rank>,
    },
    /// To a rank of the same group: copy your bytes of a range to or from a
    /// buffer.
    Move {
        /// Named in the answer.
        key: Job,
        /// The realm.
        realm: Realm,
        /// The range.
        file: Range<u64>,
        /// The buffer.
        buffer: Buffer,
        /// Where in it.
        place: Place,
        /// How many ranks were asked to fill or empty this buffer.
        among: u32,
    },
    /// From the last of these ranks: the bytes of all are copied.
    Moved {
        /// The `Move`.
        key: Job,
    },
    /// To a rank of the same group: your bytes of a range are not moved.
    Skip {
        /// The realm.
        realm: Realm,
        /// The range.
        file: Range<u64>,
    },
    /// To the parent: the result of a subtree.
    Agree(Progress),
    /// To a child: the result of the call.
    Agreed(Progress),
}

impl Message {
    /// Its length on the wire, without its payload.
    pub fn wire_bytes(&self) -> u64 {
        let failure = |failure: &Option<Failure>| match failure {
            None => 1,
            Some(it) => 9 + it.detail.len() as u64,
        };
        let progress = |it: &Progress| 8 + failure(&it.failure);
        let slice = |slice: &Slice| 33 + 12 * slice.parts.len() as u64;
        1 + match self {
            Message::Up { table, .. } => table.wire_bytes() + 1,
            Message::Down(Decision::Plan(table)) => table.wire_bytes() + 1,
            Message::Down(Decision::Over(it)) => progress(it) + 1,
            Message::Agree(it) | Message::Agreed(it) => progress(it),
            Message::Grant { slice: it, .. } => slice(it) + 2,
            Message::Offer { slice: it, .. } => slice(it) + 4,
            Message::Discard { ranks, .. } => 24 + 4 * ranks.len() as u64,
            Message::Move { buffer, place, .. } => {
                let kind = match buffer.kind {
                    Kind::Window(_) | Kind::Staging(_) | Kind::Node(_) => 5,
                    Kind::Eager | Kind::EagerWindow | Kind::Arrival => 1,
                };
                let place = match place {
                    Place::Image { .. } => 17,
                    Place::Packed { .. } => 9,
                };
                24 + 8 + kind + place + 4
            }
            Message::Skip { .. } => 20,
            Message::Ready { .. } => 6,
            Message::Moved { .. } => 4,
            Message::Taken => 0,
        }
    }
}
