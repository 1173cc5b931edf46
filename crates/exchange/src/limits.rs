//! The sizes of a call, and the memory that follows from them.

use std::{ops::Range, sync::Arc};

use crate::{Direction, Groups, Rank, Tag};

/// Sizes, the same on all ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The size of a window: the collective buffer.
    pub window_bytes: u64,
    /// The size of a data message at most. At least the number of ranks of
    /// the largest group, so that a slice is never less than a byte of each.
    pub slice_bytes: u64,
    /// Windows of a realm under way at most; two for any overlap.
    pub depth: u32,
    /// Staging slices of a realm at most.
    pub staging: u32,
    /// Buffers at most of a rank that sends for its node, per realm.
    pub node_buffers: u32,
    /// Windows end at multiples of it where one is within reach: the stripe,
    /// lock or page unit.
    pub unit: u64,
    /// Calls that move no more than this, all ranks together, are eager; 0
    /// for none.
    pub eager_bytes: u64,
    /// The tags of this rank's receives: those of a rank's simultaneous calls
    /// differ.
    pub tags: Range<u16>,
}

impl Limits {
    /// Bytes of buffers that a rank holds at most, if it aggregates
    /// `aggregated` realms, relays for `relayed` and has `children` in the
    /// tree. What the ranks move, how many pieces it has, and how many ranks
    /// there are do not enter. A node's relays together hold at most
    /// `node_buffers` slices per realm: with many realms, slices should be
    /// short.
    pub fn memory_max(&self, aggregated: u64, relayed: u64, children: u64) -> u64 {
        let windows = u64::from(self.depth) * self.window_bytes;
        let staging = u64::from(self.staging) * self.slice_bytes;
        let node = u64::from(self.node_buffers) * self.slice_bytes;
        aggregated * (windows + staging) + relayed * node + (children + 2) * self.eager_bytes
    }

    /// Why these limits cannot be used, if so.
    pub fn check(&self, groups: &Groups) -> Result<(), String> {
        let largest = (0..groups.count()).map(|group| groups.members(group).len() as u64);
        let largest = largest.max().unwrap_or(1);
        let positive = [
            ("window_bytes", self.window_bytes),
            ("depth", self.depth.into()),
            ("staging", self.staging.into()),
            ("node_buffers", self.node_buffers.into()),
            ("unit", self.unit),
        ];
        if let Some((name, _)) = positive.iter().find(|(_, value)| *value == 0) {
            return Err(format!("{name} is 0; it must be at least 1"));
        }
        if self.slice_bytes < largest {
            let slice = self.slice_bytes;
            return Err(format!(
                "slice_bytes is {slice}; a group of {largest} ranks needs at least as many"
            ));
        }
        if self.tags.is_empty() || self.tags.end > Tag::BOUND {
            let Range { start, end } = self.tags;
            let bound = Tag::BOUND;
            return Err(format!(
                "tags are {start}..{end}; there must be one, and all below {bound}"
            ));
        }
        Ok(())
    }
}

/// What all ranks know of a call before it starts.
#[derive(Clone, Debug)]
pub struct Setting {
    /// Which way the data goes.
    pub direction: Direction,
    /// Who combines data with whom.
    pub groups: Arc<Groups>,
    /// The root of the tree, which carries out eager calls: a rank that has
    /// the file open.
    pub root: Rank,
    /// Sizes.
    pub limits: Limits,
}
