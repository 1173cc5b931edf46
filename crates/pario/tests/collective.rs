//! Collective calls against what a byte-by-byte writer would do.
#![allow(clippy::unwrap_used)] // helpers of tests, too

mod common;

use std::{num::NonZeroU64, sync::Arc, time::Duration};

use pario::{Basic, Datatype, Error, ErrorKind, File, Info, Mode, View};
use pario_driver::{Log, Operation, Posix, Throttle, WrappedDriver};
use pario_transport::threads::World;

const NEW: Mode = Mode::CREATE.union(Mode::READ_WRITE);

/// Ranks write blocks of `block` bytes in turn, `gap` bytes after each round.
fn interleaved(nodes: &[u32], block: u64, gap: u64, blocks: u64, mode: Mode, info: &Info) {
    let ranks = nodes.len() as u32;
    let world = World::new(ranks).nodes(nodes);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("interleaved");
    let stride = u64::from(ranks) * block + gap;
    let expected: Vec<u8> = {
        let len = stride * blocks - gap;
        let value = |byte: u64| match byte % stride / block {
            rank if rank < u64::from(ranks) => (byte.wrapping_mul(31) ^ rank) as u8,
            _ => 7,
        };
        (0..len).map(value).collect()
    };
    std::fs::write(&path, vec![7u8; expected.len()]).unwrap();
    let results = world.run(|comm| -> pario::Result<()> {
        let file = File::open(&comm, &path, mode, info)?;
        let rank = u64::from(comm.rank().0);
        let byte = Datatype::basic(Basic::Byte);
        let tile = Datatype::contiguous(block, &byte)?;
        let tile = Datatype::resized(&tile, 0, stride as i64)?;
        file.set_view(&View::new(rank * block, &byte, &tile))?;
        let mine: Vec<u8> = (0..blocks)
            .flat_map(|index| (0..block).map(move |at| index * stride + rank * block + at))
            .map(|at| expected[at as usize])
            .collect();
        assert_eq!(file.write_at_all(0, &mine)?.bytes(), mine.len() as u64);
        let mut back = vec![0u8; mine.len() + 100];
        let read = file.read_at_all(0, &mut back[..])?.bytes();
        assert_eq!(read, mine.len() as u64);
        assert!(back[..mine.len()] == mine[..]);
        assert_eq!(back[mine.len()..], [0; 100]);
        file.close()
    });
    for result in results {
        result.expect("no rank panics").unwrap();
    }
    let found = std::fs::read(&path).unwrap();
    let wrong = found
        .iter()
        .zip(&expected)
        .position(|(found, expected)| found != expected);
    assert_eq!((wrong, found.len()), (None, expected.len()));
}

#[test]
fn small_blocks_interleave() {
    for ranks in [1, 2, 3, 4, 7] {
        for (block, gap, blocks) in [
            (8, 0, 40_000),
            (64, 0, 20_000),
            (5, 3, 30_000),
            (1000, 24, 999),
        ] {
            interleaved(&vec![0; ranks], block, gap, blocks, NEW, &Info::new());
        }
    }
}

#[test]
fn holes_are_rewritten_where_that_is_safe() {
    let locked = Info::from_pairs([("pario_rmw", "locked")]).unwrap();
    interleaved(&[0; 3], 5, 3, 30_000, NEW, &locked);
    interleaved(&[0; 3], 5, 3, 30_000, NEW | Mode::UNIQUE_OPEN, &Info::new());
}

#[test]
fn blocks_cross_nodes_by_messages_and_by_node_leaders() {
    for nodes in [
        &[0, 1][..],
        &[0, 0, 1],
        &[0, 1, 0, 1],
        &[2, 0, 0, 1, 1, 2, 2],
    ] {
        for (block, gap, blocks) in [(8, 0, 9_000), (5, 3, 9_000), (1000, 24, 199)] {
            interleaved(nodes, block, gap, blocks, NEW, &Info::new());
        }
    }
}

