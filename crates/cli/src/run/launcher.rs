//! Launchers of ranks, and how each passes an environment variable to ranks.
//!
//! The environment of the launcher itself is not enough: Open MPI's does not carry it to other
//! nodes, and others can be told not to. It is not wanted either: the launcher and its helpers are
//! not MPI programs.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::{Command, Stdio};

use super::search::find;
use super::variables::{PRELOAD, Variables};

/// How ranks get a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Means {
    /// Open MPI: `-x NAME=value`, for each program of the line.
    OpenMpi,
    /// MPICH, Intel MPI and other derivatives: `-genv NAME value`, once.
    Hydra,
    /// Slurm: `--export=ALL,NAME=value`.
    Slurm,
    /// IBM's jsrun: `-E NAME=value`.
    Jsrun,
    /// Cray's aprun: `-e NAME=value`, for each program of the line.
    Aprun,
    /// Any other program: the environment that it inherits.
    Environment,
}

/// Launchers whose name says all.
const NAMES: [(&str, Means); 7] = [
    ("orterun", Means::OpenMpi),
    ("prterun", Means::OpenMpi),
    ("ompirun", Means::OpenMpi),
    ("mpiexec.hydra", Means::Hydra),
    ("srun", Means::Slurm),
    ("jsrun", Means::Jsrun),
    ("aprun", Means::Aprun),
];

/// Names that many launchers have, with or without something behind.
pub(crate) const COMMON_NAMES: [&str; 2] = ["mpirun", "mpiexec"];

/// Words by which launchers of common names call themselves.
const WORDS: [(&str, Means); 6] = [
    ("open mpi", Means::OpenMpi),
    ("openrte", Means::OpenMpi),
    ("prrte", Means::OpenMpi),
    ("hydra", Means::Hydra),
    ("intel(r) mpi", Means::Hydra),
    ("slurm", Means::Slurm),
];

/// Separates the programs of a line, each with its own options.
const SEPARATOR: &str = ":";

/// Slurm's option for what ranks have of the environment.
const EXPORT_OPTION: &str = "--export";

/// Slurm's variable for what `--export` says.
const SLURM_EXPORT: &str = "SLURM_EXPORT_ENV";

/// A launcher's arguments, and what is added to its environment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) words: Vec<OsString>,
    pub(super) environment: Vec<(OsString, OsString)>,
}

impl Means {
    /// That of a program, by its name or by what it says of itself.
    pub(crate) fn of(program: &Path) -> Means {
        let by_name = |path: &Path| {
            let name = path.file_name()?.to_str()?;
            let mut names = NAMES.iter();
            names.find_map(|(known, means)| (*known == name).then_some(*means))
        };
        let resolved = program.canonicalize().ok();
        by_name(program)
            .or_else(|| resolved.as_deref().and_then(by_name))
            .or_else(|| has_common_name(program).then(|| Self::of_words(&introduction(program))))
            .unwrap_or(Means::Environment)
    }

    /// Whose words these are.
    fn of_words(words: &str) -> Means {
        let words = words.to_lowercase();
        let known = WORDS.iter().find(|(word, _)| words.contains(word));
        known.map_or(Means::Environment, |(_, means)| *means)
    }

    /// The family in words.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Means::OpenMpi => "Open MPI",
            Means::Hydra => "Hydra (MPICH and derivatives)",
            Means::Slurm => "Slurm",
            Means::Jsrun => "jsrun",
            Means::Aprun => "aprun",
            Means::Environment => "unknown",
        }
    }

    /// The line of a launcher whose ranks get these variables. A wish for LD_PRELOAD that the line
    /// has already is kept, and the library added to it.
    pub(super) fn pass_on(self, variables: &Variables, words: &[OsString]) -> Line {
        let programs = words.split(|word| word == SEPARATOR);
        let mut line = Line::default();
        for (index, program) in programs.enumerate() {
            if index > 0 {
                line.words.push(SEPARATOR.into());
            }
            let (program, wish) = with_library(program, variables);
            if index == 0 || matches!(self, Means::OpenMpi | Means::Aprun) {
                line.words.extend(self.options(variables, wish));
            }
            line.words.extend(program);
        }
        match self {
            Means::Slurm => export(&mut line, variables),
            Means::Environment => line.environment = owned(variables.all()),
            _ => {}
        }
        line
    }

    fn options(self, variables: &Variables, wish: Wish) -> Vec<OsString> {
        // Open MPI 5 takes the first of two values, others the last: there must be one.
        let preload = (wish == Wish::None).then_some((OsStr::new(PRELOAD), variables.preload()));
        let all = preload.into_iter().chain(variables.others());
        let assigned = |option: &str| -> Vec<OsString> {
            let words = |(name, value)| [option.into(), assignment(name, value)];
            all.clone().flat_map(words).collect()
        };
        match self {
            Means::OpenMpi => assigned("-x"),
            Means::Jsrun => assigned("-E"),
            Means::Aprun => assigned("-e"),
            Means::Hydra => {
                let words = |(name, value): (&OsStr, &OsStr)| {
                    ["-genv".into(), name.to_owned(), value.to_owned()]
                };
                all.flat_map(words).collect()
            }
            Means::Slurm | Means::Environment => Vec::new(),
        }
    }
}

/// Whether a line says something about LD_PRELOAD itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wish {
    None,
    Given,
}

/// The words of a program with the library added where they set LD_PRELOAD: `LD_PRELOAD=value`
/// behind an option or `env`, `-genv LD_PRELOAD value`, `-x LD_PRELOAD`.
fn with_library(words: &[OsString], variables: &Variables) -> (Vec<OsString>, Wish) {
    let mut wish = Wish::None;
    let mut changed: Vec<OsString> = Vec::with_capacity(words.len());
    for (index, word) in words.iter().enumerate() {
        let before = |back: usize| index.checked_sub(back).and_then(|at| words[at].to_str());
        let new = match (word.to_str(), before(1), before(2)) {
            // A list, which `export` takes apart.
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
        // `env LD_PRELOAD=…` before the program wins over the launcher's options anyway.
        if new.is_some() {
            wish = Wish::Given;
        }
        changed.push(new.unwrap_or_else(|| word.clone()));
    }
    (changed, wish)
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
            // The value is that of the environment, which the library was added to.
            Some(None) if entry == PRELOAD => {}
            Some(Some(wish)) => preload = variables.preload_after(wish.as_ref()),
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

/// Takes the last `--export=value` or `--export value` of the launcher out of a line: its place
/// and value.
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

/// How many words come before the program: Slurm's options and their values.
///
/// Whether a long option takes a value is Slurm's knowledge. A word behind one is taken for its
/// value, unless it can be started or the option has its value already.
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

/// What a launcher says of itself; nothing if it cannot be asked.
pub(crate) fn introduction(program: &Path) -> String {
    let asked = Command::new(program)
        .arg("--version")
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output();
    let said = asked.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    said.unwrap_or_default()
}

#[cfg(test)]
mod tests;
