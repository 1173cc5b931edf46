//! Identity of files, independent of their names and of the node.

use std::{
    fs,
    hash::{DefaultHasher, Hash, Hasher},
    io,
    os::fd::{AsFd, BorrowedFd},
    path::Path,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

use crate::{Access, Facts, FileSystem, posix::sys};

/// A file as seen by one process, for comparison with what other processes see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileIdentity {
    /// Identifies the running kernel; 0 if unknown.
    kernel: u64,
    /// Device number of the mounted file system on this kernel.
    device: u64,
    inode: u64,
    /// Creation time, if the file system records it.
    born: i64,
    reach: Reach,
    /// Hash of the kind of file system and of its source: inode numbers of two
    /// servers are unrelated.
    kind: u64,
}

/// Where the files of a file system can be accessed from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
enum Reach {
    /// From one kernel only.
    Local = 0,
    /// From several kernels, with the same inode numbers.
    SameNumbers = 1,
    /// From several kernels, possibly with different inode numbers, or unknown.
    OwnNumbers = 2,
}

/// Result of comparing two identities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileComparison {
    /// The same file.
    Same,
    /// Different files.
    Different,
    /// Cannot be determined.
    Unknown,
}

const WORDS: usize = 6;

impl FileIdentity {
    /// Length of the wire form.
    pub const WIRE_BYTES: usize = 8 * WORDS;

    pub(crate) fn of(fd: BorrowedFd<'_>, facts: &Facts) -> io::Result<FileIdentity> {
        Self::with_source(fd, &facts.file_system, &facts.source)
    }

    fn with_source(
        fd: BorrowedFd<'_>,
        file_system: &FileSystem,
        source: &str,
    ) -> io::Result<FileIdentity> {
        let found = sys::identity(fd)?;
        Ok(FileIdentity {
            kernel: running_kernel(),
            device: found.device,
            inode: found.inode,
            born: found.born,
            reach: reach(file_system),
            kind: hash(&(file_system.to_string(), source)),
        })
    }

    /// A file of a cluster that clients in processes access without a mount.
    pub(crate) fn in_cluster(
        file_system: &FileSystem,
        cluster: &[u8],
        inode: u64,
        born: i64,
    ) -> FileIdentity {
        FileIdentity {
            kernel: running_kernel(),
            device: hash(&cluster),
            inode,
            born,
            reach: reach(file_system),
            kind: hash(&(file_system.to_string(), cluster)),
        }
    }

    /// The file that a path leads to, without opening it, for comparison with one
    /// that the same kernel sees through the same mount. Fails if this process
    /// may not open it for `access`.
    ///
    /// # Errors
    /// Those of `access(2)` and `stat(2)`.
    pub fn at(path: &Path, access: Access, file_system: &FileSystem) -> io::Result<FileIdentity> {
        sys::check_access(path, access)?;
        let file = sys::open(path, libc::O_PATH, 0)?;
        Self::with_source(file.as_fd(), file_system, "")
    }

    /// Whether two processes see the same file.
    #[must_use]
    pub fn compare(&self, other: &FileIdentity) -> FileComparison {
        // Not all clients of a server know the creation time.
        let same_birth = self.born == other.born || self.born == 0 || other.born == 0;
        let same_number = self.inode == other.inode && same_birth;
        let both = |reach| self.reach == reach && other.reach == reach;
        let same_kernel = self.kernel == other.kernel;
        match same_number {
            _ if self.kernel == 0 || other.kernel == 0 => FileComparison::Unknown,
            // Equal numbers on one kernel mean the same file.
            _ if same_kernel && self.device == other.device => match self.inode == other.inode {
                true => FileComparison::Same,
                false => FileComparison::Different,
            },
            _ if both(Reach::Local) => FileComparison::Different,
            true if both(Reach::SameNumbers) && self.kind == other.kind => FileComparison::Same,
            // For example a server's own disk and its clients' mounts, one server
            // under two names, or clients that truncate inode numbers.
            _ => FileComparison::Unknown,
        }
    }

    /// Serialises the identity for a message.
    #[must_use]
    pub fn to_wire(&self) -> [u8; Self::WIRE_BYTES] {
        let words: [u64; WORDS] = [
            self.kernel,
            self.device,
            self.inode,
            self.born as u64,
            self.reach as u64,
            self.kind,
        ];
        let mut wire = [0; Self::WIRE_BYTES];
        for (bytes, word) in wire.as_chunks_mut::<8>().0.iter_mut().zip(words) {
            *bytes = word.to_le_bytes();
        }
        wire
    }

    /// Deserialises an identity.
    #[must_use]
    pub fn from_wire(wire: &[u8]) -> Option<FileIdentity> {
        let (words, []) = wire.as_chunks::<8>() else {
            return None;
        };
        let words: [u64; WORDS] = words
            .iter()
            .map(|word| u64::from_le_bytes(*word))
            .collect::<Vec<_>>()
            .try_into()
            .ok()?;
        let [kernel, device, inode, born, reach, kind] = words;
        Some(FileIdentity {
            kernel,
            device,
            inode,
            born: born as i64,
            reach: match reach {
                0 => Reach::Local,
                1 => Reach::SameNumbers,
                _ => Reach::OwnNumbers,
            },
            kind,
        })
    }
}