/// Four ranks, each its own file contents: `work` gets the file and the rank.
fn four(work: impl Fn(&File, u64) -> pario::Result<()> + Sync) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("four");
    let results = World::new(4).run(|comm| -> pario::Result<()> {
        let file = File::open(&comm, &path, NEW, &Info::new())?;
        let rank = u64::from(comm.rank().0);
        let byte = Datatype::basic(Basic::Byte);
        let block = Datatype::contiguous(16, &byte)?;
        let tile = Datatype::resized(&block, 0, 64)?;
        file.set_view(&View::new(16 * rank, &byte, &tile))?;
        work(&file, rank)?;
        file.close()
    });
    for result in results {
        result.expect("no rank panics").unwrap();
    }
}

#[test]
fn nonblocking_collectives_go_on_while_ranks_compute() {
    four(|file, rank| {
        let mine = vec![rank as u8 + 1; 160_000];
        let first = file.iwrite_at_all(0, mine.clone())?;
        let second = file.iwrite_at_all(160_000, mine.clone())?;
        // A blocking call between start and wait has a separate context.
        file.write_at_all(320_000, &mine)?;
        assert_eq!(
            file.set_size(0).unwrap_err().kind(),
            pario::ErrorKind::FileInUse
        );
        assert_eq!(second.wait()?.0.bytes(), 160_000);
        assert_eq!(first.wait()?.0.bytes(), 160_000);
        let (status, back) = file.iread_at_all(0, vec![0u8; 480_000])?.wait()?;
        assert_eq!(status.bytes(), 480_000);
        assert!(back.iter().all(|byte| *byte == rank as u8 + 1));
        Ok(())
    });
}

#[test]
fn an_argument_that_is_wrong_on_one_rank_is_reported_on_all() {
    four(|file, rank| {
        let offset = if rank == 2 { u64::MAX } else { 0 };
        let error = file.write_at_all(offset, &[1u8; 16]).unwrap_err();
        assert_eq!(
            (error.kind(), error.rank()),
            (pario::ErrorKind::Argument, Some(2))
        );
        let error = file
            .iwrite_at_all(offset, vec![1u8; 16])?
            .wait()
            .unwrap_err();
        assert_eq!(
            (error.kind(), error.rank()),
            (pario::ErrorKind::Argument, Some(2))
        );
        assert_eq!(file.size()?, 0);
        Ok(())
    });
}

#[test]
fn one_split_call_at_a_time() {
    four(|file, rank| {
        let split = file.write_all_begin(vec![rank as u8; 3200])?;
        let again = file.write_all_begin(vec![0u8; 16]).unwrap_err();
        assert_eq!(again.kind(), pario::ErrorKind::FileInUse);
        let other = file.write_at_all(0, &[0u8; 16]).unwrap_err();
        assert_eq!(other.kind(), pario::ErrorKind::FileInUse);
        assert_eq!(split.end()?.0.bytes(), 3200);
        let split = file.read_at_all_begin(0, vec![9u8; 3200])?;
        assert_eq!(split.end()?.1, vec![rank as u8; 3200]);
        file.set_view(&View::bytes())?;
        let split = file.write_ordered_begin(vec![rank as u8 + 10; 5])?;
        split.end()?;
        let mut all = [0u8; 20];
        file.read_at_all(0, &mut all)?;
        assert_eq!(all[..10], [10, 10, 10, 10, 10, 11, 11, 11, 11, 11]);
        assert_eq!(file.position_shared()?, 20);
        Ok(())
    });
}

