//! What a mount guarantees to ranks on several nodes, from its options and the
//! settings of its client.

use std::os::fd::BorrowedFd;

use crate::{Coherence, FileSystem, LockReach, beegfs::ClientSettings, control::Control};

/// What a mount guarantees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Guarantees {
    /// Who sees a completed write.
    pub(super) coherence: Coherence,
    /// Whom range locks exclude.
    pub(super) locks: LockReach,
}

/// The guarantees of a mount with these options, for a file or directory on it.
pub(super) fn guarantees(
    file_system: &FileSystem,
    options: &str,
    file: BorrowedFd<'_>,
    control: &Control,
) -> Guarantees {
    match file_system {
        FileSystem::BeeGfs => {
            let ClientSettings { coherence, locks } = ClientSettings::find(control, file, options);
            Guarantees { coherence, locks }
        }
        _ => by_options(file_system, options),
    }
}

/// The guarantees of a mount with these options, unless they depend on the settings of its client.
pub(super) fn guarantees_by_options(file_system: &FileSystem, options: &str) -> Option<Guarantees> {
    (*file_system != FileSystem::BeeGfs).then(|| by_options(file_system, options))
}

fn by_options(file_system: &FileSystem, options: &str) -> Guarantees {
    Guarantees {
        coherence: file_system.coherence(),
        locks: reach(file_system, options),
    }
}

/// The reach of range locks. Options can restrict it to the node, or forbid locks;
/// without such an option it is what the file system normally offers.
fn reach(file_system: &FileSystem, options: &str) -> LockReach {
    let has = |name: &str| options.split(',').any(|option| option == name);
    match file_system {
        FileSystem::Nfs if has("nolock") || has("local_lock=all") || has("local_lock=posix") => {
            LockReach::Node
        }
        FileSystem::Lustre if has("noflock") => LockReach::Nowhere,
        FileSystem::Lustre if has("localflock") => LockReach::Node,
        // Passes locks to its own server process only, which is on this node.
        FileSystem::Fuse { subtype } if subtype == "sshfs" => LockReach::Node,
        FileSystem::Memory => LockReach::Node,
        _ => LockReach::Everywhere,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_restrict_locks() {
        let nfs = |options: &str| reach(&FileSystem::Nfs, options);
        assert_eq!(
            nfs("rw,vers=4.2,hard,local_lock=none"),
            LockReach::Everywhere
        );
        assert_eq!(nfs("rw,vers=3,nolock,local_lock=all"), LockReach::Node);
        assert_eq!(nfs("rw,vers=3,local_lock=posix"), LockReach::Node);
        // `flock` calls only; pario takes range locks.
        assert_eq!(nfs("rw,vers=3,local_lock=flock"), LockReach::Everywhere);
        let lustre = |options: &str| reach(&FileSystem::Lustre, options);
        assert_eq!(lustre("rw,flock,lazystatfs"), LockReach::Everywhere);
        assert_eq!(lustre("rw,localflock"), LockReach::Node);
        assert_eq!(lustre("rw,noflock"), LockReach::Nowhere);
        assert_eq!(reach(&FileSystem::Ext, "rw"), LockReach::Everywhere);
    }
}