fn reach(file_system: &FileSystem) -> Reach {
    use FileSystem::*;
    match file_system {
        Ext | Xfs | Btrfs | Zfs | F2fs | Tmpfs | Memory => Reach::Local,
        Lustre | Gpfs | Ceph | BeeGfs | PanFs | OrangeFs | Nfs | Gluster => Reach::SameNumbers,
        Smb | Fuse { .. } | HostShare | Overlay | Other(_) => Reach::OwnNumbers,
    }
}

/// Whether only one kernel can mount the file system at a time.
pub(crate) fn is_local(file_system: &FileSystem) -> bool {
    reach(file_system) == Reach::Local
}

/// Differs between machines and between boots; 0 if it cannot be determined
/// now.
pub(crate) fn running_kernel() -> u64 {
    static KERNEL: AtomicU64 = AtomicU64::new(0);
    // Failures are not cached: a descriptor may have been unavailable.
    if KERNEL.load(Relaxed) == 0
        && let Ok(id) = fs::read_to_string("/proc/sys/kernel/random/boot_id")
    {
        KERNEL.store(hash(&id).max(1), Relaxed);
    }
    KERNEL.load(Relaxed)
}

/// A hash that is the same in all processes of a program.
fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use FileComparison::{Different, Same, Unknown};

    fn seen(kernel: u64, device: u64, inode: u64, file_system: &FileSystem) -> FileIdentity {
        FileIdentity {
            kernel,
            device,
            inode,
            born: 0,
            reach: reach(file_system),
            kind: hash(&file_system.to_string()),
        }
    }

    #[test]
    fn one_kernel_identifies_files_by_device_and_inode() {
        let ext = FileSystem::Ext;
        let file = seen(1, 5, 7, &ext);
        assert_eq!(file.compare(&seen(1, 5, 7, &ext)), Same);
        assert_eq!(file.compare(&seen(1, 5, 8, &ext)), Different);
        // Two tmpfs mounts with one name in two containers.
        assert_eq!(file.compare(&seen(1, 6, 7, &ext)), Different);
    }

    #[test]
    fn local_files_on_two_nodes_differ() {
        let file = seen(1, 5, 7, &FileSystem::Xfs);
        assert_eq!(file.compare(&seen(2, 5, 7, &FileSystem::Xfs)), Different);
    }

    #[test]
    fn a_file_mounted_twice_is_the_same_though_devices_differ() {
        for file_system in [FileSystem::Nfs, FileSystem::Lustre] {
            let file = seen(1, 5, 7, &file_system);
            assert_eq!(file.compare(&seen(1, 6, 7, &file_system)), Same);
            assert_eq!(file.compare(&seen(2, 9, 7, &file_system)), Same);
            assert_eq!(file.compare(&seen(2, 9, 8, &file_system)), Unknown);
            let born = |born| FileIdentity { born, ..file };
            let elsewhere = |born| FileIdentity {
                born,
                kernel: 2,
                ..file
            };
            assert_eq!(born(5).compare(&elsewhere(5)), Same);
            assert_eq!(
                born(5).compare(&elsewhere(0)),
                Same,
                "not all clients know the creation time"
            );
            assert_eq!(born(5).compare(&elsewhere(3)), Unknown);
        }
    }

    #[test]
    fn ambiguous_numbers_compare_as_unknown() {
        let fuse = FileSystem::Fuse {
            subtype: "sshfs".into(),
        };
        assert_eq!(seen(1, 5, 7, &fuse).compare(&seen(1, 6, 7, &fuse)), Unknown);
        assert_eq!(seen(1, 5, 7, &fuse).compare(&seen(2, 5, 9, &fuse)), Unknown);
        // One process does not know which kernel it runs on.
        let ext = FileSystem::Ext;
        assert_eq!(seen(0, 5, 7, &ext).compare(&seen(1, 5, 7, &ext)), Unknown);
        let nfs = seen(1, 5, 7, &FileSystem::Nfs);
        let other_server = FileIdentity {
            kernel: 2,
            kind: 0,
            ..nfs
        };
        assert_eq!(nfs.compare(&other_server), Unknown);
        let (server, client) = (
            seen(1, 5, 7, &FileSystem::Ext),
            seen(2, 6, 7, &FileSystem::Nfs),
        );
        assert_eq!(server.compare(&client), Unknown);
    }

    #[test]
    fn the_wire_form_round_trips() {
        let file = FileIdentity {
            born: -5,
            ..seen(u64::MAX, 2, 3, &FileSystem::Overlay)
        };
        assert_eq!(FileIdentity::from_wire(&file.to_wire()), Some(file));
        assert_eq!(FileIdentity::from_wire(&file.to_wire()[1..]), None);
    }
}
