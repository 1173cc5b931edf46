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

/// The functions of one MPI-IO.
pub(super) struct Interface {
    host: &'static Host,
    open: Open,
    close: Close,
    set_view: SetView,
    write: (&'static str, Transfer),
    read: (&'static str, Transfer),
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
        let (write, read) = match mode {
            Mode::Coll => ("MPI_File_write_all", "MPI_File_read_all"),
            Mode::Indep => ("MPI_File_write", "MPI_File_read"),
        };
        // SAFETY: the signatures are those of the standard, except for handles, which are 64 bits
        // in a register on every MPI that `Host` accepts.
        let transfer = |address| unsafe { mem::transmute::<*mut c_void, Transfer>(address) };
        Ok(Interface {
            host,
            // SAFETY: as above.
            open: unsafe { mem::transmute::<*mut c_void, Open>(find("MPI_File_open")?) },
            // SAFETY: as above.
            close: unsafe { mem::transmute::<*mut c_void, Close>(find("MPI_File_close")?) },
            // SAFETY: as above.
            set_view: unsafe { mem::transmute::<*mut c_void, SetView>(find("MPI_File_set_view")?) },
            write: (write, transfer(find(write)?)),
            read: (read, transfer(find(read)?)),
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

    /// Moves one item of memory through the view.
    pub(super) fn transfer(&self, bytes: &mut [u8], item: &Item<'_>) -> Result<(), MpiError> {
        assert!(item.bytes <= bytes.len(), "a buffer holds its item");
        let (name, function) = match self.direction {
            Direction::Write => self.interface.write,
            Direction::Read => self.interface.read,
        };
        let mut status = Status::default();
        let (address, datatype) = (bytes.as_mut_ptr().cast(), item.datatype.handle().0);
        // SAFETY: the item is within the bytes, and no status is longer than ours.
        let code = unsafe { function(self.handle, address, 1, datatype, &mut status) };
        self.interface.host.check(name, code)
    }

    pub(super) fn close(mut self) -> Result<(), MpiError> {
        // SAFETY: the handle is open.
        let code = unsafe { (self.interface.close)(&mut self.handle) };
        self.interface.host.check("MPI_File_close", code)
    }
}

/// An item in memory.
pub(super) struct Item<'a> {
    datatype: Encoded<'a>,
    /// Bytes from the item's address to the end of its data.
    bytes: usize,
}

impl<'a> Item<'a> {
    /// An item that begins at the start of its buffer.
    pub(super) fn new(host: &'a Host, datatype: Encoded<'a>) -> Result<Self, String> {
        let extent = host.type_true_extent(datatype.handle());
        let (start, length) = extent.map_err(|error| error.to_string())?;
        let end = start
            .checked_add(length)
            .and_then(|end| usize::try_from(end).ok());
        match end {
            Some(bytes) if start >= 0 => Ok(Item { datatype, bytes }),
            _ => Err(format!("an item in memory cannot begin at {start}")),
        }
    }
}
