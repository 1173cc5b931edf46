//! What is known about a driver and about a file's file system, as data.

use std::{fmt, path::PathBuf};

use pario_types::{Client, Coherence, Direction, LockProtocol, Striping};

use crate::Latency;

/// What a driver can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Processes that open the same name see the same file.
    pub between_processes: bool,
    /// Range locks exclude everyone who can open the file.
    pub locks: bool,
    /// `sync` puts data on storage that survives a crash of the machine, as
    /// far as the file system has any.
    pub durable: bool,
    /// What carries background transfers.
    pub background: Background,
}

impl Capabilities {
    /// Of drivers for files that the kernel mounts.
    pub(crate) const OF_THE_KERNEL: Capabilities = Capabilities {
        between_processes: true,
        locks: true,
        durable: true,
        background: Background::Kernel,
    };
}

/// What carries background transfers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Background {
    /// The kernel (io_uring), or threads where it does not allow that.
    Kernel,
    /// Threads of this process.
    Threads,
}

/// How many processes of a node can write one file at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Writers {
    /// One: the others wait in the kernel.
    One,
    /// Several.
    Many,
}

/// A kind of file system.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum FileSystem {
    /// ext2, ext3, ext4.
    Ext,
    /// XFS.
    Xfs,
    /// Btrfs.
    Btrfs,
    /// ZFS.
    Zfs,
    /// F2FS.
    F2fs,
    /// tmpfs, ramfs and hugetlbfs.
    Tmpfs,
    /// Overlays of containers, over some other file system.
    Overlay,
    /// NFS, any version.
    Nfs,
    /// SMB and CIFS.
    Smb,
    /// Lustre.
    Lustre,
    /// IBM Storage Scale (GPFS).
    Gpfs,
    /// CephFS through the kernel's client.
    Ceph,
    /// BeeGFS.
    BeeGfs,
    /// Panasas PanFS.
    PanFs,
    /// OrangeFS and PVFS2.
    OrangeFs,
    /// GlusterFS through FUSE.
    Gluster,
    /// Another FUSE file system.
    Fuse {
        /// What follows `fuse.` in the mount table, or nothing.
        subtype: String,
    },
    /// A virtual machine's or container's shared folder (9p, virtiofs).
    HostShare,
    /// Files of this process's memory.
    Memory,
    /// Another one, by the name or the magic number the kernel gives it.
    Other(String),
}

impl FileSystem {
    /// Whether stores in a mapping are safe and certain: no other node has the
    /// file's pages, and a page that was made ready for a store has its place on
    /// the storage from then on. ZFS gives it none until it writes the page, Btrfs
    /// a new one each time.
    pub fn keeps_stores(&self) -> bool {
        use FileSystem::*;
        matches!(self, Ext | Xfs | F2fs | Tmpfs)
    }

    /// Whether files are striped over servers as their creator asks.
    pub fn stripes_files(&self) -> bool {
        use FileSystem::*;
        matches!(self, Lustre | BeeGfs | PanFs | OrangeFs | Ceph)
    }

    /// How short buffered transfers go. A write of a local file system goes to
    /// the page cache and storage sees it later; the kernel may hold a writer
    /// back where too much has not been written yet, or read the rest of a page
    /// first, which are the exceptions. A read finds its data in the cache or
    /// not, which the kernel tells if asked. Clients of servers may ask the
    /// server first, in both directions.
    pub fn latency(&self, direction: Direction) -> Latency {
        use FileSystem::*;
        match (self, direction) {
            (Tmpfs | Memory, _) => Latency::Memory,
            // The writable layer of an overlay is always a local file system.
            (Ext | Xfs | Btrfs | F2fs | Overlay, Direction::Write) => Latency::Memory,
            (Ext | Xfs | Btrfs | F2fs | Overlay, Direction::Read) => Latency::WhereCached,
            _ => Latency::Unknown,
        }
    }

    /// How it keeps writers of different nodes apart.
    pub fn lock_protocol(&self) -> LockProtocol {
        match self {
            FileSystem::Lustre => LockProtocol::Server,
            FileSystem::Gpfs => LockProtocol::Token,
            _ => LockProtocol::None,
        }
    }

    /// How many processes of a node can write one file at the same time. The
    /// kernel's own file systems hold the inode's lock during a buffered write.
    pub fn writers(&self) -> Writers {
        use FileSystem::*;
        match self {
            Ext | Xfs | Btrfs | Zfs | F2fs | Tmpfs | Overlay => Writers::One,
            _ => Writers::Many,
        }
    }

    /// Who sees a completed write without further steps.
    ///
    /// Local file systems count as coherent everywhere: there is no other
    /// node that could mount them at the same time.
    pub fn coherence(&self) -> Coherence {
        use FileSystem::*;
        match self {
            Ext | Xfs | Btrfs | Zfs | F2fs | Tmpfs => Coherence::Everywhere,
            Lustre | Gpfs | Ceph | BeeGfs | PanFs | OrangeFs => Coherence::Everywhere,
            Nfs | Smb | HostShare | Memory => Coherence::WithinNode,
            Gluster | Fuse { .. } | Overlay | Other(_) => Coherence::Unknown,
        }
    }
}

impl fmt::Display for FileSystem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use FileSystem::*;
        f.write_str(match self {
            Ext => "ext",
            Xfs => "xfs",
            Btrfs => "btrfs",
            Zfs => "zfs",
            F2fs => "f2fs",
            Tmpfs => "tmpfs",
            Overlay => "overlay",
            Nfs => "nfs",
            Smb => "smb",
            Lustre => "lustre",
            Gpfs => "gpfs",
            Ceph => "ceph",
            BeeGfs => "beegfs",
            PanFs => "panfs",
            OrangeFs => "orangefs",
            Gluster => "glusterfs",
            Fuse { subtype } if subtype.is_empty() => "fuse",
            Fuse { subtype } => return write!(f, "fuse.{subtype}"),
            HostShare => "host share",
            Memory => "memory",
            Other(name) => name,
        })
    }
}

/// What is known about the file system of an open file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Its kind.
    pub file_system: FileSystem,
    /// Where it is mounted, if the mount table says so.
    pub mount_point: Option<PathBuf>,
    /// Preferred transfer size.
    pub block_size: u64,
    /// Alignment of direct transfers in file and memory; `None` without
    /// direct I/O.
    pub direct_alignment: Option<u64>,
    /// Striping over servers, if known.
    pub striping: Option<Striping>,
    /// Bytes that one lock of the file system's own protocol covers at least,
    /// if known: writers in the same unit take turns.
    pub lock_granularity: Option<u64>,
    /// Who sees a completed write without further steps.
    pub coherence: Coherence,
    /// Where the client runs.
    pub client: Client,
}
