//! The parent of forked ranks: collects reports, notices deaths.

use std::io::{PipeReader, Read};
use std::os::fd::AsRawFd;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use super::RankFailure;
use super::child::Report;
use super::fork::{self, Child};
use crate::fabric::World;
use crate::sharing::NamedDirectory;
use crate::{Loss, Rank};

/// The end of a child closes its pipe, which wakes the supervisor, unless a
/// process that the rank started keeps the pipe open: then it looks after this
/// time.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Between the end of a pipe and the end of its process.
const LOOK_SOON: Duration = Duration::from_millis(1);

/// The most that is read from a pipe at once.
const READ_BYTES: usize = 64 << 10;

type RankResult = Result<Vec<u8>, RankFailure>;

/// A rank that runs.
struct RankProcess {
    rank: Rank,
    child: Child,
    /// `None` when it has come to its end.
    pipe: Option<PipeReader>,
    report: Vec<u8>,
}

/// The parent of the ranks of a world.
pub(super) struct Supervisor {
    world: World,
    directories: Vec<NamedDirectory>,
    processes: Vec<RankProcess>,
    /// By rank, in any order until all are there.
    results: Vec<(Rank, RankResult)>,
}

impl Supervisor {
    pub(super) fn new(world: World, directories: Vec<NamedDirectory>) -> Self {
        Supervisor {
            world,
            directories,
            processes: Vec::new(),
            results: Vec::new(),
        }
    }

    /// Starts to supervise a rank.
    pub(super) fn adopt(&mut self, rank: Rank, child: Child, pipe: PipeReader) {
        self.processes.push(RankProcess {
            rank,
            child,
            pipe: Some(pipe),
            report: Vec::new(),
        });
    }

    /// Notes that a rank has ended.
    pub(super) fn reap(&mut self, failure: RankFailure) {
        self.world.leave(failure.rank, failure.reason);
        for directory in &self.directories {
            directory.sweep();
        }
        self.results.push((failure.rank, Err(failure)));
    }

    /// Returns when all ranks have ended, with what each returned.
    pub(super) fn supervise(mut self) -> Vec<RankResult> {
        while !self.processes.is_empty() {
            self.read_reports();
            self.reap_killed();
        }
        self.results.sort_by_key(|(rank, _)| *rank);
        self.results.into_iter().map(|(_, result)| result).collect()
    }

    /// Waits until something happens and reads what there is.
    fn read_reports(&mut self) {
        let is_ending = self.processes.iter().any(|process| process.pipe.is_none());
        let bound = if is_ending { LOOK_SOON } else { LOOK_EVERY };
        let mut open = self
            .processes
            .iter_mut()
            .filter(|process| process.pipe.is_some())
            .collect::<Vec<_>>();
        let descriptors = open
            .iter()
            .filter_map(|process| process.pipe.as_ref().map(AsRawFd::as_raw_fd))
            .collect::<Vec<_>>();
        let readable = fork::poll(&descriptors, bound);
        for (process, readable) in open.iter_mut().zip(readable) {
            if readable {
                process.read();
            }
        }
    }

    /// Notes the ranks whose processes have ended.
    fn reap_killed(&mut self) {
        let processes = std::mem::take(&mut self.processes);
        for mut process in processes {
            let Some(status) = process.child.try_wait() else {
                self.processes.push(process);
                continue;
            };
            process.read_to_end();
            match process.result(status) {
                Ok(bytes) => self.results.push((process.rank, Ok(bytes))),
                Err(failure) => self.reap(failure),
            }
        }
    }
}

impl RankProcess {
    /// Reads once from a pipe that has something, or notes its end.
    fn read(&mut self) {
        let Some(pipe) = &mut self.pipe else { return };
        let mut bytes = vec![0; READ_BYTES];
        match pipe.read(&mut bytes) {
            Ok(0) | Err(_) => self.pipe = None,
            Ok(length) => self.report.extend_from_slice(&bytes[..length]),
        }
    }

    /// Reads what is left when the process has ended.
    fn read_to_end(&mut self) {
        while let Some(pipe) = &self.pipe {
            // A process that the rank started may keep the pipe open.
            if fork::poll(&[pipe.as_raw_fd()], Duration::ZERO) != [true] {
                break;
            }
            self.read();
        }
    }

    fn result(&self, status: ExitStatus) -> RankResult {
        let (reason, message) = match (status.signal(), Report::decode(&self.report)) {
            (Some(signal), _) => (Loss::Killed { signal }, String::new()),
            (None, Some(Report::Returned(bytes))) => return Ok(bytes),
            (None, Some(Report::Panicked(message))) => (Loss::Panicked, message),
            (None, None) => {
                let status = status.code().unwrap_or_default();
                (Loss::Exited { status }, String::new())
            }
        };
        Err(RankFailure {
            rank: self.rank,
            reason,
            message,
        })
    }
}
