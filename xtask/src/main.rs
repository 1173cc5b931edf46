//! The project's chores: `cargo xtask test`, `lint`, `docs`, `hosts`.
//!
//! No dependencies, so that it builds in a second and on a machine that has nothing but Rust.

mod docs;
mod hosts;
mod lint;
mod readme;
mod shell;
mod test;
mod tools;
mod unsafe_files;

use std::process::ExitCode;

const USAGE: &str = "\
Usage: cargo xtask COMMAND

Commands:
  test          run every test, installing what they need
  test --long   the same with hundreds of thousands of random cases and longer fuzzing
  test --full   the same with every program under every MPI; writes docs/hosts.md
  hosts         install the MPIs and libraries that tests run under, those of PyPI below target/hosts
  lint          formatting, clippy, rustdoc, the list of unsafe files, generated pages
  docs          regenerate the pages that come from code (docs/hints.md)
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        ["test"] => test::run(test::Effort::Normal),
        ["test", "--long"] => test::run(test::Effort::Long),
        ["test", "--full"] => test::run(test::Effort::Full),
        ["hosts"] => hosts::install(),
        ["lint"] => lint::run(),
        ["docs"] => docs::regenerate(),
        ["help" | "--help" | "-h"] => {
            print!("{USAGE}");
            Ok(())
        }
        _ => Err(format!(
            "cannot tell what to do from {arguments:?}\n\n{USAGE}"
        )),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("xtask: {reason}");
            ExitCode::FAILURE
        }
    }
}
