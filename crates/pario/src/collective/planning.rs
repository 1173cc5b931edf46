//! From what the ranks said to a plan: the pure planner's arguments.

use std::sync::Arc;

use pario_driver::Direction;
use pario_hints::{AccessMethod, Hints, Rmw, Sieving};
pub(super) use pario_plan::Exchange;
use pario_plan::{
    Access, Case, Client, Decision, Facts, History, LockProtocol, Members, Plan, Requested,
    Rewriting, Rounds, Striping, Tuning,
};
use pario_transport::{Rank, Transport};

use super::entry::Entry;
use crate::{Error, Mode, Result, operation::Operation, warning::warn};

/// What plans leave for later calls of a context. The same on all ranks, because
/// it comes from agreed data.
#[derive(Debug, Default)]
pub(super) struct PlanMemory {
    history: History,
    inputs: Option<PlanInputs>,
    decided: Option<Decided>,
    /// The views for which a warning was given last: once is enough.
    warned: Option<u64>,
}

/// What all calls with the same hints rest on.
#[derive(Debug)]
struct PlanInputs {
    hints: Arc<Hints>,
    facts: Facts,
    read: Tuning,
    write: Tuning,
}

impl PlanInputs {
    fn new(operation: &Operation, comm: &dyn Transport) -> PlanInputs {
        let hints = operation.hints();
        let rewriting = match holes(operation) {
            Holes::Leave => Rewriting::Forbidden,
            Holes::Rewrite | Holes::RewriteLocked => Rewriting::Allowed,
        };
        PlanInputs {
            hints: hints.clone(),
            facts: facts(operation, comm),
            read: Tuning::from_hints(hints, pario_plan::Direction::Read),
            write: Tuning {
                rewriting,
                ..Tuning::from_hints(hints, pario_plan::Direction::Write)
            },
        }
    }

    /// Whether it still holds.
    fn is_of(&self, operation: &Operation) -> bool {
        Arc::ptr_eq(&self.hints, operation.hints())
    }
}

/// The last decision, and what it was made for.
#[derive(Debug)]
struct Decided {
    direction: Direction,
    views: u64,
    lengths: Vec<u64>,
    decision: Decision,
    /// Whether every rank moves its own data, so that no plan need be made.
    is_individual: bool,
}

impl Decided {
    fn is_of(&self, operation: &Operation, lengths: impl Iterator<Item = u64>) -> bool {
        (self.direction, self.views)
            == (operation.direction(), operation.view().rank_views().family)
            && self.lengths.iter().copied().eq(lengths)
    }
}

impl PlanMemory {
    /// What was decided last, and why.
    pub(super) fn explain(&self) -> Option<String> {
        let Decided {
            direction,
            decision,
            is_individual,
            ..
        } = self.decided.as_ref()?;
        let verb = match direction {
            Direction::Read => "reads",
            Direction::Write => "writes",
        };
        let algorithm = decision.algorithm.name();
        let answers = &decision.algorithms.candidates;
        let verdict = answers.iter().find(|(name, _)| *name == algorithm);
        let reason = verdict.map_or("", |(_, verdict)| verdict.reason());
        Some(match is_individual {
            true => format!("{verb} by {algorithm}: {reason}"),
            false => format!(
                "{verb} by {algorithm}, partition {}, exchange {}: {reason}",
                decision.partition.name(),
                decision.exchange
            ),
        })
    }

    /// Whether it is known, without a look at the ranks' views, that every
    /// rank moves its own data.
    pub(super) fn knows_individual(&self, operation: &Operation, entries: &[Entry]) -> bool {
        let known = match (&self.inputs, &self.decided) {
            (Some(inputs), Some(decided)) if inputs.is_of(operation) => decided,
            _ => return false,
        };
        known.is_individual && known.is_of(operation, entries.iter().map(|entry| entry.len))
    }
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
    let peers = operation.view().rank_views();
    let views = peers.shapes.iter().zip(&peers.displacements);
    let accesses = views.zip(entries).map(|((shape, displacement), entry)| {
        Access::new(*displacement, shape.layout.clone(), entry.first, entry.len)
    });
    accesses
        .collect::<Option<_>>()
        .ok_or_else(|| Error::argument("an access reaches past the last possible byte of a file"))
}

/// The plan of a call. The choice of methods is kept for calls that move the
/// same amounts through the same views, or through views that were all moved
/// by the same distance.
pub(super) fn plan(
    operation: &Operation,
    accesses: &[Access],
    comm: &dyn Transport,
    memory: &mut PlanMemory,
) -> Planned {
    let PlanMemory {
        history,
        inputs,
        decided,
        warned,
    } = memory;
    if inputs.as_ref().is_none_or(|it| !it.is_of(operation)) {
        *decided = None;
    }
    let inputs = match inputs {
        Some(known) if known.is_of(operation) => known,
        other => other.insert(PlanInputs::new(operation, comm)),
    };
    let (direction, tuning) = match operation.direction() {
        Direction::Read => (pario_plan::Direction::Read, &inputs.read),
        Direction::Write => (pario_plan::Direction::Write, &inputs.write),
    };
    let case = Case::new(direction, accesses, &inputs.facts, tuning, history);
    let lengths = || accesses.iter().map(Access::len);
    let known = decided.take().filter(|it| it.is_of(operation, lengths()));
    let views = operation.view().rank_views().family;
    let decision = known.map_or_else(
        || {
            let decision = pario_plan::decide(&case);
            if comm.rank() == Rank(0) && *warned != Some(views) {
                *warned = Some(views);
                warn_of(&decision);
            }
            decision
        },
        |known| known.decision,
    );
    let planned = Planned {
        plan: decision.plan(&case),
        exchange: decision.exchange,
    };
    let persistent = match history.persistent {
        None => decision.remember(&case),
        Some(_) => None,
    };
    *decided = Some(Decided {
        direction: operation.direction(),
        views,
        lengths: lengths().collect(),
        decision,
        is_individual: matches!(planned.plan, Plan::Individual),
    });
    if persistent.is_some() {
        history.persistent = persistent;
    }
    planned
}

/// Says which methods that were asked for by name do not exist. One that
/// cannot be used for a call needs no word: the next call may suit it.
fn warn_of(decision: &Decision) {
    let choices = [
        ("pario_algorithm", &decision.algorithms),
        ("pario_partition", &decision.partitions),
    ];
    for (hint, choice) in choices {
        if let Some(Requested::Unknown(name)) = &choice.requested {
            let names: Vec<_> = choice.candidates.iter().map(|(name, _)| *name).collect();
            let names = names.join(", ");
            warn(&format!(
                "the hint {hint} names {name:?}, which does not exist; allowed are {names}"
            ));
        }
    }
}

fn facts(operation: &Operation, comm: &dyn Transport) -> Facts {
    let nodes = (0..comm.size()).map(|rank| comm.node_of(Rank(rank)).0);
    plan_facts(operation.handle().facts(), nodes.collect()).with_assumptions(operation.hints())
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
    let hints = operation.hints();
    let unwanted = hints.romio_ds_write == Sieving::Disable
        || matches!(
            hints.pario_write_method,
            AccessMethod::Direct | AccessMethod::List
        );
    if unwanted || !mode.can_read() {
        Holes::Leave
    } else if hints.pario_rmw == Rmw::Locked {
        Holes::RewriteLocked
    } else if mode.contains(Mode::UNIQUE_OPEN) {
        Holes::Rewrite
    } else {
        Holes::Leave
    }
}