#[test]
fn files_do_not_wait_for_each_other() {
    let directory = tempfile::tempdir().unwrap();
    let results = World::new(2).run(|comm| -> pario::Result<()> {
        let tiny = Info::from_pairs([("pario_inflight_bytes", "1")]).unwrap();
        let [a, b] =
            ["a", "b"].map(|name| File::open(&comm, directory.path().join(name), NEW, &tiny));
        let (a, b) = (a?, b?);
        let data = || vec![7u8; 100_000];
        // One rank starts on a and then b, the other on b and then a.
        let requests = match comm.rank().0 {
            0 => [a.iwrite_at_all(0, data())?, b.iwrite_at_all(0, data())?],
            _ => [b.iwrite_at_all(0, data())?, a.iwrite_at_all(0, data())?],
        };
        for request in requests {
            assert_eq!(request.wait()?.0.bytes(), 100_000);
        }
        a.close()?;
        b.close()
    });
    results
        .into_iter()
        .for_each(|result| result.expect("no panic").unwrap());
}

/// Views that are set again and again, moved together, apart, or changed on
/// some ranks only: what was kept of the last ones must not be mistaken for
/// what holds now.
#[test]
fn views_that_move_show_what_they_would_if_they_were_new() {
    const RANKS: u64 = 3;
    const ROUNDS: u64 = 40;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("moving");
    // Of each round and rank: where its view starts, and what it shows.
    let start = |round: u64, rank: u64| match round % 4 {
        0 | 1 => (round * RANKS + rank) * 1000,
        2 => round * 3000 + (RANKS - rank) * 900,
        _ if rank == 1 => round * 3000 + 1600,
        _ => round * 3000 + rank * 8,
    };
    let record = |round: u64, rank: u64| match round % 4 {
        3 if rank == 1 => (8, 32),
        3 => (8, 24),
        _ => (500, 500),
    };
    let value = |round: u64, rank: u64| (round * 7 + rank + 1) as u8;
    let mut expected = vec![0u8; 200_000];
    for (round, rank) in (0..ROUNDS).flat_map(|round| (0..RANKS).map(move |rank| (round, rank))) {
        let (len, stride) = record(round, rank);
        for at in (0..500).map(|k| start(round, rank) + k / len * stride + k % len) {
            expected[at as usize] = value(round, rank);
        }
    }
    let results = World::new(RANKS as u32).run(|comm| -> pario::Result<()> {
        let file = File::open(&comm, &path, NEW, &Info::new())?;
        let rank = u64::from(comm.rank().0);
        let byte = Datatype::basic(Basic::Byte);
        for round in 0..ROUNDS {
            let (len, stride) = record(round, rank);
            let tile = Datatype::contiguous(len, &byte)?;
            let tile = Datatype::resized(&tile, 0, stride as i64)?;
            file.set_view(&View::new(start(round, rank), &byte, &tile))?;
            let mine = [value(round, rank); 500];
            assert_eq!(file.write_at_all(0, &mine[..])?.bytes(), 500);
            let mut back = [0u8; 500];
            assert_eq!(file.read_at_all(0, &mut back[..])?.bytes(), 500);
            assert_eq!(back, mine, "round {round}");
        }
        // The shared pointer needs the same view on all ranks, start included.
        file.set_view(&View::new(rank, &byte, &byte))?;
        assert!(file.write_shared(&[1u8][..]).is_err());
        file.set_view(&View::new(199_000, &byte, &byte))?;
        file.write_shared(&[rank as u8 + 1][..])?;
        file.close()
    });
    for result in results {
        result.expect("no rank panics").unwrap();
    }
    let found = std::fs::read(&path).unwrap();
    let (found, mut shared) = (&found[..199_000], found[199_000..].to_vec());
    assert!(found == &expected[..199_000]);
    shared.sort_unstable();
    assert_eq!(shared, [1, 2, 3]);
}

