//! A double of BeeGFS's client, constructed from the header `beegfs_ioctl.h` of
//! BeeGFS 7.

use std::{
    collections::HashMap,
    ffi::{CStr, OsStr},
    fs, io,
    os::{
        fd::BorrowedFd,
        unix::{ffi::OsStrExt, fs::MetadataExt},
    },
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use crate::{FileControl, IoctlArgument};

const GET_STRIPES: u64 = 0x800c_6619;
const MAKE_FILE: u64 = 0x4018_661b;
const GET_CONFIGURATION: u64 = 0x9004_6617;

/// Targets of the file system.
const TARGETS: u32 = 6;

/// Files in a directory, four chunks of 512 KiB each unless created otherwise.
#[derive(Debug)]
pub struct BeegfsDouble {
    directory: PathBuf,
    /// Chunk and targets by inode.
    created: Mutex<HashMap<u64, (u32, u16)>>,
    /// The file with the client's configuration.
    configuration: Option<PathBuf>,
}

impl BeegfsDouble {
    /// Answers for files in this directory.
    pub fn new(directory: &Path) -> BeegfsDouble {
        BeegfsDouble {
            directory: directory.to_owned(),
            created: Mutex::default(),
            configuration: None,
        }
    }

    /// The same with a client that reports this file as its running configuration.
    #[must_use]
    pub fn with_configuration(self, file: &Path) -> BeegfsDouble {
        BeegfsDouble {
            configuration: Some(file.to_owned()),
            ..self
        }
    }

    /// Number of files created with stripes of their own.
    pub fn created(&self) -> usize {
        let created = self.created.lock();
        created.unwrap_or_else(PoisonError::into_inner).len()
    }

    fn make(&self, name: &CStr, rest: &[u8]) -> io::Result<()> {
        let word = |at: usize| rest[at..at + 4].try_into().map_or(0, u32::from_ne_bytes);
        let (targets, chunk) = (word(4), word(8));
        let path = self.directory.join(OsStr::from_bytes(name.to_bytes()));
        let file = fs::File::create_new(path)?;
        let chunk = if chunk == 0 { 512 << 10 } else { chunk };
        let targets = if targets == 0 {
            4
        } else {
            targets.min(TARGETS)
        };
        let created = self.created.lock();
        created
            .unwrap_or_else(PoisonError::into_inner)
            .insert(file.metadata()?.ino(), (chunk, targets as u16));
        Ok(())
    }
}

impl FileControl for BeegfsDouble {
    fn attribute(&self, _file: BorrowedFd<'_>, _name: &CStr, _limit: usize) -> io::Result<Vec<u8>> {
        Err(io::Error::from_raw_os_error(libc::ENODATA))
    }

    fn ioctl(
        &self,
        file: BorrowedFd<'_>,
        request: u64,
        argument: IoctlArgument<'_>,
    ) -> io::Result<()> {
        match (request, argument) {
            (GET_STRIPES, IoctlArgument::Structure(answer)) => {
                let inode = fs::File::from(file.try_clone_to_owned()?).metadata()?.ino();
                let created = self.created.lock();
                let created = created.unwrap_or_else(PoisonError::into_inner);
                let (chunk, targets) = created.get(&inode).copied().unwrap_or((512 << 10, 4));
                answer[..4].copy_from_slice(&1u32.to_ne_bytes());
                answer[4..8].copy_from_slice(&chunk.to_ne_bytes());
                answer[8..10].copy_from_slice(&targets.to_ne_bytes());
                Ok(())
            }
            (GET_CONFIGURATION, IoctlArgument::Structure(answer)) => {
                let path = self.configuration.as_ref();
                let path = path.ok_or_else(|| io::Error::from_raw_os_error(libc::ENOTTY))?;
                let path = path.as_os_str().as_bytes();
                answer[..path.len()].copy_from_slice(path);
                Ok(())
            }
            (MAKE_FILE, IoctlArgument::Named { name, rest }) => self.make(name, rest),
            _ => Err(io::Error::from_raw_os_error(libc::ENOTTY)),
        }
    }
}
