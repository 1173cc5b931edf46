//! Rules 3, 10, 11 and 26: what the library leaves, takes and costs in a
//! process.
#![allow(unsafe_code)] // a rank forks, and asks for its processor time

use std::{collections::BTreeSet, fs, thread, time::Duration};

use pario::{Atomicity, Basic, Datatype, File, Info, Mode, Owned, Result, Source, Target, View};
use pario_transport::{Rank, threads};

use crate::{
    common::{NEW, directory, every, info},
    harness::{Test, ranks},
};

pub(crate) const TESTS: &[Test] = &[
    (
        "footprint::rule_10_nothing_runs_at_load",
        nothing_runs_at_load,
    ),
    (
        "footprint::rule_10_descriptors_end_with_exec",
        descriptors_end_with_exec,
    ),
    (
        "footprint::rule_10_a_forked_child_unlinks_nothing",
        a_forked_child_unlinks_nothing,
    ),
    (
        "footprint::rule_03_no_signal_is_handled",
        no_signal_is_handled,
    ),
    (
        "footprint::rule_11_a_rank_that_waits_sleeps",
        a_rank_that_waits_sleeps,
    ),
    (
        "footprint::rule_26_memory_does_not_grow_with_pieces",
        memory_does_not_grow_with_pieces,
    ),
    (
        "footprint::rule_26_memory_does_not_grow_with_requests",
        memory_does_not_grow_with_requests,
    ),
];

const MIB: u64 = 1 << 20;

fn tasks() -> usize {
    fs::read_dir("/proc/self/task").unwrap().count()
}

/// A line of `/proc/self/status`.
fn status(name: &str) -> String {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.expect("a line of every process").trim().to_owned()
}

/// Such a line that gives kibibytes, in bytes.
fn status_bytes(name: &str) -> u64 {
    let text = status(name);
    let number = text.trim_end_matches("kB").trim();
    number.parse::<u64>().unwrap() << 10
}

/// Open descriptors and what they lead to. The one that lists is gone by the
/// time it is looked at.
fn descriptors() -> BTreeSet<(u32, String)> {
    fs::read_dir("/proc/self/fd")
        .unwrap()
        .filter_map(|entry| {
            let entry = entry.unwrap();
            let target = fs::read_link(entry.path()).ok()?;
            let number = entry.file_name().into_string().ok()?.parse().ok()?;
            Some((number, target.display().to_string()))
        })
        .filter(|(_, target)| !target.ends_with("/fd"))
        .collect()
}

fn nothing_runs_at_load() {
    assert_eq!(tasks(), 1, "a thread before the first open");
    for (_, target) in descriptors() {
        assert!(!target.contains("memfd"), "{target}");
        assert!(!target.contains("io_uring"), "{target}");
        assert!(!target.contains("eventfd"), "{target}");
    }
    let directory = directory();
    ranks(2, |comm| {
        let before = descriptors();
        let file = File::open(&comm, directory.path().join("data"), NEW, &Info::new())?;
        file.write_at(0, &[1u8; 100])?;
        assert_eq!(tasks(), 1, "blocking calls need no thread");
        file.iwrite_at(0, vec![1u8; 100])?.wait()?;
        file.close()?;
        drop(file);
        let added: Vec<_> = descriptors().difference(&before).cloned().collect();
        let of_file = added.iter().any(|(_, target)| target.contains("data"));
        assert!(!of_file, "left open: {added:?}");
        Ok(())
    });
}

fn descriptors_end_with_exec() {
    let directory = directory();
    let inherited = descriptors();
    for driver in ["ufs", "uring"] {
        ranks(2, |comm| {
            let hints = info(&[
                ("pario_driver", driver),
                ("pario_shared_pointer", "file"),
                ("direct_read", "true"),
                ("direct_write", "true"),
            ]);
            let path = directory.path().join(driver);
            let direct = File::open(&comm, &path, NEW, &hints)?;
            let plain = File::open(&comm, &path, NEW, &Info::new())?;
            for file in [&direct, &plain] {
                file.iwrite_at(0, vec![1u8; 10_000])?.wait()?;
                file.write_shared(&[1u8; 100])?;
            }
            let mut of_file = 0;
            for (number, target) in descriptors().difference(&inherited) {
                let text = fs::read_to_string(format!("/proc/self/fdinfo/{number}"))?;
                let flags = text.lines().find_map(|line| line.strip_prefix("flags:"));
                let flags = i32::from_str_radix(flags.unwrap().trim(), 8).unwrap();
                assert_ne!(flags & libc::O_CLOEXEC, 0, "{number} -> {target}");
                of_file += usize::from(target.contains(&*path.to_string_lossy()));
            }
            assert!(of_file >= 2, "{of_file} descriptors of the file");
            plain.close()?;
            direct.close()
        });
    }
}

