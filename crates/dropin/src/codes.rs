//! pario's error codes: one per class, whose string is the last message of that class.
//!
//! `MPI_Add_error_code` makes them if the host implements it correctly. MPICH 4.0 does not for
//! the classes of the standard: codes that are added to them belong to another class and have
//! its string. There, a code has MPICH's own form, so that `MPI_Error_class` is right, and
//! `MPI_Error_string` returns the message because pario intercepts it.
//!
//! Open MPI's own functions return the class itself, and programs that were only ever run with
//! it compare codes with classes. So codes are the classes there as well, with strings that are
//! kept here. A program may mean the class when it asks for such a string, so it gets the
//! message only if the last file function that returned on its thread is the one that failed.

use std::cell::Cell;
use std::collections::HashMap;
use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use pario_mpi::{ErrorClass, Flavour, Host};

/// The bit of MPICH's codes that marks an error as fatal. If MPICH has no message for such a
/// code, the code has the class's string.
const MPICH_FATAL: c_int = 0x80;

/// The code of a class.
#[derive(Debug)]
enum Code {
    /// Made by the host, which keeps the string.
    Added(c_int),
    /// A code whose string is kept here.
    Kept(c_int, String),
    /// The class itself, with a string that is kept here.
    Class(c_int, String),
    /// The class itself: it cannot have a string.
    Bare,
}

thread_local! {
    /// The class in which the last file function on this thread failed.
    static FAILED: Cell<Option<ErrorClass>> = const { Cell::new(None) };
}

/// Whether a file function has failed on any thread. Most programs never see that, and every
/// call would look for memory of its thread.
static HAS_FAILED: AtomicBool = AtomicBool::new(false);

/// Called when a file function has succeeded on this thread.
#[inline]
pub(crate) fn forget_failure() {
    if HAS_FAILED.load(Ordering::Relaxed) {
        FAILED.set(None);
    }
}

static CODES: LazyLock<Mutex<HashMap<ErrorClass, Code>>> = LazyLock::new(Mutex::default);

fn lock() -> MutexGuard<'static, HashMap<ErrorClass, Code>> {
    CODES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The code of a class, with this message.
pub(crate) fn with_message(host: &Host, class: ErrorClass, message: &str) -> c_int {
    let bare = host.error_class(class);
    HAS_FAILED.store(true, Ordering::Relaxed);
    FAILED.set(Some(class));
    let mut codes = lock();
    match codes.entry(class).or_insert_with(|| make(host, bare)) {
        Code::Added(code) if host.add_error_string(*code, message).is_ok() => *code,
        Code::Kept(code, text) | Code::Class(code, text) => {
            message.clone_into(text);
            *code
        }
        Code::Added(_) | Code::Bare => bare,
    }
}

/// The message of a code whose string is kept here.
pub(crate) fn kept(code: c_int) -> Option<String> {
    // Most codes that programs ask about are not pario's.
    let codes = lock();
    codes.iter().find_map(|(class, known)| match known {
        Code::Kept(own, text) if *own == code => Some(text.clone()),
        Code::Class(own, text) if *own == code && FAILED.get() == Some(*class) => {
            Some(text.clone())
        }
        _ => None,
    })
}

/// The string of any code, as the program would see it.
pub(crate) fn text_of(host: &Host, code: c_int) -> String {
    kept(code).unwrap_or_else(|| host.error_string(code))
}

/// A code of the class, if the host reports its class and string correctly.
fn make(host: &Host, class: c_int) -> Code {
    if host.flavour() == Flavour::OpenMpi {
        return Code::Class(class, String::new());
    }
    if let Some(code) = added(host, class) {
        return Code::Added(code);
    }
    let own = class | MPICH_FATAL;
    match host.flavour() == Flavour::Mpich && own != class && host.class_number_of(own) == class {
        true => Code::Kept(own, String::new()),
        false => Code::Bare,
    }
}

fn added(host: &Host, class: c_int) -> Option<c_int> {
    const PROBE: &str = "pario";
    let code = host.add_error_code(class).ok()?;
    host.add_error_string(code, PROBE).ok()?;
    let faithful = host.class_number_of(code) == class && host.error_string(code).contains(PROBE);
    faithful.then_some(code)
}
