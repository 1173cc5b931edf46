//! How the ranks share a file: through one page cache, several coherent ones, or several that
//! are not coherent (semantics rule 2).
//!
//! Every rank describes how it sees the file system of the file. This is exchanged twice:
//! together with the arguments of `open`, so that the ranks agree on the driver before a file is
//! created (once more if their names differ), and with what they opened, because the name may lead
//! elsewhere by then.

use std::{path::Path, sync::Arc};

use pario_driver::{Access, Facts, Handle, LockReach, MountView, Nfs, Resolved, Sharing};
use pario_hints::Hints;
use pario_transport::{Rank, Transport};

use crate::{Error, ErrorKind, Mode, Result, warning::warn};

/// How the ranks of an open file share it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileSharing {
    pub(crate) sharing: Sharing,
    /// Whom range locks exclude, according to the mount options of all ranks.
    pub(crate) locks: LockReach,
    /// The first rank that sees the file through another cache than rank 0.
    pub(crate) elsewhere: Option<Rank>,
    /// Whether the handles of all ranks bypass the caches of NFS clients.
    pub(crate) bypasses_caches: bool,
    /// Whether all ranks can read what they will write back, if the file is open for writing only.
    pub(crate) reads_back: bool,
}

impl FileSharing {
    /// A file of one rank, or one that is not on a mounted file system.
    pub(crate) fn alone() -> FileSharing {
        FileSharing {
            sharing: Sharing::OneCache,
            locks: LockReach::Everywhere,
            elsewhere: None,
            bypasses_caches: false,
            reads_back: false,
        }
    }

    /// What follows from the ranks' descriptions, by rank. Those that are empty say nothing.
    pub(super) fn of<'w>(wires: impl Iterator<Item = &'w [u8]>) -> FileSharing {
        let ranks = (0..).map(Rank).zip(wires);
        let (ranks, views): (Vec<_>, Vec<_>) = ranks
            .filter_map(|(rank, wire)| Some((rank, MountView::from_wire(wire)?)))
            .unzip();
        let elsewhere = views
            .iter()
            .position(|view| Sharing::of(&[views[0].clone(), view.clone()]) != Sharing::OneCache);
        let locks = views.iter().map(MountView::locks).max();
        let locks = match locks.unwrap_or(LockReach::Everywhere) {
            // All ranks are there.
            LockReach::Node if elsewhere.is_none() => LockReach::Everywhere,
            locks => locks,
        };
        FileSharing {
            sharing: Sharing::of(&views),
            locks,
            elsewhere: elsewhere.map(|at| ranks[at]),
            bypasses_caches: false,
            reads_back: false,
        }
    }

    /// Whether all ranks see the same contents, whichever of them opened the file.
    pub(super) fn is_coherent(&self) -> bool {
        !matches!(self.sharing, Sharing::Nfs | Sharing::Incoherent(_))
    }

    /// Whether each piece of a write is a request to a server, as locks are there: gaps are rewritten
    /// under locks then. The same on all ranks.
    pub(crate) fn writes_by_requests(&self, facts: &Facts) -> bool {
        self.bypasses_caches || facts.file_system.rewrites_under_locks()
    }

    /// The driver for the file: the resolved one, unless the ranks share the file through NFS
    /// clients with a cache each. Naming a driver does not change that.
    pub(super) fn select(&self, resolved: Resolved) -> Resolved {
        let is_mounted = resolved.driver.is_mounted();
        match self.sharing {
            Sharing::Nfs if is_mounted && resolved.driver.name() != "nfs" => Resolved {
                driver: Arc::new(Nfs::new()),
                reason: format!(
                    "nfs: the ranks see the file through several NFS clients (instead of {})",
                    resolved.reason
                ),
                ..resolved
            },
            _ => resolved,
        }
    }

    /// Fails if the ranks may not write the file: what one of them writes could be lost. Reads are
    /// allowed, with a warning: most files that are only read do not change.
    pub(super) fn check(&self, mode: Mode, comm: &dyn Transport, path: &Path) -> Result<()> {
        let Sharing::Incoherent(reason) = &self.sharing else {
            return Ok(());
        };
        if mode.access() != Access::Read {
            return Err(refusal(reason));
        }
        if comm.rank() == Rank(0) {
            warn(&format!(
                "{path:?}: {reason}: reads may return old data if the file is being changed"
            ));
        }
        Ok(())
    }

    /// Fails if the handles of some ranks cannot be used together: a driver that the program
    /// passed may keep data in the caches of several NFS clients.
    pub(super) fn check_handles(&self) -> Result<()> {
        match self.sharing {
            Sharing::Nfs if !self.bypasses_caches => Err(refusal(
                "the ranks see it through several NFS clients, whose caches this driver does not \
                 bypass (the driver nfs does)",
            )),
            _ => Ok(()),
        }
    }

    /// Fails if range locks do not exclude all ranks, according to the options of their mounts.
    pub(crate) fn require_locks(&self, what: &str) -> Result<()> {
        let why = match self.locks {
            LockReach::Everywhere => return Ok(()),
            LockReach::Node => "the file system is mounted with locks local to each node",
            LockReach::Nowhere => "the file system is mounted without locks",
        };
        Err(Error::new(
            ErrorKind::UnsupportedOperation,
            format!("{what} needs locks between all ranks, but {why}"),
        ))
    }
}

