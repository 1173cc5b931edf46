//! Which threads may call the MPI.
//!
//! With `MPI_THREAD_MULTIPLE` all may. Below that, a thread may only while the
//! program has called into an MPI function on it: the program has promised that
//! no other thread is inside the MPI then. Threads of pario's own never are,
//! so they leave messages for others to carry.

use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, Ordering};

thread_local! {
    /// How many calls of the program this thread is inside of.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// Whether the MPI has ended.
static ENDED: AtomicBool = AtomicBool::new(false);

/// Notes that the MPI has ended: nobody calls it any more.
pub fn end() {
    ENDED.store(true, Ordering::Release);
}

/// As long as this lives, its thread may call the MPI.
#[derive(Debug)]
pub struct InsideCall {
    /// Bound to its thread.
    _not_send: PhantomData<*const ()>,
}

impl InsideCall {
    /// Notes that the program has called an MPI function on this thread.
    #[must_use]
    pub fn enter() -> Self {
        DEPTH.with(|depth| depth.set(depth.get() + 1));
        InsideCall {
            _not_send: PhantomData,
        }
    }
}

impl Drop for InsideCall {
    fn drop(&mut self) {
        DEPTH.with(|depth| depth.set(depth.get() - 1));
    }
}

/// Which threads of a process may call its MPI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Callers {
    /// Every thread: the MPI was initialised with `MPI_THREAD_MULTIPLE`.
    All,
    /// Threads that are [inside a call](InsideCall).
    Inside,
}

impl Callers {
    /// Whether the calling thread is one of them.
    pub(super) fn include_me(self) -> bool {
        (self == Callers::All || DEPTH.with(Cell::get) > 0) && !ENDED.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_may_call_only_while_it_is_inside() {
        assert!(!Callers::Inside.include_me());
        assert!(Callers::All.include_me());
        let outer = InsideCall::enter();
        let inner = InsideCall::enter();
        drop(outer);
        assert!(Callers::Inside.include_me());
        let elsewhere = std::thread::spawn(|| Callers::Inside.include_me());
        assert!(!elsewhere.join().unwrap());
        drop(inner);
        assert!(!Callers::Inside.include_me());
    }
}
