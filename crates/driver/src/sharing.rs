//! Whether processes that see a file through several page caches see the same
//! bytes, and what it takes if they do not.

use crate::{
    Coherence, FileSystem, LockReach,
    identity::{is_local, running_kernel},
};

/// How one process sees the file system of a file, for comparison with what
/// other processes see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MountView {
    /// Identifies the running kernel; 0 if unknown.
    kernel: u64,
    /// Device number of the mounted file system on this kernel. Together with the
    /// kernel it identifies a page cache: bind mounts share it, two mounts of one
    /// server need not.
    device: u64,
    locks: LockReach,
    trait_of_mount: Trait,
    /// The kind of file system.
    kind: String,
    /// The device or server.
    source: String,
}

/// What matters about a mount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Trait {
    /// Only one kernel can mount it at a time.
    Local = 0,
    /// Coherent between nodes.
    Coherent = 1,
    /// NFS, for which there is a protocol.
    Nfs = 2,
    /// Anything else.
    Unknown = 3,
}

/// How the processes of a file share it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// Through one page cache.
    OneCache,
    /// Through several that the file system keeps coherent.
    Coherent,
    /// Through several NFS clients: the driver [`Nfs`](crate::Nfs) must be used.
    Nfs,
    /// Through several caches that are not known to be coherent. The reason is a
    /// clause such as "it is on fuse.sshfs, …".
    Incoherent(String),
}

impl MountView {
    pub(crate) fn new(
        device: u64,
        file_system: &FileSystem,
        coherence: Coherence,
        locks: LockReach,
        source: String,
    ) -> MountView {
        MountView {
            kernel: running_kernel(),
            device,
            locks,
            trait_of_mount: match file_system {
                FileSystem::Nfs => Trait::Nfs,
                kind if is_local(kind) => Trait::Local,
                _ if coherence == Coherence::Everywhere => Trait::Coherent,
                _ => Trait::Unknown,
            },
            kind: file_system.to_string(),
            source,
        }
    }

    /// Whom range locks exclude.
    pub fn locks(&self) -> LockReach {
        self.locks
    }

    /// Whether the file system needs a closer look if it is seen through several
    /// caches.
    pub fn is_coherent(&self) -> bool {
        matches!(self.trait_of_mount, Trait::Local | Trait::Coherent)
    }

    fn shares_cache(&self, other: &MountView) -> bool {
        self.kernel != 0 && (self.kernel, self.device) == (other.kernel, other.device)
    }

    /// Serialises the view for a message.
    #[must_use]
    pub fn to_wire(&self) -> Vec<u8> {
        let kind_len = u8::try_from(self.kind.len()).unwrap_or(u8::MAX);
        let mut wire = vec![self.locks as u8, self.trait_of_mount as u8, kind_len];
        wire.extend(self.kernel.to_le_bytes());
        wire.extend(self.device.to_le_bytes());
        wire.extend(&self.kind.as_bytes()[..kind_len.into()]);
        wire.extend(self.source.as_bytes());
        wire
    }

    /// Deserialises a view.
    #[must_use]
    pub fn from_wire(wire: &[u8]) -> Option<MountView> {
        let (&[locks, trait_of_mount, kind_len], rest) = wire.split_first_chunk()?;
        let (kernel, rest) = rest.split_first_chunk()?;
        let (device, rest) = rest.split_first_chunk()?;
        let (kind, source) = rest.split_at_checked(kind_len.into())?;
        Some(MountView {
            kernel: u64::from_le_bytes(*kernel),
            device: u64::from_le_bytes(*device),
            locks: match locks {
                0 => LockReach::Everywhere,
                1 => LockReach::Node,
                _ => LockReach::Nowhere,
            },
            trait_of_mount: match trait_of_mount {
                0 => Trait::Local,
                1 => Trait::Coherent,
                2 => Trait::Nfs,
                _ => Trait::Unknown,
            },
            kind: String::from_utf8_lossy(kind).into_owned(),
            source: String::from_utf8_lossy(source).into_owned(),
        })
    }
}

