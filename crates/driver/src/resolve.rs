//! Selection of the driver for a file name.

use std::{ffi::OsStr, io, os::unix::ffi::OsStrExt, path::PathBuf, sync::Arc};

use crate::{CephFs, Driver, FileSystem, Mapped, Memory, MountView, Nfs, Posix, Uring, detect};

/// A driver with its name.
#[derive(Clone, Copy, Debug)]
pub struct DriverEntry {
    /// Name, as a prefix of file names and as the value of a hint.
    pub name: &'static str,
    /// One-line description.
    pub about: &'static str,
    /// Creates the driver.
    make: fn() -> Arc<dyn Driver>,
}

impl DriverEntry {
    /// The driver.
    pub fn make(&self) -> Arc<dyn Driver> {
        (self.make)()
    }
}

const fn entry(
    name: &'static str,
    about: &'static str,
    make: fn() -> Arc<dyn Driver>,
) -> DriverEntry {
    DriverEntry { name, about, make }
}

/// POSIX files on a file system given by the user.
macro_rules! posix_on {
    ($kind:ident) => {
        || Arc::new(Posix::new().assuming(FileSystem::$kind))
    };
}

/// All names, one line each. ROMIO's names are included, so that file names
/// written for ROMIO keep their meaning.
#[rustfmt::skip] // One line per driver.
pub static REGISTRY: &[DriverEntry] = &[
    entry("posix", "any mounted file system", || Arc::new(Posix::new())),
    entry("ufs", "any mounted file system (ROMIO's name)", || Arc::new(Posix::new())),
    entry("uring", "any mounted file system, lists of pieces through io_uring", || Arc::new(Uring)),
    entry("mapped", "local file systems, small pieces stored through a mapping (only on request)", || Arc::new(Mapped)),
    entry("mem", "files in the memory of this process", || Arc::new(Memory::new())),
    entry("testfs", "files in memory (ROMIO's name)", || Arc::new(Memory::new())),
    entry("xfs", "POSIX files, assumed to be on XFS", posix_on!(Xfs)),
    entry("nfs", "NFS, without caching on the client", || Arc::new(Nfs::new())),
    entry("lustre", "POSIX files, assumed to be on Lustre", posix_on!(Lustre)),
    entry("gpfs", "POSIX files, assumed to be on GPFS", posix_on!(Gpfs)),
    entry("panfs", "POSIX files, assumed to be on PanFS", posix_on!(PanFs)),
    entry("pvfs2", "POSIX files, assumed to be on OrangeFS", posix_on!(OrangeFs)),
    entry("ceph", "POSIX files, assumed to be on CephFS", posix_on!(Ceph)),
    entry("cephfs", "CephFS by libcephfs, without a mount (only on request)", || Arc::new(CephFs::new())),
];

/// The driver for a file and the reason for it.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// The driver.
    pub driver: Arc<dyn Driver>,
    /// The file name without the prefix.
    pub path: PathBuf,
    /// Why this driver was selected.
    pub reason: String,
}

/// Selects the driver for a file: the `forced` one (a hint), else the one named
/// by the prefix of the file name (`ufs:data`), else POSIX.
///
/// Prefixes are not case-sensitive. An unknown prefix is part of the file name,
/// and so is anything that follows a `/`: `./mem:x` is a file in the current
/// directory.
///
/// # Errors
/// If `forced` is not the name of a driver.
pub fn resolve(name: impl AsRef<OsStr>, forced: Option<&str>) -> io::Result<Resolved> {
    let (prefix, path) = split(name.as_ref());
    if let Some(forced) = forced {
        let entry = known(forced).ok_or_else(|| unknown(forced))?;
        let reason = format!("{}: selected by a hint", entry.name);
        return Ok(Resolved {
            driver: entry.make(),
            path,
            reason,
        });
    }
    if let Some(entry) = prefix {
        let reason = format!("{}: the file name starts with `{0}:`", entry.name);
        return Ok(Resolved {
            driver: entry.make(),
            path,
            reason,
        });
    }
    Ok(Resolved {
        driver: Arc::new(Posix::new()),
        path,
        reason: "posix: the default without a hint or a known prefix".to_owned(),
    })
}

