//! The `pario` command.

mod bench;
mod explain;
mod facts;
mod failure;
mod workload;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use failure::Failure;

/// Parallel files: measure them, and look up what can be tuned
#[derive(Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Write and read what parallel programs do with every method, check every byte, compare speeds
    Bench(bench::Arguments),
    /// Tell how a collective call would be carried out, and why not otherwise
    Explain(explain::Arguments),
    /// Print the page about hints: names, defaults, allowed values
    Hints,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let mut out = io::stdout().lock();
    let outcome = match arguments.command {
        Command::Bench(arguments) => bench::run(&arguments, &mut out),
        Command::Explain(arguments) => explain::run(&arguments, &mut out),
        Command::Hints => out
            .write_all(pario_hints::markdown().as_bytes())
            .map_err(Failure::Output),
    };
    match outcome.and_then(|()| out.flush().map_err(Failure::Output)) {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever reads our output has seen enough, as in `pario hints | head`.
        Err(Failure::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
            ExitCode::SUCCESS
        }
        Err(failure) => {
            eprintln!("pario: {failure}");
            failure.exit_code()
        }
    }
}
