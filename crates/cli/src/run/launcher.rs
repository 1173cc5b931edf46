//! Launchers, and how each passes environment variables to ranks.
//!
//! Setting the environment of the launcher itself is not enough: Open MPI's does not pass it to
//! other nodes, and others can be configured not to. Nor is it desirable: the launcher and its
//! helpers are not MPI programs.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::{Command, Stdio};

use super::search::find;
use super::variables::{PRELOAD, Variables};

/// A kind of launcher, by how its ranks get a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Launcher {
    /// Open MPI: `-x NAME=value`, for each program on the command line.
    OpenMpi,
    /// MPICH, Intel MPI and other derivatives: `-genv NAME value`, once.
    Hydra,
    /// Slurm: `--export=ALL,NAME=value`.
    Slurm,
    /// IBM's jsrun: `-E NAME=value`.
    Jsrun,
    /// Cray's aprun: `-e NAME=value`, for each program on the command line.
    Aprun,
    /// Any other program: the environment that it inherits.
    Environment,
}

/// Launchers that are identified by name.
const NAMES: [(&str, Launcher); 7] = [
    ("orterun", Launcher::OpenMpi),
    ("prterun", Launcher::OpenMpi),
    ("ompirun", Launcher::OpenMpi),
    ("mpiexec.hydra", Launcher::Hydra),
    ("srun", Launcher::Slurm),
    ("jsrun", Launcher::Jsrun),
    ("aprun", Launcher::Aprun),
];

/// Names shared by many launchers, with or without a suffix.
pub(crate) const COMMON_NAMES: [&str; 2] = ["mpirun", "mpiexec"];

/// Words in the version output of launchers with common names.
const WORDS: [(&str, Launcher); 6] = [
    ("open mpi", Launcher::OpenMpi),
    ("openrte", Launcher::OpenMpi),
    ("prrte", Launcher::OpenMpi),
    ("hydra", Launcher::Hydra),
    ("intel(r) mpi", Launcher::Hydra),
    ("slurm", Launcher::Slurm),
];

/// Separates the programs on a command line, each with its own options.
const SEPARATOR: &str = ":";

/// Slurm's option for the environment of ranks.
const EXPORT_OPTION: &str = "--export";

/// Slurm's variable equivalent to `--export`.
const SLURM_EXPORT: &str = "SLURM_EXPORT_ENV";

/// A launcher's arguments, and additions to its environment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) words: Vec<OsString>,
    pub(super) environment: Vec<(OsString, OsString)>,
}

impl Launcher {
    /// The kind of a program, by its name or its version output.
    pub(crate) fn of(program: &Path) -> Launcher {
        let by_name = |path: &Path| {
            let name = path.file_name()?.to_str()?;
            let mut names = NAMES.iter();
            names.find_map(|(known, launcher)| (*known == name).then_some(*launcher))
        };
        let resolved = program.canonicalize().ok();
        by_name(program)
            .or_else(|| resolved.as_deref().and_then(by_name))
            .or_else(|| has_common_name(program).then(|| Self::of_words(&version_text(program))))
            .unwrap_or(Launcher::Environment)
    }

    fn of_words(words: &str) -> Launcher {
        let words = words.to_lowercase();
        let known = WORDS.iter().find(|(word, _)| words.contains(word));
        known.map_or(Launcher::Environment, |(_, launcher)| *launcher)
    }

