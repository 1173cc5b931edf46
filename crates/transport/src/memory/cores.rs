//! How many cores the machine has.
//!
//! One of the files that may hold `unsafe`: libc is asked, because the standard
//! library tells what this process may use, and launchers bind each rank to a
//! core of its own.
#![allow(unsafe_code)]

use std::sync::OnceLock;

/// The cores that are online; one if that is unknown.
pub(crate) fn online() -> u32 {
    static CORES: OnceLock<u32> = OnceLock::new();
    *CORES.get_or_init(|| {
        // SAFETY: asks for a number, touches no memory of ours.
        let cores = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
        u32::try_from(cores).unwrap_or(1).max(1)
    })
}
