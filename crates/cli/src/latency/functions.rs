//! The functions that are timed, through the C interface.

#![allow(unsafe_code)] // Calls MPI functions of a library that is loaded at run time.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem;
use std::path::Path;

use pario_mpi::host::loader::{Library, Visibility};
use pario_mpi::{Comm, Host, MpiError};

use super::calls::{Call, Form, Place};

/// Large enough for a status of any MPI.
type Status = [u64; 8];
type Handle = u64;

type Open = unsafe extern "C" fn(u64, *const c_char, c_int, u64, *mut Handle) -> c_int;
type Close = unsafe extern "C" fn(*mut Handle) -> c_int;
type SetView = unsafe extern "C" fn(Handle, i64, u64, u64, *const c_char, u64) -> c_int;
type Seek = unsafe extern "C" fn(Handle, i64, c_int) -> c_int;
type Sync = unsafe extern "C" fn(Handle) -> c_int;
type Size = unsafe extern "C" fn(Handle, *mut i64) -> c_int;
type At = unsafe extern "C" fn(Handle, i64, *mut c_void, c_int, u64, *mut c_void) -> c_int;
type Here = unsafe extern "C" fn(Handle, *mut c_void, c_int, u64, *mut c_void) -> c_int;
type End = unsafe extern "C" fn(Handle, *mut c_void, *mut c_void) -> c_int;
type Waitall = unsafe extern "C" fn(c_int, *mut c_void, *mut c_void) -> c_int;

/// Where functions come from.
pub(super) enum Source {
    /// The MPI itself.
    Host(&'static Host),
    /// The drop-in library, whose functions a program with the library preloaded would call.
    Library(Library, String),
}

impl Source {
    pub(super) fn library(path: &Path) -> Result<Source, String> {
        let path = path.to_string_lossy().into_owned();
        Ok(Source::Library(
            Library::load(&path, Visibility::Local)?,
            path,
        ))
    }

    fn find(&self, name: &str) -> Result<*mut c_void, String> {
        let (address, place) = match self {
            Source::Host(host) => (host.function(name), host.path()),
            Source::Library(library, path) => (library.symbol(&format!("MPI_{name}")), &**path),
        };
        address.ok_or_else(|| format!("{place} has no MPI_{name}"))
    }
}

/// The functions that every measurement needs.
pub(super) struct Functions {
    host: &'static Host,
    source: Source,
    open: Open,
    close: Close,
    set_view: SetView,
    seek: Seek,
    seek_shared: Seek,
    sync: Sync,
    size: Size,
    waitall: Waitall,
}

impl Functions {
    pub(super) fn new(host: &'static Host, source: Source) -> Result<Functions, String> {
        let find = |name: &str| source.find(name);
        // SAFETY: the signatures are those of the standard, except for handles, which are 64 bits
        // in a register whatever their width in C.
        unsafe {
            Ok(Functions {
                host,
                open: mem::transmute::<*mut c_void, Open>(find("File_open")?),
                close: mem::transmute::<*mut c_void, Close>(find("File_close")?),
                set_view: mem::transmute::<*mut c_void, SetView>(find("File_set_view")?),
                seek: mem::transmute::<*mut c_void, Seek>(find("File_seek")?),
                seek_shared: mem::transmute::<*mut c_void, Seek>(find("File_seek_shared")?),
                sync: mem::transmute::<*mut c_void, Sync>(find("File_sync")?),
                size: mem::transmute::<*mut c_void, Size>(find("File_get_size")?),
                waitall: mem::transmute::<*mut c_void, Waitall>(find("Waitall")?),
                source,
            })
        }
    }

    /// Opens a file for reading and writing, and creates it if necessary.
    pub(super) fn open(&self, comm: Comm, path: &CStr) -> Result<OpenFile<'_>, MpiError> {
        let constants = self.host.constants();
        let mode = constants.mode_create | constants.mode_rdwr;
        let info = self.host.predefined().info_null.0;
        let mut handle = 0;
        // SAFETY: valid handles, a C string and a place for the handle.
        let code = unsafe { (self.open)(comm.0, path.as_ptr(), mode, info, &mut handle) };
        self.host.check("MPI_File_open", code)?;
        Ok(OpenFile {
            functions: self,
            handle,
        })
    }

    /// The function of a call that moves data.
    pub(super) fn data(&self, call: Call) -> Result<Data, String> {
        let address = self.source.find(&format!("File_{}", call.name))?;
        let place = match call.form {
            Form::Blocking(place) | Form::Nonblocking(place) | Form::Split(place) => place,
            _ => return Err(format!("{} moves no data", call.name)),
        };
        // SAFETY: as in `new`. Functions that begin a split call do not take the last argument and
        // are not affected by one in a register.
        let start = unsafe {
            match place {
                Place::Offset => Start::At(mem::transmute::<*mut c_void, At>(address)),
                Place::Pointer => Start::Here(mem::transmute::<*mut c_void, Here>(address)),
            }
        };
        let end = match call.form {
            Form::Split(_) => {
                let name = call.name.replace("_begin", "_end");
                let address = self.source.find(&format!("File_{name}"))?;
                // SAFETY: as above.
                Some(unsafe { mem::transmute::<*mut c_void, End>(address) })
            }
            _ => None,
        };
        Ok(Data {
            name: call.name,
            start,
            end,
        })
    }
}

#[derive(Clone, Copy)]
enum Start {
    At(At),
    Here(Here),
}