    /// The name of the family.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Launcher::OpenMpi => "Open MPI",
            Launcher::Hydra => "Hydra (MPICH and derivatives)",
            Launcher::Slurm => "Slurm",
            Launcher::Jsrun => "jsrun",
            Launcher::Aprun => "aprun",
            Launcher::Environment => "unknown",
        }
    }

    /// The command line of a launcher whose ranks get these variables. The library is appended to a
    /// value of LD_PRELOAD that the line already has.
    pub(super) fn pass_on(self, variables: &Variables, words: &[OsString]) -> Line {
        let programs = words.split(|word| word == SEPARATOR);
        let mut line = Line::default();
        for (index, program) in programs.enumerate() {
            if index > 0 {
                line.words.push(SEPARATOR.into());
            }
            let (program, preload) = with_library(program, variables);
            if index == 0 || matches!(self, Launcher::OpenMpi | Launcher::Aprun) {
                line.words.extend(self.options(variables, preload));
            }
            line.words.extend(program);
        }
        match self {
            Launcher::Slurm => export(&mut line, variables),
            Launcher::Environment => line.environment = owned(variables.all()),
            _ => {}
        }
        line
    }

    fn options(self, variables: &Variables, preload: Preload) -> Vec<OsString> {
        // Open MPI 5 takes the first of two values, others the last: there must be one.
        let preload =
            (preload == Preload::Unset).then_some((OsStr::new(PRELOAD), variables.preload()));
        let all = preload.into_iter().chain(variables.others());
        let assigned = |option: &str| -> Vec<OsString> {
            let words = |(name, value)| [option.into(), assignment(name, value)];
            all.clone().flat_map(words).collect()
        };
        match self {
            Launcher::OpenMpi => assigned("-x"),
            Launcher::Jsrun => assigned("-E"),
            Launcher::Aprun => assigned("-e"),
            Launcher::Hydra => {
                let words = |(name, value): (&OsStr, &OsStr)| {
                    ["-genv".into(), name.to_owned(), value.to_owned()]
                };
                all.flat_map(words).collect()
            }
            Launcher::Slurm | Launcher::Environment => Vec::new(),
        }
    }
}

/// Whether a command line sets LD_PRELOAD itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Preload {
    Unset,
    Set,
}

/// The words of a program with the library added where they set LD_PRELOAD: `LD_PRELOAD=value`
/// after an option or `env`, `-genv LD_PRELOAD value`, `-x LD_PRELOAD`.
fn with_library(words: &[OsString], variables: &Variables) -> (Vec<OsString>, Preload) {
    let mut preload = Preload::Unset;
    let mut changed: Vec<OsString> = Vec::with_capacity(words.len());
    for (index, word) in words.iter().enumerate() {
        let before = |back: usize| index.checked_sub(back).and_then(|at| words[at].to_str());
        let new = match (word.to_str(), before(1), before(2)) {
            // A list, which `export` parses.
            (_, Some(EXPORT_OPTION), _) => None,
            (Some(PRELOAD), Some("-x"), _) => {
                Some(assignment(PRELOAD.as_ref(), variables.preload()))
            }
            (_, Some(PRELOAD), Some("-genv" | "-env")) => Some(variables.preload_after(word)),
            (Some(text), ..) => text.strip_prefix("LD_PRELOAD=").map(|value| {
                assignment(PRELOAD.as_ref(), &variables.preload_after(value.as_ref()))
            }),
            (None, ..) => None,
        };
        // `env LD_PRELOAD=…` before the program overrides the launcher's options anyway.
        if new.is_some() {
            preload = Preload::Set;
        }
        changed.push(new.unwrap_or_else(|| word.clone()));
    }
    (changed, preload)
}

/// Adds the variables to what Slurm exports.
fn export(line: &mut Line, variables: &Variables) {
    let (at, value) = match take_export(&mut line.words) {
        Some(found) => found,
        None => (0, env::var(SLURM_EXPORT).unwrap_or_else(|_| "ALL".into())),
    };
    // These stand alone; a list without ALL means just that list.
    let is_nothing = |entry: &str| ["", "NONE", "NIL"].contains(&entry.to_uppercase().as_str());
    let mut entries: Vec<OsString> = Vec::new();
    let mut preload = variables.preload().to_owned();
    for entry in value.split(',').filter(|entry| !is_nothing(entry)) {
        match entry
            .strip_prefix(PRELOAD)
            .map(|rest| rest.strip_prefix('='))
        {
            // The value is that of the environment, to which the library was added.
            Some(None) if entry == PRELOAD => {}
            Some(Some(value)) => preload = variables.preload_after(value.as_ref()),
            _ => entries.push(entry.into()),
        }
    }
    let preload = (OsStr::new(PRELOAD), preload.as_os_str());
    for (name, value) in std::iter::once(preload).chain(variables.others()) {
        // A comma ends a value here, so such a value goes through the launcher's environment.
        if value.to_string_lossy().contains(',') {
            line.environment.push((name.to_owned(), value.to_owned()));
            entries.push(name.to_owned());
        } else {
            entries.push(assignment(name, value));
        }
    }
    let mut option = OsString::from(EXPORT_OPTION);
    option.push("=");
    option.push(entries.join(OsStr::new(",")));
    line.words.insert(at, option);
}

