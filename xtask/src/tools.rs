//! What tests need beyond stable Rust: found if present, installed if that is possible.
//!
//! Each function answers with the reason when the tool cannot be had; the step that wanted it
//! is then skipped with that reason, because a machine without a network can still run the rest.

use std::process::Command;

use crate::shell::{self, Outcome, program};

/// The toolchain that Miri and libFuzzer need.
const NIGHTLY: &str = "nightly";

/// A command run by the nightly toolchain's cargo.
pub(crate) fn nightly_cargo(arguments: &[&str]) -> Command {
    let mut command = program("rustup", &["run", NIGHTLY, "cargo"]);
    command.args(arguments);
    // Set by the cargo that runs us; it would win over the toolchain named here.
    command.env_remove("RUSTUP_TOOLCHAIN").env_remove("CARGO");
    command
}

/// Makes sure that a nightly toolchain is installed.
pub(crate) fn nightly() -> Outcome {
    if !shell::succeeds(program("rustup", &["--version"])) {
        return Err("a nightly toolchain needs rustup, which is not installed".into());
    }
    if shell::succeeds(nightly_cargo(&["--version"])) {
        return Ok(());
    }
    let install = ["toolchain", "install", NIGHTLY, "--profile", "minimal"];
    shell::run(program("rustup", &install))
        .map_err(|error| format!("no nightly toolchain could be installed: {error}"))
}

/// Makes sure that Miri is installed.
pub(crate) fn miri() -> Outcome {
    nightly()?;
    if shell::succeeds(nightly_cargo(&["miri", "--version"])) {
        return Ok(());
    }
    let add = [
        "component",
        "add",
        "miri",
        "rust-src",
        "--toolchain",
        NIGHTLY,
    ];
    shell::run(program("rustup", &add))
        .map_err(|error| format!("Miri could not be installed: {error}"))
}

/// Makes sure that cargo-fuzz and the C++ compiler that libFuzzer is built with are installed.
/// Answers with the folder to add to the search path.
pub(crate) fn cargo_fuzz() -> Outcome<std::path::PathBuf> {
    nightly()?;
    cxx_compiler()?;
    let tools = shell::target_folder().join("tools");
    let folder = tools.join("bin");
    if folder.join("cargo-fuzz").is_file() {
        return Ok(folder);
    }
    let mut install = shell::cargo(&["install", "--quiet", "--locked", "--root"]);
    install.arg(&tools).arg("cargo-fuzz");
    shell::run(install).map_err(|error| format!("cargo-fuzz could not be installed: {error}"))?;
    Ok(folder)
}

/// Makes sure that `c++` is installed.
fn cxx_compiler() -> Outcome {
    if shell::succeeds(program("c++", &["--version"])) {
        return Ok(());
    }
    apt_install(&["g++"])
}

/// Installs Debian packages, as root or through a sudo that asks nothing.
pub(crate) fn apt_install(packages: &[&str]) -> Outcome {
    let as_root: &[&str] = if shell::succeeds(program("test", &["-w", "/var/lib/dpkg/status"])) {
        &["env"]
    } else {
        &["sudo", "-n"]
    };
    let apt = |arguments: &[&str]| {
        let mut command = program(as_root[0], &as_root[1..]);
        command.args(["DEBIAN_FRONTEND=noninteractive", "apt-get"]);
        // Another apt-get may be at work, for example the one that keeps a machine up to date.
        command.args(["--option", "DPkg::Lock::Timeout=300"]);
        command.args(arguments);
        shell::run(command)
    };
    let mut install = vec!["install", "--quiet", "--yes", "--no-install-recommends"];
    install.extend(packages);
    apt(&["update", "--quiet"])
        .and_then(|()| apt(&install))
        .map_err(|error| {
            let names = packages.join(", ");
            format!("{names} could not be installed from Debian's packages: {error}")
        })
}
