//! Collective writes under a group lock: every rank writes its own data, and all hold one lock on
//! the file together, which takes one request per client and server instead of one per piece.
//!
//! The plan has checked that every rank writes whole pages of its own, since the caches of the
//! holders are not coherent with each other. The lock is released, with the data on the servers,
//! before the call ends on any path, so that whatever follows sees the file as usual.

use std::{
    hash::{BuildHasher, RandomState},
    num::NonZeroU32,
};

use pario_transport::{Rank, Transport};

use super::planning::CallPlan;
use crate::{Error, Result, Status, agree, operation::Operation};

/// Writes this rank's data.
pub(super) fn run(
    comm: &dyn Transport,
    operation: &Operation,
    call: &CallPlan<'_>,
) -> Result<Status> {
    let group = agreed_group(comm)?;
    let has_data = !call.accesses[comm.rank().index()].is_empty();
    // A rank that cannot take the lock waits in its writes until the others have released theirs.
    let is_held = has_data && operation.handle().lock_group(group).unwrap_or(false);
    let written = operation.run();
    let released = match is_held {
        true => operation.handle().unlock_group(),
        false => Ok(()),
    };
    match (written, released) {
        (Ok(_), Err(error)) => Err(Error::from(error)),
        (written, _) => written,
    }
}

/// A number that programs with group locks of their own are unlikely to use, the same on all
/// ranks.
fn agreed_group(comm: &dyn Transport) -> Result<NonZeroU32> {
    let random = || {
        let number = RandomState::new().hash_one(std::process::id());
        (number as u32 >> 1).to_le_bytes().to_vec()
    };
    let message = agree::broadcast(comm, Rank(0), || Ok(random()))?;
    let number = message.as_slice().try_into().map_or(0, u32::from_le_bytes);
    Ok(NonZeroU32::new(number).unwrap_or(NonZeroU32::MIN))
}
