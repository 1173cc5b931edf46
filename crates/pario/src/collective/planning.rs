//! Plans of collective calls, from the ranks' entries and the file's facts.

mod decided;
mod inputs;

pub use inputs::plan_facts;

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use pario_driver::Direction;
use pario_exchange::Packing;
use pario_hints::Hints;
pub(super) use pario_plan::Exchange;
use pario_plan::{
    Access, Case, Decision, History, Plan, Requested, Tuning,
    coverage::Proof,
    partition::{Partition, Persistent},
};
use pario_transport::{Rank, Transport};

use self::{
    decided::{Decided, Place},
    inputs::PlanInputs,
};
use super::{entry::Entry, turns::Turns};
use crate::{Error, Result, operation::Operation, view::RankViews, warning::warn};

/// What the calls of a file leave for later ones, blocking and in the background.
#[derive(Clone, Debug, Default)]
pub(super) struct SharedHistory(Arc<Mutex<History>>);

impl SharedHistory {
    fn get(&self) -> MutexGuard<'_, History> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether an earlier call may still determine the realms of a later one, if they persist.
    pub(super) fn is_open(&self) -> bool {
        self.get().persistent.is_none()
    }
}

/// Whether the hints request realms that persist from call to call.
pub(crate) fn have_persistent_realms(hints: &Hints) -> bool {
    let partition = Tuning::from_hints(hints, Direction::Read).partition;
    partition.is_some_and(|name| name.starts_with(Persistent::ANY.name()))
}

/// Plans and decisions kept for later calls of a context. The same on all ranks,
/// because they follow from agreed data.
#[derive(Debug, Default)]
pub(super) struct PlanMemory {
    history: SharedHistory,
    inputs: Option<PlanInputs>,
    decided: Option<Decided>,
    last: LastCall,
    /// How many calls have been planned.
    calls: u64,
    /// The views for which a warning was printed last.
    warned: Option<u64>,
}

/// The last call that was planned. A call that moves the same bytes reuses its
/// plan.
#[derive(Debug, Default)]
struct LastCall {
    /// The views of all ranks: their family and where rank 0's starts.
    views: Option<(u64, u64)>,
    entries: Vec<Entry>,
    accesses: Arc<Vec<Access>>,
    /// Whether the ranks' bytes are known to be disjoint; computed on first use.
    proof: Arc<OnceLock<Proof>>,
    planned: Option<Planned>,
    /// The plan as the exchange between nodes needs it.
    exchanged: Option<(Packing, Arc<pario_exchange::Planned>)>,
}

/// How a call is to be carried out.
#[derive(Clone, Copy, Debug)]
pub(super) struct CallPlan<'a> {
    pub(super) plan: &'a Plan,
    pub(super) exchange: Exchange,
    /// What each rank moves.
    pub(super) accesses: &'a Arc<Vec<Access>>,
    pub(super) proof: &'a Arc<OnceLock<Proof>>,
    /// Whether all ranks hold a lock on the file together.
    pub(super) group_locked: bool,
    /// Whether a lease on the file would pay off, so that holes can be written.
    pub(super) is_worth_lease: bool,
    /// Which planned call of the context it is, the same on all ranks.
    pub(super) number: u64,
}

impl PlanMemory {
    pub(super) fn of(history: SharedHistory) -> PlanMemory {
        PlanMemory {
            history,
            ..PlanMemory::default()
        }
    }

    /// The last decision and its reason.
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
        let chosen = answers.iter().find(|(name, _)| *name == algorithm);
        let reason = chosen.map_or("", |(_, fitness)| fitness.reason());
        Some(match is_individual {
            true => format!("{verb} by {algorithm}: {reason}"),
            false => format!(
                "{verb} by {algorithm}, partition {}, exchange {}: {reason}",
                decision.partition.name(),
                decision.exchange
            ),
        })
    }

    /// Whether every rank is known to move its own data, without looking at the
    /// ranks' views.
    pub(super) fn knows_individual(&self, operation: &Operation, entries: &[Entry]) -> bool {
        // Whether a group lock can be taken depends on where the data is.
        if operation.hints().pario_group_lock {
            return false;
        }
        let (inputs, known) = match (&self.inputs, &self.decided) {
            (Some(inputs), Some(decided)) if inputs.is_of(operation) => (inputs, decided),
            _ => return false,
        };
        known.is_individual && {
            let place = Place::of(operation, entries, &inputs.facts);
            known.is_of(operation, place, entries.iter().map(|entry| entry.len))
        }
    }
}

/// What was decided for a call.
#[derive(Debug)]
struct Planned {
    direction: Direction,
    plan: Plan,
    exchange: Exchange,
    group_locked: bool,
    is_worth_lease: bool,
}

impl LastCall {
    /// Computes the accesses, unless they are those of the last call.
    fn set(&mut self, operation: &Operation, entries: &[Entry]) -> Result<()> {
        let RankViews {
            shapes,
            displacements,
            family,
            ..
        } = operation.view().rank_views();
        let views = Some((*family, displacements[0]));
        if self.views == views && self.entries == entries {
            return Ok(());
        }
        (self.views, self.planned, self.exchanged) = (None, None, None);
        match Arc::get_mut(&mut self.proof) {
            Some(proof) => *proof = OnceLock::new(),
            None => self.proof = Arc::default(),
        }
        self.entries.clear();
        self.entries.extend_from_slice(entries);
        if Arc::get_mut(&mut self.accesses).is_none() {
            self.accesses = Arc::default();
        }
        let accesses = Arc::get_mut(&mut self.accesses).expect("nobody else has it");
        accesses.clear();
        for ((shape, displacement), entry) in shapes.iter().zip(displacements).zip(entries) {
            let layout = shape.layout()?.clone();
            let access = Access::new(*displacement, layout, entry.first, entry.len);
            accesses.push(access.ok_or_else(|| {
                Error::argument("an access reaches past the last possible byte of a file")
            })?);
        }
        self.views = views;
        Ok(())
    }
}

