//! What `bench compare` and `bench latency` are told alike: the ranks, the MPIs, and how to run them.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::figures::Side;
use super::mpis::{self, Found, Mpi, Search};
use crate::failure::Failure;
use crate::output::JsonOption;
use crate::run::library;

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Numbers of ranks, as in 2,4
    #[arg(long, short = 'n', value_name = "NUMBERS", value_delimiter = ',', default_value = "2", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub(crate) ranks: Vec<u32>,
    /// Number of times each contender is run; the best counts
    #[arg(long, value_name = "NUMBER", aliases = ["repeat", "rounds"], default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) repeats: u32,
    /// An additional MPI: a directory that has bin/mpirun, or a launcher; may be repeated
    #[arg(long, value_name = "PREFIX")]
    mpi: Vec<OsString>,
    /// Do not search for MPIs: measure only those of --mpi
    #[arg(long, requires = "mpi")]
    no_search: bool,
    /// The drop-in library [default: that of PARIO_LIBRARY, or of this installation]
    #[arg(long, value_name = "FILE")]
    library: Option<PathBuf>,
    /// Time limit of a run by one contender
    #[arg(long, value_name = "SECONDS", default_value_t = 1800)]
    time_max: u64,
    #[command(flatten)]
    pub(crate) json: JsonOption,
}

impl Options {
    pub(crate) fn library(&self) -> Result<PathBuf, Failure> {
        library::find(self.library.as_deref())
    }

    /// The MPIs of this machine, or those that were named.
    pub(crate) fn mpis(&self) -> Result<Found, Failure> {
        let search = match self.no_search {
            true => Search::Named,
            false => Search::Machine,
        };
        mpis::find(&self.mpi, search)
    }

    pub(crate) fn time_max(&self) -> Duration {
        Duration::from_secs(self.time_max)
    }
}

/// The number of runs in words.
pub(crate) fn runs(repeats: u32) -> String {
    match repeats {
        1 => "1 run".to_owned(),
        repeats => format!("{repeats} runs"),
    }
}

/// The options of a worker that say which libraries it loads.
pub(crate) fn libraries(mpi: &Mpi, side: Side, library: &Path) -> Vec<OsString> {
    let mut words: Vec<OsString> = Vec::new();
    if let Some(named) = &mpi.named_library {
        words.extend(["--mpi-library".into(), named.into()]);
    }
    if side == Side::Pario {
        words.extend(["--library".into(), library.into()]);
    }
    words
}
