//! The directory of a run's files.

use std::env;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pario_driver::{Access, Create, Driver, Facts, OpenHow, Posix, Resolved};
use tempfile::TempDir;

use super::guard::Guard;
use crate::failure::Failure;

const PREFIX: &str = "pario-bench-";

/// The driver of directories that the kernel has mounted.
const MOUNTED: &str = "posix";

/// Our own directory inside the one that is measured. It is removed with all its files when
/// dropped, and when the process that created it dies.
#[derive(Debug)]
pub(crate) struct Scratch {
    parent: PathBuf,
    path: PathBuf,
    facts: Facts,
    unmounted: Option<Unmounted>,
    /// Of the process that created it; dropped before its guard.
    _own: Option<TempDir>,
    guard: Option<Guard>,
}

/// A driver whose files the kernel does not have. It makes no directories: the path of the scratch
/// directory is what the name of the file begins with.
#[derive(Debug)]
struct Unmounted {
    /// Kept, because a client that is in use stays connected to its servers from run to run.
    driver: Arc<dyn Driver>,
    /// The file that is removed at the end, if we are the process that named it.
    own: Option<PathBuf>,
}

impl Drop for Unmounted {
    fn drop(&mut self) {
        let removed = self.own.as_ref().map(|path| self.driver.delete(path));
        if let Some(Err(error)) = removed
            && error.kind() != io::ErrorKind::NotFound
        {
            eprintln!("pario: cannot remove {:?}: {error}", self.own);
        }
    }
}

impl Scratch {
    /// The same where the name of the directory may select a driver, as in `cephfs:/project`.
    pub(crate) fn by_driver(parent: Option<&Path>) -> Result<Self, Failure> {
        let Some((parent, resolved)) = parent.and_then(|it| Some((it, unmounted(it)?))) else {
            return Self::new(parent);
        };
        let name = format!("{PREFIX}{}", std::process::id());
        let mut scratch = Self::of_driver(parent, resolved.driver, resolved.path.join(name))?;
        let data = scratch.data();
        if let Some(unmounted) = &mut scratch.unmounted {
            unmounted.own = Some(data);
        }
        Ok(scratch)
    }

    fn of_driver(parent: &Path, driver: Arc<dyn Driver>, path: PathBuf) -> Result<Self, Failure> {
        let facts = facts(&*driver, &beginning_with(&path, &probe_name()));
        Ok(Scratch {
            parent: parent.to_owned(),
            facts: facts.map_err(Failure::storage("create a file in", parent))?,
            path,
            unmounted: Some(Unmounted { driver, own: None }),
            _own: None,
            guard: None,
        })
    }

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
        let facts = mounted_facts(own.path()).map_err(cannot)?;
        Ok(Scratch {
            parent,
            path: own.path().to_owned(),
            facts,
            unmounted: None,
            _own: Some(own),
            guard: None,
        })
    }

    /// A directory that another process has created, by its `name`.
    pub(crate) fn join(path: &Path) -> Result<Self, Failure> {
        let parent = path.parent().unwrap_or(path).to_owned();
        if let Some(resolved) = unmounted(path) {
            return Self::of_driver(&parent, resolved.driver, resolved.path);
        }
        let facts = mounted_facts(path);
        Ok(Scratch {
            parent,
            path: path.to_owned(),
            facts: facts.map_err(Failure::storage("create a file in", path))?,
            unmounted: None,
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

    /// Our own directory, for `join` in another process.
    pub(crate) fn name(&self) -> String {
        let path = self.path.display();
        match &self.unmounted {
            None => path.to_string(),
            Some(unmounted) => format!("{}:{path}", unmounted.driver.name()),
        }
    }

    /// The file that methods write.
    pub(crate) fn data(&self) -> PathBuf {
        match &self.unmounted {
            None => self.path.join("data"),
            Some(_) => beginning_with(&self.path, "data"),
        }
    }

    /// The driver of the directory.
    pub(crate) fn driver(&self) -> &'static str {
        let unmounted = self.unmounted.as_ref();
        unmounted.map_or(MOUNTED, |it| it.driver.name())
    }

    /// Whether other programs can use its files by system calls.
    pub(crate) fn is_mounted(&self) -> bool {
        self.unmounted.is_none()
    }

    pub(crate) fn facts(&self) -> &Facts {
        &self.facts
    }
}

/// The driver that a name selects by its prefix, if it needs no mount.
fn unmounted(name: &Path) -> Option<Resolved> {
    let resolved = pario_driver::resolve(name, None).ok();
    resolved.filter(|it| !it.driver.is_mounted())
}

/// A file of a driver that makes no directories.
fn beginning_with(path: &Path, name: &str) -> PathBuf {
    let mut all = path.as_os_str().to_owned();
    all.push(format!("-{name}"));
    all.into()
}

/// Ranks of several nodes may probe at once.
fn probe_name() -> String {
    let node = rustix::system::uname();
    let node = node.nodename().to_string_lossy();
    format!("probe-{}-{node}", std::process::id())
}

fn mounted_facts(directory: &Path) -> io::Result<Facts> {
    facts(&Posix::new(), &directory.join(probe_name()))
}

/// What a driver knows about a new file.
fn facts(driver: &dyn Driver, probe: &Path) -> io::Result<Facts> {
    let how = OpenHow::new(Access::ReadWrite).create(Create::Exclusive);
    let handle = driver.open(probe, &how)?;
    let facts = handle.facts().clone();
    handle.close()?;
    driver.delete(probe)?;
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
    fn a_driver_without_a_mount_has_files_instead_of_a_directory() {
        let scratch = Scratch::by_driver(Some(Path::new("mem:/some"))).unwrap();
        assert_eq!((scratch.driver(), scratch.is_mounted()), ("mem", false));
        let joined = Scratch::join(Path::new(&scratch.name())).unwrap();
        assert_eq!(joined.data(), scratch.data());
        let how = OpenHow::new(Access::ReadWrite).create(Create::Exclusive);
        let driver = pario_driver::resolve("mem:", None).unwrap().driver;
        let data = scratch.data();
        driver.open(&data, &how).unwrap().close().unwrap();
        drop(joined);
        let taken = driver.open(&data, &how).unwrap_err();
        assert_eq!(taken.kind(), io::ErrorKind::AlreadyExists);
        drop(scratch);
        let gone = driver.delete(&data).unwrap_err();
        assert_eq!(gone.kind(), io::ErrorKind::NotFound);
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
