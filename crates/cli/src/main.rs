//! The `pario` command.

mod bench;
mod compare;
mod doctor;
mod explain;
mod facts;
mod failure;
mod free;
mod json;
mod latency;
mod limits;
mod pages;
mod run;
mod stub;
mod workload;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

use failure::Failure;

/// Parallel files: run programs with pario in front of their MPI, measure, and look up what can be
/// tuned
#[derive(Parser)]
#[command(name = "pario", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Start an MPI program with pario in place of its MPI-IO: pario run -- mpirun -n 4 ./program
    Run(run::Arguments),
    /// Become a program with pario in place of its MPI-IO, for launchers that `run` cannot tell:
    /// launcher -n 4 pario exec -- ./program
    Exec(run::Arguments),
    /// Tell what is there, what would be used and what is missing: MPIs, file systems, limits
    Doctor(doctor::Arguments),
    /// Write and read what parallel programs do with every method, check every byte, compare speeds
    Bench(bench::Arguments),
    /// Tell how a collective call would be carried out, and why not otherwise
    Explain(explain::Arguments),
    /// Print the page about hints: names, defaults, allowed values
    Hints,
    /// Make a library to load in place of libmpi, for programs that look functions up in it
    Stub(stub::Arguments),
    /// Print a script for a shell that completes the words of this command
    Completions(pages::Completions),
    /// Write the manual's pages to a folder
    Man(pages::Manual),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let mut out = io::stdout().lock();
    let outcome = match arguments.command {
        Command::Run(arguments) => run::run(&arguments).map(|never| match never {}),
        Command::Exec(arguments) => run::exec(&arguments).map(|never| match never {}),
        Command::Doctor(arguments) => doctor::run(&arguments, &mut out),
        Command::Bench(arguments) => bench::run(&arguments, &mut out),
        Command::Explain(arguments) => explain::run(&arguments, &mut out),
        Command::Hints => out
            .write_all(pario_hints::markdown().as_bytes())
            .map_err(Failure::Output),
        Command::Stub(arguments) => stub::run(&arguments, &mut out),
        Command::Completions(arguments) => {
            pages::completions(&arguments, Arguments::command(), &mut out)
        }
        Command::Man(arguments) => pages::manual(&arguments, Arguments::command(), &mut out),
    };
    match outcome.and_then(|()| out.flush().map_err(Failure::Output)) {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever reads our output has seen enough, as in `pario hints | head`.
        Err(Failure::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
            ExitCode::SUCCESS
        }
        Err(failure) => {
            if !matches!(failure, Failure::Told { .. }) {
                eprintln!("pario: {failure}");
            }
            failure.exit_code()
        }
    }
}
