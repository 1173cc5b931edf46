//! Rule 1 where every piece is a request to an NFS server: small pieces with gaps are read,
//! modified and written back while every writer of the file locks.

use std::{fs, ops::Range, path::Path, sync::Arc};

use pario::{AccessMethod, Atomicity, File, Info, Mode, Result, View};
use pario_driver::Driver;
use pario_transport::{Transport, threads};

use crate::common::{
    NEW, directory, every, info,
    probe::{Event, Probe},
    ranks,
};

fn open(comm: &Arc<dyn Transport>, probe: &Arc<Probe>, path: &Path, info: &Info) -> Result<File> {
    File::open_with(comm, probe.clone() as Arc<dyn Driver>, path, NEW, info)
}

/// The number of pieces written, and of locks taken.
fn counts(events: &[Event]) -> (usize, usize) {
    let pieces = |event: &Event| match event {
        Event::Write(pieces) => pieces.len(),
        _ => 0,
    };
    let is_lock = |event: &&Event| matches!(event, Event::Locked(_));
    let pieces = events.iter().map(pieces).sum();
    (pieces, events.iter().filter(is_lock).count())
}

/// The range that a write of one piece has locked.
fn locked_write(events: &[Event]) -> Range<u64> {
    match events {
        [
            ..,
            Event::Locked(range),
            Event::Read(_),
            Event::Write(pieces),
            Event::Unlocked(_),
        ] if pieces.len() == 1 => range.clone(),
        _ => panic!("not a read-modify-write under a lock: {events:?}"),
    }
}

#[test]
fn rule_01_all_ranks_lock_while_the_view_of_one_has_small_gaps() {
    let directory = directory();
    let path = directory.path().join("views");
    ranks(2, |comm| {
        let probe = Probe::uncached();
        let rank = u64::from(comm.rank().0);
        let file = open(&comm, &probe, &path, &Info::new())?;
        file.write_at(500 + rank, &[1u8])?;
        assert_eq!(counts(&probe.take()), (1, 0), "nobody rewrites yet");
        // Rank 0 has every other byte, rank 1 all of them.
        let views = [every(2, 1, 0), View::bytes()];
        file.set_view(&views[rank as usize])?;
        probe.take();
        for round in 0..20u8 {
            match rank {
                0 => {
                    let selected = file.explain_write_at(0, &[round; 100])?;
                    assert_eq!(selected.method(), AccessMethod::Sieve, "{selected}");
                    file.write_at(0, &[round; 100])?;
                    assert_eq!(locked_write(&probe.take()), 0..199);
                }
                _ => {
                    file.write_at(1 + 2 * u64::from(round), &[100 + round])?;
                    assert_eq!(counts(&probe.take()), (1, 1));
                }
            }
        }
        file.set_view(&View::bytes())?;
        probe.take();
        file.write_at(600 + rank, &[2u8])?;
        assert_eq!(counts(&probe.take()), (1, 0), "nobody rewrites any more");
        file.close()
    });
    let bytes = fs::read(&path).unwrap();
    assert!((0..100).all(|at| bytes[2 * at] == 19), "rank 0's");
    assert!(
        (0..20).all(|at| bytes[1 + 2 * at] == 100 + at as u8),
        "rank 1's"
    );
    assert_eq!(
        [bytes[500], bytes[501], bytes[600], bytes[601]],
        [1, 1, 2, 2]
    );
}

#[test]
fn rule_01_handles_that_write_without_locks_prevent_rewriting() {
    let directory = directory();
    let path = directory.path().join("handles");
    ranks(2, |comm| {
        let probe = Probe::uncached();
        let strided = every(2, 1, u64::from(comm.rank().0));
        let pieces = |file: &File| -> Result<(usize, usize)> {
            probe.take();
            file.write_at(0, &[1u8; 10])?;
            Ok(counts(&probe.take()))
        };
        let other = open(&comm, &probe, &path, &Info::new())?;
        let file = open(&comm, &probe, &path, &Info::new())?;
        file.set_view(&strided)?;
        assert_eq!(pieces(&file)?, (10, 0), "the other handle does not lock");
        other.close()?;
        file.set_view(&strided)?;
        assert_eq!(pieces(&file)?, (1, 1), "it is closed");
        let late = open(&comm, &probe, &path, &Info::new())?;
        assert_eq!(
            pieces(&late)?,
            (1, 1),
            "it knows that the first one rewrites"
        );
        late.set_view(&strided)?;
        assert_eq!(pieces(&late)?, (10, 1), "only one handle does");
        file.close()?;
        late.set_view(&View::bytes())?;
        assert_eq!(pieces(&late)?, (1, 0), "it is the only one now");
        late.close()
    });
}

#[test]
fn rule_01_writes_under_way_keep_the_protocol() {
    let directory = directory();
    let path = directory.path().join("pending");
    ranks(2, |comm| {
        let probe = Probe::uncached();
        let file = open(&comm, &probe, &path, &Info::new())?;
        let request = match comm.rank().0 {
            0 => Some(file.iwrite_at(1000, vec![1u8; 10])?),
            _ => None,
        };
        let strided = every(2, 1, u64::from(comm.rank().0));
        file.set_view(&strided)?;
        probe.take();
        comm.barrier()?;
        if comm.rank().0 == 1 {
            file.write_at(0, &[1u8; 10])?;
            assert_eq!(counts(&probe.take()), (10, 0), "rank 0's write has no lock");
        }
        comm.barrier()?;
        if let Some(request) = request {
            request.wait()?;
        }
        file.close()
    });
}

