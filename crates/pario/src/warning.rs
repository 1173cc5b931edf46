//! Warnings: what the user should know but need not handle.

use std::collections::HashSet;
use std::io::Write;
use std::sync::{LazyLock, Mutex, PoisonError};

use pario_hints::Source;
use pario_transport::{Rank, Transport};

type Handler = Box<dyn Fn(&str) + Send>;

static HANDLER: Mutex<Option<Handler>> = Mutex::new(None);

/// Different warnings that a process prints at most.
const WARNINGS_MAX: usize = 100;

/// Sends warnings (a malformed hint, an info that differs between ranks) to
/// `handler` instead of standard error.
pub fn set_warning_handler(handler: impl Fn(&str) + Send + 'static) {
    *HANDLER.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(handler));
}

/// Warns the user. Standard error gets the same message once; that only one rank
/// reports what concerns several is up to the caller.
pub fn warn(message: &str) {
    warn_of(message, message);
}

/// As [`warn`], with messages of one kind that differ, by the file for instance:
/// standard error gets the first of them.
pub fn warn_of(kind: &str, message: &str) {
    match &*HANDLER.lock().unwrap_or_else(PoisonError::into_inner) {
        Some(handler) => handler(message),
        None if is_new(kind) => print_line(&format!("pario: warning: {message}")),
        None => {}
    }
}

/// Whether no warning of this kind was printed yet, nor too many others.
fn is_new(kind: &str) -> bool {
    static PRINTED: LazyLock<Mutex<HashSet<String>>> = LazyLock::new(Mutex::default);
    let mut printed = PRINTED.lock().unwrap_or_else(PoisonError::into_inner);
    printed.len() < WARNINGS_MAX && printed.insert(kind.to_owned())
}

/// Prints a line on standard error in one system call, so that lines of several
/// ranks do not run into each other.
pub fn print_line(line: &str) {
    let line = format!("{line}\n");
    // Nobody is left to be told of an error.
    let _ = std::io::stderr().write_all(line.as_bytes());
}

/// Where launchers write the rank of a process in its job.
const RANK_VARIABLES: [&str; 4] = [
    "PMIX_RANK",
    "PMI_RANK",
    "OMPI_COMM_WORLD_RANK",
    "SLURM_PROCID",
];

/// The rank of this process in its job, if a launcher says so.
fn rank_in_job(variable: impl Fn(&str) -> Option<String>) -> Option<u32> {
    let mut ranks = RANK_VARIABLES.iter().filter_map(|name| variable(name));
    ranks.next()?.trim().parse().ok()
}

/// Whether this process is the first of its job, as far as a launcher says which
/// it is: the one to speak where all find out the same, each for itself.
pub fn is_first_of_job() -> bool {
    rank_in_job(|name| std::env::var(name).ok()).is_none_or(|rank| rank == 0)
}

/// Whether this rank speaks for all about a hint from `source`, so that a warning
/// appears once. What the environment says concerns all files of the job, on
/// whatever ranks; what a call says concerns the ranks of its file, which may be
/// this one alone, while every rank has such a file.
pub(crate) fn speaks_for(comm: &dyn Transport, source: &Source) -> bool {
    let own = rank_in_job(|name| std::env::var(name).ok());
    match (own, source) {
        (Some(rank), Source::Environment | Source::HintsFile) => rank == 0,
        (Some(rank), _) => comm.rank() == Rank(0) && (comm.size() > 1 || rank == 0),
        (None, _) => comm.rank() == Rank(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launchers_tell_ranks() {
        let with = |name: &'static str, value: &'static str| {
            rank_in_job(move |asked| (asked == name).then(|| value.to_owned()))
        };
        assert_eq!(with("HOME", "1"), None, "no launcher");
        assert_eq!(with("PMI_RANK", "0"), Some(0));
        assert_eq!(with("SLURM_PROCID", "12"), Some(12));
        assert_eq!(with("PMIX_RANK", "none"), None);
    }
}
