//! Names on a CephFS that the kernel has mounted, or FUSE: which file of which file
//! system they stand for.

use std::{
    ffi::CString,
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use super::library::Account;
use crate::detect::{self, Mount};

/// Where a file is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Location {
    /// Its path in the file system.
    pub(super) path: PathBuf,
    /// How its file system is mounted.
    pub(super) account: Account,
    /// The inode number of its directory, if that is known from a mount.
    pub(super) directory: Option<u64>,
}

/// The location of a name. One on a mounted CephFS leads to the same file as
/// without this driver; any other is a path in the file system.
pub(super) fn locate(path: &Path) -> io::Result<Location> {
    let given = || Location {
        path: path.to_owned(),
        ..Location::default()
    };
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Ok(given());
    };
    let parent = match parent.as_os_str().is_empty() {
        true => Path::new("."),
        false => parent,
    };
    // Without symbolic links, which may lead to a mount.
    let Ok(parent) = fs::canonicalize(parent) else {
        return Ok(given());
    };
    match detect::mount_of(&parent) {
        Ok((kind, Some(mount))) if kind.is_ceph() => Ok(Location {
            path: path_in(&mount, &parent).join(name),
            account: account(&mount)?,
            directory: Some(fs::metadata(&parent)?.ino()),
        }),
        _ => Ok(given()),
    }
}

/// The path of a directory below a mount point, in the file system that is mounted.
fn path_in(mount: &Mount, directory: &Path) -> PathBuf {
    let below = |path: &Path| path.strip_prefix("/").unwrap_or(path).to_owned();
    let rest = directory.strip_prefix(&mount.point).unwrap_or(directory);
    Path::new("/")
        .join(below(&mounted_directory(&mount.source)))
        .join(below(&mount.root))
        .join(below(rest))
}

/// The directory in a source such as `host:6789,host:/directory` or
/// `user@cluster.name=/directory`; FUSE has none.
fn mounted_directory(source: &str) -> PathBuf {
    let at = source.find(":/").or_else(|| source.find("=/"));
    at.map_or_else(PathBuf::new, |at| source[at + 1..].into())
}

/// The user and the file system among the options of a mount.
fn account(mount: &Mount) -> io::Result<Account> {
    let option = |names: &[&str]| {
        let mut options = mount.options.split(',').filter_map(|it| it.split_once('='));
        let found = options.find(|(name, _)| names.contains(name));
        found.map(|(_, value)| CString::new(value)).transpose()
    };
    Ok(Account {
        configuration: None,
        user: option(&["name"])?,
        file_system: option(&["fs", "mds_namespace"])?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mount(root: &str, source: &str, options: &str) -> Mount {
        Mount {
            root: root.into(),
            source: source.to_owned(),
            options: options.to_owned(),
            ..Mount::at("/mnt/c")
        }
    }

    #[test]
    fn names_below_a_mount_point_keep_their_meaning() {
        let path = |mount: &Mount| path_in(mount, Path::new("/mnt/c/a/b"));
        let whole = mount(
            "/",
            "10.0.0.1:6789,10.0.0.2:/",
            "rw,name=admin,secret=<hidden>",
        );
        assert_eq!(path(&whole), PathBuf::from("/a/b"));
        let part = mount("/", "10.0.0.1:/volumes/x", "rw");
        assert_eq!(path(&part), PathBuf::from("/volumes/x/a/b"));
        let bound = mount("/sub", "u@00.files=/volumes/x", "rw");
        assert_eq!(path(&bound), PathBuf::from("/volumes/x/sub/a/b"));
        let fuse = mount("/", "ceph-fuse", "rw,user_id=0,group_id=0,allow_other");
        assert_eq!(path(&fuse), PathBuf::from("/a/b"));
    }

    #[test]
    fn the_account_is_that_of_the_mount() {
        let found = account(&mount("/", "h:/", "rw,name=joe,mds_namespace=big")).unwrap();
        assert_eq!(found.user.as_deref(), Some(c"joe"));
        assert_eq!(found.file_system.as_deref(), Some(c"big"));
        assert_eq!(
            account(&mount("/", "h:/", "rw")).unwrap(),
            Account::default()
        );
    }

    #[test]
    fn names_elsewhere_are_paths_in_the_file_system() {
        for name in ["/tmp/x", "x", "/nowhere/at/all", "/"] {
            let location = locate(Path::new(name)).unwrap();
            assert_eq!(location.path, PathBuf::from(name));
            assert_eq!(location.directory, None);
        }
    }
}
