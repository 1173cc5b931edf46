//! Rules 1 and 3 to 6: no byte that no one asked to write, no lost write, no
//! surprise in the process.

use std::{fs, io, ops::Range, path::Path, sync::Arc, thread, time::Duration};

use pario::{AccessMethod, Atomicity, Datatype, ErrorKind, File, Info, Mode, Result, View};
use pario_driver::Driver;
use pario_transport::Rank;

use crate::common::{
    Latch, NEW, alone, byte, directory, every, info,
    probe::{Event, Probe},
    ranks, watchdog,
};

/// Hints that ask for sieving in every way there is.
const SIEVE: [(&str, &str); 4] = [
    ("pario_write_method", "sieve"),
    ("pario_read_method", "sieve"),
    ("romio_ds_write", "enable"),
    ("ind_wr_buffer_size", "64"),
];

fn open_probed(
    comm: &Arc<dyn pario_transport::Transport>,
    probe: &Arc<Probe>,
    path: &Path,
    mode: Mode,
    info: &Info,
) -> Result<File> {
    File::open_with(comm, probe.clone() as Arc<dyn Driver>, path, mode, info)
}

/// The bytes of all writes, joined where they touch.
fn written(events: &[Event]) -> Vec<Range<u64>> {
    let mut ranges: Vec<Range<u64>> = events
        .iter()
        .filter_map(|event| match event {
            Event::Write(pieces) => Some(pieces),
            _ => None,
        })
        .flatten()
        .map(|(offset, len)| *offset..offset + *len as u64)
        .collect();
    ranges.sort_by_key(|range| range.start);
    let mut joined: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        match joined.last_mut() {
            Some(last) if last.end >= range.start => last.end = last.end.max(range.end),
            _ => joined.push(range),
        }
    }
    joined
}

#[test]
fn rule_01_where_others_may_write_only_the_bytes_asked_for_are_written() {
    let directory = directory();
    // (ranks, mode): nothing but one rank alone with UNIQUE_OPEN may sieve.
    let settings = [
        (1, NEW, "UNIQUE_OPEN"),
        (2, NEW, "UNIQUE_OPEN"),
        (2, NEW | Mode::UNIQUE_OPEN, "UNIQUE_OPEN"),
        (
            1,
            Mode::CREATE | Mode::WRITE_ONLY | Mode::UNIQUE_OPEN,
            "WRITE_ONLY",
        ),
    ];
    for (number, (count, mode, reason)) in settings.into_iter().enumerate() {
        let path = directory.path().join(format!("holes-{number}"));
        ranks(count, |comm| {
            let probe = Probe::listening();
            let file = open_probed(&comm, &probe, &path, mode, &info(&SIEVE))?;
            let start = 1000 * u64::from(comm.rank().0);
            file.set_view(&every(10, 3, start))?;
            let selection = file.explain_write_at(0, &[1u8; 60])?;
            assert_eq!(selection.method(), AccessMethod::List);
            assert!(selection.to_string().contains(reason), "{selection}");
            probe.take();
            file.write_at(0, &[1u8; 60])?;
            let events = probe.take();
            let pieces: Vec<_> = (0..20)
                .map(|index| start + 10 * index..start + 10 * index + 3)
                .collect();
            assert_eq!(written(&events), pieces);
            let reads = events.iter().any(|event| matches!(event, Event::Read(_)));
            assert!(!reads, "nothing is read to write: {events:?}");
            file.close()
        });
    }
}

#[test]
fn rule_01_a_rank_alone_with_unique_open_may_sieve_and_keeps_the_holes() {
    let directory = directory();
    let path = directory.path().join("unique");
    fs::write(&path, [9; 150]).unwrap();
    alone(|comm| {
        let probe = Probe::listening();
        let mode = Mode::READ_WRITE | Mode::UNIQUE_OPEN;
        let file = open_probed(&comm, &probe, &path, mode, &info(&SIEVE))?;
        file.set_view(&every(10, 3, 0))?;
        assert_eq!(
            file.explain_write_at(0, &[1u8; 60])?.method(),
            AccessMethod::Sieve
        );
        file.write_at(0, &[1u8; 60])?;
        let whole = written(&probe.take());
        assert_eq!(
            whole,
            [0..63, 70..133, 140..193],
            "windows with their holes"
        );
        file.close()
    });
    let bytes = fs::read(&path).unwrap();
    assert_eq!(bytes.len(), 193);
    for (index, byte) in bytes.iter().enumerate() {
        let hole = if index < 150 { 9 } else { 0 };
        let expected = if index % 10 < 3 { 1 } else { hole };
        assert_eq!(*byte, expected, "byte {index}");
    }
}

