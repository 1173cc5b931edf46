//! Timed access (Zhang 2009, section 3.4): every rank moves its own data, and groups of ranks
//! start one after the other, so that each server gets requests in ascending order without any
//! exchange of data.

use std::{sync::mpsc, thread, time::Duration};

use pario_plan::{Signal, Timed};
use pario_transport::{Rank, Tag, Transport};

use crate::{Result, Status, operation::Operation};

/// Sent when the next group may start.
const NEXT_GROUP: Tag = Tag(4);
/// Sent to the first rank of a group when another one has moved its data.
const COMPLETE: Tag = Tag(9);

/// Waits until this rank's group may start, starts, lets the next group start after the delay,
/// and waits for its own data. Without nonblocking I/O, the next group starts once all data of
/// this one has been moved.
pub(super) fn run(comm: &dyn Transport, operation: &Operation, timed: &Timed) -> Result<Status> {
    let me = comm.rank().0;
    let place = timed.sets.iter().find_map(|groups| {
        let group = groups.iter().position(|group| group.contains(&me))?;
        Some((groups, group))
    });
    let Some((groups, group)) = place else {
        return operation.run();
    };
    if let Some(before) = group.checked_sub(1) {
        // One rank signals for the whole group.
        if let Some(first) = groups[before].first() {
            comm.receive(Rank(*first), NEXT_GROUP)?;
        }
    }
    let delay = match timed.signal {
        Signal::StartedUs(us) => Duration::from_micros(us),
        Signal::Complete => {
            let result = operation.run();
            return complete(comm, groups, group).and(result);
        }
    };
    if !signals(comm, groups, group) {
        return operation.run();
    }
    let (moving, moved) = mpsc::channel::<()>();
    thread::scope(|scope| {
        let run = move || {
            let result = operation.run();
            drop(moving);
            result
        };
        let Ok(moving) = thread::Builder::new().spawn_scoped(scope, run) else {
            let result = operation.run();
            return signal_next(comm, groups, group).and(result);
        };
        // Ends when the data has been moved, if that is earlier.
        let _ = moved.recv_timeout(delay);
        let signalled = signal_next(comm, groups, group);
        let result = match moving.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        signalled.and(result)
    })
}

/// Lets the next group start once all ranks of this one have moved their data.
fn complete(comm: &dyn Transport, groups: &[Vec<u32>], group: usize) -> Result<()> {
    let Some((first, others)) = groups[group].split_first() else {
        return Ok(());
    };
    if group + 1 == groups.len() {
        return Ok(());
    }
    if *first != comm.rank().0 {
        return Ok(comm.send(Rank(*first), COMPLETE, &[])?);
    }
    for rank in others {
        comm.receive(Rank(*rank), COMPLETE)?;
    }
    signal_next(comm, groups, group)
}

/// Whether this rank, the first of its group, is followed by another group.
fn signals(comm: &dyn Transport, groups: &[Vec<u32>], group: usize) -> bool {
    groups[group].first() == Some(&comm.rank().0) && group + 1 < groups.len()
}

/// The first rank of a group signals all ranks of the next one.
fn signal_next(comm: &dyn Transport, groups: &[Vec<u32>], group: usize) -> Result<()> {
    if signals(comm, groups, group) {
        for rank in &groups[group + 1] {
            comm.send(Rank(*rank), NEXT_GROUP, &[])?;
        }
    }
    Ok(())
}
