//! Carries out the exchange protocol of [`pario_exchange`]: the driver loop of
//! its state machine, over a transport and a file.
//!
//! The machine decides what happens next and touches no byte. [`call`] feeds it
//! events and carries out its actions, [`memory`] holds the buffers that it
//! names, [`copies`] moves bytes between the program's memory and these buffers,
//! and [`transfers`] moves them between buffers and file, on an I/O thread if a
//! realm has several windows, so that messages keep moving.

mod call;
mod copies;
mod eager;
pub(crate) mod limits;
mod local;
mod meeting;
mod memory;
mod packed;
mod transfers;

use std::{
    sync::{Arc, OnceLock},
    thread,
};

use pario_exchange::{
    Direction, Entry, Event, Finished, Groups, Packing, Planned, Progress, Rank, Setting,
};
use pario_hints::Hints;
use pario_plan::{Access, Exchange, Tuning, coverage::Proof};
use pario_transport::Transport;

use super::{
    holes::{Holes, is_sieve_requested},
    independent,
    planning::PlanMemory,
    turns::Turns,
};
use crate::{Result, operation::Operation};
use call::{Call, Environment, Planner};
use eager::EagerBuffers;
use memory::{Addresses, ExchangeMemory};

/// What exchanges of a collective context leave for the next one.
#[derive(Debug, Default)]
pub(super) struct ExchangeState {
    /// Number of the current call: messages carry it.
    number: u32,
    /// Control messages of calls that this rank has not entered yet.
    early: Vec<(Rank, Vec<u8>)>,
    eager: EagerBuffers,
    memory: Option<Arc<ExchangeMemory>>,
    groups: Option<(Exchange, Arc<Groups>)>,
    /// Whether calls are carried out in the background: a rank that sends for its
    /// node might be computing meanwhile.
    is_background: bool,
    /// Whether a node has no shared memory: every rank then sends and receives
    /// by itself.
    is_unshared: bool,
    /// What this rank moves in the current call.
    own_access: Option<Access>,
    spans_nodes: Option<bool>,
    /// Whether these hints leave the choice of methods to pario.
    choice: Option<(Arc<Hints>, bool)>,
    /// By direction, the setting of calls with these hints.
    entered: [Option<(Arc<Hints>, Arc<Setting>)>; 2],
    /// Whether the last call was not planned.
    was_eager: bool,
    /// What this rank exchanged in the last call.
    overlap: Overlap,
    /// The sizes and groups of the current call.
    setting: Option<Arc<Setting>>,
}

/// The data that a rank sent to other nodes and received from them in a collective
/// call, and how much of it while it moved a window between memory and file on another
/// thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overlap {
    /// Bytes exchanged with other nodes.
    pub exchanged: u64,
    /// Those of them that moved during file transfers.
    pub during_transfers: u64,
}

impl Overlap {
    fn count(&mut self, bytes: u64, is_during_transfer: bool) {
        self.exchanged += bytes;
        if is_during_transfer {
            self.during_transfers += bytes;
        }
    }
}

/// What a rank brings to a call.
pub(super) struct Entering<'a> {
    /// `None` if its arguments are wrong; then the entry has the error.
    pub(super) operation: Option<&'a Operation>,
    pub(super) direction: Direction,
    pub(super) entry: Entry,
    pub(super) hints: &'a Arc<Hints>,
}

/// A plan and what its execution rests on.
#[derive(Clone, Debug)]
pub(super) struct Planning {
    pub(super) planned: Arc<Planned>,
    /// Whether byte sums prove coverage, once someone has asked.
    pub(super) proof: Arc<OnceLock<Proof>>,
    pub(super) holes: Holes,
    /// The turns of aggregators that share a server.
    pub(super) turns: Option<Arc<Turns>>,
}

impl Planning {
    /// The plan that was made last, which exchanges data.
    pub(super) fn new(operation: &Operation, memory: &mut PlanMemory, holes: Holes) -> Planning {
        let packing = packing(operation, memory.last_accesses(), holes);
        let planned = memory.exchanged(packing);
        Planning {
            planned: planned.expect("the last plan has rounds"),
            proof: memory.last_proof().clone(),
            holes,
            turns: memory.last_turns(),
        }
    }
}

/// Whether windows hold sparse data without its gaps: not if these are read or
/// rewritten along with it.
fn packing(operation: &Operation, accesses: &[Access], holes: Holes) -> Packing {
    let takes_gaps = match operation.direction() {
        Direction::Read => true,
        Direction::Write => holes != Holes::Leave,
    };
    let used = || accesses.iter().filter(|access| !access.is_empty());
    let pieces: u64 = used().map(|access| access.stats().pieces).sum();
    let span = used()
        .map(Access::span)
        .reduce(|a, b| a.start.min(b.start)..a.end.max(b.end));
    let span = span.map_or(0, |span| span.end - span.start);
    let hints = operation.hints();
    let is_close = span / pieces.max(1) <= operation.sieve_extent()
        || is_sieve_requested(hints, operation.direction());
    match takes_gaps && is_close {
        true => Packing::Never,
        false => Packing::Sparse,
    }
}