#[test]
fn rule_01_a_write_under_way_on_the_handle_forbids_sieving() {
    let _watchdog = watchdog();
    let directory = directory();
    let path = directory.path().join("busy");
    alone(|comm| {
        let latch = Arc::new(Latch::default());
        let waits = latch.clone();
        let probe = Probe::new(move |event| {
            if matches!(event, Event::Write(pieces) if pieces[0] == (190, 1)) {
                waits.wait();
            }
            Ok(())
        });
        let mode = NEW | Mode::UNIQUE_OPEN;
        let file = open_probed(&comm, &probe, &path, mode, &Info::new())?;
        file.set_view(&every(10, 3, 0))?;
        assert_eq!(
            file.explain_write_at(0, &[1u8; 30])?.method(),
            AccessMethod::Sieve
        );
        let slow = file.iwrite_at(57, vec![7u8])?;
        let selection = file.explain_write_at(0, &[1u8; 30])?;
        assert_eq!(selection.method(), AccessMethod::List, "{selection}");
        assert!(selection.to_string().contains("under way"), "{selection}");
        probe.take();
        file.write_at(0, &[1u8; 30])?;
        assert_eq!(written(&probe.take()).len(), 10, "as its runs");
        latch.open();
        slow.wait()?;
        file.close()
    });
}

#[test]
fn rule_01_with_locked_read_modify_write_every_write_holds_a_lock() {
    let directory = directory();
    let path = directory.path().join("locked");
    ranks(2, |comm| {
        let probe = Probe::listening();
        let hints = [&SIEVE[..], &[("pario_rmw", "locked")]].concat();
        let file = open_probed(&comm, &probe, &path, NEW, &info(&hints))?;
        let rank = u64::from(comm.rank().0);
        file.set_view(&View::bytes())?;
        file.write_at(500 + rank, &[1u8])?;
        file.iwrite_at(600 + rank, vec![2u8])?.wait()?;
        file.set_view(&every(10, 3, 5 * rank))?;
        assert_eq!(
            file.explain_write_at(0, &[3u8; 60])?.method(),
            AccessMethod::Sieve
        );
        file.write_at(0, &[3u8; 60])?;
        let mut list = info(&[("pario_write_method", "list")]);
        file.set_info(&list)?;
        file.write_at(20, &[4u8; 60])?;
        list.set("pario_write_method", "direct").unwrap();
        file.set_info(&list)?;
        file.write_at(40, &[5u8; 60])?;
        let writes = writes_under_locks(&probe.take(), "each method");
        assert!(writes > 5, "{writes} writes seen");
        file.close()
    });
    let bytes = fs::read(&path).unwrap();
    for rank in 0..2 {
        assert_eq!([bytes[500 + rank], bytes[600 + rank]], [1, 2], "lost");
    }
}

/// The number of writes. Fails if a piece was written while no lock on it was held, or a lock is
/// still held at the end.
pub(crate) fn writes_under_locks(events: &[Event], case: &str) -> usize {
    let mut held: Vec<Range<u64>> = Vec::new();
    let mut writes = 0;
    for event in events {
        match event {
            Event::Locked(range) => held.push(range.clone()),
            Event::Unlocked(range) => {
                let at = held.iter().position(|other| other == range);
                held.remove(at.expect("what is unlocked was locked"));
            }
            Event::Write(pieces) => {
                writes += 1;
                for (offset, len) in pieces {
                    let end = offset + *len as u64;
                    let covered = |lock: &Range<u64>| lock.start <= *offset && end <= lock.end;
                    assert!(
                        held.iter().any(covered),
                        "{case}: {offset}..{end} under {held:?}"
                    );
                }
            }
            _ => {}
        }
    }
    assert!(held.is_empty(), "{case}: still locked: {held:?}");
    writes
}

