//! Properties of drivers and of file systems.

use std::{fmt, path::PathBuf};

use pario_types::{Client, Coherence, Direction, LockProtocol, Placement, Striping};

use crate::Latency;

/// What a driver supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Processes that open the same name see the same file.
    pub between_processes: bool,
    /// Range locks exclude everyone who can open the file.
    pub locks: bool,
    /// `sync` puts data on storage that survives a crash of the machine, as far as
    /// the file system has any.
    pub durable: bool,
    /// How background transfers are carried out.
    pub background: Background,
}

impl Capabilities {
    /// Capabilities of drivers for mounted file systems.
    pub(crate) const OF_THE_KERNEL: Capabilities = Capabilities {
        between_processes: true,
        locks: true,
        durable: true,
        background: Background::Kernel,
    };
}

/// How background transfers are carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Background {
    /// By the kernel (io_uring), or by threads if io_uring is not allowed.
    Kernel,
    /// By threads of this process.
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

/// Whom range locks exclude. The order is from the most to the least.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum LockReach {
    /// Everyone who can open the file.
    Everywhere = 0,
    /// Processes of the same node.
    Node = 1,
    /// Nobody: locks are refused.
    Nowhere = 2,
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
    /// Container overlays over another file system.
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
    /// A directory shared by the host of a virtual machine or container (9p,
    /// virtiofs).
    HostShare,
    /// Files in the memory of this process.
    Memory,
    /// Any other, by type name or magic number.
    Other(String),
}

impl FileSystem {
    /// Whether stores to a mapping are safe: no other node caches the file's
    /// pages, and a page prepared for a store has its storage allocated. ZFS
    /// allocates only when it writes the page, and Btrfs reallocates each time.
    pub fn keeps_stores(&self) -> bool {
        use FileSystem::*;
        matches!(self, Ext | Xfs | F2fs | Tmpfs)
    }

    /// Whether the kernel can store to a mapping for a program: no other node
    /// caches the file's pages, and a page for which there is no storage is
    /// refused when it is stored to.
    pub fn refuses_stores(&self) -> bool {
        self.keeps_stores() || *self == FileSystem::Btrfs
    }

    /// Whether a lease on a file excludes everyone else: the kernel of this node counts who has
    /// the file open, and no other node can have.
    pub fn grants_leases(&self) -> bool {
        use FileSystem::*;
        matches!(self, Ext | Xfs | Btrfs | F2fs | Tmpfs)
    }

    /// Whether small pieces are better written by rewriting the range that they are in, under a lock: every call is
    /// a request to a server, and locks exclude writers on every node.
    pub fn rewrites_under_locks(&self) -> bool {
        match self {
            FileSystem::Gluster => true,
            FileSystem::Fuse { subtype } => subtype == "ceph-fuse",
            _ => false,
        }
    }

    /// Whether io_uring moves the right bytes. After a short count on a regular file, the kernel continues the request
    /// by itself. If a FUSE server lets a file bypass the page cache and does not do so asynchronously, Linux (seen on
    /// 6.18) continues at the offset at which the request began: a read across the end of the file returns the last
    /// bytes again and again, as ceph-fuse's log shows. Programs cannot query what the server of a file does.
    pub fn continues_ring_requests(&self) -> bool {
        use FileSystem::*;
        !matches!(self, Gluster | Fuse { .. } | HostShare)
    }

    /// Whether a read beyond the size that this node knows needs the server's first. After another node has extended the
    /// file, CephFS's client in the kernel (seen with 6.1) returns a negative number for it: the known size minus the
    /// offset, which may look like any error.
    pub fn has_late_sizes(&self) -> bool {
        *self == FileSystem::Ceph
    }

    /// The file system that is displayed as `name`.
    #[must_use]
    pub fn named(name: &str) -> FileSystem {
        use FileSystem::*;
        match name {
            "ext" => Ext,
            "xfs" => Xfs,
            "btrfs" => Btrfs,
            "zfs" => Zfs,
            "f2fs" => F2fs,
            "tmpfs" => Tmpfs,
            "overlay" => Overlay,
            "nfs" => Nfs,
            "smb" => Smb,
            "lustre" => Lustre,
            "gpfs" => Gpfs,
            "ceph" => Ceph,
            "beegfs" => BeeGfs,
            "panfs" => PanFs,
            "orangefs" => OrangeFs,
            "glusterfs" => Gluster,
            "host share" => HostShare,
            "memory" => Memory,
            other => match other
                .strip_prefix("fuse")
                .map(|rest| rest.strip_prefix('.'))
            {
                Some(Some(subtype)) => Fuse {
                    subtype: subtype.to_owned(),
                },
                Some(None) if other == "fuse" => Fuse {
                    subtype: String::new(),
                },
                _ => Other(other.to_owned()),
            },
        }
    }

