//! Names of ranks, realms, buffers, tags and jobs.

use std::ops::Range;

/// A rank of the communicator that opened the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rank(pub u32);

impl Rank {
    /// The rank as an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// One realm of the plan, by its index; every realm has one aggregator, and a
/// rank may aggregate several.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Realm(pub u32);

/// The tag of a data message: below [`Tag::BOUND`], the least upper bound
/// that MPI guarantees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag(pub u16);

impl Tag {
    /// The number of tags.
    pub const BOUND: u16 = 32768;
}

/// An operation that the machine has started and that is not complete. The
/// number is unique among outstanding jobs and reused afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Job(pub u32);

/// The purpose of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A window of a realm, at its aggregator.
    Window(Realm),
    /// A slice of packed bytes at an aggregator, on its way between the
    /// network and scattered places of a window.
    Staging(Realm),
    /// A slice of packed bytes at the rank that sends or receives for its
    /// node.
    Node(Realm),
    /// This rank's own data of an eager call.
    Eager,
    /// The data that the root reads in an eager call.
    EagerWindow,
    /// The payload of an eager message, as the driver loop received it.
    Arrival,
}

/// A buffer. Ranks of a group address each other's, so it names its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Buffer {
    /// The rank whose machine manages it.
    pub owner: Rank,
    /// Its purpose.
    pub kind: Kind,
    /// Its number among those of this kind.
    pub index: u32,
}

/// Bytes of a buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// The buffer.
    pub buffer: Buffer,
    /// Which bytes of it.
    pub range: Range<u64>,
}

impl Span {
    /// The number of bytes.
    pub fn bytes(&self) -> u64 {
        self.range.end - self.range.start
    }
}

/// The next `bytes` of a list of spans, and the list without them.
pub(crate) fn split(spans: &mut Vec<Span>, mut bytes: u64) -> Vec<Span> {
    let mut taken = Vec::new();
    while bytes > 0 && !spans.is_empty() {
        let first = &mut spans[0];
        let here = first.bytes().min(bytes);
        let middle = first.range.start + here;
        taken.push(Span {
            buffer: first.buffer,
            range: first.range.start..middle,
        });
        first.range.start = middle;
        bytes -= here;
        if first.range.is_empty() {
            spans.remove(0);
        }
    }
    taken
}
