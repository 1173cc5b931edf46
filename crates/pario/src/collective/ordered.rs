//! Ordered accesses: the ranks' data is stored in rank order, starting at the shared pointer.

use std::sync::Arc;

use super::{CollectiveContext, run_prepared};
use crate::{
    Error, Result, Status,
    access::MemoryData,
    agree,
    buffer::Memory,
    collective_call::CollectiveCall,
    file::Inner,
    operation::{Call, Operation, Position, check_allowed},
};

/// Carries out an ordered call, if it is `allowed` on this rank. Once it is known where each
/// rank's data starts, it is a collective call like any other.
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

/// Where this rank's data starts: after that of the lower ranks. The pointer is read once all
/// ranks have arrived, because until then one may still use it on its own.
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
    let name = CollectiveCall::of(call);
    context
        .meet(file, name, mine.as_ref().err())
        .unwrap_or(Ok(()))?;
    let all = agree::gather_in(name, comm, mine.map(|etypes| etypes.to_le_bytes().to_vec()))?;
    let counts: Vec<u64> = all
        .iter()
        .map(|message| message.as_slice().try_into().map_or(0, u64::from_le_bytes))
        .collect();
    let sum = |counts: &[u64]| counts.iter().try_fold(0u64, |sum, n| sum.checked_add(*n));
    let total = sum(&counts)
        .ok_or_else(|| Error::argument("all ranks together request more than 2^64 etypes"))?;
    let base = file.advance_for_all(comm, total)?;
    let before = sum(&counts[..comm.rank().index()]).unwrap_or(total);
    base.checked_add(before)
        .ok_or_else(|| Error::argument("the access reaches past 2^64 etypes"))
}