#[test]
fn rule_03_files_are_mapped_only_for_the_kernels_copies_and_no_signal_is_handled() {
    let directory = directory();
    let path = directory.path().join("never-mapped");
    let handled = || {
        let status = fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find(|line| line.starts_with("SigCgt"));
        line.unwrap().to_owned()
    };
    let before = handled();
    ranks(2, |comm| {
        let probe = Probe::new(|_| {
            let maps = fs::read_to_string("/proc/self/maps")?;
            match maps.contains("never-mapped") {
                true => Err(io::Error::other("the file is mapped")),
                false => Ok(()),
            }
        });
        for method in ["direct", "list", "sieve", "automatic"] {
            let hints = info(&[
                ("pario_read_method", method),
                ("pario_write_method", method),
                ("pario_rmw", "locked"),
                ("pario_scattered_writes", "calls"),
            ]);
            let file = open_probed(&comm, &probe, &path, NEW, &hints)?;
            file.set_view(&every(100, 40, 50 * u64::from(comm.rank().0)))?;
            file.write_at(0, &[1u8; 4000])?;
            file.iwrite_at(4000, vec![1u8; 4000])?.wait()?;
            file.set_atomicity(Atomicity::Atomic)?;
            file.write_at(8000, &[1u8; 4000])?;
            file.read_at(0, &mut [0u8; 12000])?;
            file.write_ordered(&[0u8; 0]).expect_err("the views differ");
            file.close()?;
        }
        // By default the kernel may store scattered pieces through a mapping: what
        // would be a signal is an error of its call, so there is nothing to handle.
        let file = File::open(&comm, &path, NEW, &Info::new())?;
        file.set_view(&every(100, 40, 50 * u64::from(comm.rank().0)))?;
        file.write_at(0, &[2u8; 4000])?;
        assert_eq!(handled(), before);
        file.close()
    });
    assert_eq!(handled(), before);
}

/// A write that is stopped while it holds its lock.
fn held_up(start: u64, latch: &Arc<Latch>, reached: &Arc<Latch>) -> Arc<Probe> {
    let (latch, reached) = (latch.clone(), reached.clone());
    Probe::new(move |event| {
        if matches!(event, Event::Write(pieces) if pieces[0].0 == start) {
            reached.open();
            latch.wait();
        }
        Ok(())
    })
}

#[test]
fn rule_04_closing_the_file_elsewhere_in_the_process_keeps_locks() {
    let _watchdog = watchdog();
    let directory = directory();
    let path = directory.path().join("kept");
    let (latch, reached) = (Arc::new(Latch::default()), Arc::new(Latch::default()));
    ranks(2, |comm| {
        let first = comm.rank() == Rank(0);
        let probe = match first {
            true => held_up(0, &latch, &reached),
            false => Probe::listening(),
        };
        let file = open_probed(&comm, &probe, &path, NEW, &Info::new())?;
        file.set_atomicity(Atomicity::Atomic)?;
        if first {
            file.write_at(0, &[1u8; 100])?;
        } else {
            reached.wait();
            // Classic fcntl locks of the process would be gone after this.
            drop(fs::File::open(&path)?);
            let write = file.iwrite_at(50, vec![2u8; 100])?;
            thread::sleep(Duration::from_millis(100));
            assert!(!write.is_complete(), "the lock of rank 0 was ignored");
            latch.open();
            write.wait()?;
        }
        file.close()
    });
    let bytes = fs::read(&path).unwrap();
    assert_eq!(bytes, [vec![1; 50], vec![2; 100]].concat());
}

