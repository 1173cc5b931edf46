//! Blocking accesses of one piece: contiguous in memory and in the file, neither converted nor
//! locked. Most small accesses are of this kind, and selecting a method, or collecting what the
//! selection depends on, would take as long as the access itself. So they borrow what an
//! operation owns and go straight to the driver, or through one staging buffer.

use std::io;

use pario_driver::{Direction, Outcome};
use pario_layout::Layout;

use crate::{
    Error, Mode, Result, Status,
    access::{MemorySpan, is_staged},
    buffer::Memory,
    file::{CallSettings, Inner},
    operation::{self, Call, Position},
};

/// Carries out an access of one piece with the current settings. `None` if it is another kind
/// of access, or not allowed: an operation then carries it out, or finds the error.
#[inline]
pub(crate) fn run(file: &Inner, call: Call, memory: &Memory) -> Option<Result<Status>> {
    let moved = run_at(file, call, memory, |offset| {
        file.with_settings(|settings| find(file, settings, call, memory, offset))
    })?;
    Some(moved.result)
}

/// What became of an access of one piece.
pub(crate) struct MovedPiece {
    /// Where it was, in etypes. Pointers have been advanced.
    pub(crate) offset: u64,
    pub(crate) result: Result<Status>,
}

/// As [`run`], for a call with these settings.
#[inline]
pub(crate) fn run_with(
    file: &Inner,
    settings: &CallSettings,
    call: Call,
    memory: &Memory,
) -> Option<MovedPiece> {
    run_at(file, call, memory, |offset| {
        find(file, settings, call, memory, offset)
    })
}

/// `find` gets the offset in etypes.
#[inline]
fn run_at(
    file: &Inner,
    call: Call,
    memory: &Memory,
    find: impl FnOnce(u64) -> Option<OnePiece>,
) -> Option<MovedPiece> {
    let (offset, piece) = match call.position {
        Position::At(offset) => (offset, find(offset)?),
        Position::Individual => {
            // `set_view` locks the pointer before the settings, too.
            let mut pointer = file.pointer();
            let (offset, piece) = (*pointer, find(*pointer)?);
            *pointer += piece.etypes;
            (offset, piece)
        }
        Position::Shared | Position::Ordered(_) => return None,
    };
    let result = transfer(file, call, memory, &piece);
    Some(MovedPiece { offset, result })
}

/// An access that has passed all checks.
struct OnePiece {
    /// Where it is in the file.
    start: u64,
    etypes: u64,
    /// Whether a copy through a staging buffer is faster than the kernel's own.
    is_staged: bool,
}

#[inline]
fn find(
    file: &Inner,
    settings: &CallSettings,
    call: Call,
    memory: &Memory,
    offset: u64,
) -> Option<OnePiece> {
    let (bytes, direction) = (memory.bytes(), call.direction);
    let view = settings.one_piece_view(direction)?;
    if bytes == 0 || !memory.datatype().layout().is_dense() {
        return None;
    }
    // The transfer reports earlier failures of the handle.
    file.check_not_closed().ok()?;
    operation::check_agreed(file, &settings.view, call).ok()?;
    let (start, etypes) = view.locate(offset, bytes)?;
    let is_staged = is_staged(
        &settings.hints,
        direction,
        start,
        memory.origin() as usize,
        bytes,
    );
    // More than a buffer is staged in several steps.
    let is_one_step = !is_staged || bytes <= settings.hints.cached_window_bytes();
    is_one_step.then_some(OnePiece {
        start,
        etypes,
        is_staged,
    })
}

#[inline]
fn transfer(file: &Inner, call: Call, memory: &Memory, piece: &OnePiece) -> Result<Status> {
    // Other files are not subject to writes that must be alone.
    let is_guarded = call.direction == Direction::Write
        && (file.mode.contains(Mode::UNIQUE_OPEN) || file.writers.may_have_lease);
    let _guard = is_guarded.then(|| file.writer_lock.shared());
    let (span, start) = (MemorySpan::of(memory), piece.start);
    let staged = match piece.is_staged {
        true => transfer_staged(file, call.direction, &span, start),
        false => None,
    };
    let outcome = staged.unwrap_or_else(|| transfer_span(file, call.direction, &span, start));
    match outcome.error {
        None => Ok(Status::new(outcome.bytes)),
        Some(error) => Err(failed(file, call, start, outcome.bytes, error)),
    }
}

#[inline]
fn transfer_span(file: &Inner, direction: Direction, span: &MemorySpan<'_>, start: u64) -> Outcome {
    let piece = span.at(start).expect("only contiguous memory gets here");
    file.handle.transfer_one(&piece.one(direction))
}

/// `None` if no staging memory is available right now: without it, the transfer just takes longer.
fn transfer_staged(
    file: &Inner,
    direction: Direction,
    span: &MemorySpan<'_>,
    start: u64,
) -> Option<Outcome> {
    let mut buffer = file.buffers.try_take(span.len())?.ok()?;
    let staged = &mut buffer[..span.len() as usize];
    if direction == Direction::Write {
        span.pack_into(staged);
    }
    let dense = Layout::dense(1);
    let outcome = transfer_span(file, direction, &MemorySpan::dense(staged, &dense), start);
    if direction == Direction::Read {
        span.unpack_from(&staged[..outcome.bytes as usize]);
    }
    Some(outcome)
}

#[cold]
fn failed(file: &Inner, call: Call, start: u64, bytes: u64, error: io::Error) -> Error {
    let error = Error::from(error).at_offset(start + bytes);
    file.name_error(error.after(bytes), call.name)
}
