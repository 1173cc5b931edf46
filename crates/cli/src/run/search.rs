//! Programs by name.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Where programs are looked for when PATH is not set: what the C library does.
const USUAL_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// The folders of programs, in order.
pub(crate) fn folders() -> Vec<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_else(|| USUAL_PATH.into());
    env::split_paths(&path).collect()
}

/// The file that is started under a name: a path as it is, a bare name from the search path.
pub(crate) fn find(name: &OsStr) -> Option<PathBuf> {
    let path = Path::new(name);
    if path.components().count() > 1 || path.is_absolute() {
        return is_executable(path).then(|| path.to_owned());
    }
    let mut files = folders().into_iter().map(|folder| folder.join(name));
    files.find(|file| is_executable(file))
}

/// Whether a file can be started by somebody.
pub(crate) fn is_executable(path: &Path) -> bool {
    const ANYBODY: u32 = 0o111;
    fs::metadata(path)
        .is_ok_and(|found| found.is_file() && found.permissions().mode() & ANYBODY != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_searched_and_paths_are_not() {
        let shell = find(OsStr::new("sh")).unwrap();
        assert!(shell.is_absolute());
        assert_eq!(find(shell.as_os_str()), Some(shell));
        assert_eq!(find(OsStr::new("no-such-program")), None);
        assert_eq!(find(OsStr::new("./sh")), None);
        assert_eq!(find(OsStr::new("/etc")), None, "a folder is no program");
    }
}
