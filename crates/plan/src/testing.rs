//! Cases for tests.

use pario_layout::{Basic, Datatype, Layout};

use pario_types::{Component, Storage};

use crate::{Access, Case, Direction, Facts, History, Placement, Striping, Tuning};

/// The parts of a case; by default a write on one node.
#[derive(Clone, Debug)]
pub(crate) struct Fixture {
    pub(crate) direction: Direction,
    pub(crate) accesses: Vec<Access>,
    pub(crate) facts: Facts,
    pub(crate) tuning: Tuning,
    pub(crate) history: History,
}

impl Fixture {
    pub(crate) fn new(accesses: Vec<Access>) -> Fixture {
        Fixture {
            direction: Direction::Write,
            facts: Facts::one_node(accesses.len()),
            accesses,
            tuning: Tuning::default(),
            history: History::default(),
        }
    }

    /// Stripes of `unit` bytes on these servers, one stripe of a cycle each.
    pub(crate) fn overstripe(&mut self, unit: u64, servers: &[u32]) {
        let striping = Striping {
            unit,
            count: servers.len() as u64,
        };
        self.facts.striping = Some(striping);
        self.facts.placement = Placement::new(vec![Component {
            file: 0..u64::MAX,
            striping,
            storage: Storage::Servers(servers.to_vec()),
        }]);
    }

    pub(crate) fn case(&self) -> Case<'_> {
        Case::new(
            self.direction,
            &self.accesses,
            &self.facts,
            &self.tuning,
            &self.history,
        )
    }
}

/// A contiguous access.
pub(crate) fn dense(at: u64, len: u64) -> Access {
    Access::new(at, Layout::dense(1), 0, len).unwrap()
}

/// Pieces of `len` bytes, `stride` apart, `bytes` in all.
pub(crate) fn strided(at: u64, len: u64, stride: i64, bytes: u64) -> Access {
    let block = Datatype::contiguous(len, &Basic::Byte.into()).unwrap();
    let tile = Datatype::resized(&block, 0, stride).unwrap();
    Access::new(at, tile.layout().clone(), 0, bytes).unwrap()
}