    /// Whether it is made for many nodes that access a file at the same time, so
    /// that every open is a request to a server.
    pub fn is_parallel(&self) -> bool {
        use FileSystem::*;
        matches!(self, Lustre | Gpfs | Ceph | BeeGfs | PanFs | OrangeFs)
    }

    /// Whether files are striped over servers.
    pub fn stripes_files(&self) -> bool {
        use FileSystem::*;
        matches!(self, Lustre | BeeGfs | PanFs | OrangeFs) || self.is_ceph()
    }

    /// Whether it is CephFS, by the kernel's client or by FUSE.
    pub fn is_ceph(&self) -> bool {
        match self {
            FileSystem::Ceph => true,
            FileSystem::Fuse { subtype } => subtype == "ceph-fuse",
            _ => false,
        }
    }

    /// Whether pario can set the striping of a new file.
    pub fn sets_stripes(&self) -> bool {
        matches!(self, FileSystem::Lustre | FileSystem::BeeGfs) || self.is_ceph()
    }

    /// Latency of short buffered transfers. On a local file system, a write
    /// normally goes to the page cache; the exceptions are a kernel that throttles
    /// writers because of too many dirty pages, and a partial page that has to be
    /// read first. A read may or may not hit the cache, which the kernel can
    /// report. Clients of servers may contact the server first, in both
    /// directions.
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

    /// Where the client runs. File systems that are not known may have servers.
    pub fn client(&self) -> Client {
        use FileSystem::*;
        match self {
            Ext | Xfs | Btrfs | Zfs | F2fs | Tmpfs | Overlay | Memory => Client::Local,
            _ => Client::Kernel,
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

    /// Who sees a completed write without further steps, whatever the mount's
    /// options.
    ///
    /// Local file systems count as coherent everywhere, since no other node can
    /// mount them at the same time.
    pub fn coherence(&self) -> Coherence {
        use FileSystem::*;
        match self {
            Ext | Xfs | Btrfs | Zfs | F2fs | Tmpfs => Coherence::Everywhere,
            Lustre | Gpfs | Ceph => Coherence::Everywhere,
            // BeeGFS's clients have caches of their own unless they are switched off: see
            // `beegfs::ClientSettings`.
            Nfs | Smb | BeeGfs | HostShare | Memory => Coherence::WithinNode,
            // OrangeFS's client keeps what was written in the page cache since Linux 5.2.
            PanFs | OrangeFs => Coherence::Unknown,
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

/// Facts about the file system of an open file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Kind of file system.
    pub file_system: FileSystem,
    /// Mount point, if the mount table has it.
    pub mount_point: Option<PathBuf>,
    /// Preferred transfer size in bytes.
    pub block_size: u64,
    /// Alignment of direct transfers in file and memory; `None` without direct
    /// I/O.
    pub direct_alignment: Option<u64>,
    /// Striping over servers, if known: that of the longest component.
    pub striping: Option<Striping>,
    /// Which servers hold which bytes, if known.
    pub placement: Option<Placement>,
    /// Granularity of the file system's own lock protocol in bytes, if known:
    /// concurrent writers to the same unit are serialised.
    pub lock_granularity: Option<u64>,
    /// Who sees a completed write without further steps.
    pub coherence: Coherence,
    /// Where the client runs.
    pub client: Client,
    /// The device or server in the mount table; empty if unknown.
    pub source: String,
    /// Whom range locks exclude, according to the mount's options.
    pub locks: LockReach,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back_to_file_systems() {
        use FileSystem::*;
        let fuse = |subtype: &str| Fuse {
            subtype: subtype.to_owned(),
        };
        let plain = [
            Ext, Xfs, Btrfs, Zfs, F2fs, Tmpfs, Overlay, Nfs, Smb, Lustre, Gpfs, Ceph, BeeGfs,
            PanFs, OrangeFs, Gluster, HostShare, Memory,
        ];
        let others = [fuse(""), fuse("sshfs"), Other("fuseblk".into())];
        for file_system in plain.into_iter().chain(others) {
            assert_eq!(FileSystem::named(&file_system.to_string()), file_system);
        }
    }
}
