//! Communicators and groups of the host that are no longer used.
//!
//! The last user of one may be a thread that must not call the MPI. So they are
//! put here, and freed by the next file call of the program.

use std::sync::{Mutex, PoisonError};

use crate::{Comm, Group, Host};

/// A group that is freed when nobody needs it any more.
#[derive(Debug)]
pub(super) struct OwnedGroup(pub(super) Group);

impl Drop for OwnedGroup {
    fn drop(&mut self) {
        let mut retired = RETIRED.lock().unwrap_or_else(PoisonError::into_inner);
        retired.groups.push(self.0);
    }
}

#[derive(Debug)]
struct Retired {
    comms: Vec<Comm>,
    groups: Vec<Group>,
}

static RETIRED: Mutex<Retired> = Mutex::new(Retired {
    comms: Vec::new(),
    groups: Vec::new(),
});

pub(super) fn comm(comm: Comm) {
    let mut retired = RETIRED.lock().unwrap_or_else(PoisonError::into_inner);
    retired.comms.push(comm);
}

/// Frees what has been retired. The caller may call the MPI.
///
/// Freeing a communicator is collective by the letter of the standard, which
/// adds that it is expected to be local, as it is in all MPIs we know: ranks
/// get here in an order of their own.
pub(super) fn free(host: &Host) {
    let (comms, groups) = {
        let mut retired = RETIRED.lock().unwrap_or_else(PoisonError::into_inner);
        if retired.comms.is_empty() && retired.groups.is_empty() {
            return;
        }
        (
            std::mem::take(&mut retired.comms),
            std::mem::take(&mut retired.groups),
        )
    };
    // There is nobody to tell of a handle that cannot be freed.
    for comm in comms {
        let _ = host.comm_free(comm);
    }
    for group in groups {
        let _ = host.group_free(group);
    }
}
