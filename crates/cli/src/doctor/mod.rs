//! `pario doctor`: what is installed, what would be used, what is missing.

mod environment;
mod files;
mod library;
mod machine;
mod mpis;
mod probe;
mod report;

use std::io::Write;
use std::path::PathBuf;

use crate::failure::Failure;
use crate::output;
use report::{Report, Section};

/// The options of `pario doctor`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Directories whose files will be read and written [default: the current one]
    #[arg(value_name = "DIR")]
    directories: Vec<PathBuf>,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
    /// Load this MPI library and report what it is
    #[arg(long, value_name = "FILE", hide = true)]
    probe: Option<String>,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, out: &mut impl Write) -> Result<(), Failure> {
    if let Some(library) = &arguments.probe {
        return probe::report(library, out);
    }
    let library = library::find();
    let directories = match arguments.directories.as_slice() {
        [] => vec![PathBuf::from(".")],
        directories => directories.to_vec(),
    };
    let report = Report::new(vec![
        Section::new("Drop-in library", library::findings(&library)),
        Section::new("MPIs", mpis::libraries(library.as_deref().ok())),
        Section::new("Launchers", mpis::launchers()),
        Section::new(
            "File systems",
            directories
                .iter()
                .flat_map(|it| files::findings(it))
                .collect(),
        ),
        Section::new("Machine", machine::findings()),
        Section::new("Environment", environment::findings()),
    ]);
    match arguments.json {
        true => output::json(&report, out),
        false => report.text(out),
    }
    .map_err(Failure::Output)?;
    match report.missing {
        0 => Ok(()),
        count => Err(Failure::Missing { count }),
    }
}
