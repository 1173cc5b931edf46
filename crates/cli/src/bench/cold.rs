//! Cold caches: the pages of a file leave the kernel's cache before it is read.

use std::fs::File;
use std::path::Path;

use crate::failure::Failure;

/// Writes the file out and asks the kernel to drop its pages. File systems in memory keep them.
pub(crate) fn drop_cached(path: &Path) -> Result<(), Failure> {
    let dropped = || {
        let file = File::open(path)?;
        file.sync_all()?;
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed)?;
        Ok(())
    };
    match dropped() {
        // A file that only this process can see has no pages there.
        Err(error) if std::io::Error::kind(&error) == std::io::ErrorKind::NotFound => Ok(()),
        dropped => dropped.map_err(Failure::storage("drop from the cache", path)),
    }
}
