//! The two exchanges of a collective call: what each rank wants, and how far
//! it got.

use pario_plan::Access;
use pario_transport::Transport;

use super::PlanResult;
use crate::{Error, ErrorKind, Result, Status, agree, operation::Operation};

/// What one rank says before a call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    /// First data byte of its view.
    pub(super) first: u64,
    /// Data bytes in the file.
    pub(super) len: u64,
    flags: u8,
}

/// Data goes between memory and file as it is, and not atomically.
const PLAIN: u8 = 1;
/// The access must be atomic.
const ATOMIC: u8 = 2;

const ENTRY_BYTES: usize = 17;

impl Entry {
    fn new(operation: &Operation) -> Result<Entry> {
        let plain = if operation.is_plain() { PLAIN } else { 0 };
        let atomic = if operation.is_atomic() { ATOMIC } else { 0 };
        let len = operation.file_bytes()?;
        Ok(Entry {
            first: operation.first(),
            len,
            flags: plain | atomic,
        })
    }

    /// Whether windows may carry this rank's data.
    pub(super) fn is_plain(&self) -> bool {
        self.flags & PLAIN != 0
    }

    /// Whether the access must be atomic.
    pub(super) fn is_atomic(&self) -> bool {
        self.flags & ATOMIC != 0
    }

    fn to_wire(self) -> Vec<u8> {
        let mut wire = Vec::with_capacity(ENTRY_BYTES);
        wire.extend(self.first.to_le_bytes());
        wire.extend(self.len.to_le_bytes());
        wire.push(self.flags);
        wire
    }

    fn from_wire(wire: &[u8]) -> Option<Entry> {
        let (first, rest) = wire.split_first_chunk()?;
        let (len, rest) = rest.split_first_chunk()?;
        let flags = *rest.first()?;
        Some(Entry {
            first: u64::from_le_bytes(*first),
            len: u64::from_le_bytes(*len),
            flags,
        })
    }
}

/// Tells all ranks what this one wants. If any rank's arguments are wrong,
/// all get its error and nothing is moved.
pub(super) fn exchange(comm: &dyn Transport, prepared: &Result<Operation>) -> Result<Vec<Entry>> {
    let mine = match prepared {
        Ok(operation) => Entry::new(operation).map(Entry::to_wire),
        Err(error) => Err(error.clone()),
    };
    let all = agree::gather(comm, mine)?;
    let entries = all.iter().map(|wire| Entry::from_wire(wire));
    entries.collect::<Option<_>>().ok_or_else(|| {
        Error::new(
            ErrorKind::Io,
            "a rank sent an entry of a collective call that cannot be read",
        )
    })
}

/// Ends a call that moved the ranks' data together. A rank's count is the
/// prefix of its data below the first byte that someone could not move.
pub(super) fn finish(
    comm: &dyn Transport,
    mine: &Access,
    plan_result: PlanResult,
) -> Result<Status> {
    let stop = plan_result.stop.unwrap_or(u64::MAX);
    let mut message = stop.to_le_bytes().to_vec();
    if let Some(error) = &plan_result.error {
        message.extend(error.to_wire());
    }
    let all = comm.all_gather(&message)?;
    let stops = all
        .iter()
        .filter_map(|message| message.first_chunk().copied());
    let stop = stops.map(u64::from_le_bytes).min().unwrap_or(u64::MAX);
    let count = mine.bytes_below(stop);
    let failed = all
        .iter()
        .position(|message| message.len() > size_of::<u64>());
    match failed {
        None => Ok(Status::new(count)),
        Some(rank) => Err(match plan_result.error {
            Some(error) if rank == comm.rank().index() => error,
            _ => Error::from_wire(
                &all[rank][size_of::<u64>()..],
                pario_transport::Rank(rank as u32),
            ),
        }
        .after(count)),
    }
}

/// Ends a call in which every rank moved its own data.
pub(super) fn finish_individual(comm: &dyn Transport, result: Result<Status>) -> Result<Status> {
    let moved = match &result {
        Ok(status) => status.bytes(),
        Err(error) => error.transferred(),
    };
    agree::agree(comm, result).map_err(|error| error.after(moved))
}
