//! Exclusive use of a file.

use std::{fmt::Debug, ops::Range};

use crate::RangeLock;

/// Proof that nobody else uses a file: no one has it open except through the handle
/// that granted the lease, in this program or any other, and whoever opens it waits
/// until the lease is dropped.
pub trait Lease: Send + Debug {
    /// Whether the lease still excludes others and nobody waits for it to end. Those
    /// who wait are let in after some seconds, so the holder of a lease that is not
    /// intact gives up what it needs the lease for and drops it.
    fn is_intact(&self) -> bool;

    /// Waits until no other rank that writes under the same lease has locked the range, and
    /// locks it. `None` if there are no others, or if the lease is not
    /// [intact](Self::is_intact) any more. No other range may be locked.
    fn lock(&self, range: Range<u64>) -> Option<RangeLock> {
        let _ = range;
        None
    }
}

/// A handle whose file is closed so that another handle can have a [`Lease`] on it;
/// dropping it opens the file again. Calls on the handle wait until then.
pub trait Suspension: Debug {}
