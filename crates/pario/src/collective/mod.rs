//! Collective calls: the ranks say what they move, all compute the same plan,
//! carry it out, and agree on the result.
//!
//! Two exchanges frame every call (`entry.rs`): one small message a rank
//! before, one after. Between them no collective takes place; what a rank
//! needs to know of the others it computes from their views, which were
//! exchanged when they were set.

mod entry;
mod lane;
mod planning;
mod shared;
mod windows;

pub(crate) use lane::Lane;

use std::sync::Arc;

use pario_driver::Direction;
use pario_plan::Plan;

use crate::{
    Error, Result, Status,
    buffer::Memory,
    file::Inner,
    gate::Pass,
    operation::{Call, Operation},
};

/// How far a plan got that moves the ranks' data together.
#[derive(Debug, Default)]
struct Progress {
    /// The first byte of the file that this rank could not move for the
    /// ranks: an error, or the end of the file.
    stop: Option<u64>,
    /// Why, unless it was the end of the file.
    error: Option<Error>,
}

impl Progress {
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

/// Carries out a collective call.
pub(crate) fn run(file: &Arc<Inner>, lane: &Lane, call: Call, memory: Memory) -> Result<Status> {
    let pass = match call.direction {
        Direction::Write => Some(file.enter_for_collective()),
        Direction::Read => None,
    };
    let prepared = Operation::prepare(file, call, memory);
    let result = entry::exchange(&*lane.comm, &prepared, pass.as_ref())
        .and_then(|entries| execute(lane, &prepared?, &entries, pass));
    result.map_err(|error| file.name_error(error, call.name))
}

fn execute(
    lane: &Lane,
    operation: &Operation,
    entries: &[entry::Entry],
    pass: Option<Pass>,
) -> Result<Status> {
    let comm = &*lane.comm;
    let accesses = planning::accesses(operation, entries)?;
    let mut state = lane.state();
    let plan = match entries.iter().all(entry::Entry::is_plain) {
        true => planning::plan(operation, &accesses, comm, &mut state.memory),
        false => Plan::Individual,
    };
    let windows = match &plan {
        Plan::Rounds(rounds) => state.windows(comm, rounds.window_bytes)?,
        _ => None,
    };
    match (plan, windows) {
        (Plan::Rounds(rounds), Some(windows)) => {
            let work = shared::Work {
                comm,
                operation,
                rounds: &rounds,
                accesses: &accesses,
                holes: planning::holes(operation, entries),
            };
            let progress = shared::run(&work, windows)?;
            drop(pass);
            entry::finish(comm, &accesses[comm.rank().index()], progress)
        }
        (Plan::PrivateSieve { buffer_bytes }, _) => {
            entry::finish_individual(comm, operation.run_sieved(buffer_bytes))
        }
        _ => {
            // Independent writes pass the gate by themselves.
            drop(pass);
            entry::finish_individual(comm, operation.run())
        }
    }
}
