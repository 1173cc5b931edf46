//! `pario completions` and `pario man`: shell completions and manual pages.

use std::fs;
use std::io::Write;
use std::path::PathBuf;

use crate::failure::Failure;

/// The options of `pario completions`.
#[derive(clap::Args)]
pub(crate) struct Completions {
    /// The shell
    shell: clap_complete::Shell,
}

/// The options of `pario man`.
#[derive(clap::Args)]
pub(crate) struct Manual {
    /// Directory for the pages, one page per command; created if necessary
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

/// Prints a completion script.
pub(crate) fn completions(
    arguments: &Completions,
    mut command: clap::Command,
    out: &mut impl Write,
) -> Result<(), Failure> {
    let mut script = Vec::new();
    let name = command.get_name().to_owned();
    clap_complete::generate(arguments.shell, &mut command, name, &mut script);
    out.write_all(&script).map_err(Failure::Output)
}

/// Writes the manual's pages.
pub(crate) fn manual(
    arguments: &Manual,
    command: clap::Command,
    out: &mut impl Write,
) -> Result<(), Failure> {
    let directory = &arguments.directory;
    fs::create_dir_all(directory)
        .and_then(|()| clap_mangen::generate_to(command, directory))
        .map_err(Failure::file("write pages to", directory))?;
    writeln!(out, "manual pages: {}", directory.display()).map_err(Failure::Output)
}
