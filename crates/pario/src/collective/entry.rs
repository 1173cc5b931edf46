//! The exchanges of a collective call: the ranks' accesses before it, and their results after it.

use pario_exchange::{Failure, Table};
use pario_plan::Access;
use pario_transport::Transport;

use super::PlanResult;
use crate::{
    Error, ErrorKind, Result, Status,
    agree::{self, GatherBuffers},
    collective_call::CollectiveCall,
    operation::Operation,
};

/// What one rank sends before a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// The first data byte of the view.
    pub(super) first: u64,
    /// The number of data bytes in the file.
    pub(super) len: u64,
    flags: u8,
}

/// Data needs no conversion, and the access need not be atomic.
const PLAIN: u8 = 1;
/// The access must be atomic.
const ATOMIC: u8 = 2;

/// The code of the call is in the bits from here on.
const CALL_SHIFT: u32 = 2;

const ENTRY_BYTES: usize = 17;

impl Entry {
    pub(super) fn new(operation: &Operation) -> Entry {
        let plain = if operation.is_plain() { PLAIN } else { 0 };
        let atomic = if operation.is_atomic() { ATOMIC } else { 0 };
        Entry {
            first: operation.first(),
            len: operation.file_bytes(),
            flags: plain | atomic,
        }
    }

    /// The entry of a call between nodes. An eager one lets another rank move
    /// the data.
    pub(super) fn between_nodes(
        self,
        call: CollectiveCall,
        is_eager: bool,
    ) -> pario_exchange::Entry {
        let not_eager = match is_eager {
            true => 0,
            false => pario_exchange::Entry::NOT_EAGER,
        };
        pario_exchange::Entry {
            first: self.first,
            len: self.len,
            flags: self.flags | call.code() << CALL_SHIFT | not_eager,
            failure: None,
        }
    }

    /// Whether this rank's data may go through windows.
    pub(super) fn is_plain(&self) -> bool {
        self.flags & PLAIN != 0
    }

    /// Whether the access must be atomic.
    pub(super) fn is_atomic(&self) -> bool {
        self.flags & ATOMIC != 0
    }

