//! Groups of processes that have met before, so that opening a file on another
//! communicator of theirs costs one reduction.
//!
//! Each rank looks its group up for itself. Ranks may have forgotten different
//! groups, so they compare what they found ([`super::meeting`]).

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pario_transport::Result;

use super::mpi_point_to_point::host_error;
use super::process_group::ProcessGroup;
use crate::host::Comparison;
use crate::{Group, Host};

/// How many groups without an open file are kept.
const IDLE_MAX: usize = 8;

/// The memory that they may hold together, if there is more than one.
const IDLE_BYTES_MAX: usize = 64 << 20;

/// The most recently used one last.
static KNOWN: Mutex<Vec<Arc<ProcessGroup>>> = Mutex::new(Vec::new());

fn known() -> MutexGuard<'static, Vec<Arc<ProcessGroup>>> {
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Forgets all groups, after a last meeting of all processes: none of them calls the
/// MPI after another has begun to end it. (MPICH 4.0 over UCX on TCP never returns
/// from `MPI_Finalize` if a rank answers one that is in it already.)
pub(super) fn forget_all(host: &Host) {
    let forgotten = std::mem::take(&mut *known());
    let of_all = of_all(host, &forgotten).cloned();
    drop(forgotten);
    if let Some(link) = of_all.as_ref().and_then(|group| group.link.as_ref()) {
        // A rank that is lost, or an MPI that fails, is reported by its own end.
        let _ = link.part();
    }
}

/// The first known group that all processes of the world belong to, if it needs
/// messages.
fn of_all<'a>(host: &Host, known: &'a [Arc<ProcessGroup>]) -> Option<&'a Arc<ProcessGroup>> {
    let world = host.has_world().then_some(host.predefined().comm_world)?;
    let size = host.comm_size(world).ok()?;
    let of_all = |group: &&Arc<ProcessGroup>| group.size as usize == size && group.link.is_some();
    known.iter().filter(of_all).min_by_key(|group| group.number)
}

/// The group as this rank knows it.
pub(super) fn find(host: &Host, group: Group) -> Result<Option<Arc<ProcessGroup>>> {
    let known = known();
    for candidate in known.iter().rev() {
        let is_same = candidate.group() == group || {
            let compared = host.group_compare(candidate.group(), group);
            compared.map_err(host_error)? == Comparison::Identical
        };
        if is_same {
            return Ok(Some(Arc::clone(candidate)));
        }
    }
    Ok(None)
}

/// Keeps a group for the next meeting, and forgets others that were not used for
/// long.
pub(super) fn remember(host: &Host, group: &Arc<ProcessGroup>) {
    let mut known = known();
    known.retain(|other| !Arc::ptr_eq(other, group));
    // What belongs to a session has to be gone before the session ends, and
    // nobody tells when that is.
    if host.has_world() {
        known.push(Arc::clone(group));
    }
    // Ranks may forget different groups, but all meet in this one when the MPI ends.
    let of_all = of_all(host, &known).cloned();
    let is_of_all = |group: &Arc<ProcessGroup>| {
        let kept = of_all.as_ref();
        kept.is_some_and(|kept| Arc::ptr_eq(kept, group))
    };
    let (mut idle, mut bytes) = (0, 0);
    let is_kept: Vec<bool> = known
        .iter()
        .rev()
        .map(|group| {
            let references = 1 + usize::from(is_of_all(group));
            let is_idle = Arc::strong_count(group) == references;
            idle += usize::from(is_idle);
            bytes += if is_idle { group.bytes() } else { 0 };
            !is_idle
                || is_of_all(group)
                || idle == 1
                || (idle <= IDLE_MAX && bytes <= IDLE_BYTES_MAX)
        })
        .collect();
    let mut is_kept = is_kept.into_iter().rev();
    known.retain(|_| is_kept.next().unwrap_or(true));
}

/// Whether some of the processes belong to another `MPI_COMM_WORLD`.
pub(super) fn spans_worlds(host: &Host, group: Group) -> Result<bool> {
    if !host.has_world() {
        return Ok(false);
    }
    let look = || {
        let world = host.comm_group(host.predefined().comm_world)?;
        let ranks: Vec<usize> = (0..host.group_size(group)?).collect();
        let found = host.group_translate_ranks(group, &ranks, world);
        host.group_free(world)?;
        found
    };
    let found = look().map_err(host_error)?;
    Ok(found.iter().any(Option::is_none))
}
