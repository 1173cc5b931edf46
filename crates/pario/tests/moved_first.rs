//! Collective calls of ranks that see blocks of the file and have one piece each: they move it
//! before they know what the others do.
#![allow(clippy::unwrap_used)] // helpers of tests, too

mod common;

use std::sync::Arc;

use pario::{ErrorKind, File, Info, Mode, Seek};
use pario_driver::{Driver, Fault, Faults, Log, Operation, Posix, WrappedDriver};

use common::{NEW, directory, every, info, ranks};

const BLOCK: u64 = 64;

/// Calls take so little time that a block is worth one.
fn fast_calls() -> Info {
    info(&[("pario_call_bytes", "64")])
}

/// Blocks of the ranks in turn.
fn open(comm: &Arc<dyn pario_transport::Transport>, path: &std::path::Path) -> pario::Result<File> {
    let file = File::open(comm, path, NEW, &fast_calls())?;
    set_blocks(&file, comm)?;
    Ok(file)
}

fn set_blocks(file: &File, comm: &Arc<dyn pario_transport::Transport>) -> pario::Result<()> {
    let stride = BLOCK * u64::from(comm.size());
    file.set_view(&every(
        stride as i64,
        BLOCK,
        BLOCK * u64::from(comm.rank().0),
    ))
}

fn is_moved_first(file: &File) -> bool {
    let explanation = file.explain_last_all().unwrap();
    explanation.contains("every rank has one piece")
}

/// Byte `at` of a rank's data.
fn value(rank: u64, at: u64) -> u8 {
    (at.wrapping_mul(7) ^ at >> 8 ^ rank << 6) as u8
}

fn data(rank: u64, from: u64, len: u64) -> Vec<u8> {
    (from..from + len).map(|at| value(rank, at)).collect()
}

#[test]
fn one_piece_per_rank_takes_one_exchange() {
    let directory = directory();
    ranks(3, |comm| {
        let file = open(&comm, &directory.path().join("data"))?;
        let rank = u64::from(comm.rank().0);
        for block in 0..8 {
            let (at, mine) = (block * BLOCK, data(rank, block * BLOCK, BLOCK));
            assert_eq!(file.write_at_all(at, &mine)?.bytes(), BLOCK);
            assert!(is_moved_first(&file));
            let mut back = [0u8; BLOCK as usize];
            assert_eq!(file.read_all(&mut back)?.bytes(), BLOCK);
            assert!(is_moved_first(&file) && back == mine[..]);
        }
        // A part of a block is one piece, too; the end of one and the start of the next are two.
        file.read_at_all(5, &mut [0u8; 40])?;
        assert!(is_moved_first(&file));
        file.read_at_all(40, &mut [0u8; 40])?;
        assert!(!is_moved_first(&file));
        // Less than a call is worth.
        file.read_at_all(0, &mut [0u8; 16])?;
        assert!(!is_moved_first(&file));
        file.close()
    });
}

/// Whatever the ranks access in a call, pointers and data are right.
#[test]
fn ranks_with_one_piece_and_with_several_meet() {
    const CALLS: u64 = 300;
    let _watchdog = common::watchdog();
    for count in [2, 3, 5] {
        let directory = directory();
        let path = directory.path().join("data");
        ranks(count, |comm| {
            let file = open(&comm, &path)?;
            let rank = u64::from(comm.rank().0);
            let mut random = fastrand::Rng::with_seed(rank);
            let (mut written, mut read) = (0, 0);
            // How many bytes a rank moves in a call: often a block, which may begin anywhere.
            let mut len = || match random.u64(..8) {
                0 => 0,
                1 => random.u64(..BLOCK),
                2 => random.u64(..6 * BLOCK),
                _ => BLOCK,
            };
            for call in 0..CALLS {
                let mine = data(rank, written, len());
                let status = match call % 2 {
                    0 => file.write_at_all(written, &mine)?,
                    _ => {
                        file.seek(written as i64, Seek::Set)?;
                        file.write_all(&mine)?
                    }
                };
                written += mine.len() as u64;
                assert_eq!(status.bytes(), mine.len() as u64);
                if call % 2 == 1 {
                    assert_eq!(file.position()?, written);
                }
            }
            file.seek(0, Seek::Set)?;
            for _ in 0..CALLS {
                let wanted = len().min(written - read);
                let mut back = vec![0; wanted as usize];
                assert_eq!(file.read_all(&mut back)?.bytes(), wanted);
                assert!(back == data(rank, read, wanted));
                read += wanted;
                assert_eq!(file.position()?, read);
            }
            file.close()
        });
    }
}

