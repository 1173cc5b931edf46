//! Whether files and memory have room. A mapping that finds no space ends the process, and memory
//! that runs out may end others: both are asked for before anything is written.

use std::fs;
use std::path::Path;

use rustix::fs::StatVfs;

use crate::compare::machine::field;
use crate::failure::Failure;

/// Files at a time: one that is read, one that is written.
const FILES: u64 = 2;

/// Memory at a time, in sizes of the file: what is written, what is read into, what the kernel
/// copies from, and both files in the cache.
const MEMORIES: u64 = 5;

/// An error unless there is room for files of that size in a folder, and for as much memory as they
/// need.
pub(super) fn require(folder: &Path, size: u64) -> Result<(), Failure> {
    let place = folder.display().to_string();
    enough(
        free_space(folder)?,
        size,
        FILES,
        &place,
        "a smaller --size or another --dir",
    )?;
    enough(
        free_memory(),
        size,
        MEMORIES,
        "the machine's memory",
        "a smaller --size",
    )
}

fn enough(
    free: Option<u64>,
    size: u64,
    times: u64,
    place: &str,
    choice: &str,
) -> Result<(), Failure> {
    let Some(free) = free else { return Ok(()) };
    if size.checked_mul(times).is_some_and(|needed| needed <= free) {
        return Ok(());
    }
    Err(Failure::Arguments(format!(
        "{place} has {} MiB free, and a file of {} MiB needs {times} times its size: choose \
         {choice}",
        free >> 20,
        size >> 20
    )))
}

/// Bytes that we may take in a folder; `None` where the file system does not tell.
fn free_space(folder: &Path) -> Result<Option<u64>, Failure> {
    let found = rustix::fs::statvfs(folder).map_err(|errno| Failure::Storage {
        action: "ask for the free space of",
        path: folder.to_owned(),
        source: errno.into(),
    })?;
    Ok(free(&found))
}

/// Bytes that a file system has for us; `None` where it does not tell.
pub(super) fn free(found: &StatVfs) -> Option<u64> {
    // A tmpfs without bounds has no blocks at all.
    (found.f_blocks > 0).then(|| found.f_bavail.saturating_mul(found.f_frsize))
}

/// Bytes of memory that programs can have without pushing others out; `None` if the kernel does not
/// tell.
fn free_memory() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let kibibytes = field(&text, "MemAvailable", ':')?;
    let kibibytes: u64 = kibibytes.strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes.saturating_mul(1024))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_much_is_refused() {
        let refused = |free, size| enough(free, size, 2, "/data", "a smaller --size");
        assert!(refused(None, u64::MAX).is_ok());
        assert!(refused(Some(32 << 20), 16 << 20).is_ok());
        assert!(refused(Some(u64::MAX), u64::MAX).is_err(), "overflow");
        assert_eq!(
            refused(Some((32 << 20) - 1), 16 << 20)
                .unwrap_err()
                .to_string(),
            "/data has 31 MiB free, and a file of 16 MiB needs 2 times its size: choose a smaller \
             --size"
        );
    }

    #[test]
    fn a_folder_has_room_for_little() {
        let folder = tempfile::tempdir().unwrap();
        require(folder.path(), 4096).unwrap();
        let failure = require(folder.path(), 1 << 62).unwrap_err();
        assert!(
            failure.to_string().contains("choose a smaller --size"),
            "{failure}"
        );
        assert!(free_memory().is_some());
    }
}
