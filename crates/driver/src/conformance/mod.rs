//! What every driver must do, as a suite that any driver can be put through.
//!
//! ```
//! use pario_driver::{Memory, conformance::Suite};
//! use std::{path::Path, sync::Arc};
//! Suite::new(Arc::new(Memory::separate()), Path::new("somewhere")).run();
//! ```
//!
//! The suite panics at the first thing that is wrong; random checks print
//! their seed then. `PARIO_SEED` repeats a run, `PARIO_CASES` sets the number
//! of random cases.
#![allow(clippy::unwrap_used, reason = "a test suite fails by panicking")]

mod background;
mod buffer;
mod locks;
mod opening;
mod process;
mod random;
mod sizes;
mod subject;
mod transfers;

use std::{path::Path, sync::Arc};

use crate::{Access, Driver, OpenHow};
use subject::Subject;

/// A driver on trial.
#[derive(Clone, Debug)]
pub struct Suite {
    subject: Subject,
}

/// One thing that a driver must do.
type Check = (&'static str, fn(&Subject));

/// All of them, in the order in which they build on each other.
const CHECKS: &[&[Check]] = &[
    opening::CHECKS,
    sizes::CHECKS,
    transfers::CHECKS,
    background::CHECKS,
    locks::CHECKS,
];

impl Suite {
    /// The suite for a driver, with files in a folder that exists.
    pub fn new(driver: Arc<dyn Driver>, folder: &Path) -> Self {
        let how = OpenHow::new(Access::ReadWrite);
        Suite {
            subject: Subject::new(driver, folder, how),
        }
    }

    /// Opens files like this, but for access and creation.
    #[must_use]
    pub fn opening(self, how: OpenHow) -> Self {
        Suite {
            subject: self.subject.opening(how),
        }
    }

    /// Runs all checks.
    ///
    /// # Panics
    /// If the driver fails one.
    pub fn run(&self) {
        for (name, check) in CHECKS.iter().copied().flatten() {
            check(&self.subject.named(name));
        }
    }
}

/// Puts a driver through the whole suite.
///
/// # Panics
/// If the driver fails a check.
pub fn check(driver: Arc<dyn Driver>, folder: &Path) {
    Suite::new(driver, folder).run();
}
