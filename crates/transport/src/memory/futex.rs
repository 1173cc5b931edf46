//! Sleeping on a word of memory that other threads or processes change.
#![allow(unsafe_code)] // the futex system call has no wrapper

use std::ptr;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

/// Sleeps until woken, until `bound` has passed, or not at all if the word is
/// not `expected`. May wake for no reason.
pub(crate) fn wait(word: &AtomicU32, expected: u32, bound: Duration) {
    let bound = libc::timespec {
        tv_sec: libc::time_t::try_from(bound.as_secs()).unwrap_or(libc::time_t::MAX),
        tv_nsec: libc::c_long::from(bound.subsec_nanos() as i32),
    };
    // SAFETY: the word and the bound outlive the call. Without
    // FUTEX_PRIVATE_FLAG the word is found by its page, so processes that map
    // it at different addresses meet.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT,
            expected,
            ptr::from_ref(&bound),
        );
    }
}

/// Wakes all who sleep on the word.
pub(crate) fn wake_all(word: &AtomicU32) {
    // SAFETY: the kernel uses the address of the word only as a key.
    unsafe {
        libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, i32::MAX);
    }
}
