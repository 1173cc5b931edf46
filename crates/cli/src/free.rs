//! What is free: space of a folder, memory of the machine.

use std::fs;
use std::path::Path;

use rustix::fs::StatVfs;

use crate::compare::machine::field;
use crate::failure::Failure;

/// Bytes that we may take in a folder; `None` where the file system does not tell.
pub(crate) fn space(folder: &Path) -> Result<Option<u64>, Failure> {
    let found = rustix::fs::statvfs(folder).map_err(|errno| Failure::Storage {
        action: "ask for the free space of",
        path: folder.to_owned(),
        source: errno.into(),
    })?;
    Ok(of(&found))
}

/// Bytes that a file system has for us; `None` where it does not tell.
pub(crate) fn of(found: &StatVfs) -> Option<u64> {
    // A tmpfs without bounds has no blocks at all.
    (found.f_blocks > 0).then(|| found.f_bavail.saturating_mul(found.f_frsize))
}

/// Bytes of memory that programs can have without pushing others out; `None` if the kernel does not
/// tell.
pub(crate) fn memory() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let kibibytes = field(&text, "MemAvailable", ':')?;
    let kibibytes: u64 = kibibytes.strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes.saturating_mul(1024))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_tells_what_it_has() {
        assert!(memory().is_some_and(|bytes| bytes > 0));
        let folder = tempfile::tempdir().unwrap();
        assert!(space(folder.path()).unwrap() != Some(0));
        assert!(space(&folder.path().join("missing")).is_err());
    }
}
