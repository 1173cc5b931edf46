//! The shared pointer in a locked file next to the data: for ranks that share no memory.
//!
//! Few programs use shared pointers, so the ranks agree only on a name when they open the data
//! file, a random one. The first rank that needs the pointer creates the file (mode 0600), others
//! open it when they do, and close removes it once all ranks have closed the data file; if a rank is
//! lost, those that are left remove it. A job that is killed as a whole leaves it behind if it has used
//! the pointer.

use std::{
    ffi::OsString,
    hash::{BuildHasher, Hasher, RandomState},
    io,
    path::{Path, PathBuf},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
};

use pario_driver::{Access, Batch, Create, Driver, Handle, LockMode, Nfs, OpenHow, Posix, Sharing};
use pario_transport::{Rank, Transport};

use super::{Beside, Change, Generation, Method};
use crate::{Error, ErrorKind, Result, agree};

/// A generation and the position in it.
const SLOT_BYTES: u64 = 16;
const NONCE_BYTES: usize = 16;

/// The name of the method.
pub(super) const NAME: &str = "file";

#[derive(Debug)]
pub(super) struct SideFile {
    driver: Arc<dyn Driver>,
    path: PathBuf,
    opened: OnceLock<Arc<dyn Handle>>,
    /// The position before the first use.
    start: AtomicU64,
}

impl SideFile {
    /// *Collective*.
    pub(super) fn new(comm: &dyn Transport, beside: Beside<'_>) -> Result<SideFile> {
        let Beside {
            driver,
            path,
            sharing,
        } = beside;
        let name = agree::broadcast(comm, Rank(0), || {
            sharing.require_locks("the shared pointer")?;
            Ok(nonce().to_vec())
        })?;
        let nonce = name.as_slice().try_into();
        let nonce = nonce
            .map_err(|_| Error::new(ErrorKind::Io, "rank 0 sent no name for the side file"))?;
        let posix = || Arc::new(Posix::new());
        let here = path.to_owned();
        let (driver, beside): (Arc<dyn Driver>, _) = if driver.is_mounted() {
            match sharing.sharing {
                Sharing::Nfs => (Arc::new(Nfs::new()), here),
                _ => (posix(), here),
            }
        } else if driver.capabilities().between_processes {
            (driver.clone(), here)
        } else {
            // The file is in the memory of this process.
            (posix(), elsewhere(path))
        };
        Ok(SideFile {
            driver,
            path: path_of(&beside, nonce),
            opened: OnceLock::new(),
            start: AtomicU64::new(0),
        })
    }

    /// Opens the file unless it is open. Two threads may both do so; one of them keeps it.
    fn opened(&self) -> io::Result<&dyn Handle> {
        if let Some(opened) = self.opened.get() {
            return Ok(&**opened);
        }
        let how = OpenHow::new(Access::ReadWrite)
            .create(Create::IfMissing)
            .permissions(0o600);
        let opened = self.driver.open(&self.path, &how).map_err(|error| {
            let message = format!("cannot open the side file {}: {error}", self.path.display());
            io::Error::new(error.kind(), message)
        })?;
        Ok(&**self.opened.get_or_init(|| opened))
    }
}

impl Method for SideFile {
    fn name(&self) -> &'static str {
        NAME
    }

    /// Every rank remembers it, so that nobody has to create the file.
    fn start_at(&self, _rank: Rank, position: u64) -> io::Result<()> {
        self.start.store(position, Ordering::Relaxed);
        Ok(())
    }

    /// A slot of an earlier generation counts as zero: views are set often, and the pointer is
    /// rarely used.
    fn prepare(&self, _generation: Generation) -> io::Result<()> {
        Ok(())
    }

    fn update(&self, generation: Generation, change: Change) -> io::Result<u64> {
        let file = self.opened()?;
        let at = generation.slot() as u64 * SLOT_BYTES;
        let _lock = file.lock(at..at + SLOT_BYTES, LockMode::Exclusive)?;
        // Zeros, which no generation is, if it was never written.
        let mut bytes = [0; SLOT_BYTES as usize];
        file.transfer(&Batch::read(at, &mut bytes)).into_result()?;
        let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
        let stored = generation.0 + 1;
        let old = match (word(0) == stored, generation.0) {
            (true, _) => word(8),
            (false, 0) => self.start.load(Ordering::Relaxed),
            (false, _) => 0,
        };
        if let Some(new) = change.of(old).filter(|new| *new != old) {
            let slot = [stored, new].map(u64::to_le_bytes).concat();
            file.transfer(&Batch::write(at, &slot)).into_result()?;
        }
        Ok(old)
    }

    fn is_used(&self) -> bool {
        self.opened.get().is_some()
    }

    /// Tries twice, because users would notice a file that is left behind.
    fn remove(&self) -> io::Result<()> {
        let removed = self.driver.delete(&self.path);
        match removed.or_else(|_| self.driver.delete(&self.path)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                let path = self.path.display();
                let message = format!(
                    "the data is in the file, but the side file {path} cannot be removed: {error}"
                );
                Err(io::Error::new(error.kind(), message))
            }
            _ => Ok(()),
        }
    }
}

/// Where a file of this name would be in the directory for temporary files.
pub(super) fn elsewhere(path: &Path) -> PathBuf {
    std::env::temp_dir().join(path.file_name().unwrap_or_default())
}

/// The name of a file next to another one.
pub(super) fn path_of(beside: &Path, nonce: [u8; NONCE_BYTES]) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(beside.file_name().unwrap_or_default());
    name.push(format!(".pario-{:032x}", u128::from_le_bytes(nonce)));
    beside.with_file_name(name)
}

/// Random bytes from the standard library's source of hash keys.
pub(super) fn nonce() -> [u8; NONCE_BYTES] {
    let mut nonce = [0; NONCE_BYTES];
    for part in nonce.chunks_exact_mut(8) {
        let mut hasher = RandomState::new().build_hasher();
        hasher.write_u32(std::process::id());
        part.copy_from_slice(&hasher.finish().to_le_bytes());
    }
    nonce
}
