//! Cold caches: drops the pages of a file from the page cache before it is read.

use std::fs::File;
use std::path::Path;

use crate::failure::Failure;

/// Flushes the file and asks the kernel to drop its pages. In-memory file systems keep them.
pub(crate) fn drop_cached(path: &Path) -> Result<(), Failure> {
    let dropped = || {
        let file = File::open(path)?;
        file.sync_all()?;
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed)?;
        Ok(())
    };
    match dropped() {
        // A file that only this process can see has no cached pages.
        Err(error) if std::io::Error::kind(&error) == std::io::ErrorKind::NotFound => Ok(()),
        dropped => dropped.map_err(Failure::storage("drop from the cache", path)),
    }
}
