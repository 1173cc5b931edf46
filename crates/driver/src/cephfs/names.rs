//! Names of files in a CephFS.

use std::{
    ffi::{CStr, CString, OsStr},
    io,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    library::{Account, Client, Inode, OpenFile, User},
    mounted::{self, Location},
};

/// The directory of names that are inode numbers, by which processes open a file
/// that another has open, even if it has been renamed or deleted since. A name of
/// the file system cannot start like this.
const BY_NUMBER: &str = "//inode";

/// The name of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Name {
    /// Its directory, and its name there.
    Path {
        directory: CString,
        name: CString,
        account: Account,
        /// The inode number of the directory, if it is known.
        number: Option<u64>,
    },
    /// Its inode.
    Number(u64),
}

static DEFAULT_ACCOUNT: Account = Account {
    configuration: None,
    user: None,
    file_system: None,
};

impl Name {
    /// The name that a path stands for. Relative paths that are not on a mount start
    /// at the root of the file system.
    pub(super) fn new(path: &Path) -> io::Result<Name> {
        if let Some(number) = numbered(path) {
            return Ok(Name::Number(number));
        }
        let Location {
            path: located,
            account,
            directory: number,
        } = mounted::locate(path)?;
        let invalid = || {
            let message = format!("{path:?} is not the name of a file in CephFS");
            io::Error::new(io::ErrorKind::InvalidFilename, message)
        };
        let located = Path::new("/").join(located);
        let ends_in_slash = path.as_os_str().as_bytes().ends_with(b"/");
        let name = located.file_name().filter(|_| !ends_in_slash);
        let directory = located.parent().map(Path::as_os_str);
        let terminated = |text: &OsStr| CString::new(text.as_bytes()).map_err(|_| invalid());
        Ok(Name::Path {
            directory: terminated(directory.ok_or_else(invalid)?)?,
            name: terminated(name.ok_or_else(invalid)?)?,
            account,
            number,
        })
    }

    /// As whom, and in which file system, the kernel has mounted the file. Files of
    /// such mounts cannot be opened by their number.
    pub(super) fn account(&self) -> &Account {
        match self {
            Name::Path { account, .. } => account,
            Name::Number(_) => &DEFAULT_ACCOUNT,
        }
    }

    /// The path, unless it is a number.
    pub(super) fn path(&self) -> Option<CString> {
        match self {
            Name::Path {
                directory, name, ..
            } => Some(joined(directory, name)),
            Name::Number(_) => None,
        }
    }

    /// Opens an existing file.
    pub(super) fn open(
        &self,
        client: &Arc<Client>,
        flags: libc::c_int,
        user: &Arc<User>,
    ) -> io::Result<OpenFile> {
        let inode = match self {
            Name::Number(number) => client.look_up(*number)?,
            Name::Path {
                directory,
                name,
                number,
                ..
            } => {
                if number.is_some() {
                    require_same(&client.walk(directory, user)?, *number, directory)?;
                }
                client.walk(&joined(directory, name), user)?
            }
        };
        if inode.is_directory() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        inode.open(flags, user.clone())
    }

    /// Creates a file.
    pub(super) fn create(
        &self,
        client: &Arc<Client>,
        flags: libc::c_int,
        permissions: u32,
        user: &Arc<User>,
    ) -> io::Result<OpenFile> {
        let (directory, name) = self.entry(client, user)?;
        directory.create(name, flags, permissions, user.clone())
    }

    /// Removes the name.
    pub(super) fn unlink(&self, client: &Arc<Client>, user: &User) -> io::Result<()> {
        let (directory, name) = self.entry(client, user)?;
        directory.unlink(name, user)
    }

    fn entry(&self, client: &Arc<Client>, user: &User) -> io::Result<(Inode, &CString)> {
        match self {
            Name::Path {
                directory,
                name,
                number,
                ..
            } => {
                let found = client.walk(directory, user)?;
                require_same(&found, *number, directory)?;
                Ok((found, name))
            }
            Name::Number(_) => Err(io::ErrorKind::InvalidFilename.into()),
        }
    }
}

/// Fails if a directory is not the one that the kernel has at the same place: the
/// mount table does not show which directory FUSE has mounted.
fn require_same(directory: &Inode, number: Option<u64>, path: &CStr) -> io::Result<()> {
    match number {
        Some(number) if number != directory.number() => Err(io::Error::other(format!(
            "{path:?} of the CephFS that libcephfs mounts is not the directory that is mounted here: \
             give a path in the file system"
        ))),
        _ => Ok(()),
    }
}

/// The path by which a file of the default account can be opened by its number.
pub(super) fn by_number(number: u64) -> PathBuf {
    format!("{BY_NUMBER}/{number}").into()
}

fn numbered(path: &Path) -> Option<u64> {
    let rest = path.as_os_str().to_str()?.strip_prefix(BY_NUMBER)?;
    rest.strip_prefix('/')?.parse().ok()
}

fn joined(directory: &CString, name: &CString) -> CString {
    let mut path = directory.as_bytes().to_vec();
    path.push(b'/');
    path.extend(name.as_bytes());
    CString::new(path).expect("parts without NUL bytes have none together")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(directory: &str, name: &str) -> Name {
        Name::Path {
            directory: CString::new(directory).unwrap(),
            name: CString::new(name).unwrap(),
            account: Account::default(),
            number: None,
        }
    }

    #[test]
    fn paths_start_at_the_root() {
        let new = |path: &str| Name::new(Path::new(path)).unwrap();
        assert_eq!(new("/a/b c/d"), entry("/a/b c", "d"));
        assert_eq!(new("x"), entry("/", "x"));
        assert_eq!(new("a/x"), entry("/a", "x"));
        for path in ["", "/", "..", "/a/", "a\0b"] {
            let error = Name::new(Path::new(path)).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidFilename, "{path:?}");
        }
    }

    #[test]
    fn numbers_lead_back_to_inodes() {
        let path = by_number(1 << 40);
        assert_eq!(Name::new(&path).unwrap(), Name::Number(1 << 40));
        let named = Name::new(Path::new("/inode/5")).unwrap();
        assert_eq!(named, entry("/inode", "5"));
    }
}
