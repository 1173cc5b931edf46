//! `pario shim`: a library to load in place of an MPI's own.
//!
//! Programs that look up functions in libmpi itself (ctypes, MPI.jl) bypass preloaded libraries.
//! The shim is an empty shared library that needs libpario.so and then libmpi: a look-up in it
//! finds the file functions of the former and everything else in the latter.

mod elf;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::failure::Failure;
use crate::run::library;
use elf::Kind;

/// The options of `pario shim`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The MPI's own library, as in /usr/lib/libmpi.so.12
    #[arg(long, value_name = "FILE")]
    mpi: PathBuf,
    /// The shim to write
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,
    /// The drop-in library [default: that of PARIO_LIBRARY, or of this installation]
    #[arg(long, value_name = "FILE")]
    library: Option<PathBuf>,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, out: &mut impl Write) -> Result<(), Failure> {
    let pario = library::find(arguments.library.as_deref())?;
    let mpi = arguments
        .mpi
        .canonicalize()
        .map_err(Failure::file("find", &arguments.mpi))?;
    let kind = kind_of(&mpi)?;
    let ours = kind_of(&pario)?;
    if kind != ours {
        return Err(Failure::Arguments(format!(
            "{} is for {ours}, but {} for {kind}: no program can load both",
            pario.display(),
            mpi.display()
        )));
    }
    let output = &arguments.output;
    let name = output.file_name().unwrap_or_default().to_string_lossy();
    let needed = [pario.to_string_lossy(), mpi.to_string_lossy()];
    let bytes = elf::library(kind, &name, &needed.each_ref().map(AsRef::as_ref))
        .map_err(Failure::Arguments)?;
    fs::write(output, bytes).map_err(Failure::file("write", output))?;
    writeln!(
        out,
        "{}: load it in place of {}",
        output.display(),
        arguments.mpi.display()
    )
    .map_err(Failure::Output)
}

fn kind_of(path: &Path) -> Result<Kind, Failure> {
    let bytes = fs::read(path).map_err(Failure::file("read", path))?;
    Kind::of(&bytes).map_err(|reason| Failure::Arguments(format!("{} {reason}", path.display())))
}
