//! From what the ranks said to a plan: the pure planner's arguments.

use pario_driver::Direction;
use pario_hints::{Hints, Rmw};
use pario_plan::{
    Access, Case, Client, Decision, Facts, History, LockProtocol, Plan, Striping, Tuning,
};
use pario_transport::{Rank, Transport};

use super::entry::Entry;
use crate::{Error, Mode, Result, operation::Operation};

/// What plans leave for later calls of a lane. The same on all ranks, because
/// it comes from agreed data.
#[derive(Debug, Default)]
pub(super) struct PlanMemory {
    history: History,
    decided: Option<Decided>,
}

/// The last decision, and what it was made for.
#[derive(Debug)]
struct Decided {
    direction: Direction,
    views: u64,
    lengths: Vec<u64>,
    decision: Decision,
}

/// How data gets from rank to rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exchange {
    /// Through memory that all ranks share.
    Shared,
    /// A message from each rank to each owner that has something of it.
    Messages,
    /// A message from each rank to each owner in each round.
    AllToAll,
    /// By node first, then one message a node and owner.
    TwoLayer,
}

/// What was decided for a call.
pub(super) struct Planned {
    pub(super) plan: Plan,
    pub(super) exchange: Exchange,
}

impl Planned {
    pub(super) const INDIVIDUAL: Planned = Planned {
        plan: Plan::Individual,
        exchange: Exchange::Messages,
    };
}

/// What each rank moves.
pub(super) fn accesses(operation: &Operation, entries: &[Entry]) -> Result<Vec<Access>> {
    let peers = operation.view().peers();
    let access = |(peer, entry): (&crate::view::Peer, &Entry)| {
        Access::new(
            peer.displacement,
            peer.layout.clone(),
            entry.first,
            entry.len,
        )
    };
    let accesses = peers.iter().zip(entries).map(access).collect::<Option<_>>();
    accesses
        .ok_or_else(|| Error::argument("an access reaches past the last possible byte of a file"))
}

/// The plan of a call. The choice of methods is kept for calls that move the
/// same amounts through the same views.
pub(super) fn plan(
    operation: &Operation,
    accesses: &[Access],
    comm: &dyn Transport,
    memory: &mut PlanMemory,
) -> Planned {
    let facts = facts(operation, comm);
    let tuning = tuning(operation.hints());
    let case = Case {
        direction: match operation.direction() {
            Direction::Read => pario_plan::Direction::Read,
            Direction::Write => pario_plan::Direction::Write,
        },
        accesses,
        facts: &facts,
        tuning: &tuning,
        history: &memory.history,
    };
    let views = operation.view().serial();
    let known = memory.decided.as_ref().is_some_and(|known| {
        let lengths = accesses.iter().map(Access::len);
        (known.direction, known.views) == (operation.direction(), views)
            && known.lengths.iter().copied().eq(lengths)
    });
    if !known {
        memory.decided = Some(Decided {
            direction: operation.direction(),
            views,
            lengths: accesses.iter().map(Access::len).collect(),
            decision: pario_plan::decide(&case),
        });
    }
    match &memory.decided {
        Some(decided) => Planned {
            plan: decided.decision.plan(&case),
            exchange: exchange(&facts, &tuning),
        },
        None => Planned::INDIVIDUAL,
    }
}

/// Shared memory on one node; between nodes by node first where nodes have
/// several ranks; or what was asked for, where it is possible.
fn exchange(facts: &Facts, tuning: &Tuning) -> Exchange {
    let nodes = facts.node_count();
    match tuning.exchange.as_deref() {
        Some("messages") => Exchange::Messages,
        Some("alltoall") => Exchange::AllToAll,
        Some("two-layer") => Exchange::TwoLayer,
        _ if nodes == 1 => Exchange::Shared,
        _ if facts.nodes.len() > nodes => Exchange::TwoLayer,
        _ => Exchange::Messages,
    }
}

fn facts(operation: &Operation, comm: &dyn Transport) -> Facts {
    let facts = operation.handle().facts();
    Facts {
        nodes: (0..comm.size())
            .map(|rank| comm.node_of(Rank(rank)).0)
            .collect(),
        striping: facts.striping.map(|it| Striping {
            unit: it.unit,
            count: it.count,
        }),
        lock_granularity: facts.lock_granularity,
        lock_protocol: match facts.file_system {
            pario_driver::FileSystem::Lustre => LockProtocol::Server,
            pario_driver::FileSystem::Gpfs => LockProtocol::Token,
            _ => LockProtocol::None,
        },
        client: match facts.client {
            pario_driver::Client::Kernel => Client::Kernel,
            pario_driver::Client::Library => Client::Library,
        },
        block_bytes: facts.block_size,
    }
}

fn tuning(_hints: &Hints) -> Tuning {
    Tuning::default()
}

/// What may be done about holes in a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holes {
    /// They stay as they are: only the ranks' runs are written.
    Leave,
    /// They may be read and written back: nobody else is writing.
    Rewrite,
    /// They may be read and written back under a lock.
    RewriteLocked,
}

/// Semantics rule 1, for a call that all ranks take part in.
pub(super) fn holes(operation: &Operation, entries: &[Entry]) -> Holes {
    let mode = operation.mode();
    if !mode.can_read() {
        Holes::Leave
    } else if operation.hints().pario_rmw == Rmw::Locked {
        Holes::RewriteLocked
    } else if mode.contains(Mode::UNIQUE_OPEN) && entries.iter().all(Entry::is_alone) {
        Holes::Rewrite
    } else {
        Holes::Leave
    }
}