#[test]
fn rule_04_threads_of_one_rank_exclude_each_other() {
    let _watchdog = watchdog();
    let directory = directory();
    let path = directory.path().join("threads");
    alone(|comm| {
        let (latch, reached) = (Arc::new(Latch::default()), Arc::new(Latch::default()));
        let probe = held_up(0, &latch, &reached);
        let file = open_probed(&comm, &probe, &path, NEW, &Info::new())?;
        file.set_atomicity(Atomicity::Atomic)?;
        thread::scope(|scope| {
            let slow = scope.spawn(|| file.write_at(0, &[1u8; 100]));
            reached.wait();
            let other = scope.spawn(|| file.write_at(99, &[2u8; 100]));
            let apart = scope.spawn(|| file.write_at(200, &[3u8; 100]));
            apart.join().unwrap()?;
            thread::sleep(Duration::from_millis(100));
            assert!(!other.is_finished(), "the lock of the first was ignored");
            latch.open();
            other.join().unwrap()?;
            slow.join().unwrap()
        })?;
        file.close()
    });
    let bytes = fs::read(&path).unwrap();
    assert_eq!(bytes[98..101], [1, 2, 2]);
}

#[test]
fn rule_05_atomic_collective_writes_are_seen_whole_and_in_rank_order() {
    const BYTES: usize = 3000;
    const ROUNDS: u8 = 20;
    let _watchdog = watchdog();
    let directory = directory();
    let path = directory.path().join("collective");
    // Many windows, of which a reader could see one without the next.
    let hints = info(&[("cb_buffer_size", "512")]);
    ranks(3, |comm| {
        let file = File::open(&comm, &path, NEW, &hints)?;
        let other = File::open(&comm, &path, NEW, &hints)?;
        for file in [&file, &other] {
            file.set_atomicity(Atomicity::Atomic)?;
            file.set_view(&every(10, 3, 0))?;
        }
        file.write_at_all(0, &[0u8; BYTES])?;
        let done = Latch::default();
        thread::scope(|scope| -> Result<()> {
            let reader = scope.spawn(|| -> Result<()> {
                let mut seen = vec![0u8; BYTES];
                while !done.is_open() {
                    other.read_at(0, &mut seen)?;
                    assert!(seen.iter().all(|byte| *byte == seen[0]), "torn: {seen:?}");
                    // The highest rank writes last, and no reader comes in
                    // between: nothing shows of the calls before the end.
                    assert!(seen[0] == 0 || seen[0] % 3 == 2, "half a call: {}", seen[0]);
                }
                Ok(())
            });
            for round in 0..ROUNDS {
                let value = 3 * round + comm.rank().0 as u8;
                file.write_at_all(0, &[value; BYTES])?;
            }
            done.open();
            reader.join().unwrap()
        })?;
        let mut last = vec![0u8; BYTES];
        file.read_at_all(0, &mut last)?;
        assert!(last.iter().all(|byte| *byte == last[0]), "torn: {last:?}");
        assert_eq!(
            last[0],
            3 * (ROUNDS - 1) + 2,
            "the last rank of the last round"
        );
        file.close()?;
        other.close()
    });
}

#[test]
fn rule_06_a_byte_shown_twice_does_not_hide_a_hole() {
    let directory = directory();
    let path = directory.path().join("sums");
    let content: Vec<u8> = (0..80).collect();
    fs::write(&path, &content).unwrap();
    // Bytes 0, 1, 1 and 3 of every 4: as many as the span has, and a hole.
    let twice = Datatype::indexed(&[(2, 0), (1, 1), (1, 3)], &byte()).unwrap();
    let view = View::new(0, &byte(), &twice);
    for method in ["direct", "list", "sieve", "automatic"] {
        alone(|comm| {
            let hints = info(&[
                ("pario_read_method", method),
                ("pario_write_method", method),
            ]);
            let unique = Mode::READ_WRITE | Mode::UNIQUE_OPEN;
            let file = File::open(&comm, &path, unique, &hints)?;
            let rejected = file.set_view(&view).unwrap_err();
            assert_eq!(rejected.kind(), ErrorKind::Type);
            file.close()?;
            let file = File::open(&comm, &path, Mode::READ_ONLY, &hints)?;
            file.set_view(&view)?;
            let mut got = [0u8; 80];
            assert_eq!(file.read_at(0, &mut got)?.bytes(), 80);
            let expected: Vec<u8> = (0..20)
                .flat_map(|tile| [0, 1, 1, 3].map(|byte| 4 * tile + byte))
                .collect();
            assert_eq!(got[..], expected[..], "{method}");
            file.close()
        });
    }
    assert_eq!(fs::read(&path).unwrap(), content);
}
