//! Finds the MPI library of this process and its flavour.

#![allow(unsafe_code)] // Calls the few functions that tell what a library is.

use std::ffi::{CStr, c_char, c_int};
use std::mem;

use super::abi::Flavour;
use super::loader::{Library, objects};
use crate::error::HostError;

/// A function that this library never exports, so that the library that defines it is the host.
const WITNESS: &str = "PMPI_Comm_dup";

/// Symbols or words that only MPICH and its derivatives have.
const MPICH_SYMBOLS: &[&str] = &["MPIR_Err_create_code", "MPIR_Assert_fail"];
const MPICH_WORDS: &[&str] = &["mpich", "intel(r) mpi", "mvapich", "parastation"];

/// The size of the longest version text of any host.
const VERSION_BYTES: usize = 8192 + 1;

/// The MPI library of this process.
///
/// Examines every loaded object instead of following the search order of symbols: interpreters
/// load MPI so that only their own modules see it. If several are loaded, the one that is
/// initialised belongs to the program.
pub(super) fn find() -> Result<Library, HostError> {
    let mut candidates: Vec<Library> = objects()
        .iter()
        .filter_map(|object| {
            let library = Library::loaded(&object.path)?;
            let witness = library.symbol(WITNESS)?;
            object.contains(witness.addr()).then_some(library)
        })
        .collect();
    if candidates.is_empty() {
        return Err(HostError::NoMpi);
    }
    let chosen = match candidates.len() {
        1 => 0,
        _ => candidates.iter().position(is_initialized).unwrap_or(0),
    };
    Ok(candidates.swap_remove(chosen))
}

/// The flavour of a library.
pub(super) fn classify(library: &Library) -> Result<Flavour, HostError> {
    if standard_abi_major(library).is_some_and(|major| major >= 1) {
        return Ok(Flavour::Standard);
    }
    if library.symbol("ompi_mpi_comm_world").is_some() {
        return Ok(Flavour::OpenMpi);
    }
    let version = version(library);
    let words = version.to_lowercase();
    if MPICH_SYMBOLS
        .iter()
        .any(|symbol| library.symbol(symbol).is_some())
        || MPICH_WORDS.iter().any(|word| words.contains(word))
    {
        return Ok(Flavour::Mpich);
    }
    Err(HostError::UnknownAbi {
        path: library.path().to_owned(),
        version,
    })
}

/// The library's version text; empty if it has none.
pub(super) fn version(library: &Library) -> String {
    let Some(address) = library.function("Get_library_version") else {
        return String::new();
    };
    // SAFETY: MPI-3's signature; allowed before initialisation.
    let get: unsafe extern "C" fn(*mut c_char, *mut c_int) -> c_int =
        unsafe { mem::transmute(address) };
    let mut text = [0_u8; VERSION_BYTES];
    let mut len = 0;
    // SAFETY: the buffer is longer than any host's limit and stays terminated.
    let code = unsafe { get(text.as_mut_ptr().cast(), &mut len) };
    match CStr::from_bytes_until_nul(&text) {
        Ok(text) if code == 0 => text.to_string_lossy().trim().to_owned(),
        _ => String::new(),
    }
}

/// The major version of the standard ABI: libraries that export the function without supporting
/// that ABI return -1.
fn standard_abi_major(library: &Library) -> Option<c_int> {
    let address = library.function("Abi_get_version")?;
    // SAFETY: MPI-5's signature; allowed before initialisation.
    let get: unsafe extern "C" fn(*mut c_int, *mut c_int) -> c_int =
        unsafe { mem::transmute(address) };
    let (mut major, mut minor) = (-1, -1);
    // SAFETY: both pointers are valid for writes.
    let code = unsafe { get(&mut major, &mut minor) };
    (code == 0).then_some(major)
}

fn is_initialized(library: &Library) -> bool {
    let Some(address) = library.function("Initialized") else {
        return false;
    };
    // SAFETY: the signature on every host; allowed before initialisation.
    let initialized: unsafe extern "C" fn(*mut c_int) -> c_int = unsafe { mem::transmute(address) };
    let mut flag = 0;
    // SAFETY: the pointer is valid for writes.
    let code = unsafe { initialized(&mut flag) };
    code == 0 && flag != 0
}
