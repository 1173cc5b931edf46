//! What several test programs share.
#![allow(dead_code, reason = "no program uses all of it")]

pub(crate) mod mismatch;
pub(crate) mod probe;
pub(crate) mod watchdog;

use std::{
    sync::{Arc, Condvar, Mutex},
    time::Duration,
};

use pario::{Basic, Datatype, Info, Mode, Result, View};
use pario_transport::{Transport, threads};

/// A file for reading and writing, made if it is missing.
pub(crate) const NEW: Mode = Mode::CREATE.union(Mode::READ_WRITE);

/// What takes longer than this hangs.
const HANG: Duration = Duration::from_secs(60);

/// Runs thread ranks that must all succeed.
pub(crate) fn ranks(count: u32, work: impl Fn(Arc<dyn Transport>) -> Result<()> + Sync) {
    for result in threads::run(count, work) {
        result.expect("no rank panics").unwrap();
    }
}

/// Runs one rank that must succeed.
pub(crate) fn alone(work: impl Fn(Arc<dyn Transport>) -> Result<()> + Sync) {
    ranks(1, work);
}

/// Ends the program if the test that holds it hangs.
pub(crate) fn watchdog() -> watchdog::Watchdog {
    watchdog::Watchdog::new(HANG)
}

pub(crate) fn directory() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

pub(crate) fn info(pairs: &[(&str, &str)]) -> Info {
    Info::from_pairs(pairs.iter().copied()).unwrap()
}

pub(crate) fn byte() -> Datatype {
    Datatype::basic(Basic::Byte)
}

/// From byte `start` on, `len` bytes of every `period`.
pub(crate) fn every(period: i64, len: u64, start: u64) -> View {
    let piece = Datatype::contiguous(len, &byte()).unwrap();
    let tile = Datatype::resized(&piece, 0, period).unwrap();
    View::new(start, &byte(), &tile)
}

/// A door that is opened once.
#[derive(Debug, Default)]
pub(crate) struct Latch {
    open: Mutex<bool>,
    changed: Condvar,
}

impl Latch {
    pub(crate) fn open(&self) {
        *self.open.lock().unwrap() = true;
        self.changed.notify_all();
    }

    pub(crate) fn is_open(&self) -> bool {
        *self.open.lock().unwrap()
    }

    /// Waits until it is open, or panics.
    pub(crate) fn wait(&self) {
        let open = self.open.lock().unwrap();
        let (open, _) = self
            .changed
            .wait_timeout_while(open, HANG, |open| !*open)
            .unwrap();
        assert!(*open, "a latch stayed shut");
    }
}