/// Layouts that are too long for the first message, next to short ones: they change hands between
/// the ranks, or only move, and are first used by independent calls or by collective ones.
#[test]
fn irregular_views_change_hands() {
    const RANKS: u64 = 3;
    const ROUNDS: u64 = 9;
    const ROUND_BYTES: u64 = 64 << 10;
    // Two irregular parts and a regular one.
    let blocks = |part: u64| -> Vec<(u64, i64)> {
        let mix = |index: u64| (index + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
        let irregular = (0..1200)
            .filter(|index| mix(*index) % 2 == part)
            .map(|index| (1 + mix(index) % 13, 40 * index as i64));
        let regular = (0..500).map(|index| (8, 48_000 + 20 * index));
        match part {
            2 => regular.collect(),
            _ => irregular.collect(),
        }
    };
    // In every third round the parts stay with their ranks.
    let part_of = |round: u64, rank: u64| (rank + round - round / 3) % 3;
    let value = |at: u64, rank: u64| (at * 31 + rank + 1) as u8;
    let mut expected = vec![0u8; (ROUNDS * ROUND_BYTES) as usize];
    for (round, rank) in (0..ROUNDS).flat_map(|round| (0..RANKS).map(move |rank| (round, rank))) {
        for (len, offset) in blocks(part_of(round, rank)) {
            let start = round * ROUND_BYTES + offset as u64;
            for at in start..start + len {
                expected[at as usize] = value(at, rank);
            }
        }
    }
    for nodes in [&[0, 0, 0], &[0, 1, 1]] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("irregular");
        let results = World::new(RANKS as u32)
            .nodes(nodes)
            .run(|comm| -> pario::Result<()> {
                let file = File::open(&comm, &path, NEW, &Info::new())?;
                let rank = u64::from(comm.rank().0);
                let byte = Datatype::basic(Basic::Byte);
                for round in 0..ROUNDS {
                    let blocks = blocks(part_of(round, rank));
                    let filetype = Datatype::hindexed(&blocks, &byte)?;
                    file.set_view(&View::new(round * ROUND_BYTES, &byte, &filetype))?;
                    let mine: Vec<u8> = blocks
                        .iter()
                        .flat_map(|(len, offset)| *offset as u64..*offset as u64 + len)
                        .map(|at| expected[(round * ROUND_BYTES + at) as usize])
                        .collect();
                    let written = match round % 2 {
                        0 => file.write_at_all(0, &mine[..])?,
                        _ => file.write_at(0, &mine[..])?,
                    };
                    assert_eq!(written.bytes(), mine.len() as u64);
                    let mut back = vec![0u8; mine.len()];
                    let read = match round % 4 {
                        1 | 2 => file.read_at_all(0, &mut back[..])?,
                        _ => file.read_at(0, &mut back[..])?,
                    };
                    assert_eq!(read.bytes(), mine.len() as u64);
                    assert!(back == mine, "round {round}, rank {rank}");
                }
                file.close()
            });
        for result in results {
            result.expect("no rank panics").unwrap();
        }
        let found = std::fs::read(&path).unwrap();
        assert!(found[..] == expected[..found.len()]);
        assert!(expected[found.len()..].iter().all(|byte| *byte == 0));
    }
}

/// The stretches of the file that windows read or wrote, in a call whose hints
/// are these: two ranks, pieces of 8 bytes, `gap` bytes after each round.
fn places(operation: Operation, gap: u64, hints: &[(&str, &str)]) -> Vec<(u64, u64)> {
    const PIECES: u64 = 16;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("traced");
    std::fs::write(&path, vec![7; ((16 + gap) * PIECES) as usize]).unwrap();
    let log = Log::new();
    let mut info = Info::new();
    for (key, value) in [("pario_algorithm", "two-phase")].iter().chain(hints) {
        info.set(key, value).unwrap();
    }
    let results = World::new(2).run(|comm| -> pario::Result<()> {
        let driver = Arc::new(WrappedDriver::new(Arc::new(Posix::new()), log.clone()));
        let mode = Mode::READ_WRITE | Mode::UNIQUE_OPEN;
        let file = File::open_with(&comm, driver, &path, mode, &info)?;
        let long = Datatype::basic(Basic::Int64);
        let tile = Datatype::resized(&long, 0, (16 + gap) as i64)?;
        file.set_view(&View::new(u64::from(comm.rank().0) * 8, &long, &tile))?;
        let mut numbers = [1i64; PIECES as usize];
        match operation {
            Operation::Read => file.read_at_all(0, &mut numbers)?,
            _ => file.write_at_all(0, &numbers)?,
        };
        file.close()
    });
    for result in results {
        result.expect("no panic").unwrap();
    }
    let events = log.take().into_iter();
    let moved = events.filter(|event| event.operation == operation);
    moved.flat_map(|event| event.places).collect()
}

