//! Why a command failed, in the user's words, and its exit code.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

/// Exit code of a run that found wrong data.
const WRONG_DATA: u8 = 1;
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
    /// A method failed.
    Method {
        /// Its name.
        method: String,
        /// What it reported.
        reason: String,
    },
    /// Standard output cannot be written.
    Output(io::Error),
}

impl Failure {
    /// The code that the process ends with.
    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            Failure::Wrong { .. } => WRONG_DATA,
            _ => NOT_DONE,
        })
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
            Failure::Method { method, reason } => write!(f, "{method}: {reason}"),
            Failure::Output(error) => write!(f, "cannot write the results: {error}"),
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
