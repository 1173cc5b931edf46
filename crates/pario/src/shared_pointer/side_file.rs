//! The shared pointer in a locked file: for ranks that share no memory.
//!
//! Rank 0 creates the file next to the data under a random name (exclusive, mode 0600, no links
//! followed). Every rank opens it and verifies its identity. The name is removed before `open`
//! returns, so nothing is left behind even if ranks are killed later.

use std::{
    ffi::OsString,
    fs::{File, OpenOptions},
    hash::{BuildHasher, Hasher, RandomState},
    io,
    os::{
        fd::AsRawFd,
        unix::fs::{FileExt, OpenOptionsExt},
    },
    path::{Path, PathBuf},
    sync::Arc,
};

use pario_driver::{Access, Batch, Driver, Handle, LockMode, Nfs, OpenHow, Posix, Sharing};
use pario_transport::{Rank, Transport};

use super::{Generation, Method};
use crate::{Error, ErrorKind, Result, agree, file::FileSharing};

/// A generation and the position in it.
const SLOT_BYTES: u64 = 16;
const SLOTS_BYTES: u64 = 2 * SLOT_BYTES;
const NONCE_BYTES: usize = 16;

#[derive(Debug)]
pub(super) struct SideFile {
    file: Arc<dyn Handle>,
    /// On the rank that created the file: keeps it alive on NFS, where removing the name of a file
    /// that is open on this client only renames it, until it is closed here or the process ends.
    _creator: Option<File>,
}

impl SideFile {
    /// *Collective*.
    pub(super) fn new(
        comm: &dyn Transport,
        beside: &Path,
        sharing: &FileSharing,
    ) -> Result<SideFile> {
        let root = Rank(0);
        let made = if comm.rank() == root {
            sharing
                .require_locks("the shared pointer")
                .and_then(|()| create(beside, sharing))
                .map(Some)
        } else {
            Ok(None)
        };
        let name = made.as_ref().map_or_else(
            |error| Err(error.clone()),
            |made| Ok(made.as_ref().map_or(Vec::new(), |made| made.nonce.to_vec())),
        );
        let result = open_together(comm, beside, name, sharing);
        match made {
            Ok(Some(Created { path, file, .. })) => {
                remove(&path)?;
                Ok(SideFile {
                    _creator: Some(file),
                    ..result?
                })
            }
            _ => result,
        }
    }

    /// Writes a slot that is locked.
    fn put(&self, generation: Generation, position: u64) -> io::Result<()> {
        let mut bytes = [0; SLOT_BYTES as usize];
        bytes[..8].copy_from_slice(&generation.0.to_le_bytes());
        bytes[8..].copy_from_slice(&position.to_le_bytes());
        let put = self
            .file
            .transfer(&Batch::write(offset(generation), &bytes));
        put.into_result().map(drop)
    }
}

fn offset(generation: Generation) -> u64 {
    generation.slot() as u64 * SLOT_BYTES
}

impl Method for SideFile {
    fn name(&self) -> &'static str {
        "file"
    }

    /// A value of an earlier generation counts as zero: views are set often, and the pointer is
    /// rarely used.
    fn prepare(&self, _generation: Generation) -> io::Result<()> {
        Ok(())
    }

    fn update(
        &self,
        generation: Generation,
        change: &dyn Fn(u64) -> Option<u64>,
    ) -> io::Result<u64> {
        let at = offset(generation);
        let _lock = self.file.lock(at..at + SLOT_BYTES, LockMode::Exclusive)?;
        let mut bytes = [0; SLOT_BYTES as usize];
        read_exactly(&*self.file, at, &mut bytes)?;
        let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
        let old = match word(0) == generation.0 {
            true => word(8),
            false => 0,
        };
        if let Some(new) = change(old).filter(|new| *new != old) {
            self.put(generation, new)?;
        }
        Ok(old)
    }
}

/// Every rank opens the file whose name rank 0 sends.
fn open_together(
    comm: &dyn Transport,
    beside: &Path,
    name: Result<Vec<u8>>,
    sharing: &FileSharing,
) -> Result<SideFile> {
    let all = agree::gather(comm, name)?;
    let nonce = all[0].as_slice().try_into();
    let nonce =
        nonce.map_err(|_| Error::new(ErrorKind::Io, "rank 0 sent no name for the side file"))?;
    agree::agree(comm, open(&path_of(beside, nonce), nonce, sharing))
}

fn path_of(beside: &Path, nonce: [u8; NONCE_BYTES]) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(beside.file_name().unwrap_or_default());
    name.push(format!(".pario-{:032x}", u128::from_le_bytes(nonce)));
    beside.with_file_name(name)
}

/// Random bytes from the standard library's source of hash keys.
fn nonce() -> [u8; NONCE_BYTES] {
    let mut nonce = [0; NONCE_BYTES];
    for part in nonce.chunks_exact_mut(8) {
        let mut hasher = RandomState::new().build_hasher();
        hasher.write_u32(std::process::id());
        part.copy_from_slice(&hasher.finish().to_le_bytes());
    }
    nonce
}

fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options
        .read(true)
        .write(true)
        .mode(0o600)
        .custom_flags(libc::O_NOFOLLOW);
    options
}

/// A side file that has been created.
struct Created {
    path: PathBuf,
    nonce: [u8; NONCE_BYTES],
    file: File,
}

fn create(beside: &Path, sharing: &FileSharing) -> Result<Created> {
    let nonce = nonce();
    let path = path_of(beside, nonce);
    let written = private().create_new(true).open(&path).and_then(|file| {
        file.write_all_at(&[0; SLOTS_BYTES as usize], 0)?;
        file.write_all_at(&nonce, SLOTS_BYTES)?;
        if sharing.sharing == Sharing::Nfs {
            // For the other clients.
            file.sync_data()?;
        }
        Ok(file)
    });
    match written {
        Ok(file) => Ok(Created { path, nonce, file }),
        Err(error) => {
            if error.kind() != io::ErrorKind::AlreadyExists {
                let _ = remove(&path);
            }
            Err(Error::from(error).on_path(&path))
        }
    }
}

/// Removes the name; tries twice, because users would notice a file that is left behind.
fn remove(path: &Path) -> Result<()> {
    let removed = std::fs::remove_file(path).or_else(|_| std::fs::remove_file(path));
    removed.map_err(|error| Error::from(error).on_path(path))
}

fn open(path: &Path, nonce: [u8; NONCE_BYTES], sharing: &FileSharing) -> Result<SideFile> {
    let driver: &dyn Driver = match sharing.sharing {
        Sharing::Nfs => &Nfs::new(),
        _ => &Posix::default(),
    };
    let how = OpenHow::new(Access::ReadWrite);
    let opened = private().open(path).and_then(|found| {
        // The file that was just opened without following links, by whatever name.
        let path = format!("/proc/self/fd/{}", found.as_raw_fd());
        let file = driver.open(Path::new(&path), &how)?;
        let mut found = [0; NONCE_BYTES];
        read_exactly(&*file, SLOTS_BYTES, &mut found)?;
        if found != nonce {
            return Err(io::Error::other("another file has replaced the side file"));
        }
        Ok(SideFile {
            file,
            _creator: None,
        })
    });
    opened.map_err(|error| Error::from(error).on_path(path))
}

fn read_exactly(file: &dyn Handle, at: u64, bytes: &mut [u8]) -> io::Result<()> {
    let len = bytes.len() as u64;
    match file.transfer(&Batch::read(at, bytes)).into_result()? {
        read if read == len => Ok(()),
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}
