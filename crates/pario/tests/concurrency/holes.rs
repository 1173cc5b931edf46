//! Independent writes next to collective ones: those into the holes of a
//! collective write are not lost, and none waits for a rank that has not made
//! the collective call yet.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use pario::{Atomicity, Basic, Datatype, File, Info, Mode, Result, View};
use pario_driver::{Driver, Memory};
use pario_transport::{Rank, Tag, Transport, threads};

use crate::{
    NEW, STEP_MAX,
    careless::{Careless, Locks},
    watchdog::Watchdog,
};

const RANKS: u32 = 3;
/// Pieces of a collective call and the holes behind them.
const PIECE: u64 = 5;
const HOLE: u64 = 3;
const PIECES: u64 = 20;
const ROUNDS: u8 = 4;
const STRIDE: u64 = (PIECE + HOLE) * RANKS as u64;

pub(crate) const ALGORITHMS: [&str; 7] = [
    "individual",
    "two-phase",
    "static-segmentation",
    "dynamic-segmentation",
    "one-per-server",
    "resonant",
    "resonant-timed",
];
const EXCHANGES: [&str; 4] = ["shared", "messages", "alltoall", "two-layer"];

fn info(algorithm: &str, exchange: &str, rmw: &str) -> Info {
    Info::from_pairs([
        ("pario_algorithm", algorithm),
        ("pario_exchange", exchange),
        ("pario_rmw", rmw),
        ("pario_assume_striping", "90,2"),
        ("pario_timed_delay_us", "1"),
        ("cb_buffer_size", "100"),
        ("pario_slice_bytes", "100"),
        ("cb_nodes", "2"),
    ])
    .unwrap()
}

/// The pieces of a rank, with a hole behind each.
fn pieces(rank: u64) -> Result<View> {
    let byte = Datatype::basic(Basic::Byte);
    let piece = Datatype::contiguous(PIECE, &byte)?;
    let tile = Datatype::resized(&piece, 0, STRIDE as i64)?;
    Ok(View::new(rank * (PIECE + HOLE), &byte, &tile))
}

/// Writes a rank's holes again and again; returns the first byte that did not
/// hold what was written to it last.
fn write_holes(file: &File, rank: u64, stop: &AtomicBool) -> Result<Option<u64>> {
    let mut last = 0u8;
    let mut found = [0; HOLE as usize];
    while last == 0 || !stop.load(Ordering::Acquire) {
        let next = last.wrapping_add(1).max(1);
        for piece in 0..PIECES {
            let at = piece * STRIDE + rank * (PIECE + HOLE) + PIECE;
            if last > 0 {
                file.read_at(at, &mut found)?;
                if found != [last; HOLE as usize] {
                    return Ok(Some(at));
                }
            }
            file.write_at(at, &[next; HOLE as usize])?;
        }
        last = next;
    }
    Ok(None)
}

/// Collective writes by one handle while threads of all ranks write into the
/// holes by `beside`; returns what was lost.
fn collective_beside(
    comm: &Arc<dyn Transport>,
    file: &File,
    beside: &File,
    write: impl Fn(&File, u8) -> Result<()>,
) -> Result<Option<u64>> {
    let rank = u64::from(comm.rank().0);
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let writer = scope.spawn(|| write_holes(beside, rank, &stop));
        let written = (1..=ROUNDS).try_for_each(|round| write(file, round));
        stop.store(true, Ordering::Release);
        let lost = writer.join().unwrap();
        written?;
        lost
    })
}

fn driver(locks: Locks) -> Arc<dyn Driver> {
    Careless::over(Memory::separate(), locks)
}

/// Runs ranks that open a file and say what they lost.
fn lost(
    driver: &Arc<dyn Driver>,
    mode: Mode,
    info: &Info,
    work: impl Fn(&Arc<dyn Transport>, &dyn Fn() -> Result<File>) -> Result<Option<u64>> + Sync,
) -> Option<u64> {
    let results = threads::run(RANKS, |comm| {
        let open = || File::open_with(&comm, driver.clone(), "file", mode, info);
        work(&comm, &open).unwrap()
    });
    results.into_iter().find_map(|result| result.unwrap())
}

/// Another handle writes into the holes.
fn lost_between_handles(driver: &Arc<dyn Driver>, info: &Info) -> Option<u64> {
    lost(driver, NEW, info, |comm, open| {
        let (file, beside) = (open()?, open()?);
        file.set_view(&pieces(u64::from(comm.rank().0))?)?;
        let data = |round| vec![round; (PIECES * PIECE) as usize];
        let lost = collective_beside(comm, &file, &beside, |file, round| {
            match round % 2 {
                0 => file.write_at_all(0, &data(round))?,
                _ => file.iwrite_at_all(0, data(round))?.wait()?.0,
            };
            Ok(())
        })?;
        file.close()?;
        beside.close()?;
        Ok(lost)
    })
}

