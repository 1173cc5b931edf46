//! What the user sees: tables, comma-separated values, JSON, plots, and what to make of doubtful
//! numbers.

mod csv;
mod json;
mod lines;
mod plot;
pub(crate) mod table;
#[cfg(test)]
mod testing;

pub(crate) use csv::csv;
pub(crate) use json::json;
pub(crate) use lines::{advice, table};
pub(crate) use plot::svg;
