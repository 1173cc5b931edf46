//! Who is who: ranks, nodes and tags.

use std::fmt;

/// The number of a rank within its transport, from 0 to size - 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rank(pub u32);

impl Rank {
    /// The rank as an index of a slice that has one element a rank.
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for Rank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A node: ranks of the same node can share memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Node(pub u32);

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What a message is about. Messages of one sender with one tag arrive in the
/// order in which they were sent; different tags never mix.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag(pub u32);

impl Tag {
    /// Tags from here on belong to this crate's collectives; callers use the
    /// ones below.
    pub const FIRST_RESERVED: Tag = Tag(0xffff_0000);

    /// The first tag of posted transfers.
    pub(crate) const FIRST_DATA: Tag = Tag(0xffff_8000);

    pub(crate) const BARRIER: Tag = Tag(0xffff_0001);
    pub(crate) const BROADCAST: Tag = Tag(0xffff_0002);
    pub(crate) const ALL_GATHER: Tag = Tag(0xffff_0003);
    pub(crate) const SEGMENT: Tag = Tag(0xffff_0004);
}
