//! Warnings: what the user should know but need not handle.

use std::collections::HashSet;
use std::io::Write;
use std::sync::{LazyLock, Mutex, PoisonError};

use pario_hints::Source;
use pario_transport::{Rank, Transport};

use crate::job::{Job, rank_in_job};

type Handler = Box<dyn Fn(&str) + Send>;

static HANDLER: Mutex<Option<Handler>> = Mutex::new(None);

/// The maximum number of different warnings that a process prints.
const WARNINGS_MAX: usize = 100;

/// Sends warnings (a malformed hint, hints that differ between ranks) to `handler` instead of
/// standard error.
pub fn set_warning_handler(handler: impl Fn(&str) + Send + 'static) {
    *HANDLER.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(handler));
}

/// Warns the user. Standard error gets the same message once per job and node; if several nodes
/// are concerned, the caller must let only one rank warn.
pub fn warn(message: &str) {
    warn_of(message, message);
}

/// As [`warn`], for warnings of one kind with different texts, for instance about different
/// files: standard error gets the first of them.
pub fn warn_of(kind: &str, message: &str) {
    match &*HANDLER.lock().unwrap_or_else(PoisonError::into_inner) {
        Some(handler) => handler(message),
        None if is_new(kind) && is_first_on_node(kind) => {
            print_line(&format!("pario: warning: {message}"))
        }
        None => {}
    }
}

/// Whether no warning of this kind has been printed yet, and not too many others.
fn is_new(kind: &str) -> bool {
    static PRINTED: LazyLock<Mutex<HashSet<String>>> = LazyLock::new(Mutex::default);
    let mut printed = PRINTED.lock().unwrap_or_else(PoisonError::into_inner);
    printed.len() < WARNINGS_MAX && printed.insert(kind.to_owned())
}

/// Whether no other process of the job on this node has printed a warning of this
/// kind.
fn is_first_on_node(kind: &str) -> bool {
    Job::current().is_none_or(|job| job.claim(kind))
}

/// Prints a line to standard error in one system call, so that lines of several ranks do not
/// mix.
pub fn print_line(line: &str) {
    let line = format!("{line}\n");
    // There is nowhere to report an error.
    let _ = std::io::stderr().write_all(line.as_bytes());
}

/// Whether this process is rank 0 of its job according to the launcher, or has no launcher. It
/// reports what every process of the job finds out by itself.
pub fn is_first_of_job() -> bool {
    rank_in_job().is_none_or(|rank| rank == 0)
}

/// Whether this rank reports a problem with a hint from `source`, so that the warning appears
/// once. A hint from the environment concerns all files of the job, whatever their ranks; a
/// hint from a call concerns the ranks of its file, which may be this one alone, with a file on
/// every rank. On a single node any rank may report it: only the first warning is printed.
pub(crate) fn speaks_for(comm: &dyn Transport, source: &Source) -> bool {
    let any_may = Job::current().is_some_and(Job::is_on_one_node);
    let own = rank_in_job().map(|rank| rank == 0 || any_may);
    match (own, source) {
        (Some(may), Source::Environment | Source::HintsFile) => may,
        (Some(may), _) => comm.rank() == Rank(0) && (comm.size() > 1 || may),
        (None, _) => comm.rank() == Rank(0),
    }
}