/// A plan with its buffers.
#[derive(Debug)]
pub(super) struct PlannedCall {
    planning: Planning,
    addresses: Addresses,
    memory: Arc<ExchangeMemory>,
}

/// How a call goes on once the ranks' entries are known.
pub(super) enum Step {
    /// Data is exchanged.
    Exchange(Box<PlannedCall>),
    /// Every rank has moved its own data, so far.
    Alone(Progress),
}

impl ExchangeState {
    /// For calls in the background.
    pub(super) fn in_background() -> ExchangeState {
        ExchangeState {
            is_background: true,
            ..ExchangeState::default()
        }
    }

    /// Whether the ranks are on several nodes.
    pub(super) fn spans_nodes(&mut self, comm: &dyn Transport) -> bool {
        *self.spans_nodes.get_or_insert_with(|| comm.spans_nodes())
    }

    /// Whether the data of a call goes by the host's exchange of all ranks with all.
    pub(super) fn is_by_all_to_all(&self, comm: &dyn Transport, hints: &Hints) -> bool {
        let setting = self.setting.as_ref().expect("a planner runs in a call");
        let tuning = Tuning::from_hints(hints, setting.direction);
        !self.is_background
            && limits::exchange(comm, &tuning) == Exchange::AllToAll
            && comm.has_all_to_all()
    }

    /// The ranks that combine their data.
    fn groups(&mut self, comm: &dyn Transport, exchange: Exchange) -> Arc<Groups> {
        match &self.groups {
            Some((known, groups)) if *known == exchange => groups.clone(),
            _ => {
                let groups = limits::groups(comm, exchange, self.is_unshared);
                let groups = Arc::new(match self.is_background {
                    true => groups.without_layer(),
                    false => groups,
                });
                self.groups = Some((exchange, groups.clone()));
                groups
            }
        }
    }

    /// Gives a plan its buffers. Collective if there are none of that size.
    /// `None` on all ranks if the ranks of some node share no memory.
    fn with_memory(
        &mut self,
        comm: &dyn Transport,
        setting: &Setting,
        planning: Planning,
    ) -> Result<Option<PlannedCall>> {
        let me = Rank(comm.rank().0);
        let addresses = Addresses::new(&planning.planned, &setting.groups, &setting.limits, me);
        let kept = self.memory.take();
        let memory = match kept.filter(|memory| memory.suffices(&addresses)) {
            Some(memory) => Some(memory),
            None => ExchangeMemory::make(comm, &setting.groups, &addresses)?.map(Arc::new),
        };
        let Some(memory) = memory else {
            (self.is_unshared, self.groups) = (true, None);
            self.entered = [None, None];
            return Ok(None);
        };
        self.memory = Some(memory.clone());
        Ok(Some(PlannedCall {
            planning,
            addresses,
            memory,
        }))
    }

    /// Carries out a call that the ranks have planned. Collective.
    pub(super) fn run_planned(
        &mut self,
        comm: &dyn Transport,
        operation: &Operation,
        exchange: Exchange,
        planning: Planning,
    ) -> Result<Progress> {
        let mut setting = self.setting(comm, operation, exchange, &planning);
        let mut made = self.with_memory(comm, &setting, planning.clone())?;
        if made.is_none() {
            setting = self.setting(comm, operation, exchange, &planning);
            made = self.with_memory(comm, &setting, planning)?;
        }
        let planned = made.expect("ranks that share no memory have their own");
        let accesses = planned.planning.planned.clone();
        let bytes = accesses.access(Rank(comm.rank().0)).len();
        let environment = Environment {
            comm,
            operation: Some(operation),
            planned: OnceLock::from(planned),
            done: Default::default(),
        };
        let start = Event::Started { bytes, accesses };
        let mut planner = |_: &mut ExchangeState, _: &_| unreachable!("the call is planned");
        self.run(&environment, setting, start, &mut planner)
    }

