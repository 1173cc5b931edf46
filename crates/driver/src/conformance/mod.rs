//! The requirements on drivers, as a test suite for any driver.
//!
//! ```
//! use pario_driver::{Memory, conformance::Suite};
//! use std::{path::Path, sync::Arc};
//! Suite::new(Arc::new(Memory::separate()), Path::new("somewhere")).run();
//! ```
//!
//! The suite panics on the first failure; random checks then print their seed.
//! `PARIO_SEED` reproduces a run, `PARIO_CASES` sets the number of random
//! cases.
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

use std::{path::Path, sync::Arc, time::Instant};

use crate::{Access, Driver, OpenHow};
use subject::Subject;

/// A driver under test.
#[derive(Clone, Debug)]
pub struct Suite {
    subject: Subject,
    omitted: Vec<&'static str>,
}

/// A named check.
type Check = (&'static str, fn(&Subject));

/// All checks, in order of dependence.
const CHECKS: &[&[Check]] = &[
    opening::CHECKS,
    sizes::CHECKS,
    transfers::CHECKS,
    background::CHECKS,
    locks::CHECKS,
];

impl Suite {
    /// The suite for a driver, with files in an existing directory.
    pub fn new(driver: Arc<dyn Driver>, directory: &Path) -> Self {
        let how = OpenHow::new(Access::ReadWrite);
        Suite {
            subject: Subject::new(driver, directory, how),
            omitted: Vec::new(),
        }
    }

    /// Sets how files are opened, except for access and creation.
    #[must_use]
    pub fn opening(self, how: OpenHow) -> Self {
        Suite {
            subject: self.subject.opening(how),
            ..self
        }
    }

    /// Leaves out a check whose requirement the file system itself does not meet.
    ///
    /// # Panics
    /// If there is no check of that name.
    #[must_use]
    pub fn without(mut self, check: &'static str) -> Self {
        let mut names = CHECKS.iter().copied().flatten().map(|(name, _)| *name);
        assert!(names.any(|name| name == check), "unknown check: {check}");
        self.omitted.push(check);
        self
    }

    /// Runs all checks, and prints what each of them took.
    ///
    /// # Panics
    /// If the driver fails one.
    pub fn run(&self) {
        let checks = CHECKS.iter().copied().flatten();
        for (name, check) in checks.filter(|(name, _)| !self.omitted.contains(name)) {
            let started = Instant::now();
            print!("{name}: ");
            check(&self.subject.named(name));
            println!("{:.1} s", started.elapsed().as_secs_f64());
        }
    }
}

/// Runs the whole suite on a driver.
///
/// # Panics
/// If the driver fails a check.
pub fn check(driver: Arc<dyn Driver>, directory: &Path) {
    Suite::new(driver, directory).run();
}
