//! Results: tables, JSON, plots, and the files they are written to.

mod axis;
pub(crate) mod plot;
mod save;
mod table;

use std::io::{self, Write};

use serde::{Serialize, Serializer};

pub(crate) use save::{JsonOption, check_directory, check_file, save};
pub(crate) use table::{Align, Table, or_dash};

/// Prints one JSON value.
pub(crate) fn json(value: &impl Serialize, out: &mut impl Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, value)?;
    writeln!(out)
}

/// Serialises pairs as a JSON object, in order.
pub(crate) fn as_map<S: Serializer>(
    pairs: &[(&'static str, String)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(pairs.iter().map(|(name, value)| (name, value)))
}