/// Removes the launcher's last `--export=value` or `--export value` from a command line; returns
/// its position and value.
fn take_export(words: &mut Vec<OsString>) -> Option<(usize, String)> {
    let own = before_program(words);
    let rest = |word: &OsString| {
        word.to_str()?
            .strip_prefix(EXPORT_OPTION)
            .map(str::to_owned)
    };
    let found = words[..own]
        .iter()
        .rposition(|word| rest(word).is_some_and(|rest| rest.is_empty() || rest.starts_with('=')));
    let at = found?;
    let option = words.remove(at);
    let value = match rest(&option)?.strip_prefix('=') {
        Some(value) => value.to_owned(),
        None if at < words.len() => words.remove(at).to_string_lossy().into_owned(),
        None => String::new(),
    };
    Some((at, value))
}

/// Letters of Slurm's options that are followed by a value, and of those that are not.
const SLURM_VALUED: &str = "AaBbCcDdeFGiJLMmNnopqrSTtWwx";
const SLURM_FLAGS: &str = "EHhIKklOQsuVvXZ";

/// The number of words before the program: Slurm's options and their values.
///
/// Only Slurm knows whether a long option takes a value. A word after one is taken as its
/// value, unless it is executable or the option already has a value.
fn before_program(words: &[OsString]) -> usize {
    let is_option = |word: &OsString| word.as_encoded_bytes().starts_with(b"-");
    let is_value = |word: &OsString, before: &OsString| match before.as_encoded_bytes() {
        [b'-', letter] if SLURM_VALUED.as_bytes().contains(letter) => true,
        [b'-', letter] if SLURM_FLAGS.as_bytes().contains(letter) => false,
        option => option.starts_with(b"-") && !option.contains(&b'=') && find(word).is_none(),
    };
    let is_program = |(at, word): (usize, &OsString)| {
        let is_value = at > 0 && is_value(word, &words[at - 1]);
        !is_option(word) && !is_value
    };
    let program = words.iter().enumerate().position(is_program);
    program.unwrap_or(words.len())
}

fn assignment(name: &OsStr, value: &OsStr) -> OsString {
    [name, OsStr::new("="), value].into_iter().collect()
}

fn owned<'a>(variables: impl Iterator<Item = (&'a OsStr, &'a OsStr)>) -> Vec<(OsString, OsString)> {
    let pair = |(name, value): (&OsStr, &OsStr)| (name.to_owned(), value.to_owned());
    variables.map(pair).collect()
}

/// `mpirun`, `mpirun.openmpi`, `mpiexec-mpich`, but not `mpirun_rsh_helper`.
pub(crate) fn is_common_launcher(name: &str) -> bool {
    COMMON_NAMES.iter().any(|common| {
        let rest = name.strip_prefix(common);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '-']))
    })
}

fn has_common_name(program: &Path) -> bool {
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    COMMON_NAMES.iter().any(|common| name.starts_with(common))
}

/// The version output of a launcher; empty if it fails.
pub(crate) fn version_text(program: &Path) -> String {
    let asked = Command::new(program)
        .arg("--version")
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output();
    let printed = asked.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    printed.unwrap_or_default()
}

#[cfg(test)]
mod tests;
