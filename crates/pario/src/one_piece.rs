//! Blocking accesses of one piece: contiguous in memory and in the file, neither converted nor
//! locked. Most small accesses are of this kind, and selecting a method, or collecting what the
//! selection depends on, would take as long as the access itself. So they borrow what an
//! operation owns and go straight to the driver.

use pario_driver::{Batch, Direction};

use crate::{
    Error, Mode, Result, Status,
    access::{MemorySpan, file_range, is_staged},
    buffer::Memory,
    file::{CallSettings, Inner},
    operation::{self, Call, Position},
};

/// Carries out an access of one piece with the current settings. `None` if it is another kind
/// of access, or not allowed: an operation then carries it out, or finds the error.
pub(crate) fn run(file: &Inner, call: Call, memory: &Memory) -> Option<Result<Status>> {
    run_at(file, call, |offset| {
        file.with_settings(|settings| OnePiece::find(file, settings, call, memory, offset))
    })
}

/// As [`run`], for a call with these settings.
pub(crate) fn run_with(
    file: &Inner,
    settings: &CallSettings,
    call: Call,
    memory: &Memory,
) -> Option<Result<Status>> {
    run_at(file, call, |offset| {
        OnePiece::find(file, settings, call, memory, offset)
    })
}

/// `find` gets the offset in etypes.
fn run_at<'m>(
    file: &Inner,
    call: Call,
    find: impl FnOnce(u64) -> Option<OnePiece<'m>>,
) -> Option<Result<Status>> {
    let piece = match call.position {
        Position::At(offset) => find(offset)?,
        Position::Individual => {
            // `set_view` locks the pointer before the settings, too.
            let mut pointer = file.pointer();
            let piece = find(*pointer)?;
            *pointer += piece.etypes;
            piece
        }
        Position::Shared | Position::Ordered(_) => return None,
    };
    Some(piece.run(file, call))
}

/// An access that has passed all checks.
struct OnePiece<'m> {
    batch: Batch<'m>,
    /// Where it is in the file.
    start: u64,
    etypes: u64,
}

impl<'m> OnePiece<'m> {
    fn find(
        file: &Inner,
        settings: &CallSettings,
        call: Call,
        memory: &'m Memory,
        offset: u64,
    ) -> Option<OnePiece<'m>> {
        let (view, bytes) = (&*settings.view, memory.bytes());
        if !settings.allow_one_piece(call.direction) || bytes == 0 {
            return None;
        }
        operation::check_allowed(file, view, call).ok()?;
        let etypes = view.whole_etypes(bytes).ok()?;
        let start = file_range(view, view.data_byte(offset).ok()?, bytes)?.start;
        let piece = MemorySpan::of(memory).at(start)?;
        let (address, hints) = (piece.address(), &settings.hints);
        if is_staged(hints, call.direction, start, address, bytes) {
            return None;
        }
        let mut batch = Batch::new(call.direction);
        piece.push(&mut batch);
        Some(OnePiece {
            batch,
            start,
            etypes,
        })
    }

    fn run(self, file: &Inner, call: Call) -> Result<Status> {
        // Only files opened UNIQUE_OPEN are subject to writes that must be alone.
        let is_guarded =
            call.direction == Direction::Write && file.mode.contains(Mode::UNIQUE_OPEN);
        let _guard = is_guarded.then(|| file.writer_lock.shared());
        let outcome = file.handle.transfer(&self.batch);
        match outcome.error {
            None => Ok(Status::new(outcome.bytes)),
            Some(error) => {
                let error = Error::from(error).at_offset(self.start + outcome.bytes);
                Err(file.name_error(error.after(outcome.bytes), call.name))
            }
        }
    }
}
