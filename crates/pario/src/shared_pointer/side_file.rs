//! The shared pointer in a locked file: for ranks that share no memory.
//!
//! Rank 0 creates the file next to the data under a random name (exclusive, mode 0600, no links
//! followed). Every rank opens it and verifies its identity; if open is deferred, one rank per
//! node does, and the others use its descriptor when they first need the pointer. The name is
//! removed before `open` returns, so nothing is left behind even if ranks are killed later.

use std::{
    ffi::{OsStr, OsString},
    fs::{File, OpenOptions},
    hash::{BuildHasher, Hasher, RandomState},
    io,
    os::{
        fd::AsRawFd,
        unix::{
            ffi::OsStrExt,
            fs::{FileExt, OpenOptionsExt},
        },
    },
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use pario_driver::{
    Access, Batch, Driver, FileComparison, FileIdentity, FileSystem, Handle, LockMode, Nfs,
    OpenHow, Posix, Sharing,
};
use pario_transport::{Rank, Transport};

use super::{Change, Generation, Method};
use crate::{Error, ErrorKind, Result, agree, file::FileSharing};

/// A generation and the position in it.
const SLOT_BYTES: u64 = 16;
pub(super) const SLOTS_BYTES: u64 = 2 * SLOT_BYTES;
const NONCE_BYTES: usize = 16;

#[derive(Debug)]
pub(super) struct SideFile {
    nonce: Nonce,
    /// Whether ranks see the file through several NFS clients.
    is_on_nfs: bool,
    /// The descriptor of the rank that opened the file for this one.
    node_path: PathBuf,
    opened: OnceLock<OpenedFile>,
    /// On the rank that created the file: keeps it alive on NFS, where removing the name of a file
    /// that is open on this client only renames it, until it is closed here or the process ends.
    _creator: Option<File>,
}

type Nonce = [u8; NONCE_BYTES];

/// The file: for its contents, and for locks between ranks and between threads.
#[derive(Debug)]
struct OpenedFile(Arc<dyn Handle>);

impl SideFile {
    /// *Collective*. Ranks other than their `opener` open the file later.
    pub(super) fn new(
        comm: &dyn Transport,
        beside: &Path,
        sharing: &FileSharing,
        opener: &dyn Fn(Rank) -> Rank,
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
        let is_on_nfs = sharing.sharing == Sharing::Nfs;
        let result = open_together(comm, beside, name, is_on_nfs, opener);
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

    /// Opens the file unless it is open. Two threads may both do so; one of them keeps it.
    fn opened(&self) -> io::Result<&OpenedFile> {
        if let Some(opened) = self.opened.get() {
            return Ok(opened);
        }
        let opened = OpenedFile::open(&self.node_path, self.nonce, 0, self.is_on_nfs)?;
        Ok(self.opened.get_or_init(|| opened))
    }
}

impl OpenedFile {
    fn open(path: &Path, nonce: Nonce, flags: i32, is_on_nfs: bool) -> io::Result<OpenedFile> {
        let driver: &dyn Driver = match is_on_nfs {
            true => &Nfs::new(),
            false => &Posix::default(),
        };
        let found = private().custom_flags(flags).open(path)?;
        // The file that was just opened without following links, by whatever name.
        let path = format!("/proc/self/fd/{}", found.as_raw_fd());
        let file = driver.open(Path::new(&path), &OpenHow::new(Access::ReadWrite))?;
        let mut found = [0; NONCE_BYTES];
        read_exactly(&*file, SLOTS_BYTES, &mut found)?;
        if found != nonce {
            return Err(io::Error::other("another file has replaced the side file"));
        }
        Ok(OpenedFile(file))
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

    fn update(&self, generation: Generation, change: Change) -> io::Result<u64> {
        update_slot(&*self.opened()?.0, generation, change)
    }
}

/// Changes the position in a slot of an open file; the old one. A slot of an earlier
/// generation counts as zero.
pub(super) fn update_slot(
    file: &dyn Handle,
    generation: Generation,
    change: Change,
) -> io::Result<u64> {
    let at = offset(generation);
    let _lock = file.lock(at..at + SLOT_BYTES, LockMode::Exclusive)?;
    let mut bytes = [0; SLOT_BYTES as usize];
    read_exactly(file, at, &mut bytes)?;
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
    let old = match word(0) == generation.0 {
        true => word(8),
        false => 0,
    };
    if let Some(new) = change.of(old).filter(|new| *new != old) {
        let slot = [generation.0, new].map(u64::to_le_bytes).concat();
        file.transfer(&Batch::write(at, &slot)).into_result()?;
    }
    Ok(old)
}

/// The ranks open the file whose name rank 0 sends: each rank, or one for others, which must be
/// able to reach its descriptor.
fn open_together(
    comm: &dyn Transport,
    beside: &Path,
    name: Result<Vec<u8>>,
    is_on_nfs: bool,
    opener: &dyn Fn(Rank) -> Rank,
) -> Result<SideFile> {
    let all = agree::gather(comm, name)?;
    let nonce = all[0].as_slice().try_into();
    let nonce: Nonce =
        nonce.map_err(|_| Error::new(ErrorKind::Io, "rank 0 sent no name for the side file"))?;
    let path = path_of(beside, nonce);
    let me = comm.rank();
    let is_deferred = (0..comm.size()).any(|rank| opener(Rank(rank)) != Rank(rank));
    let mut side_file = SideFile {
        nonce,
        is_on_nfs,
        node_path: PathBuf::new(),
        opened: OnceLock::new(),
        _creator: None,
    };
    let open = || -> Result<OpenedFile> {
        OpenedFile::open(&path, nonce, libc::O_NOFOLLOW, is_on_nfs)
            .map_err(|error| Error::from(error).on_path(&path))
    };
    if is_deferred {
        let opened = match opener(me) == me {
            true => open().and_then(|opened| {
                let place = place_of(&opened)?;
                side_file.opened = OnceLock::from(opened);
                Ok(place)
            }),
            false => Ok(Vec::new()),
        };
        let places = agree::gather(comm, opened)?;
        side_file.node_path = reachable(&places[opener(me).index()]).unwrap_or_default();
    }
    let is_done = side_file.opened.get().is_some() || !side_file.node_path.as_os_str().is_empty();
    let opened = match is_done {
        true => Ok(()),
        false => open().map(|opened| side_file.opened = OnceLock::from(opened)),
    };
    agree::agree(comm, opened)?;
    Ok(side_file)
}

/// How other ranks of the node reach an open file: which file it is, and its path.
fn place_of(opened: &OpenedFile) -> Result<Vec<u8>> {
    let (identity, path) = (opened.0.identity()?, opened.0.node_path());
    Ok(match (identity, path) {
        (Some(identity), Some(path)) => {
            let path = path.as_os_str().as_encoded_bytes();
            [&identity.to_wire()[..], path].concat()
        }
        _ => Vec::new(),
    })
}

/// The path of a place, if it leads to the file.
fn reachable(place: &[u8]) -> Option<PathBuf> {
    let (identity, path) = place.split_at_checked(FileIdentity::WIRE_BYTES)?;
    let identity = FileIdentity::from_wire(identity)?;
    let path = PathBuf::from(OsStr::from_bytes(path));
    // Files of one kernel compare by their numbers, whatever the file system.
    let other = FileSystem::Other(String::new());
    let found = FileIdentity::at(&path, Access::ReadWrite, &other).ok()?;
    (identity.compare(&found) == FileComparison::Same).then_some(path)
}

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

fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600);
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
    let mut options = private();
    options.create_new(true).custom_flags(libc::O_NOFOLLOW);
    let written = options.open(&path).and_then(|file| {
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

fn read_exactly(file: &dyn Handle, at: u64, bytes: &mut [u8]) -> io::Result<()> {
    let len = bytes.len() as u64;
    match file.transfer(&Batch::read(at, bytes)).into_result()? {
        read if read == len => Ok(()),
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}
