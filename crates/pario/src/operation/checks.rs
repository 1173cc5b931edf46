//! Whether the mode and the view of a file allow a call.

use pario_driver::Direction;

use super::{Call, Position};
use crate::{
    Error, ErrorKind, Mode, Result,
    file::Inner,
    view::{FlattenedView, ViewsEqual},
};

/// Whether the file's mode and view allow the call.
pub(crate) fn check_allowed(file: &Inner, view: &FlattenedView, call: Call) -> Result<()> {
    file.check_open()?;
    check_agreed(file, view, call)
}

/// As [`check_allowed`], but only for what the ranks have agreed on: all of them get the same
/// result.
pub(crate) fn check_agreed(file: &Inner, view: &FlattenedView, call: Call) -> Result<()> {
    let shared = matches!(call.position, Position::Shared | Position::Ordered(_));
    if shared {
        check_same_views(view)?;
    }
    if file.mode.contains(Mode::SEQUENTIAL) && !shared {
        return Err(Error::new(
            ErrorKind::UnsupportedOperation,
            "a file opened SEQUENTIAL allows only shared-pointer accesses",
        ));
    }
    match call.direction {
        Direction::Read if !file.mode.can_read() => Err(Error::new(
            ErrorKind::Access,
            "the file was opened WRITE_ONLY: reading is not allowed",
        )),
        Direction::Write if !file.mode.can_write() => Err(Error::new(
            ErrorKind::ReadOnly,
            "the file was opened READ_ONLY: writing is not allowed",
        )),
        _ => Ok(()),
    }
}

fn check_same_views(view: &FlattenedView) -> Result<()> {
    match view.equality() {
        ViewsEqual::Same => Ok(()),
        ViewsEqual::Different => Err(Error::new(
            ErrorKind::NotSame,
            "shared-pointer calls need the same view on all ranks, but the views differ",
        )),
    }
}
