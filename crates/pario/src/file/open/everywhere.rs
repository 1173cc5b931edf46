//! Opening a file on all ranks: one of them creates it, some open it later, and all compare what
//! they have opened.

use std::{
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use pario_driver::{Create, Facts, Handle, OpenHow, Resolved};
use pario_transport::{Rank, Transport};

use super::{
    ROOT,
    arguments::Names,
    length_prefixed::{split_at_length, with_length},
    resolve::lasting,
};
use crate::{
    Error, Result, agree,
    file::{
        common_facts,
        deferral::Deferral,
        late_handle::{LateHandle, Opening},
        placement_wire, same_file,
        sharing::{self, FileSharing},
    },
};

/// A file that has been opened on all ranks, as this rank sees it.
pub(super) struct Opened {
    pub(super) handle: Arc<dyn Handle>,
    /// The handle, if open was deferred.
    pub(super) late: Option<LateHandle>,
    pub(super) sharing: FileSharing,
}

/// Rank 0 creates the file, then the others open it, so that there is one create and no race.
/// If no file is to be created, all ranks open it at once, except those that do so later: they
/// have a late handle.
pub(super) fn open_everywhere(
    comm: &dyn Transport,
    resolved: &Result<Resolved>,
    how: &OpenHow,
    names: Names,
    deferral: &mut Deferral,
) -> Result<Opened> {
    let is_opener = deferral.opener(comm.rank()) == comm.rank();
    let open = |how: &OpenHow| {
        let Resolved { driver, path, .. } = resolved.as_ref().map_err(Error::clone)?;
        Ok(match is_opener {
            true => Some(driver.open(path, how)?),
            false => None,
        })
    };
    let opened: Result<Option<Arc<dyn Handle>>> = match (how.create, comm.rank()) {
        (Create::Never, _) => open(how),
        (_, ROOT) => {
            let opened = open(how);
            let created = opened.as_ref().map(|_| Vec::new()).map_err(Error::clone);
            agree::broadcast(comm, ROOT, || created)?;
            opened
        }
        _ => {
            agree::broadcast(comm, ROOT, || Ok(Vec::new()))?;
            open(&how.clone().create(Create::Never))
        }
    };
    let described = match (&opened, resolved) {
        (Ok(Some(handle)), Ok(resolved)) if comm.size() > 1 => {
            describe(&**handle, &resolved.path, deferral)
        }
        (Err(error), _) => Err(error.clone()),
        _ => Ok(Vec::new()),
    };
    let gathered = agree::gather(comm, described);
    let close = |handle: &Result<Option<Arc<dyn Handle>>>| {
        if let Ok(Some(handle)) = handle {
            let _ = handle.close();
        }
    };
    let all = match gathered {
        Ok(all) => all,
        Err(error) => {
            close(&opened);
            return Err(error);
        }
    };
    let (opened, resolved) = (opened?, resolved.as_ref().map_err(Error::clone)?);
    if let (Some(handle), 1) = (&opened, comm.size()) {
        return Ok(Opened {
            handle: handle.clone(),
            late: None,
            sharing: FileSharing::alone(),
        });
    }
    let described = |rank| Described::new(&all[deferral.opener(Rank(rank)).index()]);
    let mine = described(comm.rank().0);
    let late = deferral.is_used().then(|| {
        let opening = mine.opening(resolved, how);
        match &opened {
            Some(handle) => LateHandle::opened(opening, handle.clone()),
            None => LateHandle::new(opening, mine.facts()),
        }
    });
    let handle: Arc<dyn Handle> = match (&late, opened) {
        (Some(late), _) => Arc::new(late.clone()),
        (None, Some(handle)) => handle,
        (None, None) => unreachable!("a rank that opens the file later has a late handle"),
    };
    let seen: Vec<_> = (0..comm.size()).map(described).collect();
    let facts: Vec<_> = seen.iter().map(|it| it.facts).collect();
    let files: Vec<_> = seen.iter().map(|it| it.file).collect();
    let mounts: Vec<_> = seen.iter().map(|it| it.mount).collect();
    let sharing = sharing::of_handles(&mounts);
    let check = same_file::Check {
        comm,
        handle: &*handle,
        names,
        access: how.access,
        path: &resolved.path,
    };
    let shared = check.run(&files).and_then(|()| {
        sharing.check_handles()?;
        let shared = common_facts::share(handle.clone(), &facts);
        if let Some(late) = &late {
            deferral.settle(comm, late, &*shared)?;
        }
        Ok(shared)
    });
    match shared {
        Ok(shared) => Ok(Opened {
            handle: shared,
            late,
            sharing,
        }),
        Err(error) => {
            let _ = handle.close();
            Err(error)
        }
    }
}

/// What other ranks learn of the file that a rank opened: facts and placement, how the rank sees the
/// file and how others of its node reach it, then which file it is.
fn describe(handle: &dyn Handle, path: &Path, deferral: &Deferral) -> Result<Vec<u8>> {
    let facts = common_facts::to_wire(handle.facts());
    let node_path = match deferral.is_used() {
        true => handle.node_path().unwrap_or_default(),
        false => PathBuf::new(),
    };
    let node_path = node_path.as_os_str().as_encoded_bytes();
    let placement = handle.facts().placement.as_ref();
    let placement = placement.filter(|_| deferral.is_used());
    let placement = placement.map_or_else(Vec::new, placement_wire::to_wire);
    let mount = sharing::describe_handle(handle)?;
    let file = same_file::describe(handle, path)?;
    let parts = [&facts[..], &placement, &mount, node_path].map(with_length);
    Ok([&parts.concat()[..], &file].concat())
}

/// Such a message, taken apart.
#[derive(Clone, Copy)]
struct Described<'a> {
    facts: &'a [u8],
    placement: &'a [u8],
    mount: &'a [u8],
    node_path: &'a [u8],
    file: &'a [u8],
}

impl<'a> Described<'a> {
    fn new(message: &'a [u8]) -> Described<'a> {
        let (facts, rest) = split_at_length(message);
        let (placement, rest) = split_at_length(rest);
        let (mount, rest) = split_at_length(rest);
        let (node_path, file) = split_at_length(rest);
        Described {
            facts,
            placement,
            mount,
            node_path,
            file,
        }
    }

    /// The facts, as a rank that has not opened the file knows them.
    fn facts(&self) -> Facts {
        common_facts::from_wire(self.facts, placement_wire::from_wire(self.placement))
    }

    /// How a rank opens this file later.
    fn opening(&self, resolved: &Resolved, how: &OpenHow) -> Opening {
        let node_path = OsStr::from_bytes(self.node_path);
        Opening {
            driver: resolved.driver.clone(),
            path: lasting(resolved.path.clone(), &*resolved.driver),
            node_path: (!node_path.is_empty()).then(|| node_path.into()),
            how: how.clone(),
            identity: same_file::identity(self.file),
        }
    }
}
