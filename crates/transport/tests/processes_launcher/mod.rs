//! How the tests start worlds of processes, and the system calls they need.
#![allow(unsafe_code)] // kill, fork, atexit
#![allow(dead_code)] // not every test program needs all of it

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::sync::Mutex;
use std::time::Duration;

use pario_transport::conformance::{Job, Launcher, Outcome};
use pario_transport::processes::{SegmentMemory, World};

/// Where names of shared memory live.
pub(crate) const SHARED_MEMORY: &str = "/dev/shm";

/// Worlds of processes, with the memory that is the default, or a named one.
pub(crate) struct Processes {
    is_named: bool,
}

pub(crate) const DEFAULT: Processes = Processes { is_named: false };
pub(crate) const NAMED: Processes = Processes { is_named: true };

/// A world whose segments are files in /dev/shm.
pub(crate) fn named_world(ranks: u32) -> World {
    World::new(ranks).segment_memory(&[SegmentMemory::Directory(SHARED_MEMORY.into())])
}

impl Launcher for Processes {
    fn name(&self) -> &'static str {
        "processes"
    }

    fn launch(&self, nodes: &[u32], job: &Job<'_>) -> Vec<Outcome> {
        let ranks = nodes.len() as u32;
        let world = match self.is_named {
            true => named_world(ranks),
            false => World::new(ranks),
        };
        let results = world.nodes(nodes).run(job);
        let outcomes = results
            .into_iter()
            .map(|result| result.map_err(|failure| failure.to_string()));
        let outcomes = outcomes.collect();
        assert_eq!(names_in_shared_memory(), Vec::<String>::new());
        outcomes
    }

    fn end_abruptly(&self) -> Option<fn()> {
        // SAFETY: the signal ends this process and touches no other.
        Some(|| unsafe {
            libc::kill(libc::getpid(), libc::SIGKILL);
        })
    }
}

/// The names that worlds started by this process have in /dev/shm.
pub(crate) fn names_in_shared_memory() -> Vec<String> {
    let prefix = format!("pario-{}-", std::process::id());
    let entries = fs::read_dir(SHARED_MEMORY).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with(&prefix)).collect()
}

/// Leaves a copy of this process behind that sleeps. It keeps all descriptors
/// but the standard ones: whoever reads the output of the tests need not wait.
pub(crate) fn fork_a_sleeper(nap: Duration) {
    // SAFETY: the copy calls nothing but close, sleep and exit.
    unsafe {
        if libc::fork() == 0 {
            for standard in 0..=2 {
                libc::close(standard);
            }
            libc::sleep(nap.as_secs() as u32);
            libc::_exit(0);
        }
    }
}

/// Where the exit handler leaves its marks.
static MARKS: Mutex<Option<File>> = Mutex::new(None);

extern "C" fn leave_a_mark() {
    if let Ok(mut marks) = MARKS.lock()
        && let Some(file) = marks.as_mut()
    {
        let _ = file.write_all(&[1]);
    }
}

/// Registers an exit handler, and counts how often it runs while `body` does.
pub(crate) fn count_exit_handlers(body: impl FnOnce()) -> usize {
    let path = std::env::temp_dir().join(format!("pario-exit-{}", std::process::id()));
    let file = File::options()
        .create_new(true)
        .read(true)
        .append(true)
        .open(&path);
    let file = file.expect("a file in the temporary directory");
    fs::remove_file(&path).expect("it was made here");
    *MARKS.lock().expect("no thread panicked") = Some(file);
    // SAFETY: the handler lives as long as the program.
    unsafe { libc::atexit(leave_a_mark) };
    body();
    let file = MARKS.lock().expect("no thread panicked").take();
    let mut file = file.expect("it was put there above");
    let mut marks = Vec::new();
    file.seek(SeekFrom::Start(0)).expect("a file can seek");
    file.read_to_end(&mut marks).expect("a file can be read");
    marks.len()
}
