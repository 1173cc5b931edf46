//! Starting and ending MPI.

#![allow(unsafe_code)] // Calls the host.

use std::ffi::{c_char, c_int};
use std::ptr;

use super::abi::Flavour;
use super::constants::Constants;
use super::{Host, call};
use crate::error::MpiError;
use crate::handles::Comm;

/// The level of thread support of an MPI.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Threads {
    /// `MPI_THREAD_SINGLE`: there is one thread.
    Single,
    /// `MPI_THREAD_FUNNELED`: only the main thread calls MPI.
    Funneled,
    /// `MPI_THREAD_SERIALIZED`: one thread at a time calls MPI.
    Serialized,
    /// `MPI_THREAD_MULTIPLE`: any thread at any time.
    Multiple,
}

impl Threads {
    const ALL: [Threads; 4] = [
        Self::Single,
        Self::Funneled,
        Self::Serialized,
        Self::Multiple,
    ];

    /// The level's number on hosts of that flavour.
    pub const fn number(self, flavour: Flavour) -> c_int {
        let constants = Constants::of(flavour);
        match self {
            Self::Single => constants.thread_single,
            Self::Funneled => constants.thread_funneled,
            Self::Serialized => constants.thread_serialized,
            Self::Multiple => constants.thread_multiple,
        }
    }

    /// The level of that number; unknown numbers count as the lowest level.
    pub fn from_number(flavour: Flavour, number: c_int) -> Threads {
        let mut levels = Self::ALL.into_iter();
        levels
            .find(|level| level.number(flavour) == number)
            .unwrap_or(Self::Single)
    }
}

impl Host {
    /// Whether MPI has been initialised, even if it has been finalised since. Allowed at any
    /// time.
    pub fn is_initialized(&self) -> bool {
        let mut flag = 0;
        call!(self, initialized(&mut flag)).is_ok() && flag != 0
    }

    /// Whether MPI has been finalised. Allowed at any time.
    pub fn is_finalized(&self) -> bool {
        let mut flag = 0;
        call!(self, finalized(&mut flag)).is_ok() && flag != 0
    }

    /// Whether the world of `MPI_Init` can be used now: false in programs that use only
    /// sessions.
    pub fn has_world(&self) -> bool {
        self.is_initialized() && !self.is_finalized()
    }

    /// Initialises MPI and returns the level of thread support that it provides.
    pub fn init_thread(&self, wanted: Threads) -> Result<Threads, MpiError> {
        let mut given = 0;
        let (arguments, wanted) = (ptr::null_mut(), wanted.number(self.flavour));
        call!(
            self,
            init_thread(arguments, arguments.cast(), wanted, &mut given)
        )?;
        Ok(Threads::from_number(self.flavour, given))
    }

    /// The current level of thread support.
    pub fn threads(&self) -> Result<Threads, MpiError> {
        let mut level = 0;
        call!(self, query_thread(&mut level))?;
        Ok(Threads::from_number(self.flavour, level))
    }

    /// Ends MPI.
    pub fn finalize(&self) -> Result<(), MpiError> {
        call!(self, finalize())
    }

    /// Ends the program.
    pub fn abort(&self, comm: Comm, code: c_int) -> Result<(), MpiError> {
        call!(self, abort(comm.0, code))
    }

    /// The version of the standard that the host reports.
    pub fn standard_version(&self) -> Result<(c_int, c_int), MpiError> {
        let (mut major, mut minor) = (0, 0);
        call!(self, get_version(&mut major, &mut minor))?;
        Ok((major, minor))
    }
}

/// A buffer for a text that the host writes.
pub(super) struct TextBuffer(Vec<u8>);

impl TextBuffer {
    /// A buffer for `len` bytes and the final NUL.
    pub(super) fn new(len: usize) -> Self {
        Self(vec![0; len + 1])
    }

    pub(super) fn pointer(&mut self) -> *mut c_char {
        self.0.as_mut_ptr().cast()
    }

    /// The text up to the NUL.
    pub(super) fn string(&self) -> String {
        let end = self.0.iter().position(|&byte| byte == 0);
        String::from_utf8_lossy(&self.0[..end.unwrap_or(self.0.len())]).into_owned()
    }
}
