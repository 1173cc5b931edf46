//! Why a command failed, as a message for the user, and its exit status.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Exit status of a run that found wrong data.
const WRONG_DATA: u8 = 1;
/// Exit status if something required is missing.
const MISSING: u8 = 1;
/// Exit status of a run that could not be carried out; clap uses it for invalid arguments, too.
const NOT_DONE: u8 = 2;

/// Why a command failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Written or read data is wrong.
    Wrong { method: String, fault: String },
    /// Arguments that do not work together.
    Arguments(String),
    /// An operation on a file failed, "cannot …".
    File {
        action: &'static str,
        path: PathBuf,
        source: io::Error,
        /// What to do about it.
        advice: Option<&'static str>,
    },
    /// A method or a helper program failed.
    Method { method: String, reason: String },
    /// Standard output cannot be written.
    Output(io::Error),
    /// Required items are missing; they have been listed.
    Missing { count: usize },
    /// Contenders failed or moved wrong bytes; they have been listed.
    Faults { count: usize },
    /// A rank failed, as all ranks know.
    Rank {
        rank: usize,
        code: u8,
        reason: String,
    },
    /// Another rank reports it.
    Reported { code: u8 },
}

impl Failure {
    /// For `map_err`: an operation on measured files failed.
    pub(crate) fn storage(
        action: &'static str,
        path: impl AsRef<Path>,
    ) -> impl Fn(io::Error) -> Self {
        let path = path.as_ref().to_owned();
        move |source| Failure::File {
            action,
            path: path.clone(),
            advice: advice(&source),
            source,
        }
    }

    /// For `map_err`: an operation on any other file failed.
    pub(crate) fn file(action: &'static str, path: impl AsRef<Path>) -> impl Fn(io::Error) -> Self {
        let path = path.as_ref().to_owned();
        move |source| Failure::File {
            action,
            path: path.clone(),
            source,
            advice: None,
        }
    }

    /// The exit status of the process.
    pub(crate) fn code(&self) -> u8 {
        match self {
            Failure::Wrong { .. } | Failure::Faults { .. } => WRONG_DATA,
            Failure::Missing { .. } => MISSING,
            Failure::Rank { code, .. } | Failure::Reported { code } => *code,
            _ => NOT_DONE,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Wrong { method, fault } => write!(f, "wrong data: {method}: {fault}"),
            Failure::Arguments(reason) => f.write_str(reason),
            Failure::File {
                action,
                path,
                source,
                advice,
            } => {
                write!(f, "cannot {action} {}: {source}", path.display())?;
                advice.map_or(Ok(()), |advice| write!(f, "; {advice}"))
            }
            Failure::Method { method, reason } => write!(f, "{method}: {reason}"),
            Failure::Output(error) => write!(f, "cannot write the results: {error}"),
            Failure::Faults { count: 1 } => f.write_str("1 run failed: see FAILED above"),
            Failure::Faults { count } => write!(f, "{count} runs failed: see FAILED above"),
            Failure::Missing { count: 1 } => f.write_str("1 required item is missing"),
            Failure::Missing { count } => write!(f, "{count} required items are missing"),
            Failure::Rank {
                rank: 0, reason, ..
            } => f.write_str(reason),
            Failure::Rank { rank, reason, .. } => write!(f, "rank {rank}: {reason}"),
            Failure::Reported { .. } => f.write_str("another rank has failed"),
        }
    }
}

fn advice(error: &io::Error) -> Option<&'static str> {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            Some("choose a smaller --scale or --size, or another --dir")
        }
        io::ErrorKind::PermissionDenied
        | io::ErrorKind::ReadOnlyFilesystem
        | io::ErrorKind::NotFound
        | io::ErrorKind::NotADirectory => Some("choose a writable directory with --dir"),
        _ => None,
    }
}
