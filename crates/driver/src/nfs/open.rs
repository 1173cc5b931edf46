//! Opening a file that another client has just created.

use std::{
    io,
    os::fd::AsFd,
    path::{Component, Path},
};

use crate::{Create, posix::sys};

/// Opens an existing file, if need be after refreshing what this client knows about
/// its directory: a client that has looked for a name keeps the answer "there is
/// none" for up to a minute. Creating the file instead would make one per node in
/// directories that the nodes do not share.
pub(super) fn with_fresh_directory<T>(
    path: &Path,
    create: Create,
    open: impl Fn() -> io::Result<T>,
) -> io::Result<T> {
    match open() {
        Err(error) if error.kind() == io::ErrorKind::NotFound && create == Create::Never => {
            refresh(path)?;
            open()
        }
        opened => opened,
    }
}

/// Queries the attributes of the file's directory from the server.
fn refresh(path: &Path) -> io::Result<()> {
    let directory = match path.parent() {
        Some(parent) if parent.components().next().is_some() => parent,
        _ => Path::new(Component::CurDir.as_os_str()),
    };
    let directory = sys::open(directory, libc::O_DIRECTORY | libc::O_RDONLY, 0)
        .or_else(|_| sys::open(directory, libc::O_PATH, 0))?;
    sys::fresh_size(directory.as_fd()).map(drop)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn a_missing_name_is_looked_up_twice_unless_it_would_be_created() {
        let directory = tempfile::tempdir().unwrap();
        for (create, expected) in [(Create::Never, 2), (Create::IfMissing, 1)] {
            let tries = Cell::new(0);
            let opened = with_fresh_directory(&directory.path().join("file"), create, || {
                tries.set(tries.get() + 1);
                Err::<(), _>(io::ErrorKind::NotFound.into())
            });
            assert_eq!(opened.unwrap_err().kind(), io::ErrorKind::NotFound);
            assert_eq!(tries.get(), expected);
        }
        refresh(Path::new("relative")).unwrap();
    }
}
