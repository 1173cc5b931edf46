//! What the planner learns of the file and the hints.

use std::sync::Arc;

use pario_driver::{Direction, Latency};
use pario_hints::Hints;
use pario_plan::{Facts, Placement, Rewriting, Tuning};
use pario_transport::{Rank, Transport};

use crate::{
    collective::holes::{Holes, holes},
    operation::Operation,
};

/// Input of the planner that depends on the hints and the write protocol only.
#[derive(Debug)]
pub(super) struct PlanInputs {
    hints: Arc<Hints>,
    holes: Holes,
    pub(super) facts: Facts,
    pub(super) read: Tuning,
    pub(super) write: Tuning,
}

impl PlanInputs {
    pub(super) fn new(operation: &Operation, comm: &dyn Transport) -> PlanInputs {
        let hints = operation.hints();
        let holes = holes(operation);
        let rewriting = match holes {
            Holes::Leave => Rewriting::Forbidden,
            Holes::Rewrite | Holes::RewriteLocked => Rewriting::Allowed,
            Holes::RewriteLeased => Rewriting::WithLease,
        };
        PlanInputs {
            hints: hints.clone(),
            holes,
            facts: facts(operation, comm),
            read: Tuning::from_hints(hints, Direction::Read),
            write: Tuning {
                rewriting,
                ..Tuning::from_hints(hints, Direction::Write)
            },
        }
    }

    /// Whether it is still valid.
    pub(super) fn is_of(&self, operation: &Operation) -> bool {
        Arc::ptr_eq(&self.hints, operation.hints()) && self.holes == holes(operation)
    }
}

fn facts(operation: &Operation, comm: &dyn Transport) -> Facts {
    let nodes = (0..comm.size()).map(|rank| comm.node_of(Rank(rank)).0);
    let facts = plan_facts(operation.handle().facts(), nodes.collect());
    let placement = operation.placement();
    Facts {
        striping: placement.map(Placement::striping).or(facts.striping),
        placement: placement.cloned(),
        ..facts
    }
    .with_assumptions(operation.hints())
}

/// The planner's facts about a file system, for ranks on these nodes.
pub fn plan_facts(facts: &pario_driver::Facts, nodes: Vec<u32>) -> Facts {
    Facts {
        nodes,
        striping: facts.striping,
        placement: facts.placement.clone(),
        lock_granularity: facts.lock_granularity,
        lock_protocol: facts.file_system.lock_protocol(),
        client: facts.client,
        in_memory: facts.file_system.latency(Direction::Read) == Latency::Memory,
        block_bytes: facts.block_size,
        // Every driver has at least threads.
        nonblocking: true,
    }
}
