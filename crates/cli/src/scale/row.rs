//! What is measured of one number of ranks.

use serde::{Deserialize, Serialize};

use pario_types::Direction;

/// A number of ranks on a number of nodes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Row {
    pub(super) ranks: u32,
    pub(super) nodes: u32,
    /// Bytes that all ranks write, and read, in a repeat.
    pub(super) bytes: u64,
    /// The peak of RssAnon + RssShmem over all ranks, less what they had after touching their
    /// buffers: the files' own memory, and what the calls need.
    pub(super) memory_bytes: u64,
    pub(super) write: Side,
    pub(super) read: Side,
}

/// One direction, over all ranks.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Side {
    /// How the last call was carried out.
    pub(super) plan: String,
    /// One entry per repeat.
    pub(super) repeats: Vec<Repeat>,
}

/// The costs of one repeat, over all ranks.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Repeat {
    pub(super) seconds: f64,
    /// Processor time of all threads.
    pub(super) cpu_seconds: f64,
    /// Messages to ranks of other nodes, and their bytes.
    pub(super) messages_between_nodes: u64,
    pub(super) bytes_between_nodes: u64,
    /// Messages to ranks of the same node, and their bytes.
    pub(super) messages_within_node: u64,
    pub(super) bytes_within_node: u64,
    pub(super) allocations: u64,
    pub(super) allocated_bytes: u64,
    /// Bytes exchanged between nodes in the last call, at both ends, and those of them that moved
    /// while their rank moved a window between memory and file.
    pub(super) exchanged_bytes: u64,
    pub(super) overlapped_bytes: u64,
}

impl Row {
    pub(super) fn side(&self, direction: Direction) -> &Side {
        match direction {
            Direction::Write => &self.write,
            Direction::Read => &self.read,
        }
    }
}

impl Side {
    /// The median of a cost, the lower one of two.
    pub(super) fn median(&self, cost: impl Fn(&Repeat) -> f64) -> f64 {
        let mut costs: Vec<f64> = self.repeats.iter().map(cost).collect();
        costs.sort_by(f64::total_cmp);
        costs
            .get(costs.len().saturating_sub(1) / 2)
            .copied()
            .unwrap_or(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_ignores_an_outlier() {
        let side = |seconds: &[f64]| Side {
            repeats: seconds
                .iter()
                .map(|seconds| Repeat {
                    seconds: *seconds,
                    ..Repeat::default()
                })
                .collect(),
            ..Side::default()
        };
        let median = |seconds: &[f64]| side(seconds).median(|it| it.seconds);
        assert_eq!(median(&[2.0, 9.0, 1.0]), 2.0);
        assert_eq!(median(&[2.0, 1.0]), 1.0);
        assert_eq!(median(&[]), 0.0);
    }
}