impl PlanMemory {
    /// What each rank moves.
    pub(super) fn accesses(
        &mut self,
        operation: &Operation,
        entries: &[Entry],
    ) -> Result<&[Access]> {
        self.last.set(operation, entries)?;
        Ok(&self.last.accesses)
    }

    /// The plan of a call in which every rank moves its own data.
    pub(super) fn individual(&self) -> CallPlan<'_> {
        CallPlan {
            plan: &Plan::Individual,
            exchange: Exchange::Messages,
            accesses: &self.last.accesses,
            proof: &self.last.proof,
            group_locked: false,
            is_worth_lease: false,
            number: self.calls,
        }
    }

    /// The plan for the accesses computed last. It is kept for calls that move
    /// the same bytes; the choice of methods is kept for calls that move the
    /// same amounts through the same views, or through views that were all
    /// moved by the same distance, in the same part of the file and with the
    /// same relation to locks.
    pub(super) fn plan(&mut self, operation: &Operation, comm: &dyn Transport) -> CallPlan<'_> {
        self.calls += 1;
        let is_known = self.inputs.as_ref().is_some_and(|it| it.is_of(operation));
        if !is_known {
            self.inputs = Some(PlanInputs::new(operation, comm));
            self.decided = None;
            self.last.planned = None;
        }
        let direction = operation.direction();
        let planned = match self.last.planned.take() {
            Some(planned) if planned.direction == direction => planned,
            _ => self.make(operation, comm),
        };
        let LastCall {
            accesses,
            proof,
            planned: kept,
            ..
        } = &mut self.last;
        let Planned {
            plan,
            exchange,
            group_locked,
            is_worth_lease,
            ..
        } = kept.insert(planned);
        CallPlan {
            plan,
            exchange: *exchange,
            accesses,
            proof,
            group_locked: *group_locked,
            is_worth_lease: *is_worth_lease,
            number: self.calls,
        }
    }

    /// The turns of aggregators in the last call, if they take any.
    pub(super) fn last_turns(&self) -> Option<Arc<Turns>> {
        let Plan::Rounds(rounds) = &self.last.planned.as_ref()?.plan else {
            return None;
        };
        Turns::of(rounds, &self.last.accesses, self.calls).map(Arc::new)
    }

    /// What each rank moves in the last call.
    pub(super) fn last_accesses(&self) -> &[Access] {
        &self.last.accesses
    }

    /// Whether the bytes of the last call's ranks are known to be disjoint.
    pub(super) fn last_proof(&self) -> &Arc<OnceLock<Proof>> {
        &self.last.proof
    }

    /// The plan that [`plan`](Self::plan) has just returned, with look-ups for an
    /// exchange between nodes.
    pub(super) fn exchanged(&mut self, packing: Packing) -> Option<Arc<pario_exchange::Planned>> {
        let LastCall {
            accesses,
            planned,
            exchanged,
            ..
        } = &mut self.last;
        match exchanged {
            Some((known, exchanged)) if *known == packing => Some(exchanged.clone()),
            _ => {
                let Plan::Rounds(rounds) = &planned.as_ref()?.plan else {
                    return None;
                };
                let made = pario_exchange::Planned::new(rounds.clone(), accesses.clone(), packing);
                let made = Arc::new(made);
                *exchanged = Some((packing, made.clone()));
                Some(made)
            }
        }
    }

    fn make(&mut self, operation: &Operation, comm: &dyn Transport) -> Planned {
        self.last.exchanged = None;
        let inputs = self
            .inputs
            .as_ref()
            .expect("they were made before the plan");
        let direction = operation.direction();
        let tuning = match direction {
            Direction::Read => &inputs.read,
            Direction::Write => &inputs.write,
        };
        let accesses = &self.last.accesses;
        let history = self.history.get().clone();
        let case = Case::new(direction, accesses, &inputs.facts, tuning, &history);
        let lengths = || accesses.iter().map(Access::len);
        let views = operation.view().rank_views().family;
        let place = Place::of(operation, &self.last.entries, &inputs.facts);
        let decided = match self.decided.take() {
            Some(known) if known.is_of(operation, place, lengths()) => known,
            old => {
                let decision = pario_plan::decide(&case);
                if comm.rank() == Rank(0) && self.warned != Some(views) {
                    self.warned = Some(views);
                    warn_of(&decision);
                }
                let mut kept = old.map_or_else(Vec::new, |old| old.lengths);
                kept.clear();
                kept.extend(lengths());
                Decided {
                    direction,
                    views,
                    lengths: kept,
                    place,
                    decision,
                    is_individual: false,
                }
            }
        };
        let plan = decided.decision.plan(&case);
        let group_locked =
            matches!(plan, Plan::Individual) && pario_plan::locks::is_group_lockable(&case);
        let persistent = match history.persistent {
            None => decided.decision.remember(&case),
            Some(_) => None,
        };
        let exchange = decided.decision.exchange;
        let is_worth_lease = direction == Direction::Write && case.is_worth_lease();
        self.decided = Some(Decided {
            is_individual: matches!(plan, Plan::Individual),
            ..decided
        });
        if persistent.is_some() {
            self.history.get().persistent = persistent;
        }
        Planned {
            direction,
            plan,
            exchange,
            group_locked,
            is_worth_lease,
        }
    }
}

/// Warns of methods requested by name that do not exist. A method that cannot be
/// used for this call causes no warning: it may suit the next one.
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
