//! What tests need in addition to stable Rust: installed if it is missing and that is possible.
//!
//! Each function returns the reason if the tool is not available; the step that needs it
//! is then skipped with that reason, because a machine without a network can still run the rest.

use std::path::Path;
use std::process::Command;

use crate::shell::{self, Outcome, program};

/// The toolchain that Miri and libFuzzer need.
const NIGHTLY: &str = "nightly";

/// A command run by the nightly toolchain's cargo.
pub(crate) fn nightly_cargo(arguments: &[&str]) -> Command {
    let mut command = program("rustup", &["run", NIGHTLY, "cargo"]);
    command.args(arguments);
    // Set by the cargo that runs us; it would override the toolchain named here.
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
        .map_err(|error| format!("cannot install a nightly toolchain: {error}"))
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
    shell::run(program("rustup", &add)).map_err(|error| format!("cannot install Miri: {error}"))
}

/// Makes sure that cargo-fuzz and the C++ compiler that libFuzzer is built with are installed.
/// Returns the directory to add to PATH.
pub(crate) fn cargo_fuzz() -> Outcome<std::path::PathBuf> {
    nightly()?;
    cxx_compiler()?;
    let tools = shell::target_directory().join("tools");
    let directory = tools.join("bin");
    if directory.join("cargo-fuzz").is_file() {
        return Ok(directory);
    }
    let mut install = shell::cargo(&["install", "--quiet", "--locked", "--root"]);
    install.arg(&tools).arg("cargo-fuzz");
    shell::run(install).map_err(|error| format!("cannot install cargo-fuzz: {error}"))?;
    Ok(directory)
}

/// Makes sure that virtiofsd is built, and returns it. Debian 12's has no configuration space, in which a device has its
/// name: QEMU has that itself, user-mode Linux does not.
pub(crate) fn virtiofsd() -> Outcome<std::path::PathBuf> {
    let tools = shell::target_directory().join("tools");
    let command = tools.join("bin/virtiofsd");
    if command.is_file() {
        return Ok(command);
    }
    apt_install(&["libseccomp-dev", "libcap-ng-dev"])?;
    let mut install = shell::cargo(&["install", "--quiet", "--locked", "--root"]);
    install
        .arg(&tools)
        .args(["--version", "1.14.0", "virtiofsd"]);
    shell::run(install).map_err(|error| format!("cannot install virtiofsd: {error}"))?;
    Ok(command)
}

/// Makes sure that `c++` is installed.
fn cxx_compiler() -> Outcome {
    if shell::succeeds(program("c++", &["--version"])) {
        return Ok(());
    }
    apt_install(&["g++"])
}

/// Installs Debian packages, as root or with a sudo that needs no password.
pub(crate) fn apt_install(packages: &[&str]) -> Outcome {
    let mut install = vec!["install", "--quiet", "--yes", "--no-install-recommends"];
    install.extend(packages);
    apt(&["update", "--quiet"])
        .and_then(|()| apt(&install))
        .map_err(|error| {
            let names = packages.join(", ");
            format!("cannot install Debian's packages {names}: {error}")
        })
}

/// Downloads Debian packages, and those they depend on that are not installed, to a directory.
pub(crate) fn apt_download(packages: &[&str], directory: &Path) -> Outcome {
    let to = format!("Dir::Cache::archives={}", directory.display());
    let mut download = vec!["install", "--quiet", "--yes", "--no-install-recommends"];
    // The directory need not be accessible to apt's own user.
    download.extend(["--download-only", "--option", &to]);
    download.extend(["--option", "APT::Sandbox::User=root"]);
    download.extend(packages);
    apt(&["update", "--quiet"])
        .and_then(|()| apt(&download))
        .map_err(|error| {
            let names = packages.join(", ");
            format!("cannot download Debian's packages {names}: {error}")
        })
}

fn apt(arguments: &[&str]) -> Outcome {
    let as_root: &[&str] = if shell::succeeds(program("test", &["-w", "/var/lib/dpkg/status"])) {
        &["env"]
    } else {
        &["sudo", "-n"]
    };
    let mut command = program(as_root[0], &as_root[1..]);
    command.args(["DEBIAN_FRONTEND=noninteractive", "apt-get"]);
    // Another apt-get may be running, for example for unattended upgrades.
    command.args(["--option", "DPkg::Lock::Timeout=300"]);
    command.args(arguments);
    shell::run(command)
}
