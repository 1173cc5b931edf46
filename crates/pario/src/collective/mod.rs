//! Collective calls: the ranks exchange their accesses, compute the same plan,
//! carry it out, and agree on the result.
//!
//! On one node, a call starts and ends with a gather of one small message per
//! rank (`entry.rs`); calls in which all ranks move their data without knowing of the
//! others (`independent.rs`) need only the second. Between nodes, the exchange protocol
//! does both (`between_nodes.rs`). Few calls take another collective: if some ranks have
//! moved their data first and others have not, they gather their messages once more, and
//! a write that may rewrite holes first checks that it is the only write, or agrees that
//! one rank has locked for all (`write_guard.rs`). Ranks compute everything else from the
//! views, which they exchanged when they were set.

mod access_range;
mod all_to_all;
mod atomic;
mod attempts;
mod background;
mod between_nodes;
mod call_history;
mod context;
mod conversion;
mod deferred;
mod entry;
pub(crate) mod exchange;
mod holes;
mod independent;
mod leased;
mod meeting;
mod ordered;
mod planning;
mod prefetch;
mod queue;
mod segments;
mod shared;
mod timed;
mod turns;
mod window_io;
mod windows;
mod write_guard;

pub(crate) use background::{Background, start_all};
pub(crate) use context::CollectiveContext;
use context::ContextState;
pub use exchange::Overlap;
pub(crate) use ordered::run_ordered;
pub(crate) use queue::Queue;

use std::sync::{Arc, OnceLock};

use pario_driver::Direction;
use pario_plan::{Access, MemberRanks, Members, Plan, Rounds, WindowWriter, coverage::Proof};
use pario_transport::Transport;

use crate::{
    Error, Result, Status,
    buffer::Memory,
    collective_call::CollectiveCall,
    file::{CallSettings, Inner},
    one_piece,
    operation::{Call, Operation, Position},
};
use entry::Entry;
use exchange::Planning;
use holes::Holes;
pub use holes::rewriting;
use leased::CallLease;
pub(crate) use planning::have_persistent_realms;
pub use planning::plan_facts;
use planning::{CallPlan, Exchange};
use write_guard::CollectiveWriteGuard;

/// How far this rank got with windows of the plan.
#[derive(Debug, Default)]
struct PlanResult {
    /// The first byte of the file that this rank could not move for the
    /// ranks: an error, or the end of the file.
    stop: Option<u64>,
    /// Why, unless it was the end of the file.
    error: Option<Error>,
}

impl PlanResult {
    /// Notes that bytes from `stop` on were not moved.
    fn stop_at(&mut self, stop: u64, error: Option<Error>) {
        if self.stop.is_none_or(|earlier| stop < earlier) {
            self.stop = Some(stop);
        }
        if self.error.is_none() {
            self.error = error;
        }
    }
}

/// A planned call whose data goes through windows.
struct Work<'a> {
    comm: &'a dyn Transport,
    operation: &'a Operation,
    rounds: &'a Rounds,
    accesses: &'a [Access],
    /// Whether byte sums prove coverage; computed on first use.
    proof: &'a OnceLock<Proof>,
    holes: Holes,
    /// What shows that holes may be written back, where it can be lost.
    lease: Option<&'a CallLease>,
    /// Whether one rank has locked everything for all.
    is_locked: bool,
    /// Whether this rank has closed the file for the duration of the call.
    is_suspended: bool,
}

impl Work<'_> {
    /// What this rank moves.
    fn mine(&self) -> &Access {
        &self.accesses[self.comm.rank().index()]
    }

    /// The ranks whose data an aggregator moves.
    fn members(&self, aggregator: usize) -> MemberRanks<'_> {
        self.rounds.members(aggregator, self.comm.size())
    }

    /// Whether an aggregator moves a rank's data.
    fn serves(&self, aggregator: usize, rank: u32) -> bool {
        match &self.rounds.aggregators[aggregator].members {
            Members::All => true,
            Members::Some(members) => members.binary_search(&rank).is_ok(),
        }
    }
}

/// Carries out a collective call.
pub(crate) fn run(
    file: &Arc<Inner>,
    context: &CollectiveContext,
    call: Call,
    memory: Memory,
) -> Result<Status> {
    run_with(file, context, call, &file.settings(), memory)
}

