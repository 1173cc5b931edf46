//! Opening, closing and deleting files; their size, group, mode and hints.
#![allow(unsafe_code)] // C functions

use std::ffi::{c_char, c_int};
use std::path::Path;
use std::sync::{Arc, Mutex};

use engine::{ErrorKind, File, Mode};
use pario_mpi::host::constants::Constants;
use pario_mpi::{Comm, ErrorClass, Host, MpiTransport};

use super::{HandlePointer, Offset, Raw, file_functions, functions};
use crate::call::{self, Outcome};
use crate::failure::Failure;
use crate::files::{self, FileId, Found, OpenFile, ViewTypes};
use crate::policy::{self, Meeting};
use crate::{errhandler, finalize, forward, info, memory, verbose};

/// The type of `MPI_File_open`.
type Open = unsafe extern "C-unwind" fn(Raw, *const c_char, c_int, Raw, *mut FileId) -> c_int;
/// The type of `MPI_File_close`.
type Close = unsafe extern "C-unwind" fn(*mut FileId) -> c_int;
/// The type of `MPI_File_delete`.
type Delete = unsafe extern "C-unwind" fn(*const c_char, Raw) -> c_int;

/// The arguments of `MPI_File_open`.
#[derive(Clone, Copy, Debug)]
struct Request<'a> {
    comm: Raw,
    path: &'a Path,
    amode: c_int,
    info: Raw,
}

/// Stands for mode bits that the host does not define.
const UNKNOWN_BITS: u32 = 1 << 31;

fn mode(constants: &Constants, amode: c_int) -> Mode {
    let pairs = [
        (constants.mode_rdonly, Mode::READ_ONLY),
        (constants.mode_rdwr, Mode::READ_WRITE),
        (constants.mode_wronly, Mode::WRITE_ONLY),
        (constants.mode_create, Mode::CREATE),
        (constants.mode_excl, Mode::EXCLUSIVE),
        (constants.mode_delete_on_close, Mode::DELETE_ON_CLOSE),
        (constants.mode_unique_open, Mode::UNIQUE_OPEN),
        (constants.mode_append, Mode::APPEND),
        (constants.mode_sequential, Mode::SEQUENTIAL),
    ];
    let known = pairs.iter().fold(0, |bits, (bit, _)| bits | bit);
    let given = pairs.iter().filter(|(bit, _)| amode & bit != 0);
    let mode = given.fold(Mode::empty(), |mode, (_, flag)| mode | *flag);
    match amode & !known {
        0 => mode,
        _ => Mode::from_bits_retain(mode.bits() | UNKNOWN_BITS),
    }
}

/// Opens a file with pario; `None` if the host is to open it.
fn open(host: &'static Host, request: Request<'_>) -> Result<Option<FileId>, Failure> {
    let Request { path, amode, .. } = request;
    let comm = Comm(host.flavour().from_register(request.comm));
    if comm == host.predefined().comm_null {
        return Err(Failure::new(
            ErrorClass::Comm,
            "the communicator is MPI_COMM_NULL",
        ));
    }
    if host.comm_is_inter(comm)? {
        let message =
            "files are opened by the ranks of an intracommunicator, not an intercommunicator";
        return Err(Failure::new(ErrorClass::Comm, message));
    }
    let hints = info::read(host, request.info)?;
    let Some(Meeting { transports, seen }) = policy::meet(host, comm, path, &hints)? else {
        return Ok(None);
    };
    let [transport, background] = transports;
    finalize::prepare(host)?;
    let comms: [Arc<dyn pario_transport::Transport>; 2] = [transport.clone(), background];
    let mode = mode(host.constants(), amode);
    let file = File::open_private(comms, path, mode, &hints, seen)?;
    verbose::report_open(host, &transport, &file);
    let byte = host.predefined().byte;
    Ok(Some(files::enter(|id| OpenFile {
        id,
        file,
        transport,
        amode,
        handler: Mutex::new(errhandler::default_handler()),
        types: Mutex::new(ViewTypes::named(byte)),
        split: Mutex::default(),
        freed: Mutex::default(),
    })))
}

/// Closes one of pario's files.
fn close(host: &Host, open: &OpenFile) -> Outcome {
    verbose::report_close(&open.transport, &open.file);
    let closed = open.file.close();
    // It stays open if operations are pending or another rank made a different call; after any
    // other error it is closed.
    if closed
        .as_ref()
        .is_err_and(|error| matches!(error.kind(), ErrorKind::FileInUse | ErrorKind::NotSame))
    {
        return Ok(closed?);
    }
    open.free_types(host);
    files::remove(open.id);
    MpiTransport::clean_up(host);
    Ok(closed?)
}