/// Ranks whose pieces are rarely alone soon stop trying: the pieces are moved once.
#[test]
fn a_rank_that_is_rarely_joined_stops_trying() {
    const CALLS: u64 = 64;
    let directory = directory();
    let path = directory.path().join("data");
    let log = Log::new();
    ranks(2, |comm| {
        let driver: Arc<dyn Driver> = match comm.rank().0 {
            0 => Arc::new(WrappedDriver::new(Arc::new(Posix::new()), log.clone())),
            _ => Arc::new(Posix::new()),
        };
        let file = File::open_with(&comm, driver, &path, NEW, &fast_calls())?;
        set_blocks(&file, &comm)?;
        let len = [BLOCK, 3 * BLOCK][comm.rank().index()];
        for call in 0..CALLS {
            let mine = data(0, call * len, len);
            file.write_at_all(call * len, &mine)?;
            assert!(!is_moved_first(&file));
        }
        file.close()
    });
    // Each piece once, and once more in calls 1, 3, 7, 15, …
    assert_eq!(log.count(Operation::Write) as u64, CALLS + 6);
}

/// One call in which a rank has nothing to move delays the next attempt of all ranks alike.
#[test]
fn ranks_try_again_together() {
    let directory = directory();
    ranks(3, |comm| {
        let file = open(&comm, &directory.path().join("data"))?;
        let rank = u64::from(comm.rank().0);
        let mut last = 0;
        for attempt in 0..4 {
            let len = if rank == 1 { 0 } else { BLOCK };
            file.write_at_all(0, &data(rank, 0, len))?;
            assert!(!is_moved_first(&file));
            let mut calls = 0;
            while !is_moved_first(&file) {
                file.write_at_all(0, &data(rank, 0, BLOCK))?;
                calls += 1;
                assert!(calls <= 2, "attempt {attempt}");
            }
            last = calls;
        }
        assert_eq!(last, 2);
        file.close()
    });
}

#[test]
fn errors_of_a_piece_that_was_moved_first_reach_all_ranks() {
    let _watchdog = common::watchdog();
    let directory = directory();
    for others in [BLOCK, 3 * BLOCK] {
        let path = directory.path().join("data");
        ranks(3, |comm| {
            let faults = Faults::new();
            let posix = Arc::new(Posix::new());
            let driver = Arc::new(WrappedDriver::new(posix, faults.clone()));
            let file = File::open_with(&comm, driver, &path, NEW, &fast_calls())?;
            set_blocks(&file, &comm)?;
            let len = if comm.rank().0 == 1 { BLOCK } else { others };
            if comm.rank().0 == 1 {
                faults.fail_nth(1, &[Operation::Write], Fault::Partial(28));
            }
            let error = file.write_at_all(0, &vec![1u8; len as usize]).unwrap_err();
            assert_eq!((error.kind(), error.rank()), (ErrorKind::NoSpace, Some(1)));
            if comm.rank().0 == 1 {
                assert_eq!(error.transferred(), BLOCK / 2);
            }
            // The ranks are still together.
            assert_eq!(file.write_at_all(0, &vec![1u8; len as usize])?.bytes(), len);
            file.close()
        });
    }
}

#[test]
fn a_wrong_argument_of_one_rank_reaches_those_that_have_moved_theirs() {
    let _watchdog = common::watchdog();
    let directory = directory();
    ranks(3, |comm| {
        let file = open(&comm, &directory.path().join("data"))?;
        let rank = u64::from(comm.rank().0);
        let at = if rank == 2 { u64::MAX } else { 0 };
        let error = file.write_at_all(at, &data(rank, 0, BLOCK)).unwrap_err();
        assert_eq!((error.kind(), error.rank()), (ErrorKind::Argument, Some(2)));
        assert_eq!(file.write_at_all(0, &data(rank, 0, BLOCK))?.bytes(), BLOCK);
        assert!(is_moved_first(&file));
        file.close()
    });
}

/// Blocks beyond the end of the file count as what is there of them.
#[test]
fn each_rank_counts_what_it_has_read() {
    let directory = directory();
    let path = directory.path().join("data");
    std::fs::write(&path, [7; BLOCK as usize + 10]).unwrap();
    ranks(3, |comm| {
        let file = File::open(&comm, &path, Mode::READ_ONLY, &fast_calls())?;
        set_blocks(&file, &comm)?;
        let mut back = [0u8; BLOCK as usize];
        let found = file.read_at_all(0, &mut back)?.bytes();
        assert!(is_moved_first(&file));
        assert_eq!(found, [BLOCK, 10, 0][comm.rank().index()]);
        assert!(back[..found as usize].iter().all(|byte| *byte == 7));
        assert!(back[found as usize..].iter().all(|byte| *byte == 0));
        file.close()
    });
}
