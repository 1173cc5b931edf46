//! Leases: the kernel's word that no other description of a file is open.
//!
//! `F_SETLEASE` with `F_WRLCK` is granted to the only description of a file: the kernel
//! counts descriptions, and mappings keep theirs open. Whoever opens or truncates the file
//! by name then waits for the end of the lease. Ranks have a description each, so all but
//! one of them close theirs in the meantime; an `O_PATH` descriptor, which does not count,
//! keeps the file within reach, whatever its name.

use std::{
    fmt, io,
    os::fd::{AsRawFd, OwnedFd},
    path::Path,
    thread,
    time::Duration,
};

use super::{
    descriptor::{Descriptor, Parked},
    handle::PosixHandle,
    sys,
};
use crate::{
    Lease, Suspension,
    closing::{ResourceGuard, Vacancy},
    per_process::PerProcess,
};

/// Whoever waits for a lease must wait at least this long, so that its holder has noticed
/// by then: a process may be stopped or lose its core.
const BREAK_SECONDS_MIN: u64 = 10;

/// How often a file is opened again if the process has run out of descriptors or memory.
pub(super) const REOPEN_TRIES: u32 = 100;
pub(super) const REOPEN_PAUSE: Duration = Duration::from_millis(10);

/// Whether this kernel's leases last long enough.
pub(super) fn last_long_enough() -> bool {
    static LONG_ENOUGH: PerProcess<bool> = PerProcess::new();
    *LONG_ENOUGH.get_or_make(|| {
        let seconds = std::fs::read_to_string("/proc/sys/fs/lease-break-time");
        let seconds = seconds.ok().and_then(|text| text.trim().parse().ok());
        seconds.is_some_and(|seconds: u64| seconds >= BREAK_SECONDS_MIN)
    })
}

/// A lease on the file of a descriptor.
pub(super) struct FileLease(ResourceGuard<Descriptor>);

impl FileLease {
    /// `None` if it is not granted: others have the file open, this user does not own it, or
    /// the file system has no leases.
    pub(super) fn take(file: ResourceGuard<Descriptor>) -> Option<FileLease> {
        let granted = last_long_enough() && sys::take_lease(file.buffered()).is_ok();
        granted.then_some(FileLease(file))
    }
}

impl Lease for FileLease {
    fn is_intact(&self) -> bool {
        sys::has_lease(self.0.buffered())
    }
}

impl fmt::Debug for FileLease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FileLease").field(&*self.0).finish()
    }
}

impl Drop for FileLease {
    fn drop(&mut self) {
        sys::release_lease(self.0.buffered());
    }
}

/// A handle whose file is closed.
pub(super) struct Suspended<'h> {
    handle: &'h PosixHandle,
    /// `None` only while dropping.
    parked: Option<(Parked, Vacancy<'h, Descriptor>)>,
}

impl<'h> Suspended<'h> {
    pub(super) fn new(handle: &'h PosixHandle) -> Option<Suspended<'h>> {
        let (descriptor, vacancy) = handle.file.suspend()?;
        // Only now: none can be taken any more.
        if !handle.locks.is_empty() {
            vacancy.put_back(descriptor);
            return None;
        }
        match descriptor.park() {
            Ok(parked) => Some(Suspended {
                handle,
                parked: Some((parked, vacancy)),
            }),
            Err(open) => {
                vacancy.put_back(*open);
                None
            }
        }
    }
}

impl Suspension for Suspended<'_> {}

impl fmt::Debug for Suspended<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Suspended").field(self.handle).finish()
    }
}

impl Drop for Suspended<'_> {
    fn drop(&mut self) {
        let Some((parked, vacancy)) = self.parked.take() else {
            return;
        };
        match reopened(parked) {
            Ok(descriptor) => {
                self.handle.renew_advice(&descriptor);
                vacancy.put_back(descriptor);
            }
            // The calls that follow report it.
            Err(error) => self.handle.note_lost(&error),
        }
    }
}

fn reopened(mut parked: Parked) -> io::Result<Descriptor> {
    for _ in 1..REOPEN_TRIES {
        match parked.unpark() {
            Ok(descriptor) => return Ok(descriptor),
            Err((again, error)) if is_transient(&error) => {
                parked = *again;
                thread::sleep(REOPEN_PAUSE);
            }
            Err((_, error)) => return Err(error),
        }
    }
    parked.unpark().map_err(|(_, error)| error)
}

