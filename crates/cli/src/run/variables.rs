//! The environment variables that every rank needs.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// Libraries that the dynamic linker loads first.
pub(super) const PRELOAD: &str = "LD_PRELOAD";

/// Hints for every file.
const HINTS: &str = "PARIO_HINTS";

/// Requests a report of what is in use.
const VERBOSE: &str = "PARIO_VERBOSE";

/// Variables with this prefix are meant for the library on every node.
const OURS: &str = "PARIO_";

/// Whether rank 0 reports what is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verbosity {
    Report,
    /// As in the environment.
    AsBefore,
}

/// The variables that every rank needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Variables {
    library: OsString,
    /// LD_PRELOAD unless the command line sets it: the previous value, then the library.
    preload: OsString,
    others: Vec<(OsString, OsString)>,
}

impl Variables {
    /// The variables of this process with the library and these hints added.
    pub(super) fn new(
        library: &Path,
        hints: &[(String, String)],
        verbosity: Verbosity,
    ) -> Result<Variables, String> {
        Self::from(env::vars_os(), library, hints, verbosity)
    }

    /// The same for an empty environment.
    #[cfg(test)]
    pub(super) fn clean(
        library: &Path,
        hints: &[(String, String)],
        verbosity: Verbosity,
    ) -> Result<Variables, String> {
        Self::from(std::iter::empty(), library, hints, verbosity)
    }

    fn from(
        environment: impl Iterator<Item = (OsString, OsString)>,
        library: &Path,
        hints: &[(String, String)],
        verbosity: Verbosity,
    ) -> Result<Variables, String> {
        let (mut preload, mut known, mut others) = (OsString::new(), String::new(), Vec::new());
        for (name, value) in environment {
            match name.to_str() {
                Some(PRELOAD) => preload = value,
                Some(HINTS) if !hints.is_empty() => known = value.to_string_lossy().into_owned(),
                Some(VERBOSE) if verbosity == Verbosity::Report => {}
                Some(super::library::VARIABLE) => {}
                Some(text) if text.starts_with(OURS) => others.push((name, value)),
                _ => {}
            }
        }
        if !hints.is_empty() {
            others.push((HINTS.into(), with_hints(&known, hints)?.into()));
        }
        if verbosity == Verbosity::Report {
            others.push((VERBOSE.into(), "1".into()));
        }
        let library = library.as_os_str().to_owned();
        let preload = with_library(&preload, &library);
        Ok(Variables {
            library,
            preload,
            others,
        })
    }

    /// All variables, LD_PRELOAD first.
    pub(super) fn all(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        let preload = (OsStr::new(PRELOAD), self.preload.as_os_str());
        std::iter::once(preload).chain(self.others())
    }

    /// All but LD_PRELOAD.
    pub(super) fn others(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> + Clone {
        self.others
            .iter()
            .map(|(name, value)| (name.as_os_str(), value.as_os_str()))
    }

    /// The value of LD_PRELOAD unless the command line sets it.
    pub(super) fn preload(&self) -> &OsStr {
        &self.preload
    }

    /// A value of LD_PRELOAD with the library added.
    pub(super) fn preload_after(&self, value: &OsStr) -> OsString {
        with_library(value, &self.library)
    }
}

/// A list of libraries with ours at the end: a tool that was there before stays in front and
/// sees the program's calls.
fn with_library(list: &OsStr, library: &OsStr) -> OsString {
    let text = list.to_string_lossy();
    let is_there = |word: &str| OsStr::new(word) == library;
    if text.split([' ', ':']).any(is_there) {
        return list.to_owned();
    }
    let mut joined = list.to_owned();
    if !list.is_empty() {
        joined.push(":");
    }
    joined.push(library);
    joined
}

/// Appends hints to existing ones: the last one counts.
fn with_hints(known: &str, hints: &[(String, String)]) -> Result<String, String> {
    if !known.trim().is_empty() && !known.contains('=') {
        return Err(format!(
            "{HINTS} names the file {known}, and --hint cannot add to it: put the hints into the \
             file, or into {HINTS} as name=value;name=value"
        ));
    }
    let mut entries = vec![known.trim().trim_end_matches(';').to_owned()];
    for (name, value) in hints {
        if value.contains(';') {
            return Err(format!(
                "the hint {name} cannot be `{value}`: `;` separates hints in {HINTS}"
            ));
        }
        entries.push(format!("{name}={value}"));
    }
    entries.retain(|entry| !entry.is_empty());
    Ok(entries.join(";"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(
        environment: &[(&str, &str)],
        hints: &[(&str, &str)],
        verbosity: Verbosity,
    ) -> Result<Vec<(String, String)>, String> {
        let own = |(name, value): &(&str, &str)| (OsString::from(name), OsString::from(value));
        let hints: Vec<_> = hints
            .iter()
            .map(|(name, value)| (name.to_string(), value.to_string()))
            .collect();
        let library = Path::new("/lib/libpario.so");
        let environment = environment.iter().map(own);
        let variables = Variables::from(environment, library, &hints, verbosity)?;
        let text = |it: &OsStr| it.to_string_lossy().into_owned();
        let all = variables.all();
        Ok(all.map(|(name, value)| (text(name), text(value))).collect())
    }

    fn pair(name: &str, value: &str) -> (String, String) {
        (name.to_owned(), value.to_owned())
    }

    #[test]
    fn the_library_comes_after_what_is_preloaded_already() {
        for (before, after) in [
            ("", "/lib/libpario.so"),
            ("/lib/libtool.so", "/lib/libtool.so:/lib/libpario.so"),
            ("a.so b.so", "a.so b.so:/lib/libpario.so"),
            ("/lib/libpario.so a.so", "/lib/libpario.so a.so"),
        ] {
            let all = variables(&[("LD_PRELOAD", before)], &[], Verbosity::AsBefore);
            assert_eq!(all, Ok(vec![pair("LD_PRELOAD", after)]));
        }
    }

    #[test]
    fn our_variables_are_passed_on() {
        let environment = [
            ("PARIO_DISABLE", "*.log"),
            ("HOME", "/"),
            ("PARIO_LIBRARY", "x"),
        ];
        let all = variables(&environment, &[("cb_nodes", "2")], Verbosity::Report).unwrap();
        let expected = [
            pair("LD_PRELOAD", "/lib/libpario.so"),
            pair("PARIO_DISABLE", "*.log"),
            pair("PARIO_HINTS", "cb_nodes=2"),
            pair("PARIO_VERBOSE", "1"),
        ];
        assert_eq!(all, expected);
    }

    #[test]
    fn hints_are_added_to_hints() {
        let with = |known, hints| variables(&[("PARIO_HINTS", known)], hints, Verbosity::AsBefore);
        let all = with("a=1;", &[("b", "2"), ("c", "3")]).unwrap();
        assert_eq!(all[1], pair("PARIO_HINTS", "a=1;b=2;c=3"));
        let all = with("hints.txt", &[]).unwrap();
        assert_eq!(all[1], pair("PARIO_HINTS", "hints.txt"));
        assert!(with("hints.txt", &[("b", "2")]).is_err());
        assert!(with("", &[("b", "2;3")]).is_err());
    }
}
