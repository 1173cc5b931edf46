//! Several threads of one rank on one file.

use std::{collections::BTreeSet, sync::Mutex, thread};

use pario::{AccessMethod, Atomicity, Basic, Datatype, File, Info, Mode, Result, Seek, View};
use pario_driver::Memory;
use pario_transport::{Rank, threads};

use crate::{
    DRIVERS, NEW, STEP_MAX,
    atomic::{self, ACCESSES, CELLS, Cells, Round},
    careless::{Careless, Locks},
    seeds::seeds,
    serial::{Access, History},
    watchdog::Watchdog,
};

const THREADS: usize = 4;
const RECORD_BYTES: usize = 24;
const RECORDS: usize = 60;

/// Runs `work` for each thread of a rank; the first error counts.
fn on_threads(work: impl Fn(usize) -> Result<()> + Sync) -> Result<()> {
    thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = (0..THREADS)
            .map(|number| scope.spawn(move || work(number)))
            .collect();
        let results = threads.into_iter().map(|thread| thread.join().unwrap());
        results.collect()
    })
}

/// Each thread writes its parts of what the rank's view shows.
fn write_parts(file: &File, data: &[u8], seed: u64) -> Result<()> {
    on_threads(|number| {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut at = 0;
        for part in 0.. {
            let end = data.len().min(at + rng.usize(1..200));
            if part % THREADS == number && part % 3 == 0 {
                file.iwrite_at(at as u64, data[at..end].to_vec())?.wait()?;
            } else if part % THREADS == number {
                file.write_at(at as u64, &data[at..end])?;
            }
            at = end;
            if at == data.len() {
                return Ok(());
            }
        }
        Ok(())
    })
}

/// Every other four bytes, from the rank's place on.
fn interleaved(rank: u64, ranks: u64) -> Result<View> {
    let byte = Datatype::basic(Basic::Byte);
    let piece = Datatype::contiguous(4, &byte)?;
    let tile = Datatype::resized(&piece, 0, 4 * ranks as i64 + 3)?;
    Ok(View::new(4 * rank, &byte, &tile))
}

fn sieved(ranks: u32, mode: Mode, rmw: &str, seed: u64) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    let pairs = [
        ("pario_write_method", "sieve"),
        ("pario_rmw", rmw),
        ("ind_wr_buffer_size", "500"),
    ];
    let info = Info::from_pairs(pairs).unwrap();
    // A read-modify-write takes long enough for others to come between.
    let driver = Careless::over(Memory::separate(), Locks::Kept);
    let results = threads::run(ranks, |comm| {
        let file = File::open_with(&comm, driver.clone(), &path, mode, &info)?;
        let rank = comm.rank().0;
        file.set_view(&interleaved(rank.into(), ranks.into())?)?;
        for round in 1..=3u8 {
            let value = |index| (index as u8).wrapping_mul(7) ^ round ^ (rank as u8) << 6;
            let data: Vec<u8> = (0..6000).map(value).collect();
            let selection = file.explain_write_at(0, &data)?;
            assert_eq!(selection.method(), AccessMethod::Sieve, "{selection}");
            write_parts(&file, &data, seed)?;
            comm.barrier()?;
            let mut found = vec![0; data.len()];
            file.read_at(0, &mut found)?;
            assert!(found == data, "seed {seed}, round {round}, rank {rank}");
            comm.barrier()?;
        }
        file.close()
    });
    for result in results {
        result.expect("no rank fails").unwrap();
    }
}

#[test]
fn threads_that_sieve_alone_in_a_unique_file_lose_nothing() {
    let watchdog = Watchdog::new(STEP_MAX);
    for seed in seeds(3) {
        watchdog.step(format!("seed {seed}"));
        sieved(1, NEW | Mode::UNIQUE_OPEN, "never", seed);
    }
}

#[test]
fn threads_of_several_ranks_that_sieve_with_locks_lose_nothing() {
    let watchdog = Watchdog::new(STEP_MAX);
    for seed in seeds(2) {
        watchdog.step(format!("seed {seed}"));
        sieved(3, NEW, "locked", seed);
    }
}

/// A record that says who wrote it, in every part.
fn record(rank: u32, number: usize, index: usize) -> Vec<u8> {
    let name = (u64::from(rank) << 40) + ((number as u64) << 20) + index as u64 + 1;
    name.to_le_bytes().repeat(RECORD_BYTES / 8)
}

/// The records in a file, each of which must be whole and there once.
fn records(bytes: &[u8], ranks: u32) -> BTreeSet<Vec<u8>> {
    let count = ranks as usize * THREADS * RECORDS;
    assert_eq!(bytes.len(), count * RECORD_BYTES);
    let found: BTreeSet<_> = bytes
        .chunks_exact(RECORD_BYTES)
        .map(<[u8]>::to_vec)
        .collect();
    assert_eq!(
        found.len(),
        count,
        "some records are there twice, or were overwritten"
    );
    found
}

fn expected(ranks: u32) -> BTreeSet<Vec<u8>> {
    let mut all = BTreeSet::new();
    for rank in 0..ranks {
        for number in 0..THREADS {
            all.extend((0..RECORDS).map(|index| record(rank, number, index)));
        }
    }
    all
}

