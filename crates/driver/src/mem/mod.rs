//! Files in the memory of this process.

mod contents;
mod handle;

use std::{
    collections::{BTreeMap, btree_map::Entry},
    fmt, io,
    path::{Path, PathBuf},
    sync::{Arc, LazyLock, Mutex},
};

use crate::{
    Background, Capabilities, Create, Driver, FileSystem, Handle, OpenHow, closing::lock,
    lock::RangeTable,
};
use contents::Contents;
use handle::MemoryHandle;

type Names = Mutex<BTreeMap<PathBuf, Arc<Node>>>;

static PROCESS_WIDE: LazyLock<Arc<Names>> = LazyLock::new(Arc::default);

/// Named files in memory, for ranks that are threads of one process. A file
/// lives until it is deleted and closed; directories need not exist.
///
/// Holes take no memory: even a file of terabytes costs only the 64 KiB pages
/// that were written.
#[derive(Clone)]
pub struct Memory {
    names: Arc<Names>,
}

impl Memory {
    /// The files shared by the whole process.
    pub fn new() -> Self {
        Memory {
            names: PROCESS_WIDE.clone(),
        }
    }

    /// Files visible only to this driver and its clones.
    pub fn separate() -> Self {
        Memory {
            names: Arc::default(),
        }
    }
}

impl Default for Memory {
    fn default() -> Self {
        Memory::new()
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory").finish_non_exhaustive()
    }
}

/// One file, named or not.
#[derive(Debug, Default)]
struct Node {
    contents: Contents,
    locks: RangeTable,
}

impl Driver for Memory {
    fn name(&self) -> &'static str {
        "mem"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            between_processes: false,
            locks: true,
            durable: false,
            background: Background::Threads,
        }
    }

    fn is_mounted(&self) -> bool {
        false
    }

    fn open(&self, path: &Path, how: &OpenHow) -> io::Result<Arc<dyn Handle>> {
        let mut names = lock(&self.names);
        let node = match (names.entry(path.to_owned()), how.create) {
            (Entry::Occupied(_), Create::Exclusive) => {
                return Err(io::Error::from_raw_os_error(libc::EEXIST));
            }
            (Entry::Vacant(_), Create::Never) => {
                return Err(io::Error::from_raw_os_error(libc::ENOENT));
            }
            (entry, _) => entry.or_default().clone(),
        };
        Ok(Arc::new(MemoryHandle::new(node, how.access)))
    }

    fn file_system(&self, _path: &Path) -> io::Result<FileSystem> {
        Ok(FileSystem::Memory)
    }

    fn delete(&self, path: &Path) -> io::Result<()> {
        match lock(&self.names).remove(path) {
            Some(_) => Ok(()),
            None => Err(io::Error::from_raw_os_error(libc::ENOENT)),
        }
    }
}
