//! The start and the end of the MPI.
//!
//! Both are passed on. Right after the start, pario asks the MPI to be told of
//! the end ([`finalize`]); when the end is over, it closes what is still open.
//!
//! The user may want a higher level of thread support than the program asks
//! for: with `MPI_THREAD_MULTIPLE` pario's own threads may call the MPI, so that
//! nonblocking collective operations between nodes go on whatever the program
//! does. MPIs that do not call others when they make progress need that.
#![allow(unsafe_code)] // C functions

use std::env;
use std::ffi::{c_int, c_void};

use pario_mpi::{Host, Threads};

use super::next::{Next, passing_functions};
use crate::call::SUCCESS;
use crate::{finalize, notice, policy};

/// `multiple` raises the level of thread support.
const VARIABLE: &str = "PARIO_THREADS";
const MULTIPLE: &str = "multiple";

/// The number of `MPI_THREAD_MULTIPLE`, if the user wants it.
fn raised() -> Option<c_int> {
    let value = env::var(VARIABLE).ok()?;
    if value.trim().eq_ignore_ascii_case(MULTIPLE) {
        return Some(Threads::Multiple.number(Host::current().ok()?.flavour()));
    }
    notice::warn_locally(&format!(
        "{VARIABLE} is {value:?}: the only value it can have is {MULTIPLE:?}"
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

/// The program has started the MPI.
fn started(code: c_int) {
    if code != SUCCESS {
        return;
    }
    if let Some(host) = policy::host_for_pario() {
        // What fails here is tried again by the first open, which tells.
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