/// As [`run`], for a call with these settings.
pub(crate) fn run_with(
    file: &Arc<Inner>,
    context: &CollectiveContext,
    call: Call,
    settings: &Arc<CallSettings>,
    memory: Memory,
) -> Result<Status> {
    file.finish_earlier(settings);
    let position = match move_first(file, context, call, settings, &memory) {
        MovedFirst::Finished(result) => return result,
        MovedFirst::Unfinished(position) => position,
    };
    let remaining = Call { position, ..call };
    let prepared = file
        .check_no_split()
        .and_then(|()| Operation::prepare_on(settings, file, remaining, memory));
    run_prepared(file, context, call, settings, prepared)
}

/// What became of a call in which this rank may have moved its data first.
enum MovedFirst {
    Finished(Result<Status>),
    /// The call is still to be made, at this position. Pointers are advanced only once.
    Unfinished(Position),
}

/// Moves this rank's data before the ranks exchange anything, if it is one piece and that is useful
/// ([`independent`]). In an independent call, ranks with several pieces do so in [`run_prepared`].
fn move_first(
    file: &Inner,
    context: &CollectiveContext,
    call: Call,
    settings: &CallSettings,
    memory: &Memory,
) -> MovedFirst {
    let comm = &*context.comm;
    let state = &mut *context.state();
    let path = &mut state.independent_path;
    let is_independent = path.is_independent(file, comm, settings);
    let is_attempt = !is_independent
        && !state.exchange.spans_nodes(comm)
        && path.may_move_first(file, comm, settings)
        && state.first_attempts.is_due()
        && independent::is_worth_moving_first(file, &settings.hints, memory.bytes());
    if !(is_independent || is_attempt) || file.check_no_split().is_err() {
        return MovedFirst::Unfinished(call.position);
    }
    let Some(piece) = one_piece::run_with(file, settings, call, memory) else {
        return MovedFirst::Unfinished(call.position);
    };
    state.buffers.begin(CollectiveCall::of(call));
    let finished = match is_independent {
        true => Some(entry::finish_individual(
            comm,
            &mut state.buffers,
            piece.result,
        )),
        false => entry::finish_first(comm, &mut state.buffers, piece.result),
    };
    let Some(result) = finished else {
        state.first_attempts.note(false);
        return MovedFirst::Unfinished(Position::At(piece.offset));
    };
    // After an error, nobody knows whether the others had one piece, too.
    state.unplanned = match (is_independent, &result) {
        (true, _) => Some(independent::REASON),
        (false, Err(_)) => None,
        (false, Ok(_)) => {
            state.first_attempts.note(true);
            Some(independent::MOVED_FIRST_REASON)
        }
    };
    MovedFirst::Finished(result.map_err(|error| file.name_error(error, call.name)))
}

/// `settings` are those in force when the call began.
fn run_prepared(
    file: &Arc<Inner>,
    context: &CollectiveContext,
    call: Call,
    settings: &CallSettings,
    prepared: Result<Operation>,
) -> Result<Status> {
    let comm = &*context.comm;
    let (prepared, conversion) = match prepared.and_then(Operation::split_conversion) {
        Ok((operation, conversion)) => (Ok(operation), conversion),
        Err(error) => (Err(error), None),
    };
    let mut state = context.state();
    let state = &mut *state;
    state.buffers.begin(CollectiveCall::of(call));
    let is_independent = state.independent_path.is_independent(file, comm, settings);
    state.unplanned = is_independent.then_some(independent::REASON);
    let result = match is_independent {
        true => {
            let result = prepared.and_then(|operation| operation.run());
            entry::finish_individual(comm, &mut state.buffers, result)
        }
        false if state.exchange.spans_nodes(comm) => {
            between_nodes::run(comm, state, settings, call, prepared)
        }
        false => {
            let gathered = entry::exchange(comm, &mut state.buffers, &prepared, &mut state.entries);
            if gathered.was_repeated {
                state.first_attempts.note(false);
            }
            gathered
                .result
                .and_then(|()| execute(comm, state, &prepared?))
        }
    };
    let is_converted = !settings.view.representation().is_identity();
    let conversion = (call.direction, conversion);
    let result = conversion::finish(comm, &mut state.buffers, is_converted, conversion, result);
    result.map_err(|error| file.name_error(error, call.name))
}