/// The function or functions of one call that moves data.
#[derive(Clone, Copy)]
pub(super) struct Data {
    name: &'static str,
    start: Start,
    end: Option<End>,
}

/// Requests in flight, in the MPI's format.
pub(super) struct Requests {
    handles: Vec<u64>,
    statuses: Vec<Status>,
    bytes_each: usize,
    count: usize,
}

impl Requests {
    pub(super) fn new(host: &Host, count: usize) -> Requests {
        Requests {
            handles: vec![0; count],
            statuses: vec![Status::default(); count],
            bytes_each: host.flavour().handle_bytes(),
            count,
        }
    }

    fn at(&mut self, index: usize) -> *mut c_void {
        assert!(index < self.count, "there is a slot for each request");
        // SAFETY: handles have at most the 8 bytes of a slot.
        unsafe {
            let first: *mut c_void = self.handles.as_mut_ptr().cast();
            first.byte_add(index * self.bytes_each)
        }
    }
}

/// An open file.
pub(super) struct OpenFile<'a> {
    functions: &'a Functions,
    handle: Handle,
}

impl OpenFile<'_> {
    /// Whether it is pario's: its handles are numbers that cannot be addresses.
    pub(super) fn is_parios(&self) -> bool {
        let high = self.handle >> 47;
        high != 0 && high != u64::MAX >> 47
    }

    fn check(&self, name: &'static str, code: c_int) -> Result<(), MpiError> {
        self.functions.host.check(name, code)
    }

    /// Sets a view of bytes from an offset on.
    pub(super) fn set_view(&self, displacement: i64) -> Result<(), MpiError> {
        let predefined = self.functions.host.predefined();
        let (byte, info) = (predefined.byte.0, predefined.info_null.0);
        let native = c"native".as_ptr();
        // SAFETY: valid handles and a C string.
        let code = unsafe {
            (self.functions.set_view)(self.handle, displacement, byte, byte, native, info)
        };
        self.check("MPI_File_set_view", code)
    }

    pub(super) fn seek(&self, offset: i64) -> Result<(), MpiError> {
        let whence = self.functions.host.constants().seek_set;
        // SAFETY: a valid handle.
        let code = unsafe { (self.functions.seek)(self.handle, offset, whence) };
        self.check("MPI_File_seek", code)
    }

    pub(super) fn seek_shared(&self) -> Result<(), MpiError> {
        let whence = self.functions.host.constants().seek_set;
        // SAFETY: a valid handle.
        let code = unsafe { (self.functions.seek_shared)(self.handle, 0, whence) };
        self.check("MPI_File_seek_shared", code)
    }

    pub(super) fn sync(&self) -> Result<(), MpiError> {
        // SAFETY: a valid handle.
        let code = unsafe { (self.functions.sync)(self.handle) };
        self.check("MPI_File_sync", code)
    }

    pub(super) fn size(&self) -> Result<i64, MpiError> {
        let mut size = 0;
        // SAFETY: a valid handle and a place for the size.
        let code = unsafe { (self.functions.size)(self.handle, &mut size) };
        self.check("MPI_File_get_size", code).map(|()| size)
    }

    /// Calls a function that moves data, and the one that ends it.
    pub(super) fn transfer(
        &self,
        data: Data,
        offset: i64,
        buffer: &mut [u8],
    ) -> Result<(), MpiError> {
        let mut status = Status::default();
        let last: *mut c_void = (&raw mut status).cast();
        self.call(data, offset, buffer, last)?;
        let Some(end) = data.end else { return Ok(()) };
        // SAFETY: the buffer is the one passed to the begin function.
        let code = unsafe { end(self.handle, buffer.as_mut_ptr().cast(), last) };
        self.check(data.name, code)
    }

    /// Calls a function that returns a request.
    pub(super) fn start(
        &self,
        data: Data,
        offset: i64,
        buffer: &mut [u8],
        (requests, index): (&mut Requests, usize),
    ) -> Result<(), MpiError> {
        self.call(data, offset, buffer, requests.at(index))
    }

    /// Completes all requests.
    pub(super) fn wait(&self, requests: &mut Requests) -> Result<(), MpiError> {
        let count = c_int::try_from(requests.count).expect("there are few requests");
        let statuses: *mut c_void = requests.statuses.as_mut_ptr().cast();
        // SAFETY: there are `count` requests and statuses.
        let code = unsafe { (self.functions.waitall)(count, requests.at(0), statuses) };
        self.check("MPI_Waitall", code)
    }

    fn call(
        &self,
        data: Data,
        offset: i64,
        buffer: &mut [u8],
        last: *mut c_void,
    ) -> Result<(), MpiError> {
        let (address, handle) = (buffer.as_mut_ptr().cast(), self.handle);
        let count = c_int::try_from(buffer.len()).expect("buffers are short");
        let byte = self.functions.host.predefined().byte.0;
        // SAFETY: the buffer holds the data; `last` is a status or a slot for a request,
        // which lives until the call is over.
        let code = unsafe {
            match data.start {
                Start::At(start) => start(handle, offset, address, count, byte, last),
                Start::Here(start) => start(handle, address, count, byte, last),
            }
        };
        self.check(data.name, code)
    }

    pub(super) fn close(mut self) -> Result<(), MpiError> {
        // SAFETY: the handle is open.
        let code = unsafe { (self.functions.close)(&mut self.handle) };
        self.functions.host.check("MPI_File_close", code)
    }
}
