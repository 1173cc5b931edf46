//! The results of `pario bench`: tables, comma-separated values, JSON, plots.

mod data;
mod plots;
mod table;
#[cfg(test)]
mod testing;

pub(crate) use data::{csv, documents};
pub(crate) use plots::{plot_name, plots};
pub(crate) use table::table;
