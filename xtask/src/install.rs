//! `cargo xtask install PREFIX`: the command, the drop-in library, and supporting files.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::shell::{self, Outcome, cargo};

/// Completion scripts: the shell's name, and where it looks for them.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "share/bash-completion/completions/pario"),
    ("zsh", "share/zsh/site-functions/_pario"),
    ("fish", "share/fish/vendor_completions.d/pario.fish"),
];

/// Documentation to install.
const PAGES: [&str; 5] = [
    "README.md",
    "CHANGELOG.md",
    "LICENSE-MIT",
    "LICENSE-APACHE",
    "docs",
];

/// Builds everything and installs it below a directory.
pub(crate) fn run(prefix: &Path) -> Outcome {
    let packages = ["--package", "pario-cli", "--package", "pario-dropin"];
    let mut build = cargo(&["build", "--release", "--locked"]);
    build.args(packages);
    shell::run(build)?;
    fs::create_dir_all(prefix).map_err(|error| cannot("make", prefix, &error))?;
    // Installed files contain this path.
    let prefix = prefix
        .canonicalize()
        .map_err(|error| cannot("find", prefix, &error))?;
    let built = shell::target_directory().join("release");
    let command = prefix.join("bin/pario");
    place(&built.join("pario"), &command)?;
    place(&built.join("libpario.so"), &prefix.join("lib/libpario.so"))?;
    write(&prefix.join("lib/pkgconfig/pario.pc"), &package(&prefix))?;
    for (shell, file) in COMPLETIONS {
        let script = shell::output(started(&command, &["completions", shell]))?;
        write(&prefix.join(file), &script)?;
    }
    let mut manual = started(&command, &["man"]);
    manual.arg(prefix.join("share/man/man1"));
    shell::output(manual)?;
    for page in PAGES {
        let target = prefix.join("share/doc/pario").join(page);
        copy_all(&shell::root().join(page), &target)?;
    }
    println!("installed below {}", prefix.display());
    Ok(())
}

fn started(program: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments);
    command
}

/// The pkg-config file. The library must be linked before the MPI's own, whose
/// header declares the functions.
fn package(prefix: &Path) -> String {
    format!(
        "prefix={}\n\
         libdir=${{prefix}}/lib\n\
         \n\
         Name: pario\n\
         Description: MPI-IO for any MPI; link it before the MPI library\n\
         Version: {}\n\
         Libs: -L${{libdir}} -Wl,-rpath,${{libdir}} -Wl,--no-as-needed -lpario -Wl,--as-needed\n",
        prefix.display(),
        env!("CARGO_PKG_VERSION"),
    )
}

/// A file or everything in a directory.
fn copy_all(from: &Path, to: &Path) -> Outcome {
    if !from.is_dir() {
        return place(from, to);
    }
    let entries = fs::read_dir(from).map_err(|error| cannot("list", from, &error))?;
    for entry in entries {
        let entry = entry.map_err(|error| cannot("list", from, &error))?;
        copy_all(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}

/// Copies a file. An existing file is replaced, not overwritten: a program may be running from it.
fn place(from: &Path, to: &Path) -> Outcome {
    let new = new_name(to)?;
    fs::copy(from, &new).map_err(|error| cannot("copy", from, &error))?;
    fs::rename(&new, to).map_err(|error| cannot("write", to, &error))
}

fn write(to: &Path, text: &str) -> Outcome {
    let new = new_name(to)?;
    fs::write(&new, text).map_err(|error| cannot("write", &new, &error))?;
    fs::rename(&new, to).map_err(|error| cannot("write", to, &error))
}

/// A temporary name next to a file; creates the directory.
fn new_name(file: &Path) -> Outcome<PathBuf> {
    if let Some(directory) = file.parent() {
        fs::create_dir_all(directory).map_err(|error| cannot("make", directory, &error))?;
    }
    let mut name = file.as_os_str().to_owned();
    name.push(".new");
    Ok(name.into())
}

fn cannot(action: &str, path: &Path, error: &std::io::Error) -> String {
    format!("cannot {action} {}: {error}", path.display())
}
