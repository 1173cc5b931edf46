//! Ordered accesses: the ranks' parts follow each other at the shared
//! pointer, in rank order.

use std::sync::Arc;

use super::{CollectiveContext, run_prepared};
use crate::{
    Error, Result, Status,
    access::MemoryData,
    agree,
    buffer::Memory,
    file::Inner,
    operation::{Call, Operation, Position, check_allowed},
};

/// Carries out an ordered call, if it is `allowed` on this rank. The parts are
/// moved as those of any other collective call, once it is known where they
/// start.
pub(crate) fn run_ordered(
    file: &Arc<Inner>,
    context: &CollectiveContext,
    call: Call,
    memory: Memory,
    allowed: Result<()>,
) -> Result<Status> {
    let offset = offset(file, context, call, &memory, allowed)
        .map_err(|error| file.name_error(error, call.name))?;
    let call = Call {
        position: Position::Ordered(offset),
        ..call
    };
    let settings = file.settings();
    let prepared = Operation::prepare_on(&settings, file, call, memory);
    run_prepared(file, context, call, &settings, prepared)
}

/// Where this rank's part starts: behind the parts of the ranks before it.
/// The pointer is read once all ranks have arrived: one may still have been
/// using it alone when another came here.
fn offset(
    file: &Arc<Inner>,
    context: &CollectiveContext,
    call: Call,
    memory: &Memory,
    allowed: Result<()>,
) -> Result<u64> {
    let comm = &*context.comm;
    let view = file.view();
    let mine = allowed
        .and_then(|()| check_allowed(file, &view, call))
        .and_then(|()| MemoryData::new(&view, memory.clone()))
        .and_then(|data| view.whole_etypes(data.file_bytes()));
    let all = agree::gather(comm, mine.map(|etypes| etypes.to_le_bytes().to_vec()))?;
    let counts: Vec<u64> = all
        .iter()
        .map(|message| message.as_slice().try_into().map_or(0, u64::from_le_bytes))
        .collect();
    let sum = |counts: &[u64]| counts.iter().try_fold(0u64, |sum, n| sum.checked_add(*n));
    let total = sum(&counts)
        .ok_or_else(|| Error::argument("all ranks together ask for more than 2^64 etypes"))?;
    let base = file.advance_for_all(comm, total)?;
    let before = sum(&counts[..comm.rank().index()]).unwrap_or(total);
    base.checked_add(before)
        .ok_or_else(|| Error::argument("the access reaches past 2^64 etypes"))
}
