//! `pario bench`: every method writes and reads a distributed array, every byte is checked, and
//! speeds stand next to those of plain POSIX calls in the same folder.

mod array;
mod cells;
mod engine;
mod folder;
mod layout;
mod memory;
mod methods;
mod raw;
mod report;
mod session;
mod span;
mod table;
mod timing;
mod wrong;

use std::io::{self, Write};
use std::path::PathBuf;

use indicatif::ProgressBar;
use pario::threads;

use array::{Array, Shape};
use cells::CELL_BYTES;
use folder::Folder;
use methods::{METHODS, Method};
use session::Session;
pub(crate) use wrong::Fault;

use crate::failure::Failure;

/// The most ranks that a world of threads may have.
const RANKS_MAX: i64 = threads::World::RANKS_MAX as i64;

/// What to measure.
#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    what: Option<What>,
    #[command(flatten)]
    array: ArrayArguments,
}

#[derive(clap::Subcommand)]
enum What {
    /// Measure datatypes instead: memory, look-ups, packing and unpacking
    Layout,
}

#[derive(clap::Args)]
struct ArrayArguments {
    /// Number of ranks, each a thread
    #[arg(long, value_name = "NUMBER", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=RANKS_MAX))]
    ranks: u32,
    /// Cells of the array (f64): one size for a cube, or three, the last varying fastest
    #[arg(long, value_name = "CELLS", default_value = "64x256x256")]
    size: Shape,
    /// Times each method is run; the best counts
    #[arg(long, value_name = "TIMES", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeat: u32,
    /// Folder for the files [default: the system's folder for temporary files]
    #[arg(long, value_name = "FOLDER")]
    dir: Option<PathBuf>,
    /// Only methods with this word in their name; may be given several times
    #[arg(long, value_name = "WORD")]
    only: Vec<String>,
    /// A small array and two repeats: a check that all is well rather than a measurement
    #[arg(long, conflicts_with_all = ["size", "repeat"])]
    quick: bool,
}

/// The array and the repeats of `--quick`.
const QUICK: (Shape, u32) = (Shape([16, 64, 64]), 2);

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, out: &mut impl Write) -> Result<(), Failure> {
    match arguments.what {
        Some(What::Layout) => layout::run(out).map_err(Failure::Output),
        None => compare(&arguments.array, out),
    }
}

fn compare(arguments: &ArrayArguments, out: &mut impl Write) -> Result<(), Failure> {
    let (size, repeat) = match arguments.quick {
        true => QUICK,
        false => (arguments.size, arguments.repeat),
    };
    let array = Array::new(size, arguments.ranks).map_err(Failure::Arguments)?;
    let methods = wanted(&arguments.only)?;
    let folder = Folder::new(arguments.dir.as_deref())?;
    introduce(&array, repeat, &folder, out).map_err(Failure::Output)?;

    let bytes = array.bytes();
    let mut session = Session::new(array, methods, folder.path());
    let mut rows = session.rows();
    let progress = ProgressBar::new(u64::from(repeat) * rows.len() as u64);
    for round in 0..u64::from(repeat) {
        session.round(round, &mut rows, || progress.inc(1))?;
    }
    progress.finish_and_clear();
    report::print(&rows, bytes, out).map_err(Failure::Output)
}

/// The methods that the words ask for.
fn wanted(words: &[String]) -> Result<Vec<Method>, Failure> {
    let wanted: Vec<_> = METHODS
        .iter()
        .filter(|method| method.is_wanted(words))
        .copied()
        .collect();
    if !wanted.is_empty() {
        return Ok(wanted);
    }
    let all: Vec<_> = METHODS.iter().map(Method::label).collect();
    Err(Failure::Arguments(format!(
        "no method has {words:?} in its name; there are:\n  {}",
        all.join("\n  ")
    )))
}

fn introduce(array: &Array, repeat: u32, folder: &Folder, out: &mut impl Write) -> io::Result<()> {
    let [planes, rows, columns] = array.grid();
    let ranks = array.ranks();
    let row = array.block(0).extent[2] * CELL_BYTES;
    writeln!(
        out,
        "{} cells of f64, {:.1} MB, over {ranks} thread ranks in {planes}x{rows}x{columns} blocks: \
         rows of {row} bytes",
        array.shape(),
        array.bytes() as f64 / 1e6,
    )?;
    writeln!(
        out,
        "in {} ({}), from open to close, best of {repeat}; raw POSIX: one contiguous share a rank\n",
        folder.parent().display(),
        folder.file_system(),
    )
}