    /// Carries out a call from its start: the ranks tell each other what they
    /// move, and `planner` makes a plan of it, unless the data is so little that
    /// it has travelled along. Collective.
    pub(super) fn run_entered(
        &mut self,
        comm: &dyn Transport,
        entering: Entering<'_>,
        planner: Planner<'_>,
    ) -> Result<Progress> {
        let Entering {
            operation,
            direction,
            entry,
            hints,
        } = entering;
        let me = Rank(comm.rank().0);
        self.own_access = match operation {
            Some(operation) => Some(eager::access_of(operation, me, &entry)?),
            None => None,
        };
        let unit = operation.map_or(1, |operation| operation.handle().facts().block_size);
        let setting = self.entered_setting(comm, hints, direction, unit.max(1));
        let environment = Environment {
            comm,
            operation,
            planned: OnceLock::new(),
            done: Default::default(),
        };
        self.run(&environment, setting, Event::Entered(entry), planner)
    }

    /// Whether the hints request no particular method.
    pub(super) fn leaves_choice(&mut self, hints: &Arc<Hints>) -> bool {
        match &self.choice {
            Some((known, leaves_choice)) if Arc::ptr_eq(known, hints) => *leaves_choice,
            _ => {
                let leaves_choice = independent::leaves_choice(hints);
                self.choice = Some((hints.clone(), leaves_choice));
                leaves_choice
            }
        }
    }

    /// The setting of calls that start with the ranks' entries. It follows from the
    /// hints, so that calls share it.
    fn entered_setting(
        &mut self,
        comm: &dyn Transport,
        hints: &Arc<Hints>,
        direction: Direction,
        unit: u64,
    ) -> Arc<Setting> {
        let known = &self.entered[direction as usize];
        if let Some((known, setting)) = known
            && Arc::ptr_eq(known, hints)
            && setting.limits.unit == unit
        {
            return setting.clone();
        }
        let tuning = Tuning::from_hints(hints, direction);
        let groups = self.groups(comm, limits::exchange(comm, &tuning));
        let window_bytes = tuning.buffer_bytes.max(1);
        let setting = Arc::new(Setting {
            direction,
            limits: limits::limits(&groups, window_bytes, unit, limits::EAGER_BYTES),
            groups,
            root: Rank(0),
        });
        self.entered[direction as usize] = Some((hints.clone(), setting.clone()));
        setting
    }

    /// Gives a plan its buffers, for a planner. Collective if there are none of
    /// that size. `None` on all ranks if the ranks of some node share no memory:
    /// the next call goes without.
    pub(super) fn exchange(
        &mut self,
        comm: &dyn Transport,
        planning: Planning,
    ) -> Result<Option<Step>> {
        let setting = self.setting.clone().expect("a planner runs in a call");
        let made = self.with_memory(comm, &setting, planning)?;
        Ok(made.map(|planned| Step::Exchange(Box::new(planned))))
    }

    /// How the last call was carried out, if its data travelled with the messages
    /// that started and ended it.
    pub(super) fn explain_eager(&self) -> Option<String> {
        let setting = self.setting.as_ref().filter(|_| self.was_eager)?;
        let verb = match setting.direction {
            Direction::Read => "reads",
            Direction::Write => "writes",
        };
        let limit = setting.limits.eager_bytes;
        Some(format!(
            "{verb} by eager: all ranks together move at most {limit} bytes, which travel with \
             the messages that start and end the call"
        ))
    }

    /// What this rank exchanged in the last call.
    pub(super) fn overlap(&self) -> Overlap {
        self.overlap
    }

    /// What this rank moves in the current call.
    pub(super) fn own_access(&self) -> Option<&Access> {
        self.own_access.as_ref()
    }

    fn setting(
        &mut self,
        comm: &dyn Transport,
        operation: &Operation,
        exchange: Exchange,
        planning: &Planning,
    ) -> Arc<Setting> {
        let groups = self.groups(comm, exchange);
        let window_bytes = planning.planned.rounds().window_bytes;
        let unit = operation.handle().facts().block_size.max(1);
        Arc::new(Setting {
            direction: operation.direction(),
            limits: limits::limits(&groups, window_bytes, unit, 0),
            groups,
            root: Rank(0),
        })
    }

    fn run(
        &mut self,
        environment: &Environment<'_>,
        setting: Arc<Setting>,
        start: Event<Planned>,
        planner: Planner<'_>,
    ) -> Result<Progress> {
        self.number = self.number.wrapping_add(1);
        self.eager.reset();
        self.was_eager = environment.planned.get().is_none();
        self.overlap = Overlap::default();
        self.setting = Some(setting.clone());
        let result =
            thread::scope(|scope| Call::new(scope, environment, self, setting).run(start, planner));
        match result {
            Ok(Finished::Agreed(progress)) => Ok(progress),
            Ok(Finished::Lost { rank, .. }) => {
                unreachable!("the transport reports that rank {} is lost", rank.0)
            }
            Err(error) => {
                // Ranks and requests may still use the buffers.
                self.memory = None;
                Err(error)
            }
        }
    }
}
