//! Detection of a file's file system.

mod kind;
mod locks;
mod mounts;
mod placement;

use std::{
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::{
    Facts, FileSystem, MountView, Placement,
    control::{Control, KernelControl},
    posix::sys::{self, Extended},
};
use locks::Guarantees;
pub(crate) use mounts::Mount;
use mounts::Mounted;
pub(crate) use placement::find as placement;

/// What was detected about an open file.
pub(crate) struct Detected {
    pub(crate) facts: Facts,
    /// Whether its data may be moved through io_uring, whatever the file system is assumed to be.
    pub(crate) may_use_ring: bool,
    /// How this process sees the file system, whatever it is assumed to be.
    pub(crate) view: MountView,
}

/// Facts about an open file; `assumed` overrides the detected kind.
pub(crate) fn facts(
    fd: BorrowedFd<'_>,
    assumed: Option<&FileSystem>,
    control: &Control,
) -> io::Result<Detected> {
    let found = find(fd)?;
    let file_system = assumed.unwrap_or(&found.file_system).clone();
    let may_use_ring = [&file_system, &found.file_system]
        .into_iter()
        .all(FileSystem::continues_ring_requests);
    let block_size = match found.block_size {
        0 => sys::block_size(fd)?,
        known => known,
    };
    let placement = placement::find(fd, &file_system, control);
    let striping = placement.as_ref().map(Placement::striping);
    let guarantees = found.guarantees(&file_system, fd, control);
    let view = found.view(fd)?;
    let facts = Facts {
        locks: guarantees.locks,
        source: found.source(),
        mount_point: found.mount.map(|mount| mount.point),
        block_size,
        direct_alignment: found.direct_alignment,
        striping,
        placement,
        lock_granularity: match file_system {
            FileSystem::Lustre => striping.map(|striping| striping.unit),
            FileSystem::Gpfs => Some(block_size),
            _ => None,
        },
        coherence: guarantees.coherence,
        client: file_system.client(),
        file_system,
    };
    Ok(Detected {
        facts,
        may_use_ring,
        view,
    })
}

/// The file system of a directory.
pub(crate) fn of_directory(path: &Path) -> io::Result<FileSystem> {
    let directory = sys::open(path, libc::O_PATH, 0)?;
    Ok(find(directory.as_fd())?.file_system)
}

/// The file system of a path. If the path does not exist, that of its nearest
/// existing parent.
pub(crate) fn of_path(path: &Path) -> io::Result<(FileSystem, Option<PathBuf>)> {
    nearest(path, |path| {
        let found = match find_known(path, LookUp::Name)? {
            Some(found) => found,
            None => find(LookUp::Name.open(path)?.as_fd())?,
        };
        Ok((found.file_system, found.mount.map(|mount| mount.point)))
    })
}

/// How this process sees the file system of a path; see [`of_path`].
pub(crate) fn view_of_path(path: &Path) -> io::Result<MountView> {
    nearest_view(path, LookUp::Name)
}

/// How this process sees the file system of a path's directory; see [`of_path`]. The
/// last component is not looked up.
pub(crate) fn view_of_directory(path: &Path) -> io::Result<MountView> {
    nearest_view(path.parent().unwrap_or(path), LookUp::Directory)
}

fn nearest_view(path: &Path, how: LookUp) -> io::Result<MountView> {
    nearest(path, |path| {
        let known = find_known(path, how)?.and_then(|found| found.view_by_name());
        match known {
            Some(view) => Ok(view),
            None => {
                let fd = how.open(path)?;
                find(fd.as_fd())?.view(fd.as_fd())
            }
        }
    })
}

/// How a name is looked up.
#[derive(Clone, Copy)]
enum LookUp {
    Name,
    /// It is that of a directory. A file system that is mounted on demand is mounted.
    Directory,
}

impl LookUp {
    fn open(self, path: &Path) -> io::Result<OwnedFd> {
        let flags = match self {
            LookUp::Name => 0,
            LookUp::Directory => libc::O_DIRECTORY,
        };
        sys::open(path, libc::O_PATH | flags, 0)
    }

    fn extended(self, path: &Path) -> io::Result<Extended> {
        let flags = match self {
            LookUp::Name => libc::AT_NO_AUTOMOUNT,
            LookUp::Directory => 0,
        };
        sys::extended_of_name(path, flags)
    }
}

/// The first result for a path or one of its parents that exists. An NFS client
/// may still know the name of a file that another has deleted: the file is stale.
fn nearest<T>(path: &Path, look: impl Fn(&Path) -> io::Result<T>) -> io::Result<T> {
    for parent in path.ancestors() {
        let parent = if parent.as_os_str().is_empty() {
            Path::new(".")
        } else {
            parent
        };
        match look(parent) {
            Err(error) if is_missing(&error) => {}
            result => return result,
        }
    }
    Err(io::Error::new(
        io::ErrorKind::NotFound,
        format!("{path:?} has no existing parent"),
    ))
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ESTALE))
}

