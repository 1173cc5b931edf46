//! All checks that do not run the code.

use crate::shell::{self, Outcome, cargo, program};
use crate::{dependencies, docs, readme, unsafe_files};

/// The fuzz targets are a separate workspace, which `--workspace` does not include.
const FUZZ_MANIFEST: &str = "crates/layout/fuzz/Cargo.toml";

/// Runs all checks, stopping at the first that fails.
pub(crate) fn run() -> Outcome {
    components()?;
    shell::run(cargo(&["fmt", "--all", "--", "--check"]))?;
    if shell::root().join(FUZZ_MANIFEST).is_file() {
        shell::run(cargo(&[
            "fmt",
            "--manifest-path",
            FUZZ_MANIFEST,
            "--",
            "--check",
        ]))?;
    }
    unsafe_files::check(shell::root())?;
    dependencies::check(shell::root())?;
    readme::check_example()?;
    clippy(&["--workspace", "--all-targets"])?;
    // `test = false` in its manifest keeps it out of `--all-targets`.
    clippy(&["--package", "pario-dropin", "--test", "hosts"])?;
    let mut rustdoc = cargo(&["doc", "--workspace", "--no-deps", "--locked"]);
    rustdoc.env("RUSTDOCFLAGS", "-D warnings");
    shell::run(rustdoc)?;
    docs::check()?;
    println!("lint: all good");
    Ok(())
}

fn clippy(targets: &[&str]) -> Outcome {
    let mut command = cargo(&["clippy", "--locked"]);
    command.args(targets).args(["--", "-D", "warnings"]);
    shell::run(command)
}

/// Adds rustfmt and clippy if a minimal toolchain lacks them.
fn components() -> Outcome {
    for (component, subcommand) in [("rustfmt", "fmt"), ("clippy", "clippy")] {
        if !shell::succeeds(cargo(&[subcommand, "--version"])) {
            shell::run(program("rustup", &["component", "add", component]))?;
        }
    }
    Ok(())
}
