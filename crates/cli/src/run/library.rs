//! Finds libpario.so.

use std::env;
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// The file's name.
pub(crate) const NAME: &str = "libpario.so";

/// The variable that gives its path.
pub(crate) const VARIABLE: &str = "PARIO_LIBRARY";

/// Where the library is, relative to this command: in an installation, or in cargo's target
/// directory.
const PLACES: [&str; 3] = ["../lib", "../lib64", "."];

/// The library: the one that is `asked` for, the one given by the environment, or the one that
/// belongs to this command.
pub(crate) fn find(asked: Option<&Path>) -> Result<PathBuf, Failure> {
    let named = env::var_os(VARIABLE).filter(|value| !value.is_empty());
    let named = asked
        .map(Path::to_owned)
        .or_else(|| named.map(PathBuf::from));
    let own = || {
        let program = env::current_exe().unwrap_or_default();
        beside(&program)
    };
    let candidates = named.map_or_else(own, |named| vec![named]);
    let found = candidates.iter().find(|file| file.is_file());
    let found = found.ok_or_else(|| Failure::Arguments(missing(&candidates)))?;
    // Ranks may start in other directories.
    let path = found.canonicalize().unwrap_or_else(|_| found.clone());
    check_name(&path).map_err(Failure::Arguments)?;
    Ok(path)
}

/// Places of the library that belongs to a program.
fn beside(program: &Path) -> Vec<PathBuf> {
    let directory = program.parent().unwrap_or(Path::new("."));
    let places = PLACES.iter().map(|place| directory.join(place).join(NAME));
    places.collect()
}

fn missing(candidates: &[PathBuf]) -> String {
    let tried: Vec<_> = candidates
        .iter()
        .map(|it| it.display().to_string())
        .collect();
    format!(
        "cannot find {NAME}: there is no {}; build it with `cargo build --release`, install it with \
         `cargo xtask install PREFIX`, or set {VARIABLE} to its path",
        tried.join(" and no ")
    )
}

/// The dynamic linker splits LD_PRELOAD at these, and has no quotes.
fn check_name(path: &Path) -> Result<(), String> {
    match path.to_string_lossy().contains([' ', ':', '\t', '\n']) {
        true => Err(format!(
            "{} cannot be preloaded: paths in LD_PRELOAD must not contain spaces or colons; copy it to \
             another directory",
            path.display()
        )),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_installation_and_a_build_directory_are_looked_at() {
        let places = beside(Path::new("/opt/pario/bin/pario"));
        assert!(places.contains(&PathBuf::from("/opt/pario/bin/../lib/libpario.so")));
        assert!(places.contains(&PathBuf::from("/opt/pario/bin/./libpario.so")));
    }

    #[test]
    fn what_is_missing_is_named() {
        let failure = find(Some(Path::new("/nowhere/libpario.so"))).unwrap_err();
        let text = failure.to_string();
        assert!(text.contains("there is no /nowhere/libpario.so;"), "{text}");
    }

    #[test]
    fn names_that_cannot_be_preloaded_are_rejected() {
        assert!(check_name(Path::new("/a b/libpario.so")).is_err());
        assert!(check_name(Path::new("/a:b/libpario.so")).is_err());
        assert!(check_name(Path::new("/a-b/libpario.so")).is_ok());
    }
}