    fn to_wire(self) -> [u8; ENTRY_BYTES] {
        let mut wire = [0; ENTRY_BYTES];
        wire[..8].copy_from_slice(&self.first.to_le_bytes());
        wire[8..16].copy_from_slice(&self.len.to_le_bytes());
        wire[16] = self.flags;
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

/// The entry of a call between nodes that moves no data, or that has failed on this rank.
pub(super) fn meeting_entry(
    call: CollectiveCall,
    failure: Option<Failure>,
) -> pario_exchange::Entry {
    pario_exchange::Entry {
        flags: call.code() << CALL_SHIFT,
        failure,
        ..Default::default()
    }
}

/// Fails if the ranks of a call between nodes have made different calls.
pub(super) fn check_same_call(table: &Table) -> Result<()> {
    let code = |entry: &pario_exchange::Entry| {
        (entry.flags & !pario_exchange::Entry::NOT_EAGER) >> CALL_SHIFT
    };
    agree::check_same_call(table.entries().map(|(_, entry)| code(entry)))
}

impl From<&pario_exchange::Entry> for Entry {
    fn from(entry: &pario_exchange::Entry) -> Entry {
        Entry {
            first: entry.first,
            len: entry.len,
            flags: entry.flags & (PLAIN | ATOMIC),
        }
    }
}

/// What became of an [`exchange`].
pub(super) struct Gathered {
    /// Whether some ranks had moved their data first, and others had not.
    pub(super) was_repeated: bool,
    pub(super) result: Result<()>,
}

/// Sends this rank's access to all ranks, and gathers `entries`. If the arguments of any rank
/// are invalid, all get its error, and nothing is moved but what ranks have moved first
/// ([`finish_first`]). Those ranks send no entry at first; then there is a second gather, in which
/// all do.
pub(super) fn exchange(
    comm: &dyn Transport,
    buffers: &mut GatherBuffers,
    prepared: &Result<Operation>,
    entries: &mut Vec<Entry>,
) -> Gathered {
    let mine = prepared
        .as_ref()
        .map(|operation| Entry::new(operation).to_wire());
    let mine = mine.as_ref().map(|wire| &wire[..]).map_err(|error| *error);
    let is_incomplete = |buffers: &mut GatherBuffers| -> Result<bool> {
        Ok(buffers.gather(comm, mine)?.any(<[u8]>::is_empty))
    };
    let first = is_incomplete(buffers);
    let was_repeated = matches!(first, Ok(true));
    let result = match was_repeated {
        true => is_incomplete(buffers),
        false => first,
    };
    Gathered {
        was_repeated,
        result: result.and_then(|_| parse(buffers.contents(), entries)),
    }
}

fn parse<'a>(all: impl Iterator<Item = &'a [u8]>, entries: &mut Vec<Entry>) -> Result<()> {
    entries.clear();
    for wire in all {
        entries.push(Entry::from_wire(wire).ok_or_else(|| {
            Error::new(
                ErrorKind::Io,
                "a rank sent a malformed entry of a collective call",
            )
        })?);
    }
    Ok(())
}

/// Ends a call that moved the ranks' data together. A rank's count is the prefix of its data
/// below the first byte that could not be moved.
pub(super) fn finish(
    comm: &dyn Transport,
    buffers: &mut GatherBuffers,
    mine: &Access,
    plan_result: PlanResult,
) -> Result<Status> {
    let stop = plan_result.stop.unwrap_or(u64::MAX);
    let GatherBuffers { message, all, .. } = buffers;
    message.clear();
    message.extend(stop.to_le_bytes());
    if let Some(error) = &plan_result.error {
        message.extend(error.to_wire());
    }
    comm.all_gather_into(message, all)?;
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
                &all.of(rank)[size_of::<u64>()..],
                pario_transport::Rank(rank as u32),
            ),
        }
        .after(count)),
    }
}

/// The status of a call whose end the ranks have agreed on, in which `count` bytes of this
/// rank were moved. If the failure is this rank's, `own` is its error.
pub(super) fn status(
    comm: &dyn Transport,
    count: u64,
    failure: Option<Failure>,
    own: Option<Error>,
) -> Result<Status> {
    let Some(failure) = failure else {
        return Ok(Status::new(count));
    };
    let rank = pario_transport::Rank(failure.rank.0);
    Err(match own {
        Some(error) if rank == comm.rank() => error.on_rank(rank),
        _ => Error::from_wire(&failure.detail, rank),
    }
    .after(count))
}

/// Ends a call in which every rank moved its own data.
pub(super) fn finish_individual(
    comm: &dyn Transport,
    buffers: &mut GatherBuffers,
    result: Result<Status>,
) -> Result<Status> {
    let moved = moved_bytes(&result);
    let agreed = buffers.agree(comm, result);
    agreed.map_err(|error| error.after(moved))
}

/// Ends a call in which this rank has moved its data before it knew anything of the others. `None`
/// if not all ranks have: they, and this one, now [`exchange`] entries as in any other call.
pub(super) fn finish_first(
    comm: &dyn Transport,
    buffers: &mut GatherBuffers,
    result: Result<Status>,
) -> Option<Result<Status>> {
    let moved = moved_bytes(&result);
    let agreed = match &result {
        Ok(_) => match buffers.gather_nothing(comm) {
            Ok(true) => result,
            Ok(false) => return None,
            Err(error) => Err(error),
        },
        Err(_) => buffers.agree(comm, result),
    };
    Some(agreed.map_err(|error| error.after(moved)))
}

fn moved_bytes(result: &Result<Status>) -> u64 {
    match result {
        Ok(status) => status.bytes(),
        Err(error) => error.transferred(),
    }
}
