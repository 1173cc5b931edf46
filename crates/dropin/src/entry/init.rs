//! Starting and ending the MPI.
//!
//! Both are passed on. Right after the start, pario registers with the MPI to be called at its
//! end ([`finalize`]); after the end, it closes files that are still open.
//!
//! The user may request a higher level of thread support than the program does: with
//! `MPI_THREAD_MULTIPLE`, pario's threads may call the MPI, so that nonblocking collective
//! operations between nodes progress whatever the program does. This is needed with MPIs that
//! offer no hook into their progress.
#![allow(unsafe_code)] // C functions

use std::env;
use std::ffi::{c_int, c_void};

use pario_mpi::{Host, Threads};

use super::next::{Next, passing_functions};
use crate::call::SUCCESS;
use crate::{company, finalize, notice, policy};

/// `multiple` raises the level of thread support.
const VARIABLE: &str = "PARIO_THREADS";
const MULTIPLE: &str = "multiple";

/// The number of `MPI_THREAD_MULTIPLE`, if the user requests it.
fn raised() -> Option<c_int> {
    let value = env::var(VARIABLE).ok()?;
    if value.trim().eq_ignore_ascii_case(MULTIPLE) {
        return Some(Threads::Multiple.number(Host::current().ok()?.flavour()));
    }
    notice::warn_locally(&format!(
        "{VARIABLE} is {value:?}: the only valid value is {MULTIPLE:?}"
    ));
    None
}

type InitThread = unsafe extern "C-unwind" fn(*mut c_int, *mut c_void, c_int, *mut c_int) -> c_int;

/// Calls the next `MPI_Init_thread`, so that tools see the call.
///
/// # Safety
/// The arguments are what `MPI_Init_thread` asks for.
unsafe fn init_thread_next(
    argc: *mut c_int,
    argv: *mut c_void,
    required: c_int,
    provided: *mut c_int,
) -> Option<c_int> {
    static NEXT: Next = Next::new("MPI_Init_thread");
    // SAFETY: the function of this name has this type.
    let function = unsafe { std::mem::transmute::<*const c_void, InitThread>(NEXT.get()?) };
    // SAFETY: promised by the caller.
    Some(unsafe { function(argc, argv, required, provided) })
}

/// Called when the program has started the MPI.
fn started(code: c_int) {
    if code != SUCCESS {
        return;
    }
    company::note_start();
    if let Some(host) = policy::host_for_pario() {
        company::announce();
        // If this fails, the first open tries it again and reports the error.
        let _ = finalize::prepare(host);
    }
}

passing_functions! {
    "Init" fn init(argc: *mut c_int, argv: *mut c_void)
    unless {
        let mut provided = 0;
        raised().and_then(|level| init_thread_next(argc, argv, level, &mut provided))
    }
    then |code| { started(code) }

    "Init_thread" fn init_thread(argc: *mut c_int, argv: *mut c_void, required: c_int, provided: *mut c_int)
    unless {
        raised().and_then(|level| init_thread_next(argc, argv, level, provided))
    }
    then |code| { started(code) }

    "Finalize" fn end()
    unless {
        finalize::begin();
        None
    }
    then |_code| { finalize::end() }
}
