//! The mount table, `/proc/self/mountinfo`, and what is known about its file systems.
//!
//! For many file systems, asking for the kind is a request to a server. So the answers are kept
//! until the kernel reports that the table has changed: then a mount number may stand for another
//! file system.

use std::{
    collections::HashMap,
    ffi::OsString,
    fs::File,
    io::{self, Read, Seek},
    os::{
        fd::{AsFd, BorrowedFd},
        unix::ffi::OsStringExt,
    },
    path::PathBuf,
    sync::{Mutex, MutexGuard, PoisonError},
};

use crate::{
    per_process::PerProcess,
    posix::sys::{self, Extended},
};

const TABLE: &str = "/proc/self/mountinfo";

/// The length of a usual table.
const TABLE_BYTES: usize = 32 << 10;

/// One line of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mount {
    pub(crate) number: u64,
    /// The directory of the file system that is mounted.
    pub(crate) root: PathBuf,
    pub(crate) point: PathBuf,
    pub(crate) kind: String,
    /// The device or server.
    pub(crate) source: String,
    /// Options of the file system, separated by commas.
    pub(crate) options: String,
}

#[cfg(test)]
impl Mount {
    /// A mount of which only the place is known.
    pub(crate) fn at(point: &str) -> Mount {
        Mount {
            number: 0,
            root: PathBuf::from("/"),
            point: point.into(),
            kind: String::new(),
            source: String::new(),
            options: String::new(),
        }
    }
}

/// A mounted file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mounted {
    pub(super) magic: u32,
    /// Its line of the table, if it has one.
    pub(super) mount: Option<Mount>,
}

/// The file systems looked up since the table last changed.
#[derive(Debug)]
struct Known {
    /// Open to learn of changes; nothing is kept without it.
    table: Option<File>,
    /// How often it has changed.
    changes: u64,
    /// By mount number and device.
    mounted: HashMap<(u64, u64), Mounted>,
}

static KNOWN: PerProcess<Mutex<Known>> = PerProcess::new();

fn key(extended: &Extended) -> (u64, u64) {
    (extended.mount, extended.device)
}

impl Known {
    fn lock() -> MutexGuard<'static, Known> {
        let known = KNOWN.get_or_make(|| {
            Mutex::new(Known {
                table: File::open(TABLE).ok(),
                changes: 0,
                mounted: HashMap::new(),
            })
        });
        let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
        let is_current = known.table.as_ref().is_some_and(|table| {
            // The kernel reports a change once.
            matches!(sys::has_exception(table.as_fd()), Ok(false))
        });
        if !is_current {
            known.changes += 1;
            known.mounted.clear();
        }
        known
    }

    /// The mount with this number in the table that is watched: another mount namespace, which
    /// the process may have entered since, has a table of its own.
    fn watched(&mut self, number: u64) -> Option<Mount> {
        let table = self.table.as_mut()?;
        table.rewind().ok()?;
        look_up(number, table)
    }
}

/// The mounted file system of a file, if it has been looked up since the table last changed.
pub(super) fn known(extended: &Extended) -> Option<Mounted> {
    Known::lock().mounted.get(&key(extended)).cloned()
}

/// The mounted file system of an open file.
pub(super) fn of_file(fd: BorrowedFd<'_>, extended: &Extended) -> io::Result<Mounted> {
    let changes = {
        let known = Known::lock();
        if let Some(mounted) = known.mounted.get(&key(extended)) {
            return Ok(mounted.clone());
        }
        known.changes
    };
    // Not under the lock: a server may not respond.
    let magic = sys::magic(fd)?;
    let mut known = Known::lock();
    if let Some(mount) = known.watched(extended.mount) {
        let mounted = Mounted {
            magic,
            mount: Some(mount),
        };
        if known.changes == changes {
            known.mounted.insert(key(extended), mounted.clone());
        }
        return Ok(mounted);
    }
    drop(known);
    let mount = File::open(TABLE).ok();
    let mount = mount.and_then(|mut table| look_up(extended.mount, &mut table));
    Ok(Mounted { magic, mount })
}

fn look_up(number: u64, table: &mut File) -> Option<Mount> {
    // Files of /proc have no length: with space for all of a usual table, one call reads it.
    let mut text = Vec::with_capacity(TABLE_BYTES);
    table.read_to_end(&mut text).ok()?;
    text.split(|&byte| byte == b'\n')
        .filter_map(parse)
        .find(|mount| mount.number == number)
}