#[test]
fn windows_leave_holes_alone_if_a_hint_says_so() {
    let whole = places(Operation::Write, 16, &[]);
    assert_eq!(whole, [(0, 16 * 32 - 16)], "the holes are rewritten");
    let runs: Vec<_> = (0..16).map(|at| (at * 32, 16)).collect();
    for hint in [
        ("romio_ds_write", "disable"),
        ("pario_write_method", "list"),
    ] {
        assert_eq!(places(Operation::Write, 16, &[hint]), runs, "{hint:?}");
    }
}

#[test]
fn windows_rewrite_long_holes_if_a_hint_says_so() {
    let limit = ("pario_sieve_extent", "256");
    let runs: Vec<_> = (0..16).map(|at| (at * 1040, 16)).collect();
    assert_eq!(places(Operation::Write, 1024, &[limit]), runs);
    for hint in [
        ("romio_ds_write", "enable"),
        ("pario_write_method", "sieve"),
    ] {
        // Through shared memory and by messages.
        for exchange in ["shared", "messages"] {
            let hints = [limit, hint, ("pario_exchange", exchange)];
            let whole = places(Operation::Write, 1024, &hints);
            assert_eq!(whole, [(0, 15 * 1040 + 16)], "{hints:?}");
        }
    }
}

#[test]
fn windows_read_far_pieces_by_themselves() {
    let near = places(Operation::Read, 16, &[]);
    assert_eq!(near, [(0, 16 * 32 - 16)]);
    let runs: Vec<_> = (0..16).map(|at| (at * 1040, 16)).collect();
    let limit = ("pario_sieve_extent", "256");
    assert_eq!(places(Operation::Read, 1024, &[limit]), runs);
    for hint in [("romio_ds_read", "enable"), ("pario_read_method", "sieve")] {
        for exchange in ["shared", "messages"] {
            let hints = [limit, hint, ("pario_exchange", exchange)];
            let whole = places(Operation::Read, 1024, &hints);
            assert_eq!(whole, [(0, 15 * 1040 + 16)], "{hints:?}");
        }
    }
}

#[test]
fn mismatched_accesses_between_nodes_are_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("mismatched");
    // Data that travels with the first message, and data that does not.
    for (bytes, nodes) in [(64, &[0, 0, 1][..]), (1 << 20, &[0, 1, 1])] {
        let results = World::new(3).nodes(nodes).run(|comm| -> pario::Result<()> {
            let file = File::open(&comm, &path, NEW, &Info::new())?;
            let mut data = vec![1u8; bytes];
            for reader in 0..3 {
                let error = match comm.rank().0 == reader {
                    true => file.read_at_all(0, &mut data[..]).unwrap_err(),
                    false => file.write_at_all(0, &data[..]).unwrap_err(),
                };
                assert_eq!(error.kind(), ErrorKind::NotSame, "{error}");
                let text = error.to_string();
                assert!(text.contains("mismatched collective calls"), "{text}");
            }
            // The file stays usable.
            assert_eq!(file.write_at_all(0, &data[..])?.bytes(), bytes as u64);
            file.close()
        });
        for result in results {
            result.expect("no rank panics").unwrap();
        }
    }
}

/// Accesses and all other collective calls, whichever rank is in which.
#[test]
fn any_mismatched_calls_between_nodes_are_named() {
    let _watchdog = common::watchdog();
    let directory = tempfile::tempdir().unwrap();
    for (case, nodes) in [&[0, 1][..], &[0, 0, 1], &[0, 1, 1], &[0, 0, 1, 1, 2]]
        .iter()
        .enumerate()
    {
        let path = directory.path().join(case.to_string());
        let world = World::new(nodes.len() as u32).nodes(nodes);
        for result in world.run(|comm| common::mismatch::check_between_nodes(&comm, &path)) {
            result.expect("no rank panics").unwrap();
        }
    }
}

