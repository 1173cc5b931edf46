//! Scratch directories.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::run::TestResult;

/// What a scratch directory is on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ground {
    /// /dev/shm: quick.
    Memory,
    /// The file system of the target directory.
    Disk,
}

/// A new empty directory that goes away with this value.
pub(crate) struct Place(PathBuf);

impl Place {
    pub(crate) fn new(ground: Ground) -> TestResult<Self> {
        static COUNTER: AtomicU32 = AtomicU32::new(0);
        let parent = match ground {
            Ground::Memory => Path::new("/dev/shm"),
            Ground::Disk => Path::new(env!("CARGO_TARGET_TMPDIR")),
        };
        let number = COUNTER.fetch_add(1, Ordering::Relaxed);
        let directory = parent.join(format!("hosts-{}-{number}", std::process::id()));
        fs::create_dir(&directory)
            .map_err(|error| format!("cannot create {}: {error}", directory.display()))?;
        Ok(Place(directory))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// The names of what is in it, sorted.
    pub(crate) fn names(&self) -> TestResult<Vec<String>> {
        let entries = fs::read_dir(&self.0).map_err(|error| error.to_string())?;
        let mut names: Vec<String> = entries
            .filter_map(|entry| entry.ok())
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        Ok(names)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // A failure to clean up must not hide the result of the trial.
        if let Err(error) = fs::remove_dir_all(&self.0) {
            eprintln!("cannot remove {}: {error}", self.0.display());
        }
    }
}
