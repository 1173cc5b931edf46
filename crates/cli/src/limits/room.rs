//! Whether files and memory have room. A mapping that finds no space ends the process, and memory
//! that runs out may end others: both are asked for before anything is written.

use std::path::Path;

use crate::failure::Failure;
use crate::free;

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
        free::space(folder)?,
        size,
        FILES,
        &place,
        "a smaller --size or another --dir",
    )?;
    enough(
        free::memory(),
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
    }
}
