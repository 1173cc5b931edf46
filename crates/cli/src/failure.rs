//! Why a command failed, in the user's words, and its exit code.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

/// Exit code of a run that found wrong data.
const WRONG_DATA: u8 = 1;
/// Exit code where something that is needed is missing.
const MISSING: u8 = 1;
/// Exit code of a run that could not be done; clap uses it for bad arguments too.
const NOT_DONE: u8 = 2;

/// Why a command failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// What was written or read is not what it should be.
    Wrong {
        /// Which method moved it.
        method: String,
        /// What is wrong.
        fault: String,
    },
    /// Arguments that make no sense together.
    Arguments(String),
    /// The file system refused something.
    Storage {
        /// What was tried, as in "cannot …".
        action: &'static str,
        /// On which file or folder.
        path: PathBuf,
        /// What it answered.
        source: io::Error,
    },
    /// A file that is no data of a measurement cannot be used.
    File {
        /// What was tried, as in "cannot …".
        action: &'static str,
        /// Which file.
        path: PathBuf,
        /// What the system answered.
        source: io::Error,
    },
    /// A method failed.
    Method {
        /// Its name.
        method: String,
        /// What it reported.
        reason: String,
    },
    /// Standard output cannot be written.
    Output(io::Error),
    /// Things that are needed are not there; they have been named.
    Missing {
        /// How many.
        count: usize,
    },
    /// Contenders failed or moved wrong bytes; they have been named.
    Faults {
        /// How many faults there are.
        count: usize,
    },
    /// A rank failed, as all ranks know.
    Rank {
        /// Which one.
        rank: usize,
        /// Its exit code.
        code: u8,
        /// What it said.
        reason: String,
    },
    /// Another rank has told it, or tells it.
    Told {
        /// Its exit code.
        code: u8,
    },
}

impl Failure {
    /// The code that the process ends with.
    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.code())
    }

    /// The same as a number.
    pub(crate) fn code(&self) -> u8 {
        match self {
            Failure::Wrong { .. } | Failure::Faults { .. } => WRONG_DATA,
            Failure::Missing { .. } => MISSING,
            Failure::Rank { code, .. } | Failure::Told { code } => *code,
            _ => NOT_DONE,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Wrong { method, fault } => write!(f, "wrong data: {method}: {fault}"),
            Failure::Arguments(reason) => f.write_str(reason),
            Failure::Storage {
                action,
                path,
                source,
            } => {
                write!(f, "cannot {action} {}: {source}", path.display())?;
                match advice(source) {
                    Some(advice) => write!(f, "; {advice}"),
                    None => Ok(()),
                }
            }
            Failure::File {
                action,
                path,
                source,
            } => write!(f, "cannot {action} {}: {source}", path.display()),
            Failure::Method { method, reason } => write!(f, "{method}: {reason}"),
            Failure::Output(error) => write!(f, "cannot write the results: {error}"),
            Failure::Faults { count: 1 } => f.write_str("a contender failed: see FAILED above"),
            Failure::Faults { count } => {
                write!(f, "contenders failed {count} times: see FAILED above")
            }
            Failure::Missing { count: 1 } => f.write_str("something that is needed is missing"),
            Failure::Missing { count } => write!(f, "{count} things that are needed are missing"),
            Failure::Rank {
                rank: 0, reason, ..
            } => f.write_str(reason),
            Failure::Rank { rank, reason, .. } => write!(f, "rank {rank}: {reason}"),
            Failure::Told { .. } => f.write_str("another rank has failed"),
        }
    }
}

fn advice(error: &io::Error) -> Option<&'static str> {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            Some("choose a smaller --scale or --size or another --dir")
        }
        io::ErrorKind::PermissionDenied
        | io::ErrorKind::ReadOnlyFilesystem
        | io::ErrorKind::NotFound
        | io::ErrorKind::NotADirectory => Some("choose a folder you can write to with --dir"),
        _ => None,
    }
}
