//! The directory of a run's files.

use std::env;
use std::io;
use std::path::{Path, PathBuf};

use pario_driver::{Access, Create, Driver, Facts, OpenHow, Posix};
use tempfile::TempDir;

use super::guard::Guard;
use crate::failure::Failure;

const PREFIX: &str = "pario-bench-";

/// Our own directory inside the one that is measured. It is removed with all its files when
/// dropped, and when the process that created it dies.
#[derive(Debug)]
pub(crate) struct Scratch {
    parent: PathBuf,
    path: PathBuf,
    facts: Facts,
    /// Of the process that created it; dropped before its guard.
    _own: Option<TempDir>,
    guard: Option<Guard>,
}

impl Scratch {
    /// Creates a directory in `parent`, or in the system's temporary directory.
    pub(crate) fn new(parent: Option<&Path>) -> Result<Self, Failure> {
        let mut scratch = Self::unguarded(parent)?;
        let guard = Guard::start(&scratch.path);
        scratch.guard = Some(guard.map_err(Failure::file("start", "sh"))?);
        Ok(scratch)
    }

    /// The same for a short time, without a guard: it stays behind if the process is killed.
    pub(crate) fn unguarded(parent: Option<&Path>) -> Result<Self, Failure> {
        let parent = parent.map_or_else(env::temp_dir, Path::to_owned);
        let cannot = Failure::storage("create a file in", &parent);
        let own = tempfile::Builder::new()
            .prefix(PREFIX)
            .tempdir_in(&parent)
            // The error names a random path inside the directory; its kind is enough.
            .map_err(|error| cannot(error.kind().into()))?;
        let facts = facts(own.path()).map_err(cannot)?;
        Ok(Scratch {
            parent,
            path: own.path().to_owned(),
            facts,
            _own: Some(own),
            guard: None,
        })
    }

    /// A directory that another process has created.
    pub(crate) fn join(path: &Path) -> Result<Self, Failure> {
        Ok(Scratch {
            parent: path.parent().unwrap_or(path).to_owned(),
            path: path.to_owned(),
            facts: facts(path).map_err(Failure::storage("create a file in", path))?,
            _own: None,
            guard: None,
        })
    }

    /// A launcher that must not outlive this process; `None` once it has exited.
    pub(crate) fn set_launcher(&self, pid: Option<u32>) {
        if let Some(guard) = &self.guard {
            guard.set_launcher(pid);
        }
    }

    /// The directory that is measured.
    pub(crate) fn parent(&self) -> &Path {
        &self.parent
    }

    /// Our own directory in it.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn facts(&self) -> &Facts {
        &self.facts
    }
}

/// The driver's facts about files in a directory.
fn facts(directory: &Path) -> io::Result<Facts> {
    let how = OpenHow::new(Access::ReadWrite).create(Create::Exclusive);
    // Ranks of several nodes may probe at once.
    let node = rustix::system::uname();
    let node = node.nodename().to_string_lossy();
    let probe = directory.join(format!("probe-{}-{node}", std::process::id()));
    let handle = Posix::new().open(&probe, &how)?;
    let facts = handle.facts().clone();
    handle.close()?;
    std::fs::remove_file(&probe)?;
    Ok(facts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_leaves_nothing_behind() {
        let parent = tempfile::tempdir().unwrap();
        let scratch = Scratch::new(Some(parent.path())).unwrap();
        std::fs::write(scratch.path().join("array"), [0; 100]).unwrap();
        assert_eq!(scratch.parent(), parent.path());
        drop(scratch);
        assert_eq!(std::fs::read_dir(parent.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_directory_that_cannot_be_used_is_named() {
        let failure = Scratch::new(Some(Path::new("/nowhere/at/all"))).unwrap_err();
        assert_eq!(
            failure.to_string(),
            "cannot create a file in /nowhere/at/all: entity not found; \
             choose a writable directory with --dir"
        );
    }
}