fn refusal(reason: &str) -> Error {
    Error::new(
        ErrorKind::UnsupportedOperation,
        format!(
            "the file cannot be written by these ranks without losing data: {reason}; run all ranks \
             on one mount of one node, or use a file system that is coherent between nodes"
        ),
    )
}

/// How this rank sees the file system of a name, which is `seen` if it has looked before; empty if it is
/// none of the kernel's, or unknown: opening reports errors.
pub(super) fn describe_name(path: &Path, hints: &Hints, seen: Option<MountView>) -> Vec<u8> {
    let resolved = pario_driver::resolve(path, hints.pario_driver.as_deref());
    let is_mounted = resolved.is_ok_and(|resolved| resolved.driver.is_mounted());
    let view = match is_mounted {
        true => seen.or_else(|| pario_driver::mount_of(path).ok()),
        false => None,
    };
    view.map_or_else(Vec::new, |view| view.to_wire())
}

/// The first byte of a rank's description of its open file is a sum of these.
const BYPASSES_CACHE: u8 = 1;
const READS_BACK: u8 = 2;

/// How this rank sees an open file: what the handle can do, then the mount.
pub(super) fn describe_handle(handle: &dyn Handle) -> Result<Vec<u8>> {
    let abilities = [
        (handle.bypasses_cache(), BYPASSES_CACHE),
        (handle.reads_back(), READS_BACK),
    ];
    let sum = abilities.iter().filter(|(can, _)| *can).map(|(_, it)| it);
    let mut wire = vec![sum.sum()];
    if let Some(view) = handle.mount()? {
        wire.extend(view.to_wire());
    }
    Ok(wire)
}

/// How the ranks share the files that they have opened, from their descriptions.
pub(super) fn of_handles(wires: &[&[u8]]) -> FileSharing {
    let views = wires.iter().map(|wire| wire.get(1..).unwrap_or_default());
    let all_can = |ability| {
        let can = |wire: &&[u8]| wire.first().is_some_and(|sum| sum & ability != 0);
        wires.iter().all(can)
    };
    FileSharing {
        bypasses_caches: all_can(BYPASSES_CACHE),
        reads_back: all_can(READS_BACK),
        ..FileSharing::of(views)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two views of a file system that are not those of one cache.
    fn two_caches(kind: u8, locks: u8) -> [Vec<u8>; 2] {
        let view = |kernel: u64| {
            let head = [locks, kind, 4];
            let numbers = [kernel, 7].map(u64::to_le_bytes).concat();
            [&head[..], &numbers, b"kind", b"source"].concat()
        };
        [view(1), view(2)]
    }

    fn shared(wires: &[Vec<u8>]) -> FileSharing {
        FileSharing::of(wires.iter().map(Vec::as_slice))
    }

    #[test]
    fn ranks_that_say_nothing_are_left_out() {
        let [first, second] = two_caches(2, 0);
        assert_eq!(shared(&[Vec::new(), Vec::new()]), FileSharing::alone());
        let found = shared(&[Vec::new(), first.clone(), first.clone(), second]);
        assert_eq!(found.sharing, Sharing::Nfs);
        assert_eq!(found.elsewhere, Some(Rank(3)));
        assert_eq!(shared(&[first, Vec::new()]), FileSharing::alone());
    }

    #[test]
    fn locks_of_a_node_are_enough_for_its_ranks() {
        let [first, second] = two_caches(2, 1);
        assert_eq!(
            shared(&[first.clone(), first.clone()]),
            FileSharing::alone()
        );
        let apart = shared(&[first, second]);
        assert_eq!(apart.locks, LockReach::Node);
        let error = apart.require_locks("atomic mode").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::UnsupportedOperation);
        assert!(error.to_string().contains("local to each node"), "{error}");
    }

    #[test]
    fn a_named_driver_does_not_bypass_the_protocol() {
        let nfs = shared(&two_caches(2, 0));
        for name in ["posix:x", "uring:x", "lustre:x", "nfs:x", "x"] {
            let selected = nfs.select(pario_driver::resolve(name, None).unwrap());
            assert_eq!(selected.driver.name(), "nfs", "{name}");
        }
        let memory = nfs.select(pario_driver::resolve("mem:x", None).unwrap());
        assert_eq!(memory.driver.name(), "mem");
        assert!(nfs.check_handles().is_err());
        let bypassing = FileSharing {
            bypasses_caches: true,
            ..nfs
        };
        bypassing.check_handles().unwrap();
    }
}