#[test]
fn another_handles_writes_into_the_holes_are_not_lost() {
    let watchdog = Watchdog::new(STEP_MAX);
    for rmw in ["never", "locked"] {
        for algorithm in ALGORITHMS {
            for exchange in EXCHANGES {
                let case = format!("{algorithm}, {exchange}, {rmw}");
                watchdog.step(case.clone());
                let info = info(algorithm, exchange, rmw);
                let lost = lost_between_handles(&driver(Locks::Kept), &info);
                assert_eq!(lost, None, "{case}");
            }
        }
    }
}

#[test]
fn the_test_of_holes_can_fail() {
    let _watchdog = Watchdog::new(STEP_MAX);
    let losing = (0..20).any(|_| {
        let info = info("two-phase", "shared", "locked");
        lost_between_handles(&driver(Locks::Ignored), &info).is_some()
    });
    assert!(losing, "without locks, read-modify-write must lose bytes");
}

/// In a file that is the ranks' own, holes may be rewritten without locks:
/// other threads of the same handles must be kept out meanwhile.
#[test]
fn writes_by_the_same_handle_into_the_holes_are_not_lost() {
    let watchdog = Watchdog::new(STEP_MAX);
    for algorithm in ALGORITHMS {
        for exchange in EXCHANGES {
            let case = format!("{algorithm}, {exchange}");
            watchdog.step(case.clone());
            let info = info(algorithm, exchange, "never");
            let mode = NEW | Mode::UNIQUE_OPEN;
            let lost = lost(&driver(Locks::Kept), mode, &info, |comm, open| {
                let file = open()?;
                let rank = u64::from(comm.rank().0);
                let lost = collective_beside(comm, &file, &file, |file, round| {
                    for piece in 0..PIECES {
                        let at = piece * STRIDE + rank * (PIECE + HOLE);
                        file.write_at_all(at, &[round; PIECE as usize])?;
                    }
                    Ok(())
                })?;
                file.close()?;
                Ok(lost)
            });
            assert_eq!(lost, None, "{case}");
        }
    }
}

/// One lock protects all ranks' writes from others, not from each other.
#[test]
fn ranks_of_an_atomic_collective_write_do_not_undo_each_others_data() {
    let watchdog = Watchdog::new(STEP_MAX);
    let info =
        Info::from_pairs([("pario_rmw", "locked"), ("pario_write_method", "sieve")]).unwrap();
    for round in 0..10 {
        watchdog.step(format!("round {round}"));
        let lost = lost(&driver(Locks::Kept), NEW, &info, |comm, open| {
            let file = open()?;
            file.set_atomicity(Atomicity::Atomic)?;
            file.set_view(&pieces(u64::from(comm.rank().0))?)?;
            let data = vec![1u8; (PIECES * PIECE) as usize];
            file.write_at_all(0, &data)?;
            let mut found = vec![0u8; data.len()];
            file.read_at_all(0, &mut found)?;
            file.close()?;
            Ok(found.iter().position(|byte| *byte != 1).map(|at| at as u64))
        });
        assert_eq!(lost, None, "round {round}");
    }
}

const UNIQUE: Mode = NEW.union(Mode::UNIQUE_OPEN);

/// Rank 1 makes the collective call only once rank 0 has written on its own.
#[test]
fn an_independent_write_does_not_wait_for_ranks_that_have_not_come() {
    /// Long enough for the background call to wait for the others.
    const MOMENT: Duration = Duration::from_millis(5);
    const WORD: Tag = Tag(1);
    let _watchdog = Watchdog::new(STEP_MAX);
    let info = info("two-phase", "shared", "never");
    let lost = lost(&driver(Locks::Kept), UNIQUE, &info, |comm, open| {
        let file = open()?;
        let rank = comm.rank();
        if rank == Rank(1) {
            comm.receive(Rank(0), WORD)?;
        }
        let request = file.iwrite_at_all(u64::from(rank.0) * 8, vec![1u8; 5])?;
        if rank == Rank(0) {
            thread::sleep(MOMENT);
            file.write_at(100, &[2u8; 5])?;
            comm.send(Rank(1), WORD, &[])?;
        }
        request.wait()?;
        file.close()?;
        Ok(None)
    });
    assert_eq!(lost, None);
}

/// Background calls go on while some ranks are in a call of the foreground
/// and others wait for the background first.
#[test]
fn calls_of_foreground_and_background_do_not_wait_for_each_other() {
    let watchdog = Watchdog::new(STEP_MAX);
    let info = info("two-phase", "shared", "never");
    for round in 0..100 {
        watchdog.step(format!("round {round}"));
        let lost = lost(&driver(Locks::Kept), UNIQUE, &info, |comm, open| {
            let file = open()?;
            let at = u64::from(comm.rank().0) * 8;
            let background = file.iwrite_at_all(at, vec![1u8; 5])?;
            match comm.rank() {
                Rank(1) => {
                    background.wait()?;
                    file.write_at_all(100 + at, &[2u8; 5])?;
                }
                _ => {
                    file.write_at_all(100 + at, &[2u8; 5])?;
                    background.wait()?;
                }
            }
            file.close()?;
            Ok(None)
        });
        assert_eq!(lost, None);
    }
}
