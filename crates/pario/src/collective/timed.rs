//! Turns (Zhang 2009, section 3.4): every rank moves its own data, and groups
//! of ranks start one after the other, so that each server sees requests in
//! ascending order without any exchange of data.

use std::{thread, time::Duration};

use pario_plan::Timed;
use pario_transport::{Rank, Tag, Transport};

use crate::{Result, Status, operation::Operation};

/// The word that it is the next group's turn.
const TURN: Tag = Tag(4);

/// Waits for this rank's turn, starts, gives the word on after the delay, and
/// waits for its data.
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
        // One rank of the group before speaks for it.
        if let Some(first) = groups[before].first() {
            comm.receive(Rank(*first), TURN)?;
        }
    }
    thread::scope(|scope| {
        let moved = scope.spawn(|| operation.run());
        let told = tell_next(comm, groups, group, Duration::from_micros(timed.delay_us));
        let result = match moved.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        told.and(result)
    })
}

/// The first rank of a group tells all of the next, a moment after it
/// started.
fn tell_next(
    comm: &dyn Transport,
    groups: &[Vec<u32>],
    group: usize,
    delay: Duration,
) -> Result<()> {
    let speaks = groups[group].first() == Some(&comm.rank().0);
    if !speaks || group + 1 >= groups.len() {
        return Ok(());
    }
    thread::sleep(delay);
    for rank in &groups[group + 1] {
        comm.send(Rank(*rank), TURN, &[])?;
    }
    Ok(())
}