fn a_forked_child_unlinks_nothing() {
    let directory = directory();
    let path = directory.path().join("data");
    ranks(2, |comm| {
        let hints = info(&[("pario_shared_pointer", "file")]);
        let file = File::open(&comm, &path, NEW | Mode::DELETE_ON_CLOSE, &hints)?;
        file.iwrite_at(0, vec![1u8; 10])?.wait()?;
        // SAFETY: the child drops what it has, runs the exit handlers of the
        // process and ends.
        let child = unsafe { libc::fork() };
        if child == 0 {
            drop(file);
            drop(comm);
            // SAFETY: ends the child, by way of the handlers.
            unsafe { libc::exit(0) };
        }
        let mut status = 0;
        // SAFETY: the status outlives the call.
        assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
        assert_eq!(status, 0, "the child ended in good order");
        assert!(path.exists());
        file.write_shared(&[2u8; 5])?;
        file.write_ordered(&[3u8; 5])?;
        file.close()
    });
    assert!(!path.exists());
}

/// The signals that are handled, without the two that the C library keeps for
/// its threads.
fn handled_signals() -> u64 {
    const OF_LIBRARY: u64 = 0b11 << 31;
    u64::from_str_radix(&status("SigCgt"), 16).unwrap() & !OF_LIBRARY
}

fn no_signal_is_handled() {
    let directory = directory();
    let path = directory.path().join("never-mapped");
    ranks(2, |comm| {
        let before = handled_signals();
        let file = File::open(
            &comm,
            &path,
            NEW,
            &info(&[("pario_scattered_writes", "calls")]),
        )?;
        file.set_view(&every(100, 40, 0))?;
        file.write_at(0, &[1u8; 4000])?;
        file.iread_at(0, vec![0u8; 4000])?.wait()?;
        assert_eq!(handled_signals(), before);
        let maps = fs::read_to_string("/proc/self/maps")?;
        assert!(!maps.contains("never-mapped"), "the file is mapped");
        file.close()
    });
}

/// Seconds of processor time of this process.
fn cpu_seconds() -> f64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the time outlives the call.
    let result = unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    assert_eq!(result, 0);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Most of what a rank may burn while it waits a second.
const CPU_SECONDS_MAX: f64 = 0.2;

/// The last rank comes a second late to a call; the others wait.
fn wait_for_the_last(
    comm: &dyn pario_transport::Transport,
    call: &dyn Fn() -> Result<()>,
) -> Result<f64> {
    comm.barrier()?;
    let before = cpu_seconds();
    if comm.rank() == Rank(comm.size() - 1) {
        thread::sleep(Duration::from_secs(1));
    }
    call()?;
    Ok(cpu_seconds() - before)
}

fn assert_little(what: &str, seconds: f64) {
    assert!(
        seconds < CPU_SECONDS_MAX,
        "{what}: {seconds} s of processor time"
    );
}

fn a_rank_that_waits_sleeps() {
    let directory = directory();
    let path = directory.path().join("data");
    ranks(3, |comm| {
        let file = File::open(&comm, &path, NEW, &Info::new())?;
        let spent = wait_for_the_last(&*comm, &|| file.write_at_all(0, &[1u8; 100]).map(drop))?;
        assert_little("write_at_all", spent);
        let spent = wait_for_the_last(&*comm, &|| file.write_ordered(&[1u8]).map(drop))?;
        assert_little("write_ordered", spent);
        file.set_atomicity(Atomicity::Atomic)?;
        let spent = wait_for_the_last(&*comm, &|| file.close())?;
        assert_little("close", spent);
        Ok(())
    });
    // Threads of one process: all of them together.
    ranks(1, |_| {
        let results = threads::run(3, |comm| {
            let file = File::open(&comm, &path, NEW, &Info::new())?;
            let spent = wait_for_the_last(&*comm, &|| file.write_at_all(0, &[1u8]).map(drop))?;
            assert_little("threads", spent);
            file.close()
        });
        results
            .into_iter()
            .try_for_each(|result| result.expect("no rank panics"))
    });
}

/// What the library may hold beyond the user's memory: a window, a stage, the
/// lists of a batch, and the stacks of its threads.
const GROWTH_MAX: u64 = 16 * MIB;

