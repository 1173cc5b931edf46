//! The handles that the program holds: one reference for each that a function returned to it
//! and that it has not freed.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use pario_mpi::{Errhandler, Host};

use super::{Dispatch, Handler};

/// A handle that the program holds.
#[derive(Debug)]
struct Held {
    handler: Handler,
    references: usize,
}

static HELD: LazyLock<Mutex<HashMap<Errhandler, Held>>> = LazyLock::new(Mutex::default);

fn lock() -> MutexGuard<'static, HashMap<Errhandler, Held>> {
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Gives the program one more reference.
pub(crate) fn hold(host: &Host, handler: Handler) -> Errhandler {
    let handle = handler.handle(host);
    let mut held = lock();
    let entry = held.entry(handle).or_insert(Held {
        handler,
        references: 0,
    });
    entry.references += 1;
    handle
}

/// Gives the program one more reference to a handler that it holds already. `false` if it holds
/// no such handler.
pub(crate) fn hold_again(handle: Errhandler) -> bool {
    let mut held = lock();
    let entry = held.get_mut(&handle);
    match entry.filter(|held| matches!(held.handler, Handler::User(_))) {
        Some(held) => held.references += 1,
        None => return false,
    }
    true
}

/// Marks the function of a handler that the program holds as a C++ function.
pub(crate) fn call_by(handle: Errhandler, dispatch: Dispatch) {
    if let Some(Handler::User(user)) = find(handle) {
        user.call_by(dispatch);
    }
}

/// The handler of a handle that the program holds.
pub(super) fn find(handle: Errhandler) -> Option<Handler> {
    lock().get(&handle).map(|held| held.handler.clone())
}

/// Takes back a reference from the program. `false` if the handle belongs to the host.
pub(crate) fn release(handle: Errhandler) -> bool {
    let mut held = lock();
    let Some(entry) = held.get_mut(&handle) else {
        return false;
    };
    entry.references -= 1;
    if entry.references == 0 {
        let last = held.remove(&handle);
        // The host may be called to free it, which must not happen under the lock.
        drop(held);
        drop(last);
    }
    true
}
