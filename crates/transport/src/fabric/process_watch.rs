//! Notices that the process of another rank has ended, where no supervisor does.
//!
//! An MPI launcher usually ends the whole job when a rank dies, but can be set
//! not to. A rank that waits then looks at the processes of the others, one
//! after the other and only a few hundred times per second: the kernel's
//! `/proc/PID/stat` says whether a process runs, and when it was started, which
//! tells it from a later one of the same number. Processes that cannot be seen
//! from here, in another PID namespace for instance, are not watched.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::Rank;

/// The time between two looks.
const INTERVAL: Duration = Duration::from_millis(4);

/// How a process introduces itself: its PID namespace, its number there, and
/// when the kernel started it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Process {
    namespace: u64,
    id: u32,
    started: u64,
}

const PROCESS_BYTES: usize = 8 + 4 + 8;

impl Process {
    fn this() -> Option<Process> {
        let id = std::process::id();
        Some(Process {
            namespace: fs::metadata("/proc/self/ns/pid").ok()?.ino(),
            id,
            started: match state(id).ok()? {
                State::Running { started } => started,
                State::Ended => return None,
            },
        })
    }

    fn encode(self) -> Vec<u8> {
        let mut bytes = self.namespace.to_le_bytes().to_vec();
        bytes.extend(self.id.to_le_bytes());
        bytes.extend(self.started.to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Process> {
        let bytes: &[u8; PROCESS_BYTES] = bytes.try_into().ok()?;
        let (namespace, rest) = bytes.split_first_chunk()?;
        let (id, rest) = rest.split_first_chunk()?;
        Some(Process {
            namespace: u64::from_le_bytes(*namespace),
            id: u32::from_le_bytes(*id),
            started: u64::from_le_bytes(rest.try_into().ok()?),
        })
    }

    /// Whether it is known to have ended. What cannot be found out is not held
    /// against it: this process may have no descriptor left to look with.
    fn has_ended(self) -> bool {
        match state(self.id) {
            Ok(State::Running { started }) => started != self.started,
            Ok(State::Ended) => true,
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        }
    }
}

enum State {
    Running {
        /// In ticks since the machine was started.
        started: u64,
    },
    /// A zombie, or about to be gone.
    Ended,
}

/// What the kernel says about a process.
fn state(id: u32) -> io::Result<State> {
    /// The fields after the name, counted from the state.
    const STARTED: usize = 19;
    /// More than the line ever has, so that one call reads it.
    const LINE_BYTES_MAX: usize = 2048;
    let mut line = [0; LINE_BYTES_MAX];
    let length = match File::open(format!("/proc/{id}/stat"))?.read(&mut line) {
        // It ended between opening and reading.
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => return Ok(State::Ended),
        length => length?,
    };
    let text = String::from_utf8_lossy(&line[..length]);
    // The name may contain anything, parentheses too.
    let fields = text.rsplit_once(')').map_or("", |(_, fields)| fields);
    let mut fields = fields.split_ascii_whitespace();
    match fields.next() {
        Some("Z" | "X" | "x") => Ok(State::Ended),
        Some(_) => {
            let started = fields.nth(STARTED - 1).and_then(|field| field.parse().ok());
            let started = started.ok_or(io::ErrorKind::InvalidData)?;
            Ok(State::Running { started })
        }
        None => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// The processes of the other ranks of a node.
#[derive(Debug)]
pub(super) struct ProcessWatch {
    others: Vec<(Rank, Process)>,
    /// Whose turn it is.
    next: AtomicUsize,
    made: Instant,
    /// When to look again, in microseconds since it was made.
    due: AtomicU64,
}

impl ProcessWatch {
    /// What a rank tells the others about its process; nothing where the
    /// kernel does not say.
    pub(super) fn introduce() -> Vec<u8> {
        Process::this().map(Process::encode).unwrap_or_default()
    }

    /// Watches the ranks that introduced themselves and can be seen from here.
    pub(super) fn new(me: Rank, introductions: &[Vec<u8>]) -> ProcessWatch {
        let mine = introductions.get(me.index());
        let here = mine.and_then(|introduction| Process::decode(introduction));
        let others = introductions.iter().zip((0..).map(Rank));
        let others = others.filter(|(_, rank)| *rank != me);
        let others = others.filter_map(|(introduction, rank)| {
            let process = Process::decode(introduction)?;
            let is_visible = here.is_some_and(|here| here.namespace == process.namespace)
                && matches!(state(process.id), Ok(State::Running { .. }));
            is_visible.then_some((rank, process))
        });
        ProcessWatch {
            others: others.collect(),
            next: AtomicUsize::new(0),
            made: Instant::now(),
            due: AtomicU64::new(INTERVAL.as_micros() as u64),
        }
    }

    /// Looks at the next process if it is time to; its rank if it has ended.
    pub(super) fn find_ended(&self) -> Option<Rank> {
        if self.others.is_empty() {
            return None;
        }
        let now = self.made.elapsed().as_micros() as u64;
        let due = self.due.load(Ordering::Relaxed);
        let later = now + INTERVAL.as_micros() as u64;
        if now < due
            || self
                .due
                .compare_exchange(due, later, Ordering::Relaxed, Ordering::Relaxed)
                .is_err()
        {
            return None;
        }
        let turn = self.next.fetch_add(1, Ordering::Relaxed);
        let (rank, process) = self.others[turn % self.others.len()];
        process.has_ended().then_some(rank)
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command, Stdio};
    use std::thread;

    use super::*;

    fn child() -> Child {
        let mut command = Command::new("cat");
        command.stdin(Stdio::piped()).stdout(Stdio::null());
        command.spawn().expect("cat is there")
    }

    fn introduction(child: &Child) -> Vec<u8> {
        let started = match state(child.id()).expect("it has been started") {
            State::Running { started } => started,
            State::Ended => panic!("it waits for its input"),
        };
        let here = Process::this().expect("this process runs");
        Process {
            id: child.id(),
            started,
            ..here
        }
        .encode()
    }

    fn wait_for_end(watch: &ProcessWatch) -> Option<Rank> {
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(10) {
            if let Some(rank) = watch.find_ended() {
                return Some(rank);
            }
            thread::sleep(Duration::from_millis(1));
        }
        None
    }

    #[test]
    fn a_process_that_was_killed_is_found_before_its_parent_asks() {
        let (mut stays, mut goes) = (child(), child());
        let all = [
            ProcessWatch::introduce(),
            introduction(&stays),
            introduction(&goes),
        ];
        let watch = ProcessWatch::new(Rank(0), &all);
        thread::sleep(4 * INTERVAL);
        assert_eq!((watch.find_ended(), watch.others.len()), (None, 2));
        goes.kill().expect("it can be killed");
        // It is a zombie now: nobody has asked for its status.
        assert_eq!(wait_for_end(&watch), Some(Rank(2)));
        goes.wait().expect("it has ended");
        assert_eq!(wait_for_end(&watch), Some(Rank(2)));
        stays.kill().expect("it can be killed");
        stays.wait().expect("it has ended");
    }

    #[test]
    fn another_process_of_the_same_number_is_not_taken_for_it() {
        let mut other = child();
        let mut process = Process::decode(&introduction(&other)).expect("it is whole");
        assert!(!process.has_ended());
        process.started -= 1;
        assert!(process.has_ended());
        other.kill().expect("it can be killed");
        other.wait().expect("it has ended");
    }

    #[test]
    fn processes_out_of_sight_are_not_watched() {
        let here = Process::this().expect("this process runs");
        let elsewhere = Process {
            namespace: here.namespace + 1,
            ..here
        };
        let all = [here.encode(), elsewhere.encode(), Vec::new(), vec![7; 3]];
        assert!(ProcessWatch::new(Rank(0), &all).others.is_empty());
    }
}
