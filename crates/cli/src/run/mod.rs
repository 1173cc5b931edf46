//! `pario run` and `pario exec`: programs with the drop-in library preloaded.
//!
//! Both end by becoming the program, so that signals reach it and its exit status is ours.

pub(crate) mod launcher;
pub(crate) mod library;
mod search;
mod variables;

use std::convert::Infallible;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) use search::{
    directories as program_directories, find as find_program, find_all as find_programs,
};

use crate::facts;
use crate::failure::Failure;
use launcher::Launcher;
use variables::Variables;

/// The options of `pario run` and `pario exec`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// A hint for every file; may be repeated [see `pario hints`]
    #[arg(long, value_name = "NAME=VALUE", value_parser = facts::parse_hint)]
    hint: Vec<(String, String)>,
    /// Make rank 0 report which MPI, driver, methods and hints are in use
    #[arg(long, short)]
    verbose: bool,
    /// The library to preload [default: that of PARIO_LIBRARY, or of this installation]
    #[arg(long, value_name = "FILE")]
    library: Option<PathBuf>,
    /// The command, as in `mpirun -n 4 ./program arguments`
    #[arg(
        value_name = "COMMAND",
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    command: Vec<OsString>,
}

/// Starts a launcher whose ranks have the library preloaded, or a program without ranks.
pub(crate) fn run(arguments: &Arguments) -> Result<Infallible, Failure> {
    let (program, words) = program(&arguments.command)?;
    let variables = arguments.variables()?;
    let launcher = Launcher::of(&program);
    let line = launcher.pass_on(&variables, words);
    become_program(&program, &line.words, line.environment)
}

/// Executes a program with the library preloaded, for launchers that cannot pass
/// variables to ranks.
pub(crate) fn exec(arguments: &Arguments) -> Result<Infallible, Failure> {
    let (program, words) = program(&arguments.command)?;
    let variables = arguments.variables()?;
    let line = Launcher::Environment.pass_on(&variables, words);
    become_program(&program, &line.words, line.environment)
}

impl Arguments {
    fn variables(&self) -> Result<Variables, Failure> {
        let library = library::find(self.library.as_deref())?;
        check_hints(&self.hint).map_err(Failure::Arguments)?;
        let verbosity = match self.verbose {
            true => variables::Verbosity::Report,
            false => variables::Verbosity::AsBefore,
        };
        Variables::new(&library, &self.hint, verbosity).map_err(Failure::Arguments)
    }
}

/// Invalid hints are an error here: the library's warnings are easily missed in a program's output.
fn check_hints(hints: &[(String, String)]) -> Result<(), String> {
    if let Some((name, _)) = hints.iter().find(|(name, _)| !facts::is_hint(name)) {
        return Err(facts::unknown_hint(name));
    }
    let (_, warnings) = facts::hints(hints)?;
    warnings.into_iter().next().map_or(Ok(()), Err)
}

/// The file of the program that a command names, and the rest of the command.
fn program(command: &[OsString]) -> Result<(PathBuf, &[OsString]), Failure> {
    let (name, words) = command
        .split_first()
        .expect("clap asks for at least one word");
    let program = search::find(name).ok_or_else(|| {
        Failure::Arguments(format!(
            "cannot find the program {}: {}",
            name.display(),
            match Path::new(name).components().count() {
                0 | 1 => "it is not in PATH",
                _ => "no such file, or not executable",
            }
        ))
    })?;
    Ok((program, words))
}

fn become_program(
    program: &Path,
    words: &[OsString],
    environment: Vec<(OsString, OsString)>,
) -> Result<Infallible, Failure> {
    let error = Command::new(program).args(words).envs(environment).exec();
    Err(Failure::file("start", program)(error))
}
