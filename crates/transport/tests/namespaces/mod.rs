//! A common node does not prove common memory: small and separate /dev/shm.
#![allow(unsafe_code)] // unshare and mount

use std::ffi::CStr;
use std::io;
use std::sync::Arc;

use pario_transport::processes::{self, SegmentMemory, World};
use pario_transport::{Rank, Result, Tag, Transport};

use crate::harness::{Outcome, Test};
use crate::processes_launcher::named_world;

const SMALL: usize = 64 << 10;
const MEDIUM: usize = 16 << 20;

pub(crate) fn tests() -> Vec<Test> {
    vec![
        Test::new("namespaces::shared_memory_of_1_mib", || {
            in_private(small_memory)
        }),
        Test::new("namespaces::separate_shared_memory", || {
            in_private(|| separate(&[c"/dev/shm"]))
        }),
        Test::new("namespaces::separate_proc", || {
            in_private(|| separate(&[c"/proc"]))
        }),
        Test::new("namespaces::process_numbers_of_another_proc", || {
            in_private(other_process_numbers)
        }),
        Test::new("namespaces::nothing_in_common", || {
            in_private(|| separate(&[c"/dev/shm", c"/proc"]))
        }),
    ]
}

/// Runs a test in a process with its own mounts, so that they end with it.
fn in_private(body: fn()) -> Outcome {
    let results = processes::run(1, |_| match leave_namespaces() {
        Ok(()) => {
            body();
            Vec::new()
        }
        Err(error) => format!("no new namespaces: {error}").into_bytes(),
    });
    let result = results.into_iter().next().expect("one rank, one result");
    match result {
        Ok(reason) if reason.is_empty() => Outcome::Passed,
        Ok(reason) => Outcome::Skipped(String::from_utf8_lossy(&reason).into_owned()),
        Err(failure) => panic!("{failure}"),
    }
}

fn leave_namespaces() -> io::Result<()> {
    // SAFETY: changes what this process sees, not its memory.
    let left = unsafe { libc::unshare(libc::CLONE_NEWNS | libc::CLONE_NEWIPC) };
    if left != 0 {
        return Err(io::Error::last_os_error());
    }
    // What is mounted here must not spread to the rest of the system.
    mount(c"none", c"/", None, libc::MS_REC | libc::MS_PRIVATE)
}

fn cover(directory: &CStr, options: &CStr) -> io::Result<()> {
    mount(c"tmpfs", directory, Some(options), 0)
}

fn mount(kind: &CStr, target: &CStr, options: Option<&CStr>, flags: u64) -> io::Result<()> {
    let options = options.map_or(std::ptr::null(), CStr::as_ptr);
    // SAFETY: all texts are C strings that outlive the call.
    let mounted = unsafe {
        libc::mount(
            kind.as_ptr(),
            target.as_ptr(),
            kind.as_ptr(),
            flags,
            options.cast(),
        )
    };
    match mounted {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Runs a job that must end well on each rank.
fn run_well(world: &World, job: impl Fn(&Arc<dyn Transport>) -> Result<()>) {
    let results = world.run(|transport| {
        job(&transport).expect("no rank is lost");
        Vec::new()
    });
    for result in results {
        if let Err(failure) = result {
            panic!("{failure}");
        }
    }
}

fn small_memory() {
    cover(c"/dev/shm", c"size=1m").expect("a tmpfs can be mounted");
    run_well(&named_world(3), |transport| {
        // Twice: a failure leaves no memory behind.
        for _ in 0..2 {
            assert!(transport.segment(MEDIUM)?.is_none());
            let segment = transport.segment(SMALL)?;
            segment.expect("it fits").store_bytes(SMALL - 8, &[1; 8]);
            transport.barrier()?;
        }
        // Two that fit one by one but not together.
        let first = transport.segment(700 << 10)?;
        assert!(first.is_some());
        assert!(transport.segment(700 << 10)?.is_none());
        still_talk(transport)
    });
    // Nameless files do not count against this limit.
    run_well(&World::new(3), |transport| {
        let segment = transport.segment(MEDIUM)?.expect("there is memory");
        segment.store_bytes(MEDIUM - 8, &[1; 8]);
        transport.barrier()
    });
}

/// One rank sees other directories than the rest of its node.
fn separate(covered: &[&CStr]) {
    for odd in [Rank(0), Rank(1), Rank(3)] {
        let go_apart = |transport: &Arc<dyn Transport>| {
            if transport.rank() == odd {
                leave_namespaces().expect("it worked a moment ago");
                for directory in covered {
                    cover(directory, c"size=1m").expect("a tmpfs can be mounted");
                }
            }
            transport.barrier()
        };
        let has_shared_memory = !covered.contains(&c"/dev/shm");
        let has_proc = !covered.contains(&c"/proc");
        let nodes = [0, 0, 1, 1];
        let node_of_odd = nodes[odd.index()];
        for (world, is_shared) in [
            (named_world(4), has_shared_memory),
            (World::new(4), has_shared_memory || has_proc),
        ] {
            run_well(&world.nodes(&nodes), |transport| {
                go_apart(transport)?;
                let segment = transport.segment(SMALL)?;
                // The other node is not concerned.
                let is_concerned = nodes[transport.rank().index()] == node_of_odd;
                let expected = is_shared || !is_concerned;
                assert_eq!(segment.is_some(), expected, "{odd} apart: {covered:?}");
                still_talk(transport)
            });
        }
    }
}

/// Ranks in a new process namespace that still see the old /proc: their numbers
/// are those of other processes there, whose files must not be taken.
fn other_process_numbers() {
    // SAFETY: changes what this process sees, not its memory.
    let left = unsafe { libc::unshare(libc::CLONE_NEWPID) };
    assert_eq!(left, 0, "{}", io::Error::last_os_error());
    // The first process of a namespace must outlive the others.
    let results = processes::run(1, |_| {
        assert_eq!(std::process::id(), 1);
        let nameless = World::new(3).segment_memory(&[SegmentMemory::Nameless]);
        run_well(&nameless, |transport| {
            assert!(transport.segment(SMALL)?.is_none());
            still_talk(transport)
        });
        run_well(&World::new(3), |transport| {
            assert!(transport.segment(SMALL)?.is_some());
            still_talk(transport)
        });
        Vec::new()
    });
    assert_eq!(results, vec![Ok(Vec::new())]);
}

/// Messages go on whatever became of segments.
fn still_talk(transport: &Arc<dyn Transport>) -> Result<()> {
    let (me, size) = (transport.rank().0, transport.size());
    transport.send(Rank((me + 1) % size), Tag(0), &[me as u8; 1000])?;
    let from = (me + size - 1) % size;
    let bytes = transport.receive(Rank(from), Tag(0))?;
    assert_eq!(bytes, [from as u8; 1000]);
    transport.barrier()
}
