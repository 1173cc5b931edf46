//! Finds programs by name.

use std::collections::BTreeSet;
use std::env;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The search path if PATH is not set, as in the C library.
const USUAL_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// The directories of PATH, in order.
pub(crate) fn directories() -> Vec<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_else(|| USUAL_PATH.into());
    env::split_paths(&path).collect()
}

/// The executable with a name: a path is taken literally, a bare name is looked up in PATH.
pub(crate) fn find(name: &OsStr) -> Option<PathBuf> {
    let path = Path::new(name);
    if path.components().count() > 1 || path.is_absolute() {
        return is_executable(path).then(|| path.to_owned());
    }
    let mut files = directories()
        .into_iter()
        .map(|directory| directory.join(name));
    files.find(|file| is_executable(file))
}

/// Programs in PATH with matching names, each file once, in the order of PATH.
pub(crate) fn find_all(is_wanted: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let mut seen = BTreeSet::new();
    let mut programs = Vec::new();
    for directory in directories() {
        let entries = fs::read_dir(&directory).into_iter().flatten().flatten();
        let mut names: Vec<_> = entries.map(|entry| entry.file_name()).collect();
        names.retain(|name| is_wanted(&name.to_string_lossy()));
        names.sort();
        for program in names.into_iter().map(|name| directory.join(name)) {
            let file = program.canonicalize();
            if is_executable(&program) && file.is_ok_and(|it| seen.insert(it)) {
                programs.push(program);
            }
        }
    }
    programs
}

/// Whether a file is executable by anyone.
fn is_executable(path: &Path) -> bool {
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
        assert_eq!(
            find(OsStr::new("/etc")),
            None,
            "a directory is not a program"
        );
    }
}
