//! BeeGFS: stripes of files, read and set by `ioctl`, and what its client
//! guarantees.
//!
//! Structures and numbers are those of the header `beegfs_ioctl.h` of BeeGFS 7.
//! Not tried on a real one.

mod client;

pub(crate) use client::ClientSettings;

use std::{
    ffi::CString,
    io,
    os::{
        fd::{BorrowedFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
};

use pario_types::{Placement, Striping};

use crate::{
    Creation, IoctlArgument, ServerCount, StripingRequest,
    control::{Control, read_request, write_request},
    creation::NewFile,
    posix::sys,
};

/// `BEEGFS_IOC_GET_STRIPEINFO` fills in the pattern, the length of a chunk (both
/// 32 bits) and the number of targets (16 bits).
const GET_STRIPES: u64 = read_request(b'f', 25, STRIPES_BYTES as u64);
const STRIPES_BYTES: usize = 12;

/// `BEEGFS_IOC_MKFILE_STRIPEHINTS` creates a file in the directory of the
/// descriptor: the address of its name, then its permissions, the number of
/// targets and the length of a chunk (32 bits each); 0 means the default.
const MAKE_FILE: u64 = write_request(b'f', 27, 24);

/// Chunks spread over targets, with and without mirrors.
const RAID0: u32 = 1;
const MIRRORED: u32 = 3;

/// Chunks are powers of two from this length on.
const CHUNK_BYTES_MIN: u64 = 64 << 10;

/// Where the bytes of a file are, if that is understood.
pub(crate) fn placement(control: &Control, file: BorrowedFd<'_>) -> Option<Placement> {
    let mut answer = [0; STRIPES_BYTES];
    let argument = IoctlArgument::Structure(&mut answer);
    control.ioctl(file, GET_STRIPES, argument).ok()?;
    let word = |at: usize| answer[at..at + 4].try_into().map_or(0, u32::from_ne_bytes);
    let targets = u16::from_ne_bytes([answer[8], answer[9]]);
    let striping = Striping {
        unit: word(4).into(),
        count: targets.into(),
    };
    let is_known = matches!(word(0), RAID0 | MIRRORED)
        && striping.unit >= CHUNK_BYTES_MIN
        && striping.unit.is_power_of_two()
        && striping.count > 0;
    is_known.then(|| Placement::uniform(striping))
}

/// Creates a file with the stripes that hints request. `None` if the file exists
/// or if nothing is requested that BeeGFS can set.
pub(crate) fn create(file: &NewFile<'_>) -> io::Result<Option<(OwnedFd, Creation)>> {
    if !file.request().is_explicit() {
        return Ok(None);
    }
    let refused = |reason: String| {
        let created = file.create(0)?;
        Ok(created.map(|fd| (fd, Creation::Refused { reason })))
    };
    let (targets, chunk) = match stripes(file.request()) {
        Ok(stripes) => stripes,
        Err(reason) => return refused(reason),
    };
    let Some(name) = file.path.file_name() else {
        return Ok(None);
    };
    let name = CString::new(name.as_bytes())?;
    let words = [file.how.permissions, targets, chunk, 0];
    let rest = words.map(u32::to_ne_bytes).concat();
    let made = file.with_directory(|directory| {
        let argument = IoctlArgument::Named {
            name: &name,
            rest: &rest,
        };
        file.control.ioctl(directory, MAKE_FILE, argument)
    });
    let what = format!("{targets} targets with chunks of {chunk} bytes (0: the default)");
    match file.unless_existing(made) {
        Ok(None) => Ok(None),
        Ok(Some(())) => {
            let created = sys::open(file.path, file.flags & !CREATION_FLAGS, 0)?;
            Ok(Some((created, Creation::Set { reason: what })))
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(error),
        Err(error) => refused(format!("{what}: {error}")),
    }
}

const CREATION_FLAGS: libc::c_int = libc::O_CREAT | libc::O_EXCL;

/// The number of targets and the length of a chunk; 0 for the default.
fn stripes(request: &StripingRequest) -> Result<(u32, u32), String> {
    let targets = match request.servers {
        None => 0,
        Some(ServerCount::All) => u32::from(u16::MAX),
        Some(ServerCount::Exactly(targets)) => targets,
    };
    let chunk = match request.unit {
        None => 0,
        Some(unit) if unit >= CHUNK_BYTES_MIN && unit.is_power_of_two() => u32::try_from(unit)
            .map_err(|_| format!("chunks of {unit} bytes are too long for BeeGFS"))?,
        Some(unit) => {
            return Err(format!(
                "chunks of {unit} bytes are not possible: BeeGFS has powers of two from 64 KiB on"
            ));
        }
    };
    match request.first_server.is_some() || request.pool.is_some() || request.stripes_per_server > 1
    {
        true => Err("BeeGFS sets the number and length of stripes only".to_owned()),
        false => Ok((targets, chunk)),
    }
}

#[cfg(test)]
mod tests;
