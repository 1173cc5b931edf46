//! The sizes of a call, and the memory that follows from them.

use std::{ops::Range, sync::Arc};

use crate::{Accesses, Direction, Groups, Rank, Tag};

/// Sizes, the same on all ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The maximum size of a window: the collective buffer. A plan may have
    /// smaller ones.
    pub window_bytes: u64,
    /// The maximum size of a data message. At least the number of ranks of
    /// the largest group, so that a slice can hold a byte of each.
    pub slice_bytes: u64,
    /// The maximum number of windows per realm in flight; overlap needs two.
    pub depth: u32,
    /// The maximum number of staging buffers per realm.
    pub staging: u32,
    /// The maximum number of node buffers per relay and realm.
    pub node_buffers: u32,
    /// Windows end at multiples of it where one is within reach: the stripe,
    /// lock or page unit.
    pub unit: u64,
    /// Calls that move no more than this, all ranks together, are eager. With
    /// 0, no call is.
    pub eager_bytes: u64,
    /// The tags of this rank's receives. Calls that a rank makes at the same
    /// time need different ones.
    pub tags: Range<u16>,
}

impl Limits {
    /// The size of the windows of a plan.
    pub fn window_of(&self, accesses: &impl Accesses) -> u64 {
        accesses.window_bytes().clamp(1, self.window_bytes)
    }

    /// The maximum size of a rank's buffers, if it aggregates `aggregated`
    /// realms, relays for `relayed` and has `children` in the tree. It does not
    /// depend on the amount of data, its pieces or the number of ranks. The
    /// relays of a node together hold up to `node_buffers` slices per realm:
    /// with many realms, slices should be short.
    pub fn memory_max(&self, aggregated: u64, relayed: u64, children: u64) -> u64 {
        let windows = u64::from(self.depth) * self.window_bytes;
        let staging = u64::from(self.staging) * self.slice_bytes;
        let node = u64::from(self.node_buffers) * self.slice_bytes;
        aggregated * (windows + staging) + relayed * node + (children + 2) * self.eager_bytes
    }

    /// Fails if these limits cannot be used.
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

/// The part of a call that all ranks know before it starts.
#[derive(Clone, Debug)]
pub struct Setting {
    /// The direction of the call.
    pub direction: Direction,
    /// Which ranks combine their data.
    pub groups: Arc<Groups>,
    /// The root of the tree, which carries out eager calls: a rank that has
    /// the file open.
    pub root: Rank,
    /// Sizes.
    pub limits: Limits,
}
