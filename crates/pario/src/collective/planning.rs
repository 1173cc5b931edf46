//! From what the ranks said to a plan: the pure planner's arguments.

use pario_driver::Direction;
use pario_hints::Rmw;
pub(super) use pario_plan::Exchange;
use pario_plan::{
    Access, Answers, Asked, Case, Client, Decision, Facts, History, LockProtocol, Members, Plan,
    Rounds, Striping, Tuning,
};
use pario_transport::{Rank, Transport};

use super::entry::Entry;
use crate::{Error, Mode, Result, operation::Operation, warning::warn};

/// What plans leave for later calls of a lane. The same on all ranks, because
/// it comes from agreed data.
#[derive(Debug, Default)]
pub(super) struct PlanMemory {
    history: History,
    decided: Option<Decided>,
    /// The views for which a warning was given last: once is enough.
    warned: Option<u64>,
}

/// The last decision, and what it was made for.
#[derive(Debug)]
struct Decided {
    direction: Direction,
    views: u64,
    lengths: Vec<u64>,
    tuning: Tuning,
    decision: Decision,
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
    let direction = match operation.direction() {
        Direction::Read => pario_plan::Direction::Read,
        Direction::Write => pario_plan::Direction::Write,
    };
    let tuning = Tuning::from_hints(operation.hints(), direction);
    let history = memory.history.clone();
    let case = Case::new(direction, accesses, &facts, &tuning, &history);
    let views = operation.view().serial();
    let known = memory.decided.take().filter(|known| {
        let lengths = accesses.iter().map(Access::len);
        (known.direction, known.views) == (operation.direction(), views)
            && known.lengths.iter().copied().eq(lengths)
            && known.tuning == tuning
    });
    let decided = known.unwrap_or_else(|| {
        let decision = pario_plan::decide(&case);
        if comm.rank() == Rank(0) && memory.warned != Some(views) {
            memory.warned = Some(views);
            warn_of(&decision);
        }
        Decided {
            direction: operation.direction(),
            views,
            lengths: accesses.iter().map(Access::len).collect(),
            tuning: tuning.clone(),
            decision,
        }
    });
    let planned = Planned {
        plan: decided.decision.plan(&case),
        exchange: decided.decision.exchange,
    };
    if memory.history.persistent.is_none() {
        memory.history.persistent = decided.decision.remember(&case);
    }
    memory.decided = Some(decided);
    planned
}

/// Says which methods that were asked for by name do not exist. One that
/// cannot be used for a call needs no word: the next call may suit it.
fn warn_of(decision: &Decision) {
    let choices = [
        ("pario_algorithm", &decision.algorithms),
        ("pario_partition", &decision.partitions),
    ];
    for (hint, Answers { verdicts, asked }) in choices {
        if let Some(Asked::Unknown(name)) = asked {
            let names: Vec<_> = verdicts.iter().map(|(name, _)| *name).collect();
            let names = names.join(", ");
            warn(&format!(
                "the hint {hint} names {name:?}, which does not exist; allowed are {names}"
            ));
        }
    }
}

fn facts(operation: &Operation, comm: &dyn Transport) -> Facts {
    let nodes = (0..comm.size()).map(|rank| comm.node_of(Rank(rank)).0);
    plan_facts(operation.handle().facts(), nodes.collect()).mimicking(operation.hints())
}

/// What the planner needs to know of a file's file system, for ranks on these
/// nodes.
pub fn plan_facts(facts: &pario_driver::Facts, nodes: Vec<u32>) -> Facts {
    Facts {
        nodes,
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

impl Holes {
    /// What may be done where aggregators have the stretches of the file to
    /// themselves, or not: what one reads and writes back, another may have
    /// written meanwhile.
    pub(super) fn between(self, rounds: &Rounds) -> Holes {
        let alone = rounds.aggregators.len() == 1
            || rounds
                .aggregators
                .iter()
                .all(|aggregator| aggregator.members == Members::All);
        match self {
            Holes::Rewrite if !alone => Holes::Leave,
            holes => holes,
        }
    }
}

/// Semantics rule 1, for a call that all ranks take part in. `Rewrite` holds
/// only if no rank has another write under way.
pub(super) fn holes(operation: &Operation) -> Holes {
    let mode = operation.mode();
    if !mode.can_read() {
        Holes::Leave
    } else if operation.hints().pario_rmw == Rmw::Locked {
        Holes::RewriteLocked
    } else if mode.contains(Mode::UNIQUE_OPEN) {
        Holes::Rewrite
    } else {
        Holes::Leave
    }
}
