//! MPI-IO through the C interface: of the MPI itself, or of the drop-in library.

#![allow(unsafe_code)] // Calls MPI_File_ functions of a library that is loaded at run time.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem;
use std::path::Path;

use pario_mpi::host::loader::{Library, Visibility};
use pario_mpi::{Comm, Datatype, Encoded, Host, Info, MpiError};

use crate::compare::Mode;
use crate::measure::Direction;

/// A file handle: 8 bytes in every MPI.
type FileHandle = u64;

/// Large enough for a status of any MPI.
type Status = [u64; 8];

type Open = unsafe extern "C" fn(u64, *const c_char, c_int, u64, *mut FileHandle) -> c_int;
type Close = unsafe extern "C" fn(*mut FileHandle) -> c_int;
type SetView = unsafe extern "C" fn(FileHandle, i64, u64, u64, *const c_char, u64) -> c_int;
type Transfer = unsafe extern "C" fn(FileHandle, *mut c_void, c_int, u64, *mut Status) -> c_int;
type TransferAt =
    unsafe extern "C" fn(FileHandle, i64, *mut c_void, c_int, u64, *mut Status) -> c_int;

/// The functions of one MPI-IO.
pub(super) struct Interface {
    host: &'static Host,
    open: Open,
    close: Close,
    set_view: SetView,
    write: Functions,
    read: Functions,
}

/// The functions for one direction.
struct Functions {
    by_pointer: (&'static str, Transfer),
    at: (&'static str, TransferAt),
}

/// Where a call starts.
#[derive(Clone, Copy, Debug)]
pub(super) enum Start {
    /// At the individual file pointer.
    Pointer,
    /// At an offset, in etypes of the view.
    Offset(i64),
}

impl Interface {
    /// The MPI's own.
    pub(super) fn of_host(host: &'static Host, mode: Mode) -> Result<Self, String> {
        let address = |name: &str| host.function(name.trim_start_matches("MPI_"));
        Self::new(host, mode, &address, host.path())
    }

    /// The drop-in library's, which a program with the library preloaded would call.
    pub(super) fn of_library(host: &'static Host, mode: Mode, path: &Path) -> Result<Self, String> {
        let path = path.to_string_lossy();
        let library = Library::load(&path, Visibility::Local)?;
        Self::new(host, mode, &|name| library.symbol(name), &path)
    }

    fn new(
        host: &'static Host,
        mode: Mode,
        address: &dyn Fn(&str) -> Option<*mut c_void>,
        path: &str,
    ) -> Result<Self, String> {
        let find = |name: &str| address(name).ok_or_else(|| format!("{path} has no {name}"));
        let [write, read, write_at, read_at] = match mode {
            Mode::Coll => [
                "MPI_File_write_all",
                "MPI_File_read_all",
                "MPI_File_write_at_all",
                "MPI_File_read_at_all",
            ],
            Mode::Indep => [
                "MPI_File_write",
                "MPI_File_read",
                "MPI_File_write_at",
                "MPI_File_read_at",
            ],
        };
        let functions = |by_pointer: &'static str, at: &'static str| -> Result<_, String> {
            // SAFETY: the signatures are those of the standard, except for handles, which are 64
            // bits in a register on every MPI that `Host` accepts.
            let transfer = unsafe { mem::transmute::<*mut c_void, Transfer>(find(by_pointer)?) };
            // SAFETY: as above.
            let transfer_at = unsafe { mem::transmute::<*mut c_void, TransferAt>(find(at)?) };
            Ok(Functions {
                by_pointer: (by_pointer, transfer),
                at: (at, transfer_at),
            })
        };
        Ok(Interface {
            host,
            // SAFETY: as above.
            open: unsafe { mem::transmute::<*mut c_void, Open>(find("MPI_File_open")?) },
            // SAFETY: as above.
            close: unsafe { mem::transmute::<*mut c_void, Close>(find("MPI_File_close")?) },
            // SAFETY: as above.
            set_view: unsafe { mem::transmute::<*mut c_void, SetView>(find("MPI_File_set_view")?) },
            write: functions(write, write_at)?,
            read: functions(read, read_at)?,
        })
    }

    /// Opens a file to write it, creating it if necessary, or to read it.
    pub(super) fn open(
        &self,
        comm: Comm,
        path: &CStr,
        direction: Direction,
        info: Info,
    ) -> Result<OpenFile<'_>, MpiError> {
        let constants = self.host.constants();
        let mode = match direction {
            Direction::Write => constants.mode_create | constants.mode_rdwr,
            Direction::Read => constants.mode_rdonly,
        };
        let mut handle = 0;
        // SAFETY: valid handles, a C string and a place for the handle.
        let code = unsafe { (self.open)(comm.0, path.as_ptr(), mode, info.0, &mut handle) };
        self.host.check("MPI_File_open", code)?;
        Ok(OpenFile {
            interface: self,
            handle,
            direction,
            info,
        })
    }
}

/// An open file.
pub(super) struct OpenFile<'a> {
    interface: &'a Interface,
    handle: FileHandle,
    direction: Direction,
    info: Info,
}

