//! One run of one contender, and what went wrong in all of them.

use std::io::{self, Write};

use super::launch::Launch;
use super::protocol::Line;

/// A run that reports figures one by one.
pub(crate) struct Contest<'a> {
    pub(crate) launch: Launch<'a>,
    /// Who runs what, for faults.
    pub(crate) context: String,
    /// How many figures it has to report.
    pub(crate) expected: usize,
}

impl Contest<'_> {
    /// Runs to the end. `take` takes a figure, says what is wrong with it, and leaves other lines
    /// alone; `place` names what a figure is of.
    pub(crate) fn run<'p>(
        &self,
        faults: &mut Vec<String>,
        place: impl Fn(usize) -> Option<&'p str>,
        take: &mut dyn FnMut(Line) -> Option<Result<(), String>>,
    ) {
        let mut reported = 0;
        let mut found = Vec::new();
        let outcome = self.launch.run(&mut |line| {
            if let Some(taken) = take(line) {
                reported += 1;
                found.extend(taken.err());
            }
        });
        let expected = self.expected;
        match outcome {
            Ok(()) if reported < expected => {
                found.push(format!("reported {reported} figures instead of {expected}"));
            }
            Ok(()) => {}
            Err(reason) => {
                let place = place(reported).unwrap_or("at its end");
                found.push(format!("{place}: {reason}"));
            }
        }
        for fault in found {
            let fault = format!("{}: {fault}", self.context);
            if !faults.contains(&fault) {
                faults.push(fault);
            }
        }
    }
}

/// Prints what could not be used, and what went wrong.
pub(crate) fn conclude(
    notes: &[String],
    faults: &[String],
    out: &mut impl Write,
) -> io::Result<()> {
    for note in notes {
        writeln!(out, "{note}")?;
    }
    for fault in faults {
        writeln!(out, "FAILED {fault}")?;
    }
    Ok(())
}