#[test]
fn threads_get_different_places_from_the_individual_pointer() {
    let _watchdog = Watchdog::new(STEP_MAX);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    let results = threads::run(1, |comm| {
        let file = File::open(&comm, &path, NEW, &Info::new())?;
        on_threads(|number| {
            for index in 0..RECORDS {
                let record = record(0, number, index);
                match index % 2 {
                    0 => file.write(&record)?,
                    _ => file.iwrite(record)?.wait()?.0,
                };
            }
            Ok(())
        })?;
        assert_eq!(file.position()?, (THREADS * RECORDS * RECORD_BYTES) as u64);
        file.close()
    });
    results
        .into_iter()
        .for_each(|result| result.unwrap().unwrap());
    assert_eq!(records(&std::fs::read(&path).unwrap(), 1), expected(1));
}

/// Both take the lock of the pointer and that of the settings.
#[test]
fn a_view_can_be_set_while_other_threads_use_the_individual_pointer() {
    let _watchdog = Watchdog::new(STEP_MAX);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    let byte = Datatype::basic(Basic::Byte);
    let results = threads::run(1, |comm| {
        let file = File::open(&comm, &path, NEW, &Info::new())?;
        on_threads(|number| {
            for index in 0..20 * RECORDS {
                match number {
                    0 => file.set_view(&View::new(index as u64, &byte, &byte))?,
                    _ => drop(file.write(&[number as u8; RECORD_BYTES])?),
                }
            }
            Ok(())
        })?;
        file.close()
    });
    results
        .into_iter()
        .for_each(|result| result.unwrap().unwrap());
}

#[test]
fn threads_of_all_ranks_get_different_places_from_the_shared_pointer() {
    const RANKS: u32 = 3;
    let _watchdog = Watchdog::new(STEP_MAX);
    for method in ["memory", "file", "owner"] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        let info = Info::from_pairs([("pario_shared_pointer", method)]).unwrap();
        let read = Mutex::new(Vec::new());
        let results = threads::run(RANKS, |comm| {
            let file = File::open(&comm, &path, NEW, &info)?;
            on_threads(|number| {
                for index in 0..RECORDS {
                    let record = record(comm.rank().0, number, index);
                    match index % 2 {
                        0 => file.write_shared(&record)?,
                        _ => file.iwrite_shared(record)?.wait()?.0,
                    };
                }
                Ok(())
            })?;
            file.sync()?;
            file.seek_shared(0, Seek::Set)?;
            on_threads(|_| {
                for _ in 0..RECORDS {
                    let mut record = vec![0; RECORD_BYTES];
                    file.read_shared(&mut record)?;
                    read.lock().unwrap().extend(record);
                }
                Ok(())
            })?;
            file.close()
        });
        results
            .into_iter()
            .for_each(|result| result.unwrap().unwrap());
        let written = records(&std::fs::read(&path).unwrap(), RANKS);
        assert_eq!(written, expected(RANKS), "{method}");
        assert_eq!(records(&read.lock().unwrap(), RANKS), written, "{method}");
    }
}

/// What one thread does in a round of atomic accesses.
fn atomic_accesses(file: &File, seed: u64, round: u64, number: usize) -> Result<Vec<Access>> {
    let mut rng = fastrand::Rng::with_seed(seed << 32 | round << 8 | number as u64);
    let mut accesses = Vec::new();
    for access in 0..ACCESSES {
        let (one, other) = (rng.usize(0..CELLS), rng.usize(0..CELLS));
        let part = one.min(other)..one.max(other) + 1;
        let cells = part.clone().collect();
        accesses.push(if rng.bool() {
            let stamp = atomic::stamp(seed, round, Rank(number as u32), access);
            atomic::write(file, Round::Independent, part, stamp, &mut rng)?;
            Access::Write { cells, stamp }
        } else {
            let seen = atomic::read(file, Round::Independent, part, &mut rng)?;
            Access::Read { cells, seen }
        });
    }
    Ok(accesses)
}

#[test]
fn threads_of_one_rank_are_atomic_towards_each_other() {
    const ROUNDS: u64 = 25;
    let watchdog = Watchdog::new(STEP_MAX);
    for seed in seeds(3) {
        for (name, make) in DRIVERS {
            watchdog.step(format!("seed {seed}: {name}"));
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("file");
            let driver = make();
            let cells = Cells::new(&mut fastrand::Rng::with_seed(seed));
            let info = Info::from_pairs([("pario_write_method", "direct")]).unwrap();
            let result = threads::run(1, |comm| {
                let file = File::open_with(&comm, driver.clone(), &path, NEW, &info)?;
                let plain = File::open_with(&comm, driver.clone(), &path, NEW, &info)?;
                plain.set_size(cells.end() as u64)?;
                file.set_atomicity(Atomicity::Atomic)?;
                file.set_view(&cells.view(&(0..CELLS).collect::<Vec<_>>())?)?;
                for round in 0..ROUNDS {
                    let before = cells.stamps(&plain)?;
                    let done = Mutex::new(Vec::new());
                    on_threads(|number| {
                        let accesses = atomic_accesses(&file, seed, round, number)?;
                        done.lock().unwrap().push(accesses);
                        Ok(())
                    })?;
                    let history = History {
                        before,
                        ranks: done.into_inner().unwrap(),
                        after: cells.stamps(&plain)?,
                    };
                    let order = history.serial_order();
                    assert!(order.is_some(), "{name}, seed {seed}: {history:?}");
                }
                file.close()?;
                plain.close()
            });
            result
                .into_iter()
                .for_each(|result| result.unwrap().unwrap());
        }
    }
}