impl OpenFile<'_> {
    /// `MPI_File_set_view` with the native representation.
    pub(super) fn set_view(
        &self,
        displacement: i64,
        etype: Datatype,
        filetype: Datatype,
    ) -> Result<(), MpiError> {
        let (handle, info) = (self.handle, self.info.0);
        let native = c"native".as_ptr();
        // SAFETY: valid handles and a C string.
        let code = unsafe {
            (self.interface.set_view)(handle, displacement, etype.0, filetype.0, native, info)
        };
        self.interface.host.check("MPI_File_set_view", code)
    }

    /// Moves items of memory through the view.
    pub(super) fn transfer(
        &self,
        start: Start,
        bytes: &mut [u8],
        items: &Items<'_>,
    ) -> Result<(), MpiError> {
        assert!(items.bytes <= bytes.len(), "a buffer holds its items");
        let functions = match self.direction {
            Direction::Write => &self.interface.write,
            Direction::Read => &self.interface.read,
        };
        let mut status = Status::default();
        let (file, buffer) = (self.handle, bytes.as_mut_ptr().cast());
        let (count, datatype) = (items.count, items.datatype.handle().0);
        let (name, code) = match start {
            Start::Pointer => {
                let (name, function) = functions.by_pointer;
                // SAFETY: the items are within the bytes, and no status is longer than ours.
                (name, unsafe {
                    function(file, buffer, count, datatype, &mut status)
                })
            }
            Start::Offset(offset) => {
                let (name, function) = functions.at;
                // SAFETY: as above.
                let code = unsafe { function(file, offset, buffer, count, datatype, &mut status) };
                (name, code)
            }
        };
        self.interface.host.check(name, code)
    }

    pub(super) fn close(mut self) -> Result<(), MpiError> {
        // SAFETY: the handle is open.
        let code = unsafe { (self.interface.close)(&mut self.handle) };
        self.interface.host.check("MPI_File_close", code)
    }
}

/// Items in memory.
pub(super) struct Items<'a> {
    datatype: Encoded<'a>,
    count: c_int,
    /// Bytes from the address of the first item to the end of the data.
    bytes: usize,
}

impl<'a> Items<'a> {
    /// One or more items, the first of which begins at the start of its buffer.
    pub(super) fn new(host: &'a Host, datatype: Encoded<'a>, count: c_int) -> Result<Self, String> {
        let message = |error: MpiError| error.to_string();
        let (_, extent) = host.type_extent(datatype.handle()).map_err(message)?;
        let (start, length) = host.type_true_extent(datatype.handle()).map_err(message)?;
        let end = extent
            .checked_mul(i64::from(count - 1))
            .and_then(|last| last.checked_add(start)?.checked_add(length))
            .and_then(|end| usize::try_from(end).ok());
        match end {
            Some(bytes) if start >= 0 => Ok(Items {
                datatype,
                count,
                bytes,
            }),
            _ => Err(format!("items in memory cannot begin at {start}")),
        }
    }
}