pub(super) fn is_transient(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EMFILE | libc::ENFILE | libc::ENOMEM | libc::EINTR)
    )
}

/// A way to the file of a descriptor that does not keep it open, if the file can be opened
/// through it for the same accesses.
pub(super) fn way_back(file: &Descriptor) -> io::Result<OwnedFd> {
    let way = sys::reopen(file.buffered(), libc::O_PATH)?;
    let path = format!("/proc/self/fd/{}", way.as_raw_fd());
    sys::check_access(Path::new(&path), file.opened_for()).map(|()| way)
}

#[cfg(test)]
mod tests {
    use super::{super::test_directories::with_leases, *};
    use crate::{Access, Batch, Create, Driver, Handle, LockMode, OpenHow, Posix};
    use std::{fs, path::PathBuf, sync::Arc};

    struct Directory(tempfile::TempDir);

    impl Directory {
        /// All in which files can be leased.
        fn all() -> impl Iterator<Item = Directory> {
            with_leases().into_iter().map(Directory)
        }

        fn path(&self) -> PathBuf {
            self.0.path().join("file")
        }

        fn open(&self) -> Arc<dyn Handle> {
            let how = OpenHow::new(Access::ReadWrite).create(Create::IfMissing);
            Posix::new().open(&self.path(), &how).unwrap()
        }
    }

    #[test]
    fn a_lease_needs_the_only_description() {
        for directory in Directory::all() {
            let (one, other) = (directory.open(), directory.open());
            assert!(one.lease().is_none());
            let suspension = other.suspend().unwrap();
            let lease = one.lease().unwrap();
            assert!(lease.is_intact());
            drop((lease, suspension));
            assert!(one.lease().is_none(), "the other handle is open again");
            other.close().unwrap();
            let reader = fs::File::open(directory.path()).unwrap();
            assert!(one.lease().is_none());
            drop(reader);
            assert!(one.lease().is_some());
        }
    }

    /// The kernel's usual signal would end this process.
    #[test]
    fn whoever_opens_the_file_waits_until_the_lease_ends() {
        for directory in Directory::all() {
            let handle = directory.open();
            for _ in 0..3 {
                let lease = handle.lease().unwrap();
                thread::scope(|scope| {
                    let opener = scope.spawn(|| fs::read(directory.path()).unwrap());
                    while lease.is_intact() {
                        thread::yield_now();
                    }
                    assert!(!opener.is_finished());
                    handle
                        .transfer(&Batch::write(0, b"last"))
                        .into_result()
                        .unwrap();
                    drop(lease);
                    assert_eq!(opener.join().unwrap(), b"last");
                });
                handle.set_size(0).unwrap();
            }
        }
    }

    /// Even if it has lost its name.
    #[test]
    fn a_suspended_handle_continues_with_the_same_file() {
        for directory in Directory::all() {
            let handle = directory.open();
            handle
                .transfer(&Batch::write(0, b"before"))
                .into_result()
                .unwrap();
            let suspension = handle.suspend().unwrap();
            fs::remove_file(directory.path()).unwrap();
            fs::write(directory.path(), "another file").unwrap();
            thread::scope(|scope| {
                let caller = scope.spawn(|| handle.size().unwrap());
                thread::sleep(Duration::from_millis(5));
                assert!(!caller.is_finished(), "calls wait");
                drop(suspension);
                assert_eq!(caller.join().unwrap(), 6);
            });
            handle.close().unwrap();
        }
    }

    #[test]
    fn a_handle_with_locks_stays_open() {
        for directory in Directory::all() {
            let handle = directory.open();
            let held = handle.lock(0..10, LockMode::Shared).unwrap();
            assert!(handle.suspend().is_none());
            drop(held);
            assert!(handle.suspend().is_some());
            handle.close().unwrap();
        }
    }

    /// The process may not open it again: others than its owner, and the owner itself without
    /// privileges.
    #[test]
    fn a_file_that_could_not_be_opened_again_stays_open() {
        for directory in Directory::all() {
            let handle = directory.open();
            let mut permissions = fs::metadata(directory.path()).unwrap().permissions();
            permissions.set_readonly(true);
            fs::set_permissions(directory.path(), permissions).unwrap();
            let is_privileged = fs::OpenOptions::new()
                .write(true)
                .open(directory.path())
                .is_ok();
            assert_eq!(handle.suspend().is_some(), is_privileged);
            handle
                .transfer(&Batch::write(0, b"still open"))
                .into_result()
                .unwrap();
            handle.close().unwrap();
        }
    }
}
