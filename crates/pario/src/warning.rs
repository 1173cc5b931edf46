//! Warnings: what the user should know but need not handle.

use std::collections::HashSet;
use std::io::Write;
use std::sync::{LazyLock, Mutex, PoisonError};

use pario_hints::Source;
use pario_transport::{Rank, Transport};

use crate::{Job, job::rank_in_job};

type Handler = Box<dyn Fn(&str) + Send>;

static HANDLER: Mutex<Option<Handler>> = Mutex::new(None);

/// Different warnings that a process prints at most.
const WARNINGS_MAX: usize = 100;

/// Sends warnings (a malformed hint, an info that differs between ranks) to
/// `handler` instead of standard error.
pub fn set_warning_handler(handler: impl Fn(&str) + Send + 'static) {
    *HANDLER.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(handler));
}

/// Warns the user. Standard error gets the same message once per job and node; that
/// only one rank reports what concerns several nodes is up to the caller.
pub fn warn(message: &str) {
    warn_of(message, message);
}

/// As [`warn`], with messages of one kind that differ, by the file for instance:
/// standard error gets the first of them.
pub fn warn_of(kind: &str, message: &str) {
    match &*HANDLER.lock().unwrap_or_else(PoisonError::into_inner) {
        Some(handler) => handler(message),
        None if is_new(kind) && is_first_to_say(kind) => {
            print_line(&format!("pario: warning: {message}"))
        }
        None => {}
    }
}

/// Whether no warning of this kind was printed yet, nor too many others.
fn is_new(kind: &str) -> bool {
    static PRINTED: LazyLock<Mutex<HashSet<String>>> = LazyLock::new(Mutex::default);
    let mut printed = PRINTED.lock().unwrap_or_else(PoisonError::into_inner);
    printed.len() < WARNINGS_MAX && printed.insert(kind.to_owned())
}

/// Whether no other process of the job on this node has printed a warning of this
/// kind.
fn is_first_to_say(kind: &str) -> bool {
    Job::current().is_none_or(|job| job.claim(kind))
}

/// Prints a line on standard error in one system call, so that lines of several
/// ranks do not run into each other.
pub fn print_line(line: &str) {
    let line = format!("{line}\n");
    // Nobody is left to be told of an error.
    let _ = std::io::stderr().write_all(line.as_bytes());
}

/// Whether this process is the first of its job, as far as a launcher says which
/// it is: the one to speak where all find out the same, each for itself.
pub fn is_first_of_job() -> bool {
    rank_in_job().is_none_or(|rank| rank == 0)
}

/// Whether this rank speaks for all about a hint from `source`, so that a warning
/// appears once. What the environment says concerns all files of the job, on
/// whatever ranks; what a call says concerns the ranks of its file, which may be
/// this one alone, while every rank has such a file. Of ranks on one node, any
/// may speak: the first to do so is heard.
pub(crate) fn speaks_for(comm: &dyn Transport, source: &Source) -> bool {
    let any_may = Job::current().is_some_and(Job::is_on_one_node);
    let own = rank_in_job().map(|rank| rank == 0 || any_may);
    match (own, source) {
        (Some(may), Source::Environment | Source::HintsFile) => may,
        (Some(may), _) => comm.rank() == Rank(0) && (comm.size() > 1 || may),
        (None, _) => comm.rank() == Rank(0),
    }
}
