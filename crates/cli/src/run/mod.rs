//! `pario run` and `pario exec`: programs with the drop-in library in front of their MPI.
//!
//! Both end by becoming the program, so that signals reach it and its exit status is ours.

pub(crate) mod launcher;
pub(crate) mod library;
mod search;
mod variables;

use std::convert::Infallible;
use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) use search::{find as find_program, folders as program_folders};

use crate::failure::Failure;
use launcher::Means;
use variables::Variables;

/// What to start.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// A hint for every file; may be given several times [see `pario hints`]
    #[arg(long, value_name = "NAME=VALUE", value_parser = crate::facts::parse_hint)]
    hint: Vec<(String, String)>,
    /// Let rank 0 tell which MPI, driver, methods and hints are in force
    #[arg(long, short)]
    verbose: bool,
    /// The library to preload [default: libpario.so of this installation, or what the environment
    /// variable PARIO_LIBRARY names]
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

/// Starts a launcher whose ranks have the library preloaded, or a program that starts no ranks.
pub(crate) fn run(arguments: &Arguments) -> Result<Infallible, Failure> {
    let (program, words) = program(&arguments.command)?;
    let variables = arguments.variables()?;
    let means = Means::of(&program);
    let line = means.pass_on(&variables, words);
    become_program(&program, &line.words, line.environment)
}

/// Becomes a program with the library preloaded: what a rank is started with where the launcher
/// cannot be told.
pub(crate) fn exec(arguments: &Arguments) -> Result<Infallible, Failure> {
    let (program, words) = program(&arguments.command)?;
    let variables = arguments.variables()?;
    let line = Means::Environment.pass_on(&variables, words);
    become_program(&program, &line.words, line.environment)
}

impl Arguments {
    fn variables(&self) -> Result<Variables, Failure> {
        let library = library::find(self.library.as_deref())?;
        let verbosity = match self.verbose {
            true => variables::Verbosity::Report,
            false => variables::Verbosity::AsBefore,
        };
        Variables::new(&library, &self.hint, verbosity).map_err(Failure::Arguments)
    }
}

/// The file of the program that a command names, and the rest of the command.
fn program(command: &[OsString]) -> Result<(PathBuf, &[OsString]), Failure> {
    let (name, words) = command
        .split_first()
        .expect("clap asks for at least one word");
    let program = search::find(name).ok_or_else(|| {
        Failure::Arguments(format!(
            "cannot find the program {}: it is {}",
            name.display(),
            match Path::new(name).components().count() {
                0 | 1 => "in no folder of PATH",
                _ => "not there, or not executable",
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
    let source: io::Error = Command::new(program).args(words).envs(environment).exec();
    Err(Failure::Storage {
        action: "start",
        path: program.to_owned(),
        source,
    })
}