/// Runs and asserts that the process never grew by more than the bound.
fn bounded(what: &str, work: impl FnOnce() -> Result<()>) -> Result<()> {
    // Resets the peak to what is in use now.
    fs::write("/proc/self/clear_refs", "5")?;
    let before = status_bytes("VmRSS");
    work()?;
    let growth = status_bytes("VmHWM").saturating_sub(before);
    assert!(growth <= GROWTH_MAX, "{what}: grew by {} KiB", growth >> 10);
    Ok(())
}

/// A view of eight bytes of every sixteen, and memory of one number that is
/// named again and again.
fn pieces(file: &File, count: u64, representation: &str) -> Result<Datatype> {
    let double = Datatype::basic(Basic::Double);
    let tile = Datatype::resized(&double, 0, 16)?;
    file.set_view(&View::new(0, &double, &tile).representation(representation))?;
    Ok(Datatype::hvector(count, 1, 0, &double)?)
}

fn write_bounded(file: &File, count: u64, representation: &str) -> Result<()> {
    let memory = pieces(file, count, representation)?;
    bounded(
        &format!("write to {:?} {representation}", file.path()),
        || {
            let number = 1.5f64.to_ne_bytes();
            let source = Source::typed(&number, 1, &memory)?;
            assert_eq!(file.write_at(0, source)?.bytes(), 8 * count);
            Ok(())
        },
    )
}

fn read_bounded(file: &File, count: u64, representation: &str) -> Result<f64> {
    let memory = pieces(file, count, representation)?;
    let mut number = [0xEE; 8];
    bounded(
        &format!("read of {:?} {representation}", file.path()),
        || {
            let target = Target::typed(&mut number, 1, &memory)?;
            assert_eq!(file.read_at(0, target)?.bytes(), 8 * count);
            Ok(())
        },
    )?;
    Ok(f64::from_ne_bytes(number))
}

fn memory_does_not_grow_with_pieces() {
    /// So many that a few bytes for each would pass the bound.
    const SIEVED: u64 = 10_000_000;
    const CONVERTED: u64 = 2_000_000;
    const SEPARATE: u64 = 1_000_000;
    let directory = directory();
    ranks(1, |comm| {
        let hints = info(&[
            ("pario_write_method", "sieve"),
            ("pario_read_method", "sieve"),
        ]);
        let mode = NEW | Mode::UNIQUE_OPEN | Mode::DELETE_ON_CLOSE;
        for (count, representation) in [(SIEVED, "native"), (CONVERTED, "external32")] {
            let path = directory.path().join("pieces");
            let file = File::open(&comm, path, mode, &hints)?;
            write_bounded(&file, count, representation)?;
            assert_eq!(file.size()?, 16 * count - 8);
            assert_eq!(read_bounded(&file, count, representation)?, 1.5);
            file.close()?;
        }
        // A call for each piece is quick where no file is behind it.
        for method in ["list", "direct"] {
            let hints = info(&[
                ("pario_write_method", method),
                ("pario_read_method", method),
            ]);
            let sink = File::open(&comm, "/dev/null", Mode::WRITE_ONLY, &hints)?;
            write_bounded(&sink, SEPARATE, "native")?;
            sink.close()?;
            let source = File::open(&comm, "/dev/zero", Mode::READ_ONLY, &hints)?;
            assert_eq!(read_bounded(&source, SEPARATE, "native")?, 0.0);
            source.close()?;
        }
        Ok(())
    });
}

fn memory_does_not_grow_with_requests() {
    /// As many windows at once as there are I/O threads would pass the bound.
    const REQUESTS: u64 = 32;
    const BYTES: u64 = 2 * MIB;
    const PIECE: u64 = 64;
    let directory = directory();
    ranks(1, |comm| {
        let hints = info(&[
            ("pario_inflight_bytes", "1048576"),
            ("ind_wr_buffer_size", "4194304"),
            ("pario_rmw", "locked"),
            ("pario_write_method", "sieve"),
        ]);
        let path = directory.path().join("requests");
        let file = File::open(&comm, &path, NEW | Mode::DELETE_ON_CLOSE, &hints)?;
        file.set_view(&every(2 * PIECE as i64, PIECE, 0))?;
        let repeated = Datatype::hvector(BYTES / PIECE, PIECE, 0, &Basic::Byte.into())?;
        bounded("requests", || {
            let requests: Vec<_> = (0..REQUESTS)
                .map(|number| {
                    let source = Owned::typed(vec![7u8; PIECE as usize], 1, &repeated)?;
                    file.iwrite_at(number % 8 * BYTES, source)
                })
                .collect::<Result<_>>()?;
            for request in requests {
                assert_eq!(request.wait()?.0.bytes(), BYTES);
            }
            Ok(())
        })?;
        file.close()
    });
}