/// `36 35 98:0 /root /point options [optional fields] - type source options`
fn parse(line: &[u8]) -> Option<Mount> {
    let mut fields = line.split(|&byte| byte == b' ');
    let number = std::str::from_utf8(fields.next()?).ok()?.parse().ok()?;
    let (root, point) = (fields.nth(2)?, fields.next()?);
    let mut fields = fields.skip_while(|&field| field != b"-").skip(1);
    let kind = fields.next()?;
    let mut text = || {
        let field = unescape(fields.next().unwrap_or_default());
        String::from_utf8_lossy(&field).into_owned()
    };
    let path = |field| PathBuf::from(OsString::from_vec(unescape(field)));
    Some(Mount {
        number,
        root: path(root),
        point: path(point),
        kind: String::from_utf8_lossy(kind).into_owned(),
        source: text(),
        options: text(),
    })
}

/// The table escapes blanks and backslashes as three octal digits.
fn unescape(field: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&first, tail)) = rest.split_first() {
        let code = tail.get(..3).filter(|_| first == b'\\').and_then(octal);
        bytes.push(code.unwrap_or(first));
        rest = if code.is_some() { &tail[3..] } else { tail };
    }
    bytes
}

fn octal(digits: &[u8]) -> Option<u8> {
    u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok()
}

#[cfg(test)]
mod tests {
    use std::{path::Path, process::Command};

    use super::*;

    fn mounted_at(path: &Path) -> ((u64, u64), Mounted) {
        let file = File::open(path).unwrap();
        let extended = sys::extended(file.as_fd()).unwrap();
        let mounted = of_file(file.as_fd(), &extended).unwrap();
        ((extended.mount, extended.device), mounted)
    }

    #[test]
    fn file_systems_are_looked_up_once() {
        // Something else on the machine may be mounted at any moment.
        let is_kept = |_| {
            let (key, root) = mounted_at(Path::new("/"));
            Known::lock().mounted.get(&key) == Some(&root)
        };
        assert!((0..10).any(is_kept));
    }

    fn run(program: &str, arguments: &[&str]) -> bool {
        let status = Command::new(program).args(arguments).status();
        status.is_ok_and(|status| status.success())
    }

    /// In a mount namespace of its own, which takes privileges.
    #[test]
    fn another_file_system_in_the_same_place_is_found() {
        let private = ["--mount", "--propagation", "private"];
        if !run("unshare", &[&private[..], &["true"]].concat()) {
            eprintln!("skipped: no mount namespace can be made");
            return;
        }
        let test = std::env::current_exe().unwrap();
        let name = concat!(module_path!(), "::remounted");
        let name = name.split_once("::").unwrap().1;
        let inner = ["env", PRIVATE, test.to_str().unwrap()];
        let inner = [&inner[..], &["--exact", "--ignored", name]].concat();
        assert!(run("unshare", &[&private[..], &inner].concat()));
    }

    /// What the test above sets for the one below.
    const PRIVATE: &str = "PARIO_TEST_PRIVATE_MOUNTS=1";

    #[test]
    #[ignore = "run by the test above"]
    fn remounted() {
        if std::env::var_os(PRIVATE.split_once('=').unwrap().0).is_none() {
            return;
        }
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        let place = path.to_str().unwrap();
        let kind_of = |mounted: Mounted| mounted.mount.unwrap().kind;
        for kind in ["tmpfs", "ramfs", "tmpfs"] {
            assert!(run("mount", &["-t", kind, kind, place]));
            let (key, first) = mounted_at(path);
            assert!(Known::lock().mounted.contains_key(&key), "kept");
            assert_eq!(mounted_at(path), (key, first.clone()));
            assert_eq!(kind_of(first), kind);
            assert!(run("umount", &[place]));
        }
    }

    #[test]
    fn lines_with_and_without_optional_fields() {
        let line = b"36 35 98:0 /sub /a\\040b\\134c rw,noatime master:1 shared:2 - fuse.x src rw";
        let mount = parse(line).unwrap();
        assert_eq!((mount.number, mount.kind.as_str()), (36, "fuse.x"));
        assert_eq!(mount.point, PathBuf::from("/a b\\c"));
        assert_eq!(mount.root, PathBuf::from("/sub"));
        assert_eq!(
            (mount.source.as_str(), mount.options.as_str()),
            ("src", "rw")
        );
        assert_eq!(
            parse(b"27 1 254:0 / / rw - ext4 /dev/vda rw").unwrap().kind,
            "ext4"
        );
    }

    #[test]
    fn malformed_lines_are_ignored() {
        for line in [
            &b""[..],
            b"x",
            b"1 2 3 4",
            b"1 2 3 / /p rw",
            b"1 2 3 / /p rw -",
        ] {
            assert_eq!(parse(line), None);
        }
        assert_eq!(unescape(b"a\\04"), b"a\\04");
        assert_eq!(unescape(b"\\999"), b"\\999");
    }
}
