//! Files and their operations.

mod close;
mod collective;
mod common_facts;
mod data;
mod deferral;
mod hints;
mod inner;
mod late_handle;
mod lock_probe;
mod manage;
mod merge;
mod open;
mod placement;
mod placement_wire;
mod pointers;
mod rank_views;
mod same_file;
mod settings;
mod shared_description;
mod sharing;
mod usable;
mod views;
mod write_protocol;

pub use collective::Split;
pub(crate) use inner::Inner;
pub(crate) use late_handle::LateHandle;
pub(crate) use settings::CallSettings;
pub(crate) use sharing::FileSharing;
pub(crate) use write_protocol::{REQUEST_BYTES, WriteProtocol};

use std::{path::Path, sync::Arc};

use crate::{Comm, Mode};

/// A file that the ranks of a communicator have opened together.
///
/// Calls marked *collective* must be made by all ranks, in the same order; if one fails on any
/// rank, it fails on all, with the same kind of error. See the
/// [crate's documentation](crate#collective-calls).
///
/// Several threads of a rank may use a file at the same time. Dropping a file closes it on this
/// rank only; [`File::close`] also reports errors and carries out [`Mode::DELETE_ON_CLOSE`].
#[derive(Debug)]
pub struct File {
    inner: Arc<Inner>,
}

/// How concurrent overlapping accesses behave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Atomicity {
    /// Overlapping accesses may interleave: the default of the standard.
    NonAtomic,
    /// Each access, however many pieces it has, takes effect before or after each other one.
    Atomic,
}

/// The origin of a seek.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seek {
    /// The start of the view.
    Set,
    /// The pointer.
    Current,
    /// The end of the file.
    End,
}

impl File {
    /// The ranks that opened the file.
    pub fn comm(&self) -> Comm {
        Comm::from(&self.inner.comm)
    }

    /// The access mode of the file.
    pub fn mode(&self) -> Mode {
        self.inner.mode
    }

    /// The file's name, as passed to [`File::open`] on this rank.
    pub fn path(&self) -> &Path {
        &self.inner.path
    }
}

impl Drop for File {
    fn drop(&mut self) {
        self.inner.close_locally();
    }
}
