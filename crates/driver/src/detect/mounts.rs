//! The mount table, `/proc/self/mountinfo`.

use std::{
    collections::HashMap,
    ffi::OsString,
    fs::File,
    io::Read,
    os::unix::ffi::OsStringExt,
    path::PathBuf,
    sync::{Mutex, PoisonError},
};

use crate::per_process::PerProcess;

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

/// Mounts looked up so far, by mount number and magic number: mount numbers are
/// reused after an unmount.
static KNOWN: PerProcess<Mutex<HashMap<(u64, u32), Mount>>> = PerProcess::new();

/// The mount with this number and a file system with this magic number, if the
/// table has it. The table is read once per mount, since it is long on large
/// machines and files are opened often.
pub(super) fn with_number(number: u64, magic: u32) -> Option<Mount> {
    let known = KNOWN.get_or_make(Mutex::default);
    let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(mount) = known.get(&(number, magic)) {
        return Some(mount.clone());
    }
    let mount = look_up(number)?;
    known.insert((number, magic), mount.clone());
    Some(mount)
}

fn look_up(number: u64) -> Option<Mount> {
    // Files of /proc have no length: with space for all of a usual table, one call reads it.
    let mut table = Vec::with_capacity(TABLE_BYTES);
    File::open("/proc/self/mountinfo")
        .and_then(|mut file| file.read_to_end(&mut table))
        .ok()?;
    table
        .split(|&byte| byte == b'\n')
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
    use super::*;

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