/// The file system of an existing directory and how it is mounted.
pub(crate) fn mount_of(path: &Path) -> io::Result<(FileSystem, Option<Mount>)> {
    let directory = sys::open(path, libc::O_PATH, 0)?;
    let found = find(directory.as_fd())?;
    Ok((found.file_system, found.mount))
}

struct Found {
    file_system: FileSystem,
    mount: Option<Mount>,
    /// 0 if it is not known.
    block_size: u64,
    direct_alignment: Option<u64>,
    device: u64,
}

impl Found {
    fn new(extended: &Extended, Mounted { magic, mount }: Mounted) -> Found {
        let kind = mount.as_ref().map_or("", |mount| &mount.kind);
        let alignment = u64::from(extended.direct_memory.max(extended.direct_offset));
        Found {
            file_system: kind::classify(magic, kind),
            mount,
            block_size: extended.block_size,
            device: extended.device,
            // Whole pages, so that a direct transfer never shares a page of the
            // cache with a neighbour's buffered one.
            direct_alignment: (alignment > 0).then(|| alignment.max(sys::page_size())),
        }
    }

    /// How this process sees the file system.
    fn view(&self, fd: BorrowedFd<'_>) -> io::Result<MountView> {
        let control: Control = Arc::new(KernelControl);
        let guarantees = self.guarantees(&self.file_system, fd, &control);
        // Kernels before 4.11 report it in `stat` only.
        let device = match self.device {
            0 => sys::identity(fd)?.device,
            known => known,
        };
        Ok(self.view_with(device, guarantees))
    }

    /// How this process sees the file system, if that can be known without an open file.
    fn view_by_name(&self) -> Option<MountView> {
        let guarantees = locks::guarantees_by_options(&self.file_system, self.options())?;
        (self.device != 0).then(|| self.view_with(self.device, guarantees))
    }

    fn view_with(&self, device: u64, guarantees: Guarantees) -> MountView {
        let Guarantees { coherence, locks } = guarantees;
        MountView::new(device, &self.file_system, coherence, locks, self.source())
    }

    fn options(&self) -> &str {
        self.mount.as_ref().map_or("", |mount| &mount.options)
    }

    fn source(&self) -> String {
        let mount = self.mount.as_ref();
        mount.map_or_else(String::new, |mount| mount.source.clone())
    }

    fn guarantees(
        &self,
        file_system: &FileSystem,
        fd: BorrowedFd<'_>,
        control: &Control,
    ) -> Guarantees {
        locks::guarantees(file_system, self.options(), fd, control)
    }
}

/// The file system of an open file.
fn find(fd: BorrowedFd<'_>) -> io::Result<Found> {
    // Kernels before 4.11 have no statx; only the mount point is missing then.
    let extended = sys::extended(fd).unwrap_or_default();
    let mounted = mounts::of_file(fd, &extended)?;
    Ok(Found::new(&extended, mounted))
}

/// The file system of a name, if it has been looked up before: opening the file to look at it again
/// would take three system calls instead of one. `None`, too, if statx is not available or fails
/// otherwise: opening the file reports why.
fn find_known(path: &Path, how: LookUp) -> io::Result<Option<Found>> {
    match how.extended(path) {
        Ok(extended) => {
            let mounted = mounts::known(&extended);
            Ok(mounted.map(|mounted| Found::new(&extended, mounted)))
        }
        Err(error) if is_missing(&error) => Err(error),
        Err(_) => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_deleted_files_are_passed_over() {
        for gone in [libc::ENOENT, libc::ESTALE] {
            let found = nearest(Path::new("directory/file"), |path| match path.to_str() {
                Some("directory/file") => Err(io::Error::from_raw_os_error(gone)),
                other => Ok(other.map(str::to_owned)),
            });
            assert_eq!(found.unwrap().as_deref(), Some("directory"));
        }
        let refused = |_: &Path| Err::<(), _>(io::Error::from_raw_os_error(libc::EACCES));
        assert!(nearest(Path::new("file"), refused).is_err());
    }
}