impl Sharing {
    /// How processes with these views share a file. The strictest view counts,
    /// and views that differ in kind or source are not coherent: one process may
    /// be on the server itself.
    pub fn of(views: &[MountView]) -> Sharing {
        let Some((first, others)) = views.split_first() else {
            return Sharing::OneCache;
        };
        if others.iter().all(|other| first.shares_cache(other)) {
            return Sharing::OneCache;
        }
        let all = |kind| views.iter().all(|view| view.trait_of_mount == kind);
        // Several local file systems are different files, which opening notices.
        if all(Trait::Local) {
            return Sharing::Coherent;
        }
        if let Some(other) = others.iter().find(|other| other.kind != first.kind) {
            return Sharing::Incoherent(format!(
                "some ranks see it on {}, others on {}",
                first.kind, other.kind
            ));
        }
        if all(Trait::Nfs) {
            return Sharing::Nfs;
        }
        if let Some(other) = others.iter().find(|other| other.source != first.source) {
            return Sharing::Incoherent(format!(
                "some ranks see it on {} mounted from {:?}, others from {:?}",
                first.kind, first.source, other.source
            ));
        }
        match all(Trait::Coherent) {
            true => Sharing::Coherent,
            false => Sharing::Incoherent(format!(
                "it is on {}, which the ranks see through several caches that are not known to be \
                 coherent{}",
                first.kind,
                remedy(&first.kind)
            )),
        }
    }
}

/// What makes a kind of file system coherent, if that is a setting.
fn remedy(kind: &str) -> &'static str {
    match FileSystem::named(kind) {
        FileSystem::BeeGfs => " (they are with tuneFileCacheType=none in the client's settings)",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(kernel: u64, device: u64, kind: FileSystem, source: &str) -> MountView {
        let (coherence, locks) = (kind.coherence(), LockReach::Everywhere);
        MountView {
            kernel,
            ..MountView::new(device, &kind, coherence, locks, source.to_owned())
        }
    }

    fn sshfs() -> FileSystem {
        FileSystem::Fuse {
            subtype: "sshfs".into(),
        }
    }

    #[test]
    fn one_superblock_is_one_cache_whatever_the_file_system() {
        for kind in [FileSystem::Nfs, FileSystem::Overlay, sshfs()] {
            let views = [view(1, 5, kind.clone(), "s:/"), view(1, 5, kind, "s:/")];
            assert_eq!(Sharing::of(&views), Sharing::OneCache);
        }
        assert_eq!(Sharing::of(&[]), Sharing::OneCache);
    }

    /// Containers with a mount each, on one kernel; and equal device numbers on
    /// two kernels, which mean nothing.
    #[test]
    fn several_caches_need_a_coherent_file_system() {
        for (kernel, device) in [(1, 6), (2, 5), (0, 5)] {
            let shared = |kind: FileSystem| {
                Sharing::of(&[
                    view(kernel.min(1), 5, kind.clone(), "s:/"),
                    view(kernel, device, kind, "s:/"),
                ])
            };
            assert_eq!(shared(FileSystem::Nfs), Sharing::Nfs);
            assert_eq!(shared(FileSystem::Lustre), Sharing::Coherent);
            assert_eq!(shared(FileSystem::Ext), Sharing::Coherent);
            for kind in [
                FileSystem::Overlay,
                FileSystem::Smb,
                FileSystem::BeeGfs,
                FileSystem::OrangeFs,
                FileSystem::PanFs,
                sshfs(),
            ] {
                let Sharing::Incoherent(reason) = shared(kind.clone()) else {
                    panic!("{kind} counts as coherent");
                };
                assert!(reason.contains(&kind.to_string()), "{reason}");
            }
        }
    }

    #[test]
    fn ranks_on_the_server_and_on_clients_are_incoherent() {
        let server = view(1, 5, FileSystem::Ext, "/dev/sda");
        let client = view(2, 9, FileSystem::Nfs, "s:/");
        for views in [[server.clone(), client.clone()], [client, server]] {
            assert!(matches!(Sharing::of(&views), Sharing::Incoherent(_)));
        }
        let one = view(1, 5, FileSystem::Lustre, "a@tcp:/fs");
        let other = view(2, 5, FileSystem::Lustre, "b@tcp:/fs");
        assert!(matches!(Sharing::of(&[one, other]), Sharing::Incoherent(_)));
    }

    #[test]
    fn the_wire_form_round_trips() {
        let found = MountView {
            locks: LockReach::Node,
            ..view(7, 8, sshfs(), "host:/directory")
        };
        assert_eq!(MountView::from_wire(&found.to_wire()), Some(found.clone()));
        for len in 0..19 {
            assert_eq!(MountView::from_wire(&found.to_wire()[..len]), None);
        }
    }
}
