//! Collective calls: the ranks say what they move, all compute the same plan,
//! carry it out, and agree on the result.
//!
//! Two exchanges frame a call (`entry.rs`): one small message a rank before,
//! one after; of calls that are independent (`independent.rs`) only the second.
//! Between them no collective takes place, but for a write
//! that may rewrite holes, which asks first whether it is alone
//! (`write_guard.rs`); what a rank needs to know of the others it computes from
//! their views, which were exchanged when they were set.

mod atomic;
mod background;
mod context;
mod deferred;
mod entry;
mod independent;
mod messages;
mod ordered;
mod planning;
mod prefetch;
mod queue;
mod route;
mod segments;
mod shared;
mod timed;
mod window_io;
mod windows;
mod write_guard;

pub(crate) use background::{Background, start_all};
pub(crate) use context::CollectiveContext;
pub(crate) use ordered::run_ordered;
pub(crate) use queue::Queue;

use std::{sync::Arc, thread, time::Duration};

use pario_driver::Direction;
use pario_plan::{Access, Members, Plan, Rounds, WindowWriter};
use pario_transport::Transport;

use crate::{
    Error, Result, Status,
    buffer::Memory,
    file::{CallSettings, Inner},
    operation::{Call, Operation},
};
pub use planning::plan_facts;
use planning::{Holes, Planned};
use write_guard::CollectiveWriteGuard;

/// How far a plan got that moves the ranks' data together.
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

/// A call whose data goes through windows, planned.
struct Work<'a> {
    comm: &'a dyn Transport,
    operation: &'a Operation,
    rounds: &'a Rounds,
    accesses: &'a [Access],
    holes: Holes,
}

impl Work<'_> {
    /// What this rank moves.
    fn mine(&self) -> &Access {
        &self.accesses[self.comm.rank().index()]
    }

    /// The ranks whose data an aggregator moves.
    fn members(&self, aggregator: usize) -> Vec<u32> {
        self.rounds.members(aggregator, self.comm.size()).collect()
    }

    /// Lets an aggregator's turn among those of its server come.
    fn await_start(&self, aggregator: usize) {
        let delay_us = self.rounds.aggregators[aggregator].delay_us;
        if delay_us > 0 {
            thread::sleep(Duration::from_micros(delay_us));
        }
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
    let settings = file.settings();
    let prepared = file
        .check_no_split()
        .and_then(|()| Operation::prepare_on(&settings, file, call, memory));
    run_prepared(file, context, call, &settings, prepared)
}

/// `terms` are those that the call began with.
fn run_prepared(
    file: &Arc<Inner>,
    context: &CollectiveContext,
    call: Call,
    settings: &CallSettings,
    prepared: Result<Operation>,
) -> Result<Status> {
    let comm = &*context.comm;
    let independent = {
        let mut state = context.state();
        state.was_independent = state.independent_path.is_independent(file, comm, settings);
        state.was_independent
    };
    let result = match independent {
        true => entry::finish_individual(comm, prepared.and_then(|operation| operation.run())),
        false => entry::exchange(comm, &prepared)
            .and_then(|entries| execute(context, &prepared?, &entries)),
    };
    result.map_err(|error| file.name_error(error, call.name))
}

fn execute(
    context: &CollectiveContext,
    operation: &Operation,
    entries: &[entry::Entry],
) -> Result<Status> {
    let comm = &*context.comm;
    let mut state = context.state();
    let is_plain = entries.iter().all(entry::Entry::is_plain);
    if is_plain && state.memory.knows_individual(operation, entries) {
        return entry::finish_individual(comm, operation.run());
    }
    let accesses = planning::accesses(operation, entries)?;
    if operation.direction() == Direction::Write && entries.iter().any(entry::Entry::is_atomic) {
        return atomic::write(comm, operation, &accesses);
    }
    let Planned { plan, exchange } = match is_plain {
        true => planning::plan(operation, &accesses, comm, &mut state.memory),
        false => Planned::INDIVIDUAL,
    };
    let work = |rounds, holes| Work {
        comm,
        operation,
        rounds,
        accesses: &accesses,
        holes,
    };
    let mine = &accesses[comm.rank().index()];
    match plan {
        Plan::Rounds(rounds) => {
            // In shared windows anyone issues the transfer, which is right
            // only where anyone may.
            let windows = match (exchange, rounds.writer) {
                (planning::Exchange::Shared, WindowWriter::Anyone) => {
                    state.windows(comm, rounds.window_bytes)?
                }
                _ => None,
            };
            // The pass is held until all ranks are done: one may still rewrite
            // holes when this one is through.
            let guard = CollectiveWriteGuard::of_windows(comm, operation, &rounds)?;
            let work = work(&rounds, guard.holes);
            let plan_result = match windows {
                Some(windows) => shared::run(&work, windows)?,
                None => messages::run(&work, exchange)?,
            };
            entry::finish(comm, mine, plan_result)
        }
        Plan::Segments(segments) => {
            let _entrance = CollectiveWriteGuard::ordinary(operation);
            let plan_result = segments::run(comm, operation, &accesses, &segments)?;
            entry::finish(comm, mine, plan_result)
        }
        Plan::PrivateSieve { buffer_bytes } => {
            entry::finish_individual(comm, operation.run_sieved(buffer_bytes))
        }
        Plan::Prefetch(rounds) => {
            let result = prefetch::run(&work(&rounds, Holes::Leave));
            entry::finish_individual(comm, result)
        }
        // Independent writes pass the gate by themselves.
        Plan::Timed(timed) => entry::finish_individual(comm, timed::run(comm, operation, &timed)),
        Plan::Individual => entry::finish_individual(comm, operation.run()),
    }
}
