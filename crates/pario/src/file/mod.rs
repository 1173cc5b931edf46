//! Files: what a program opens, and everything it can do with one.

mod collective;
mod common_facts;
mod data;
mod hints;
mod inner;
mod manage;
mod open;
mod pointers;
mod rank_views;
mod same_file;
mod settings;
mod usable;
mod views;

pub use collective::Split;
pub(crate) use inner::Inner;
pub(crate) use settings::CallSettings;

use std::{path::Path, sync::Arc};

use pario_transport::Transport;

use crate::Mode;

/// A file that the ranks of a communicator opened together.
///
/// Calls marked *collective* are made by all ranks, in the same order; each
/// returns on every rank, with the same kind of error if any rank fails.
///
/// Several threads of a rank may use a file at the same time. Dropping it
/// closes it on this rank alone, without telling the others; [`File::close`]
/// is the way to learn of errors and to have [`Mode::DELETE_ON_CLOSE`] done.
#[derive(Debug)]
pub struct File {
    inner: Arc<Inner>,
}

/// What concurrent accesses see of each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Atomicity {
    /// Overlapping accesses may mix, as the standard's default has it.
    NonAtomic,
    /// Every access, however many pieces it has, happens before or after
    /// each other one.
    Atomic,
}

/// What an offset of a seek is relative to.
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
    pub fn comm(&self) -> &Arc<dyn Transport> {
        &self.inner.comm
    }

    /// The access mode it was opened with.
    pub fn mode(&self) -> Mode {
        self.inner.mode
    }

    /// Its name, as this rank gave it.
    pub fn path(&self) -> &Path {
        &self.inner.path
    }
}

impl Drop for File {
    fn drop(&mut self) {
        self.inner.close_locally();
    }
}
