//! The shared pointer in a locked file of a driver that needs no mount: for ranks that share no
//! memory.
//!
//! Rank 0 creates the file next to the data, under a random name, and removes the name at once. It
//! keeps the file open; the other ranks open it when they first need the pointer, through the path
//! that the driver has for open files.

use std::{
    ffi::OsStr,
    io,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use pario_driver::{Access, Batch, Create, Driver, Handle, OpenHow};
use pario_transport::{Rank, Transport};

use super::{
    Change, Generation, Method,
    side_file::{SLOTS_BYTES, nonce, path_of, update_slot},
};
use crate::{Error, ErrorKind, Result, agree};

#[derive(Debug)]
pub(super) struct ServedFile {
    driver: Arc<dyn Driver>,
    /// Leads to the file while rank 0 has it open.
    path: PathBuf,
    opened: OnceLock<Arc<dyn Handle>>,
}

impl ServedFile {
    /// *Collective*.
    pub(super) fn new(
        comm: &dyn Transport,
        driver: &Arc<dyn Driver>,
        beside: &Path,
    ) -> Result<ServedFile> {
        let made = match comm.rank() {
            Rank(0) => create(&**driver, beside).map(Some),
            _ => Ok(None),
        };
        let path = match &made {
            Ok(made) => Ok(made.as_ref().map_or_else(Vec::new, |(path, _)| {
                path.as_os_str().as_encoded_bytes().to_vec()
            })),
            Err(error) => Err(error.clone()),
        };
        let all = agree::gather(comm, path)?;
        Ok(ServedFile {
            driver: driver.clone(),
            path: PathBuf::from(OsStr::from_bytes(&all[0])),
            opened: match made {
                Ok(Some((_, file))) => OnceLock::from(file),
                _ => OnceLock::new(),
            },
        })
    }

    /// Opens the file unless it is open. Two threads may both do so; one of them keeps it.
    fn opened(&self) -> io::Result<&dyn Handle> {
        if let Some(opened) = self.opened.get() {
            return Ok(&**opened);
        }
        let how = OpenHow::new(Access::ReadWrite);
        let opened = self.driver.open(&self.path, &how)?;
        Ok(&**self.opened.get_or_init(|| opened))
    }
}

impl Method for ServedFile {
    fn name(&self) -> &'static str {
        "file"
    }

    /// A value of an earlier generation counts as zero.
    fn prepare(&self, _generation: Generation) -> io::Result<()> {
        Ok(())
    }

    fn update(&self, generation: Generation, change: Change) -> io::Result<u64> {
        update_slot(self.opened()?, generation, change)
    }
}

/// Creates the file and removes its name; the path by which it can be opened nevertheless.
fn create(driver: &dyn Driver, beside: &Path) -> Result<(PathBuf, Arc<dyn Handle>)> {
    let path = path_of(beside, nonce());
    let on_path = |error: io::Error| Error::from(error).on_path(&path);
    let how = OpenHow::new(Access::ReadWrite)
        .create(Create::Exclusive)
        .permissions(0o600);
    let file = driver.open(&path, &how).map_err(on_path)?;
    let written = file.transfer(&Batch::write(0, &[0; SLOTS_BYTES as usize]));
    let removed = driver.delete(&path);
    written.into_result().and(removed).map_err(on_path)?;
    let reached_by = file.node_path().ok_or_else(|| {
        let message = format!(
            "the driver {} cannot open a file that has no name any more",
            driver.name()
        );
        Error::new(ErrorKind::UnsupportedOperation, message)
    })?;
    Ok((reached_by, file))
}