/// A wrong argument on one rank is an error on all, and the ranks stay together.
#[test]
fn calls_that_fail_on_one_rank_between_nodes_fail_on_all() {
    let _watchdog = common::watchdog();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("data");
    let results = World::new(3)
        .nodes(&[0, 1, 1])
        .run(|comm| -> pario::Result<()> {
            let file = File::open(&comm, &path, NEW, &Info::new())?;
            let is_wrong = comm.rank().0 == 2;
            for _ in 0..2 {
                let size = if is_wrong { u64::MAX } else { 10 };
                let error = file.set_size(size).unwrap_err();
                assert_eq!((error.kind(), error.rank()), (ErrorKind::Argument, Some(2)));
                let error = match is_wrong {
                    true => file.fail_collectively(
                        "set_view",
                        Error::new(ErrorKind::Argument, "no such view"),
                    ),
                    false => file.set_view(&View::bytes()).unwrap_err(),
                };
                assert_eq!(
                    (error.kind(), error.operation()),
                    (ErrorKind::Argument, "set_view")
                );
                let error = match is_wrong {
                    true => file
                        .fail_collectively("sync", Error::new(ErrorKind::Argument, "no such file")),
                    false => file.sync().unwrap_err(),
                };
                assert_eq!(
                    (error.kind(), error.operation()),
                    (ErrorKind::Argument, "sync")
                );
            }
            file.write_at_all(u64::from(comm.rank().0), &[1u8])?;
            file.sync()?;
            file.close()
        });
    for result in results {
        result.expect("no rank panics").unwrap();
    }
}

/// Between nodes, windows are exchanged while others are moved to or from a file
/// that is slower than the exchange.
#[test]
fn exchange_and_file_transfers_overlap() {
    const BYTES_PER_SECOND: NonZeroU64 = NonZeroU64::new(10 << 20).unwrap();
    const BLOCK: u64 = 4096;
    const BLOCKS: u64 = 512;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("slow");
    let throttle = Throttle::new(Duration::from_millis(1)).bandwidth(BYTES_PER_SECOND);
    let driver = Arc::new(WrappedDriver::new(Arc::new(Posix::new()), throttle));
    let hints = [("cb_buffer_size", "262144"), ("romio_cb_write", "enable")];
    let hints = hints
        .into_iter()
        .chain([("romio_cb_read", "enable"), ("cb_nodes", "1")]);
    let info = Info::from_pairs(hints).unwrap();
    let results = World::new(2)
        .nodes(&[0, 1])
        .run(|comm| -> pario::Result<_> {
            let file = File::open_with(&comm, driver.clone(), &path, NEW, &info)?;
            let rank = u64::from(comm.rank().0);
            let byte = Datatype::basic(Basic::Byte);
            let tile = Datatype::contiguous(BLOCK, &byte)?;
            let tile = Datatype::resized(&tile, 0, 2 * BLOCK as i64)?;
            file.set_view(&View::new(rank * BLOCK, &byte, &tile))?;
            let mine = vec![rank as u8 + 1; (BLOCK * BLOCKS) as usize];
            file.write_at_all(0, &mine)?;
            let written = file.overlap_last_all();
            let mut back = vec![0; mine.len()];
            file.read_at_all(0, &mut back[..])?;
            assert!(back == mine);
            let read = file.overlap_last_all();
            file.close()?;
            Ok([written, read])
        });
    let [aggregator, _] = &results[..] else {
        panic!("there are two ranks");
    };
    for overlap in aggregator.as_ref().unwrap().as_ref().unwrap() {
        assert_eq!(overlap.exchanged, BLOCK * BLOCKS);
        assert!(
            2 * overlap.during_transfers >= overlap.exchanged,
            "{overlap:?}"
        );
    }
}
