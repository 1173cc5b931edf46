//! What cargo builds for tests that run outside of it.

use std::path::PathBuf;
use std::process::Command;

use crate::shell::{self, Outcome, cargo};

/// Builds the drop-in library.
pub(crate) fn library() -> Outcome<PathBuf> {
    shell::run(cargo(&["build", "--release", "--package", "pario-dropin"]))?;
    Ok(shell::target_directory().join("release/libpario.so"))
}

/// Builds a test of a package and returns its program.
pub(crate) fn test_program(package: &str, name: &str) -> Outcome<PathBuf> {
    let arguments = ["test", "--no-run", "--package", package, "--test", name];
    let mut command = cargo(&arguments);
    command.arg("--message-format=json");
    let messages = shell::output(command)?;
    let mut quoted = messages.lines().filter_map(|line| {
        let (_, rest) = line.split_once("\"executable\":\"")?;
        Some(rest.split_once('"')?.0)
    });
    let program = quoted.next_back().map(PathBuf::from);
    program.ok_or_else(|| format!("cargo did not name the program of the test {name}"))
}

/// The trials of the drop-in library's programs on two mounts.
pub(crate) const MOUNTED: &str = "/mounted/";

/// Programs under real MPIs on two mounts, which the caller names in the command's environment.
pub(crate) fn mounted_programs(filter: &str) -> Outcome<Command> {
    library()?;
    let mut test = cargo(&["test", "--package", "pario-dropin", "--test", "hosts", "--"]);
    test.args(["--test-threads=1", filter]);
    Ok(test)
}

/// Compiles these programs, and returns the program that runs them.
pub(crate) fn compiled_mounted_programs() -> Outcome<PathBuf> {
    let mut compile = mounted_programs("/mounted/compile")?;
    // Nothing is mounted yet.
    compile.env("PARIO_FUSE_MOUNTS", ":");
    shell::run(compile)?;
    test_program("pario-dropin", "hosts")
}