fn execute(
    comm: &dyn Transport,
    state: &mut ContextState,
    operation: &Operation,
) -> Result<Status> {
    let ContextState {
        buffers,
        entries,
        windows,
        memory,
        exchange,
        lease_attempts,
        ..
    } = state;
    let is_plain = entries.iter().all(Entry::is_plain);
    if is_plain && memory.knows_individual(operation, entries) {
        return entry::finish_individual(comm, buffers, operation.run());
    }
    let accesses = memory.accesses(operation, entries)?;
    if operation.direction() == Direction::Write && entries.iter().any(Entry::is_atomic) {
        return atomic::write(comm, buffers, operation, accesses);
    }
    let call = match is_plain {
        true => memory.plan(operation, comm),
        false => memory.individual(),
    };
    let mine = &call.accesses[comm.rank().index()];
    match call.plan {
        Plan::Rounds(rounds) => {
            // Any rank may transfer a shared window, so the plan must allow that.
            let windows = match (call.exchange, rounds.writer) {
                (Exchange::Shared, WindowWriter::Anyone) => {
                    windows.of_size(comm, rounds.window_bytes)?
                }
                _ => None,
            };
            // Held until all ranks are done: one may still rewrite holes when
            // this one has finished.
            let mut guard = match windows {
                None => CollectiveWriteGuard::of_windows(comm, operation, &call, rounds)?,
                Some(_) => CollectiveWriteGuard::of_shared_windows(
                    comm,
                    buffers,
                    operation,
                    &call,
                    rounds,
                    lease_attempts,
                )?,
            };
            let Some(windows) = windows else {
                let kind = call.exchange;
                let planning = Planning::new(operation, memory, guard.holes);
                let planned = planning.planned.clone();
                let progress = exchange.run_planned(comm, operation, kind, planning)?;
                let me = pario_exchange::Rank(comm.rank().0);
                let count = planned.access(me).bytes_below(progress.stop);
                return entry::status(comm, count, progress.failure, None);
            };
            let work = Work {
                comm,
                operation,
                rounds,
                accesses: call.accesses,
                proof: call.proof,
                holes: guard.holes,
                lease: guard.lease.as_ref(),
                is_locked: guard.is_locked,
                is_suspended: guard.is_suspended(),
            };
            let plan_result = shared::run(&work, windows)?;
            // The rank that has a lease has written everything.
            guard.lease = None;
            entry::finish(comm, buffers, mine, plan_result)
        }
        Plan::Segments(segments) => {
            let _guard = CollectiveWriteGuard::ordinary(operation);
            let plan_result = segments::run(comm, operation, call.accesses, segments)?;
            entry::finish(comm, buffers, mine, plan_result)
        }
        Plan::Individual | Plan::PrivateSieve { .. } | Plan::Prefetch(_) | Plan::Timed(_) => {
            entry::finish_individual(comm, buffers, move_own(comm, operation, &call))
        }
    }
}

/// Moves this rank's own data, for plans in which every rank does. Writes take the
/// writer lock themselves.
fn move_own(comm: &dyn Transport, operation: &Operation, call: &CallPlan<'_>) -> Result<Status> {
    match call.plan {
        Plan::PrivateSieve { buffer_bytes } => operation.run_sieved(*buffer_bytes),
        Plan::Prefetch(rounds) => {
            let work = Work {
                comm,
                operation,
                rounds,
                accesses: call.accesses,
                proof: call.proof,
                holes: Holes::Leave,
                lease: None,
                is_locked: false,
                is_suspended: false,
            };
            prefetch::run(&work, call.number)
        }
        Plan::Timed(timed) => timed::run(comm, operation, timed),
        Plan::Individual if call.group_locked => match operation.file_bytes() {
            0 => operation.run(),
            _ => operation.run_in_group(),
        },
        Plan::Individual | Plan::Rounds(_) | Plan::Segments(_) => operation.run(),
    }
}
