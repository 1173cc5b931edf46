//! Lustre: the placement of files over its servers, and its locks.
//!
//! The kernel's client does the transfers, so that files are opened by
//! [`Posix`](crate::Posix) like any other; this directory has what is peculiar
//! to Lustre. No Lustre runs in the tests: layouts that were measured on a real
//! one, and a double of its client (`doubles::lustre`) stand in for it.

mod choice;
mod create;
#[cfg(test)]
pub(crate) mod fixtures;
mod group_lock;
mod layout;
pub(crate) mod lock_ahead;
mod placement;
#[cfg(test)]
mod tests;

pub(crate) use create::create;
pub(crate) use group_lock::GroupLock;

use std::{ffi::CStr, os::fd::BorrowedFd};

use pario_types::Placement;

use crate::control::Control;
use layout::Layout;

/// The attribute that holds the layout of a file, or the default of a directory.
const LAYOUT_ATTRIBUTE: &CStr = c"lustre.lov";

/// No attribute is longer.
const LAYOUT_BYTES_MAX: usize = 64 << 10;

/// Where the bytes of a file are, if that is understood.
pub(crate) fn placement(control: &Control, file: BorrowedFd<'_>) -> Option<Placement> {
    let value = control.attribute(file, LAYOUT_ATTRIBUTE, LAYOUT_BYTES_MAX);
    Layout::parse(&value.ok()?)?.placement()
}
