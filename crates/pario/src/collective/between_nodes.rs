//! Collective calls of ranks on several nodes: the exchange protocol carries
//! them from the first message to the last, and plans are made in between.

use pario_driver::Direction;
use pario_exchange::{Failure, Progress, Rank, Table};
use pario_layout::Monotonicity;
use pario_plan::Plan;
use pario_transport::Transport;

use super::{
    PlanResult, Work, all_to_all, atomic,
    context::ContextState,
    entry::{Entry, check_same_call, meeting_entry, status},
    exchange::{Entering, ExchangeState, Planning, Step},
    move_own,
    planning::PlanMemory,
    segments,
    write_guard::CollectiveWriteGuard,
};
use crate::{
    Error, Result, Status,
    agree::GatherBuffers,
    collective_call::CollectiveCall,
    file::CallSettings,
    operation::{Call, Operation},
};

/// Carries out a call.
pub(super) fn run(
    comm: &dyn Transport,
    state: &mut ContextState,
    settings: &CallSettings,
    call: Call,
    prepared: Result<Operation>,
) -> Result<Status> {
    let ContextState {
        buffers,
        entries,
        memory,
        exchange,
        ..
    } = state;
    let me = Rank(comm.rank().0);
    let operation = prepared.as_ref().ok();
    let entering = Entering {
        operation,
        direction: call.direction,
        entry: entry(me, call, exchange.leaves_choice(&settings.hints), &prepared),
        hints: &settings.hints,
    };
    let mut planner = Planner {
        comm,
        operation,
        buffers,
        entries,
        memory,
        own: None,
        guard: None,
    };
    let mut plan = |exchange: &mut ExchangeState, table: &Table| planner.plan(exchange, table);
    let progress = exchange.run_entered(comm, entering, &mut plan)?;
    let own = planner.own.take();
    // All ranks are done.
    drop(planner);
    let (count, own_error) = match own {
        Some(own) => own,
        None => {
            let access = exchange.own_access();
            let count = access.map_or(0, |access| access.bytes_below(progress.stop));
            (count, prepared.err())
        }
    };
    status(comm, count, progress.failure, own_error)
}

/// What this rank moves, or its error.
fn entry(
    me: Rank,
    call: Call,
    leaves_choice: bool,
    prepared: &Result<Operation>,
) -> pario_exchange::Entry {
    match prepared {
        Ok(operation) => {
            let entry = Entry::new(operation);
            let is_eager = entry.is_plain()
                && operation.view().layout().order() == Monotonicity::Increasing
                && !operation.locks_writes()
                && leaves_choice;
            let mut entry = entry.between_nodes(CollectiveCall::of(call), is_eager);
            if operation.view().layout().size() == 0 {
                // A read through a view without data.
                entry.len = 0;
            }
            entry
        }
        Err(error) => {
            let failure = Failure {
                rank: me,
                detail: error.to_wire().into(),
            };
            meeting_entry(CollectiveCall::of(call), Some(failure))
        }
    }
}

/// Makes the plan of a call once all entries are known, and carries it out if
/// it needs no exchange.
struct Planner<'a> {
    comm: &'a dyn Transport,
    operation: Option<&'a Operation>,
    buffers: &'a mut GatherBuffers,
    entries: &'a mut Vec<Entry>,
    memory: &'a mut PlanMemory,
    /// What this rank has moved by itself, and its error.
    own: Option<(u64, Option<Error>)>,
    /// Held until all ranks are done.
    guard: Option<CollectiveWriteGuard<'a>>,
}

impl Planner<'_> {
    fn plan(&mut self, exchange: &mut ExchangeState, table: &Table) -> Result<Step> {
        if let Err(mismatch) = check_same_call(table) {
            return Ok(self.alone(Err(mismatch)));
        }
        if let Some(failure) = table.failure() {
            return Ok(Step::Alone(Progress {
                stop: 0,
                failure: Some(failure),
            }));
        }
        let operation = self
            .operation
            .expect("a call with a wrong argument is not planned");
        self.entries.clear();
        self.entries
            .extend(table.entries().map(|(_, entry)| Entry::from(entry)));
        let is_plain = self.entries.iter().all(Entry::is_plain);
        if is_plain && self.memory.knows_individual(operation, self.entries) {
            return Ok(self.alone(operation.run()));
        }
        let accesses = self.memory.accesses(operation, self.entries)?;
        if operation.direction() == Direction::Write && self.entries.iter().any(Entry::is_atomic) {
            let result = atomic::write(self.comm, self.buffers, operation, accesses);
            return Ok(self.alone(result));
        }
        let call = match is_plain {
            true => self.memory.plan(operation, self.comm),
            false => self.memory.individual(),
        };
        match call.plan {
            Plan::Rounds(rounds) => {
                let guard = CollectiveWriteGuard::of_windows(self.comm, operation, &call, rounds)?;
                if exchange.is_by_all_to_all(self.comm, operation.hints()) {
                    let work = Work {
                        comm: self.comm,
                        operation,
                        rounds,
                        accesses: call.accesses,
                        proof: call.proof,
                        holes: guard.holes,
                        lease: None,
                        is_locked: false,
                        is_suspended: false,
                    };
                    let result = all_to_all::run(&work)?;
                    self.guard = Some(guard);
                    return Ok(self.moved(result));
                }
                let planning = Planning::new(operation, self.memory, guard.holes);
                if let Some(step) = exchange.exchange(self.comm, planning)? {
                    self.guard = Some(guard);
                    return Ok(step);
                }
                drop(guard);
                Ok(self.alone(operation.run()))
            }
            Plan::Segments(segments) => {
                let _guard = CollectiveWriteGuard::ordinary(operation);
                let result = segments::run(self.comm, operation, call.accesses, segments)?;
                Ok(self.moved(result))
            }
            Plan::Individual | Plan::PrivateSieve { .. } | Plan::Prefetch(_) | Plan::Timed(_) => {
                let result = move_own(self.comm, operation, &call);
                Ok(self.alone(result))
            }
        }
    }

    /// This rank has moved windows of the ranks' data.
    fn moved(&self, result: PlanResult) -> Step {
        Step::Alone(Progress {
            stop: result.stop.unwrap_or(u64::MAX),
            failure: result.error.map(|error| self.failure(&error)),
        })
    }

    fn failure(&self, error: &Error) -> Failure {
        Failure {
            rank: Rank(self.comm.rank().0),
            detail: error.to_wire().into(),
        }
    }

    /// This rank has moved its own data.
    fn alone(&mut self, result: Result<Status>) -> Step {
        let moved = match &result {
            Ok(status) => status.bytes(),
            Err(error) => error.transferred(),
        };
        let error = result.err();
        let failure = error.as_ref().map(|error| self.failure(error));
        self.own = Some((moved, error));
        Step::Alone(Progress {
            stop: u64::MAX,
            failure,
        })
    }
}
