//! The settings of BeeGFS's client that decide what other nodes see.
//!
//! A client reports the file with its running configuration by `ioctl`
//! (`/proc/fs/beegfs/…/config`); the mount options name the file that it was
//! started with. Names, values and defaults are those of BeeGFS 7.

use std::{
    ffi::{CStr, OsStr},
    fs,
    os::{
        fd::{AsFd, BorrowedFd},
        unix::ffi::OsStrExt,
    },
    path::{Path, PathBuf},
};

use pario_types::Coherence;

use crate::{
    IoctlArgument, LockReach,
    control::{Control, read_request},
    posix::sys,
};

/// `BEEGFS_IOC_GET_RUNTIME_CFG_FILE` fills in a path; a number follows that is
/// not used.
const GET_CONFIGURATION: u64 = read_request(b'f', 23, CONFIGURATION_BYTES as u64);
const PATH_BYTES: usize = 4096;
const CONFIGURATION_BYTES: usize = PATH_BYTES + 4;

/// What the client guarantees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClientSettings {
    pub(crate) coherence: Coherence,
    pub(crate) locks: LockReach,
}

impl ClientSettings {
    /// Those of BeeGFS if nothing is configured: each client has write-back
    /// buffers of its own, and range locks are not passed to the servers.
    pub(crate) const DEFAULT: ClientSettings = ClientSettings {
        coherence: Coherence::WithinNode,
        locks: LockReach::Node,
    };

    /// The settings of the client of an open file or directory, mounted with
    /// these options. The defaults where they cannot be read.
    pub(crate) fn find(control: &Control, file: BorrowedFd<'_>, options: &str) -> ClientSettings {
        let text = |path: PathBuf| fs::read_to_string(path).ok();
        let running = running_configuration(control, file).and_then(text);
        let text = running.or_else(|| configured_file(options).and_then(text));
        text.map_or(ClientSettings::DEFAULT, |text| ClientSettings::parse(&text))
    }

    /// From lines `name = value`; `#` starts a comment.
    fn parse(text: &str) -> ClientSettings {
        let mut settings = ClientSettings::DEFAULT;
        for line in text.lines() {
            let Some((name, value)) = line.split_once('=') else {
                continue;
            };
            match (name.trim(), value.trim()) {
                ("tuneFileCacheType", cache) => {
                    settings.coherence = match cache {
                        "none" => Coherence::Everywhere,
                        _ => ClientSettings::DEFAULT.coherence,
                    }
                }
                ("tuneUseGlobalFileLocks", is_global) => {
                    settings.locks = match is_global {
                        "true" | "1" | "yes" | "on" => LockReach::Everywhere,
                        _ => ClientSettings::DEFAULT.locks,
                    }
                }
                _ => {}
            }
        }
        settings
    }
}

/// The file with the running configuration.
fn running_configuration(control: &Control, file: BorrowedFd<'_>) -> Option<PathBuf> {
    let mut answer = [0; CONFIGURATION_BYTES];
    let argument = IoctlArgument::Structure(&mut answer);
    if control.ioctl(file, GET_CONFIGURATION, argument).is_err() {
        // Descriptors that only stand for a path allow no requests.
        let readable = sys::reopen(file, libc::O_RDONLY | libc::O_NONBLOCK).ok()?;
        let argument = IoctlArgument::Structure(&mut answer);
        let answered = control.ioctl(readable.as_fd(), GET_CONFIGURATION, argument);
        answered.ok()?;
    }
    let path = CStr::from_bytes_until_nul(&answer).ok()?;
    let path = Path::new(OsStr::from_bytes(path.to_bytes()));
    path.is_absolute().then(|| path.to_owned())
}

/// The file that the mount options name.
fn configured_file(options: &str) -> Option<PathBuf> {
    let path = options
        .split(',')
        .find_map(|option| option.strip_prefix("cfgFile="))?;
    Some(path.into())
}

#[cfg(test)]
mod tests {
    use std::{os::fd::AsFd, sync::Arc};

    use super::*;
    use crate::doubles::beegfs::BeegfsDouble;

    const COHERENT: ClientSettings = ClientSettings {
        coherence: Coherence::Everywhere,
        locks: LockReach::Node,
    };

    /// The lines are constructed after the client's sources (BeeGFS 7), which
    /// print truth values as numbers, and after its configuration file.
    #[test]
    fn settings_are_read_and_anything_else_is_the_default() {
        let of = ClientSettings::parse;
        assert_eq!(of("logLevel = 3\ntuneFileCacheType = none\n"), COHERENT);
        let locking = of("tuneUseGlobalFileLocks = 1\ntuneFileCacheType = buffered");
        assert_eq!(locking.locks, LockReach::Everywhere);
        assert_eq!(locking.coherence, Coherence::WithinNode);
        let both = "tuneFileCacheType             = none\ntuneUseGlobalFileLocks        = true";
        assert_eq!(of(both).locks, LockReach::Everywhere);
        for other in [
            "",
            "tuneFileCacheType = native",
            "tuneFileCacheType = paged",
            "tuneFileCacheType = nonesuch",
            "tuneFileCacheType",
            "#tuneFileCacheType = none",
            "tuneFileCacheTypes = none",
            "tuneFileCacheType = none\ntuneFileCacheType = native",
            "tuneUseGlobalFileLocks = 0",
            "tuneUseGlobalFileLocks = ",
        ] {
            assert_eq!(of(other), ClientSettings::DEFAULT, "{other:?}");
        }
    }

    #[test]
    fn the_running_configuration_takes_precedence_over_the_configured_one() {
        let directory = tempfile::tempdir().unwrap();
        let file = fs::File::open(directory.path()).unwrap();
        let configured = directory.path().join("configured");
        fs::write(&configured, "tuneFileCacheType = none").unwrap();
        let options = format!("rw,cfgFile={},_netdev", configured.display());
        let find = |double: BeegfsDouble, options: &str| {
            let control: Control = Arc::new(double);
            ClientSettings::find(&control, file.as_fd(), options)
        };
        let silent = || BeegfsDouble::new(directory.path());
        let running = |text: &str| {
            let path = directory.path().join("running");
            fs::write(&path, text).unwrap();
            silent().with_configuration(&path)
        };
        assert_eq!(find(silent(), "rw"), ClientSettings::DEFAULT);
        assert_eq!(
            find(silent(), "rw,cfgFile=/nowhere"),
            ClientSettings::DEFAULT
        );
        assert_eq!(find(silent(), &options), COHERENT);
        let buffered = running("tuneFileCacheType = buffered");
        assert_eq!(find(buffered, &options), ClientSettings::DEFAULT);
        assert_eq!(find(running("tuneFileCacheType = none"), "rw"), COHERENT);
    }
}