/// The file system and mount point of a file that need not exist yet, by its
/// name with or without a driver prefix.
///
/// # Errors
/// If the kernel does not report it.
pub fn file_system_of(name: impl AsRef<OsStr>) -> io::Result<(FileSystem, Option<PathBuf>)> {
    detect::of_path(&split(name.as_ref()).1)
}

/// How this process sees the file system of a file that need not exist yet, by
/// its name with or without a driver prefix.
///
/// # Errors
/// If the kernel does not report it.
pub fn mount_of(name: impl AsRef<OsStr>) -> io::Result<MountView> {
    detect::view_of_path(&split(name.as_ref()).1)
}

/// How this process sees the file system of a file's directory. Unlike
/// [`mount_of`], it does not look up the name, so that no network client
/// remembers that there is no such file.
///
/// # Errors
/// If the kernel does not report it.
pub fn mount_of_directory(name: impl AsRef<OsStr>) -> io::Result<MountView> {
    detect::view_of_directory(&split(name.as_ref()).1)
}

/// The driver with this name.
pub fn known(name: &str) -> Option<&'static DriverEntry> {
    REGISTRY
        .iter()
        .find(|entry| entry.name.eq_ignore_ascii_case(name))
}

fn unknown(name: &str) -> io::Error {
    let names: Vec<_> = REGISTRY.iter().map(|entry| entry.name).collect();
    let message = format!("unknown driver {name:?}; available: {}", names.join(", "));
    io::Error::new(io::ErrorKind::InvalidInput, message)
}

/// The driver named by a prefix, if any, and the rest of the file name.
fn split(name: &OsStr) -> (Option<&'static DriverEntry>, PathBuf) {
    let bytes = name.as_bytes();
    if let Some(colon) = bytes.iter().position(|&byte| byte == b':')
        && let Some(entry) = std::str::from_utf8(&bytes[..colon]).ok().and_then(known)
    {
        return (
            Some(entry),
            PathBuf::from(OsStr::from_bytes(&bytes[colon + 1..])),
        );
    }
    (None, PathBuf::from(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(name: &str, forced: Option<&str>) -> (&'static str, String, String) {
        let resolved = resolve(name, forced).unwrap();
        (
            resolved.driver.name(),
            resolved.path.display().to_string(),
            resolved.reason,
        )
    }

    #[test]
    fn prefixes() {
        for (name, driver, path) in [
            ("data", "posix", "data"),
            ("ufs:data", "posix", "data"),
            ("UFS:/a:b", "posix", "/a:b"),
            ("mem:data", "mem", "data"),
            ("testfs:data", "mem", "data"),
            ("mem:", "mem", ""),
            ("uring:x", "uring", "x"),
            ("./mem:x", "posix", "./mem:x"),
            ("/mem:x", "posix", "/mem:x"),
            ("unknown:x", "posix", "unknown:x"),
            (":x", "posix", ":x"),
            ("", "posix", ""),
        ] {
            let (got_driver, got_path, _) = resolved(name, None);
            assert_eq!((got_driver, got_path.as_str()), (driver, path), "{name}");
        }
    }

    #[test]
    fn a_hint_wins_and_the_prefix_is_still_removed() {
        assert_eq!(resolved("ufs:x", Some("mem")).0, "mem");
        assert_eq!(resolved("ufs:x", Some("mem")).1, "x");
        let error = resolve("x", Some("floppy")).unwrap_err();
        assert!(error.to_string().contains("floppy"));
    }

    /// The directory counts, even if the name is a link to another file system.
    #[test]
    fn the_mount_of_a_directory_does_not_depend_on_the_name() {
        let directory = tempfile::tempdir().unwrap();
        let link = directory.path().join("link");
        std::os::unix::fs::symlink("/proc/self/status", &link).unwrap();
        let expected = mount_of(directory.path()).unwrap();
        for name in [link.clone(), directory.path().join("missing")] {
            assert_eq!(mount_of_directory(&name).unwrap(), expected, "{name:?}");
        }
        assert_eq!(
            mount_of_directory("missing").unwrap(),
            mount_of(".").unwrap()
        );
        assert_ne!(mount_of(&link).unwrap(), expected);
    }
}