/// Two ranks write every other byte, each byte by itself and without a lock.
fn assert_not_rewritten(mode: Mode, hints: &Info) {
    let directory = directory();
    let path = directory.path().join("file");
    ranks(2, |comm| {
        let probe = Probe::uncached();
        let driver = probe.clone() as Arc<dyn Driver>;
        let file = File::open_with(&comm, driver, &path, mode, hints)?;
        file.set_view(&every(2, 1, u64::from(comm.rank().0)))?;
        probe.take();
        file.write_at(0, &[1u8; 10])?;
        assert_eq!(counts(&probe.take()), (10, 0));
        file.close()
    });
}

#[test]
fn rule_01_a_hint_forbids_rewriting() {
    assert_not_rewritten(NEW, &info(&[("pario_rmw", "never")]));
}

/// A file that cannot be read cannot be rewritten.
#[test]
fn rule_01_write_only_files_are_written_as_their_runs() {
    assert_not_rewritten(Mode::CREATE | Mode::WRITE_ONLY, &Info::new());
}

/// The program may only write, but pario may read: the handle can, and the program's reads fail as ever.
#[test]
fn rule_01_write_only_files_are_rewritten_where_they_can_be_read() {
    let directory = directory();
    let path = directory.path().join("write-only");
    ranks(2, |comm| {
        let probe = Probe::reading_back();
        let rank = u64::from(comm.rank().0);
        let mode = Mode::CREATE | Mode::WRITE_ONLY;
        let driver = probe.clone() as Arc<dyn Driver>;
        let file = File::open_with(&comm, driver, &path, mode, &Info::new())?;
        file.set_view(&every(2, 1, rank))?;
        probe.take();
        file.write_at(0, &[1 + rank as u8; 10])?;
        assert_eq!(locked_write(&probe.take()), rank..rank + 19);
        file.write_at_all(10, &[3 + rank as u8; 10])?;
        assert!(counts(&probe.take()).0 <= 1);
        let error = file.read_at(0, &mut [0u8]).unwrap_err();
        assert!(error.to_string().contains("WRITE_ONLY"), "{error}");
        file.close()
    });
    let expected = [[1, 2].repeat(10), [3, 4].repeat(10)].concat();
    assert_eq!(fs::read(&path).unwrap(), expected);
}

/// Ranks that write under one lock write one after the other, so that none writes back what another
/// has just overwritten.
#[test]
fn rule_05_atomic_collective_writes_rewrite_in_turn() {
    let directory = directory();
    let path = directory.path().join("atomic");
    fs::write(&path, [9u8; 300]).unwrap();
    ranks(3, |comm| {
        let probe = Probe::uncached();
        let rank = u64::from(comm.rank().0);
        let file = open(&comm, &probe, &path, &Info::new())?;
        file.set_view(&every(4, 1, rank))?;
        file.set_atomicity(Atomicity::Atomic)?;
        for round in 0..10u8 {
            probe.take();
            file.write_at_all(0, &[10 * round + rank as u8; 50])?;
            let (pieces, locks) = counts(&probe.take());
            assert_eq!((pieces, locks), (1, usize::from(rank == 0)));
        }
        file.close()
    });
    let bytes = fs::read(&path).unwrap();
    for (at, byte) in bytes.iter().enumerate().take(200) {
        let expected = match at % 4 {
            3 => 9,
            rank => 90 + rank as u8,
        };
        assert_eq!(*byte, expected, "byte {at}");
    }
}

/// Ranks on two nodes that read interleaved pieces, of which each is a request: the aggregators read
/// them in pieces as long as their windows.
#[test]
fn interleaved_pieces_are_read_together() {
    const PIECE: u64 = 65_000;
    let directory = directory();
    let path = directory.path().join("read");
    fs::write(&path, vec![1u8; 40 * PIECE as usize]).unwrap();
    let probe = Probe::uncached();
    let world = threads::World::new(2).nodes(&[0, 1]);
    let results = world.run(|comm| -> Result<()> {
        let hints = info(&[("pario_assume_client", "kernel")]);
        let file = open(&comm, &probe, &path, &hints)?;
        let rank = u64::from(comm.rank().0);
        file.set_view(&every(2 * PIECE as i64, PIECE, rank * PIECE))?;
        let mut found = vec![0u8; 20 * PIECE as usize];
        file.read_at_all(0, &mut found)?;
        assert!(found.iter().all(|byte| *byte == 1));
        file.close()
    });
    for result in results {
        result.expect("no rank panics").unwrap();
    }
    let is_read = |event: &Event| matches!(event, Event::Read(_));
    let reads: Vec<_> = probe.take().into_iter().filter(is_read).collect();
    assert!(reads.len() <= 4, "{reads:?}");
}
