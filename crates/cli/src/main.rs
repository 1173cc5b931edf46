//! The `pario` command.

mod bench;
mod child;
mod compare;
mod doctor;
mod explain;
mod facts;
mod failure;
mod latency;
mod limits;
mod machine;
mod measure;
mod output;
mod pages;
mod run;
mod scale;
mod servers;
mod shim;
mod workload;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

use failure::Failure;

/// MPI-IO for any MPI: run programs with it, measure it, and tune it
#[derive(Parser)]
#[command(name = "pario", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run an MPI program with pario in place of its MPI-IO: pario run -- mpirun -n 4 ./program
    Run(run::Arguments),
    /// Execute a program in one rank with pario in place of its MPI-IO, for launchers that `run`
    /// does not recognise: launcher -n 4 pario exec -- ./program
    Exec(run::Arguments),
    /// Check MPIs, file systems, limits and environment: what would be used, what is missing
    Doctor(doctor::Arguments),
    /// Measure: write and read workloads with every method, verify every byte, compare speeds
    Bench(Box<bench::Arguments>),
    /// Show how a collective call would be carried out, and why
    Explain(explain::Arguments),
    /// Print the hints reference: names, defaults, allowed values
    Hints,
    /// Create a library to load in place of libmpi, for programs that look up its functions by name
    #[command(alias = "stub")]
    Shim(shim::Arguments),
    /// Print a shell completion script
    Completions(pages::Completions),
    /// Write the manual pages to a directory
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
        Command::Shim(arguments) => shim::run(&arguments, &mut out),
        Command::Completions(arguments) => {
            pages::completions(&arguments, Arguments::command(), &mut out)
        }
        Command::Man(arguments) => pages::manual(&arguments, Arguments::command(), &mut out),
    };
    match outcome.and_then(|()| out.flush().map_err(Failure::Output)) {
        Ok(()) => ExitCode::SUCCESS,
        // The reader has closed the pipe, as in `pario hints | head`.
        Err(Failure::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
            ExitCode::SUCCESS
        }
        Err(failure) => {
            if !matches!(failure, Failure::Reported { .. }) {
                eprintln!("pario: {failure}");
            }
            ExitCode::from(failure.code())
        }
    }
}