functions! {
    "File_open" fn file_open(comm: Raw, filename: *const c_char, amode: c_int, info: Raw, fh: *mut FileId) -> c_int {
        static HOSTS: forward::HostFunction = forward::HostFunction::new(NAME);
        let hosts = || HOSTS.get().map(|function| {
            // SAFETY: the host's function of this name has this type.
            let function = unsafe { std::mem::transmute::<*const std::ffi::c_void, Open>(function) };
            // SAFETY: the program's promises are those of the standard.
            unsafe { function(comm, filename, amode, info, fh) }
        });
        let host = match policy::host_for_pario() {
            Some(host) => host,
            None => return hosts().unwrap_or_else(|| forward::refuse(NAME, FileId(0))),
        };
        let mut result = None;
        let code = call::on_no_file(NAME, || {
            // Set before anything can fail, since an error handler may throw a C++ exception.
            if !fh.is_null() {
                // SAFETY: the program's pointer is null or valid for a handle.
                unsafe { fh.write(FileId(host.predefined().file_null.0)) };
            }
            // SAFETY: the program's promises are those of the standard. An invalid name leads
            // to an error on all ranks.
            let path = unsafe { memory::path(filename) }.unwrap_or(Path::new(""));
            result = Some(open(host, Request { comm, path, amode, info })?);
            Ok(())
        });
        match result {
            None => code,
            Some(None) => hosts().unwrap_or_else(|| forward::refuse(NAME, FileId(0))),
            Some(Some(id)) => call::on_no_file(NAME, || {
                // SAFETY: the program's pointer is null or valid for a handle.
                unsafe { memory::put(fh, id, "the file handle") }
            }),
        }
    }

    "File_close" fn file_close(fh: *mut FileId) -> c_int {
        if fh.is_null() {
            return call::on_no_file(NAME, || Err(Failure::new(ErrorClass::Arg, "the address of the file handle is null")));
        }
        // SAFETY: the program's promises are those of the standard.
        let id = unsafe { fh.read() };
        match files::find(id) {
            Found::Hosts if forward::is_null(id) => forward::refuse(NAME, id),
            Found::Hosts => {
                static HOSTS: forward::HostFunction = forward::HostFunction::new(NAME);
                match HOSTS.get() {
                    // SAFETY: the host's function of this name has this type.
                    Some(function) => unsafe {
                        std::mem::transmute::<*const std::ffi::c_void, Close>(function)(fh)
                    },
                    None => forward::refuse(NAME, id),
                }
            }
            Found::Closed => call::refuse_closed(NAME, id),
            Found::Ours(open) => call::on_file(NAME, &open, || {
                let host = call::host()?;
                let closed = close(host, &open);
                if let Found::Closed = files::find(id) {
                    // SAFETY: as above.
                    unsafe { fh.write(FileId(host.predefined().file_null.0)) };
                }
                closed
            }),
        }
    }

    "File_delete" fn file_delete(filename: *const c_char, info: Raw) -> c_int {
        // SAFETY: the program's promises are those of the standard.
        let path = unsafe { memory::path(filename) };
        let left_to_host = match (&path, policy::host_for_pario()) {
            (Ok(path), Some(_)) => policy::is_excluded(path),
            (_, None) => true,
            (Err(_), Some(_)) => false,
        };
        if left_to_host {
            static HOSTS: forward::HostFunction = forward::HostFunction::new(NAME);
            return match HOSTS.get() {
                // SAFETY: the host's function of this name has this type.
                Some(function) => unsafe {
                    std::mem::transmute::<*const std::ffi::c_void, Delete>(function)(filename, info)
                },
                None => forward::refuse(NAME, FileId(0)),
            };
        }
        call::on_no_file(NAME, || {
            let hints = info::read(call::host()?, info)?;
            Ok(File::delete(path?, &hints)?)
        })
    }
}

file_functions! {
    "File_set_size" fn set_size(fh, bytes: Offset) |open| {
        match memory::unsigned(bytes, "the size") {
            Ok(bytes) => Ok(open.file.set_size(bytes)?),
            Err(error) => Err(open.file.fail_collectively("set_size", error).into()),
        }
    }

    "File_preallocate" fn preallocate(fh, bytes: Offset) |open| {
        match memory::unsigned(bytes, "the size") {
            Ok(bytes) => Ok(open.file.preallocate(bytes)?),
            Err(error) => Err(open.file.fail_collectively("preallocate", error).into()),
        }
    }

    "File_get_size" fn get_size(fh, bytes: *mut Offset) |open| {
        let size = open.file.size()?;
        // SAFETY: the program's pointer is null or valid for an offset.
        unsafe { memory::put(bytes, Offset::try_from(size).unwrap_or(Offset::MAX), "the size") }
    }

    "File_get_group" fn get_group(fh, group: HandlePointer) |open| {
        let host = call::host()?;
        let ranks = host.group_copy(open.transport.group())?;
        // SAFETY: the program's pointer is null or valid for a handle.
        unsafe { memory::put_handle(host, group, ranks.0, "the group") }
    }

    "File_get_amode" fn get_amode(fh, amode: *mut c_int) |open| {
        // SAFETY: the program's pointer is null or valid for an integer.
        unsafe { memory::put(amode, open.amode, "the access mode") }
    }

    "File_set_info" fn set_info(fh, hints: Raw) |open| {
        let hints = info::read(call::host()?, hints)?;
        Ok(open.file.set_info(&hints)?)
    }

    "File_get_info" fn get_info(fh, used: HandlePointer) |open| {
        let host = call::host()?;
        let hints = info::write(host, &open.file.info())?;
        // SAFETY: the program's pointer is null or valid for a handle.
        unsafe { memory::put_handle(host, used, hints.0, "the info object") }
    }
}
