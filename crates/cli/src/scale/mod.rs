//! `pario bench scale`: what a rank's part of a collective call costs as ranks and nodes grow, with
//! the same data per rank (weak scaling). Costs are counted where they can be: messages, bytes,
//! allocations and memory are the same on a laptop and on a cluster.

mod meter;
mod options;
mod report;
mod row;
mod simulate;
pub(crate) mod worker;

use std::io::{self, Write};
use std::process::Command;
use std::time::Duration;

pub(crate) use options::Arguments;
use options::Size;
use row::Row;

use crate::child::Running;
use crate::failure::Failure;
use crate::machine::Machine;
use crate::measure::capacity::Kept;
use crate::measure::{Holes, Need, Scratch, Stored, progress_bar};
use crate::output;

/// A row that takes longer has failed.
const TIME_MAX: Duration = Duration::from_secs(1800);

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, out: &mut impl Write) -> Result<(), Failure> {
    arguments.json.check()?;
    match arguments.simulate {
        true => simulate::run(arguments, out),
        false => measure(arguments, out),
    }
}

/// Every row is measured in a process of its own: what one leaves in the heap does not count for
/// the next.
fn measure(arguments: &Arguments, out: &mut impl Write) -> Result<(), Failure> {
    let method = arguments.method()?;
    let sizes = arguments.sizes()?;
    let scratch = Scratch::new(arguments.dir.as_deref())?;
    for size in &sizes {
        check_capacity(arguments, size, &scratch)?;
    }
    let progress = progress_bar(sizes.len() as u64);
    let mut rows = Vec::new();
    for size in &sizes {
        progress.set_message(format!("{} ranks", size.ranks));
        rows.push(measure_row(arguments, size, &scratch)?);
        progress.inc(1);
    }
    progress.finish_and_clear();
    let result = report::Measured {
        machine: Machine::this(),
        workload: arguments.workload(),
        method: &method.name,
        directory: scratch.parent().display().to_string(),
        file_system: scratch.facts().file_system.to_string(),
        repeats: arguments.repeats,
        rows,
    };
    print(arguments, &result, |out| report::table(&result, out), out)
}

/// Prints a result in the requested form, and writes the JSON file.
fn print<T: serde::Serialize, W: Write>(
    arguments: &Arguments,
    result: &T,
    table: impl FnOnce(&mut W) -> io::Result<()>,
    out: &mut W,
) -> Result<(), Failure> {
    match arguments.json.is_printed() {
        true => output::json(result, out),
        false => table(out),
    }
    .map_err(Failure::Output)?;
    arguments.json.save(result)
}

fn check_capacity(arguments: &Arguments, size: &Size, scratch: &Scratch) -> Result<(), Failure> {
    let job = arguments.job(size.ranks)?;
    let files = Stored::new(&*job, size.ranks, Holes::Zero).bytes;
    let need = Need {
        memory: files.saturating_add(Stored::footprint(files)),
        files,
        kept: Kept::of(scratch),
        size_option: "--scale",
    };
    need.check(scratch.parent())
}

fn measure_row(arguments: &Arguments, size: &Size, scratch: &Scratch) -> Result<Row, Failure> {
    let failed = |reason: String| failure(size, &reason);
    let program = std::env::current_exe().map_err(|error| failed(error.to_string()))?;
    let mut command = Command::new(program);
    command.args(["bench", "scale-worker", "--dir"]);
    command.arg(scratch.path());
    command.args(arguments.for_worker(size));
    let mut row = None;
    let running = Running::start(&mut command).map_err(failed)?;
    running
        .finish(TIME_MAX, &mut |line| row = serde_json::from_str(line).ok())
        .map_err(failed)?;
    row.ok_or_else(|| failed("it has not printed its result".to_owned()))
}

/// Why a row could not be measured, from what its process printed.
fn failure(size: &Size, reason: &str) -> Failure {
    let method = format!("{} ranks on {} nodes", size.ranks, size.nodes);
    match reason.split_once("wrong data: ") {
        Some((_, fault)) => Failure::Wrong {
            method,
            fault: fault.to_owned(),
        },
        None => Failure::Method {
            method,
            reason: reason.to_owned(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_data_of_a_row_is_wrong_data() {
        let size = Size { ranks: 8, nodes: 2 };
        let wrong = failure(&size, "exit status: 1: wrong data: two-phase: byte 3");
        assert_eq!(wrong.code(), 1);
        let text = "wrong data: 8 ranks on 2 nodes: two-phase: byte 3";
        assert_eq!(wrong.to_string(), text);
        assert_eq!(failure(&size, "took longer than 1800 s").code(), 2);
    }
}
