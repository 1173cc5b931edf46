//! Carries out the exchange protocol of [`pario_exchange`]: the driver loop of
//! its state machine, over a transport and a file.
//!
//! The machine decides what happens next and touches no byte. [`call`] feeds it
//! with events and carries out its actions, [`memory`] has the buffers that it
//! names, [`copies`] moves bytes between the program's memory and these buffers,
//! and [`transfers`] between buffers and file, on an I/O thread if a realm has
//! several windows, so that messages keep moving meanwhile.

mod call;
mod copies;
mod eager;
mod limits;
mod memory;
mod packed;
mod transfers;

use std::{
    sync::{Arc, OnceLock},
    thread,
};

use pario_exchange::{Direction, Entry, Event, Finished, Groups, Planned, Progress, Rank, Setting};
use pario_plan::{Access, Exchange, coverage::Proof};
use pario_transport::Transport;

use super::planning::Holes;
use crate::{Error, Result, operation::Operation};
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
    /// Whether a node has no shared memory: every rank then sends and receives
    /// by itself.
    is_unshared: bool,
    /// What this rank moves in the current call.
    own_access: Option<Access>,
}

/// A plan and what its execution rests on.
#[derive(Debug)]
pub(super) struct Planning {
    pub(super) planned: Arc<Planned>,
    /// Whether byte sums prove coverage, once someone has asked.
    pub(super) proof: Arc<OnceLock<Proof>>,
    pub(super) holes: Holes,
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
    /// The ranks that combine their data.
    fn groups(&mut self, comm: &dyn Transport, exchange: Exchange) -> Arc<Groups> {
        match &self.groups {
            Some((known, groups)) if *known == exchange => groups.clone(),
            _ => {
                let groups = Arc::new(limits::groups(comm, exchange, self.is_unshared));
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
    ) -> Result<Result<PlannedCall, Planning>> {
        let me = Rank(comm.rank().0);
        let addresses = Addresses::new(&planning.planned, &setting.groups, &setting.limits, me);
        let kept = self.memory.take();
        let memory = match kept.filter(|memory| memory.suffices(&addresses)) {
            Some(memory) => Some(memory),
            None => ExchangeMemory::make(comm, &setting.groups, &addresses)?.map(Arc::new),
        };
        let Some(memory) = memory else {
            (self.is_unshared, self.groups) = (true, None);
            return Ok(Err(planning));
        };
        self.memory = Some(memory.clone());
        Ok(Ok(PlannedCall {
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
        let planned = match self.with_memory(comm, &setting, planning)? {
            Ok(planned) => planned,
            Err(planning) => {
                setting = self.setting(comm, operation, exchange, &planning);
                let made = self.with_memory(comm, &setting, planning)?;
                made.map_err(|_| {
                    Error::new(
                        crate::ErrorKind::Io,
                        "no memory for the exchange of a collective call",
                    )
                })?
            }
        };
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
            direction: direction(operation),
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
        let result = thread::scope(|scope| {
            Call::new(scope, environment, self, setting).run(start, planner)
        });
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

fn direction(operation: &Operation) -> Direction {
    match operation.direction() {
        pario_driver::Direction::Read => Direction::Read,
        pario_driver::Direction::Write => Direction::Write,
    }
}
