//! Every method that a hint can name, against what a byte-by-byte writer
//! would do: algorithms, partitions and exchanges, on assumed servers.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::{sync::Arc, time::Duration};

use pario::{Basic, Datatype, File, Info, Mode, View};
use pario_driver::{Log, Operation, Posix, Throttle, WrappedDriver};
use pario_plan::{Exchange, algorithm::ALGORITHMS, partition::PARTITIONS};
use pario_transport::threads::World;

fn algorithms_known() -> impl Iterator<Item = &'static str> {
    ALGORITHMS.iter().map(|algorithm| algorithm.name())
}

fn partitions_known() -> impl Iterator<Item = &'static str> {
    PARTITIONS.iter().map(|partition| partition.name())
}

fn exchanges_known() -> impl Iterator<Item = &'static str> {
    Exchange::ALL.into_iter().map(|exchange| exchange.name())
}

/// Windows and stripes far smaller than the data, so that there are many.
const SMALL: &[(&str, &str)] = &[
    ("pario_assume_striping", "1000,3"),
    ("cb_buffer_size", "4000"),
    ("pario_slice_bytes", "700"),
    ("cb_nodes", "3"),
    ("pario_timed_delay_us", "1"),
];

fn info(pairs: &[(&str, &str)]) -> Info {
    let mut info = Info::new();
    for (key, value) in SMALL.iter().chain(pairs) {
        info.set(key, value).unwrap();
    }
    info
}

/// How the ranks' blocks lie in the file.
#[derive(Clone, Copy, Debug)]
struct Blocks {
    len: u64,
    gap: u64,
    each: u64,
}

impl Blocks {
    fn stride(self, ranks: u64) -> u64 {
        ranks * self.len + self.gap
    }

    /// What the file holds at a byte after call number `call`; gaps keep what
    /// was there before.
    fn byte(self, ranks: u64, byte: u64, call: u64) -> u8 {
        match byte % self.stride(ranks) < ranks * self.len {
            true => (byte.wrapping_mul(31) >> 3) as u8 ^ call as u8,
            false => 7,
        }
    }
}

/// Two calls write, one reads, and the file is compared.
fn check(nodes: &[u32], blocks: Blocks, mode: Mode, info: &Info, what: &str) {
    let ranks = nodes.len() as u64;
    let world = World::new(nodes.len() as u32).nodes(nodes);
    let (stride, calls) = (blocks.stride(ranks), 2);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("data");
    let half = stride * blocks.each;
    std::fs::write(&path, vec![7u8; (calls * half) as usize]).unwrap();
    let results = world.run(|comm| -> pario::Result<()> {
        let file = File::open(&comm, &path, mode | Mode::READ_WRITE, info)?;
        let rank = u64::from(comm.rank().0);
        let byte = Datatype::basic(Basic::Byte);
        let tile = Datatype::contiguous(blocks.len, &byte)?;
        let tile = Datatype::resized(&tile, 0, stride as i64)?;
        file.set_view(&View::new(rank * blocks.len, &byte, &tile))?;
        for call in 0..calls {
            let at =
                |index: u64, within: u64| call * half + index * stride + rank * blocks.len + within;
            let mine: Vec<u8> = (0..blocks.each)
                .flat_map(|index| (0..blocks.len).map(move |within| at(index, within)))
                .map(|byte| blocks.byte(ranks, byte, call))
                .collect();
            let first = call * mine.len() as u64;
            assert_eq!(file.write_at_all(first, &mine)?.bytes(), mine.len() as u64);
            let mut back = vec![0u8; mine.len()];
            let read = file.read_at_all(first, &mut back[..])?.bytes();
            assert_eq!(read, mine.len() as u64);
            assert!(back == mine, "rank {rank} read something else: {what}");
        }
        file.close()
    });
    for result in results {
        result.expect("no rank panics").unwrap();
    }
    let found = std::fs::read(&path).unwrap();
    let end = calls * half;
    assert_eq!(found.len() as u64, end, "{what}");
    for byte in 0..end {
        let expected = blocks.byte(ranks, byte, byte / half);
        assert_eq!(found[byte as usize], expected, "byte {byte}: {what}");
    }
}

/// Interleaved with and without gaps, and longer than a stripe.
const PATTERNS: [Blocks; 3] = [
    Blocks {
        len: 8,
        gap: 0,
        each: 200,
    },
    Blocks {
        len: 5,
        gap: 3,
        each: 150,
    },
    Blocks {
        len: 1700,
        gap: 11,
        each: 2,
    },
];

/// The node of each rank, for several worlds.
const WORLDS: [&[u32]; 4] = [&[0], &[0; 4], &[0, 1, 0, 1, 2], &[0, 1]];

#[test]
fn algorithms() {
    for nodes in WORLDS {
        for algorithm in algorithms_known() {
            for blocks in PATTERNS {
                let info = info(&[("pario_algorithm", algorithm)]);
                let what = format!("{algorithm} {blocks:?} on nodes {nodes:?}");
                check(nodes, blocks, Mode::empty(), &info, &what);
                check(nodes, blocks, Mode::UNIQUE_OPEN, &info, &what);
            }
        }
    }
}

#[test]
fn partitions() {
    for nodes in WORLDS {
        for partition in partitions_known() {
            for blocks in PATTERNS {
                let info = info(&[
                    ("pario_algorithm", "two-phase"),
                    ("pario_partition", partition),
                ]);
                let what = format!("{partition} {blocks:?} on nodes {nodes:?}");
                check(nodes, blocks, Mode::empty(), &info, &what);
                check(nodes, blocks, Mode::UNIQUE_OPEN, &info, &what);
            }
        }
    }
}

#[test]
fn exchanges() {
    for nodes in WORLDS {
        for exchange in exchanges_known() {
            for client in ["kernel", "library"] {
                let info = info(&[
                    ("romio_cb_read", "enable"),
                    ("romio_cb_write", "enable"),
                    ("pario_exchange", exchange),
                    ("pario_assume_client", client),
                ]);
                let what = format!("{exchange} {client} on nodes {nodes:?}");
                check(nodes, PATTERNS[1], Mode::empty(), &info, &what);
            }
        }
    }
}

#[test]
fn algorithms_by_every_exchange() {
    for nodes in WORLDS {
        for algorithm in algorithms_known() {
            for exchange in exchanges_known() {
                let info = info(&[
                    ("pario_algorithm", algorithm),
                    ("pario_exchange", exchange),
                    ("cb_buffer_size", "100"),
                ]);
                let what = format!("{algorithm} by {exchange} on nodes {nodes:?}");
                check(nodes, PATTERNS[1], Mode::empty(), &info, &what);
            }
        }
    }
}

#[test]
fn several_agents_a_server() {
    for nodes in WORLDS {
        for algorithm in ["resonant", "resonant-prefetch"] {
            for blocks in PATTERNS {
                let info = info(&[
                    ("pario_algorithm", algorithm),
                    ("pario_assume_striping", "500,2"),
                    ("pario_agents_per_server", "2"),
                ]);
                let what = format!("{algorithm} {blocks:?} on nodes {nodes:?}");
                check(nodes, blocks, Mode::empty(), &info, &what);
            }
        }
    }
}

/// Groups of dynamic segmentation own the same stretches of the file: what
/// one of them read and wrote back would undo what another wrote.
#[test]
fn groups_do_not_rewrite_each_others_data() {
    let blocks = Blocks {
        len: 3,
        gap: 2,
        each: 20_000,
    };
    let info = info(&[
        ("pario_algorithm", "dynamic-segmentation"),
        ("cb_nodes", "4"),
        ("cb_buffer_size", "128k"),
    ]);
    for attempt in 0..2 {
        let what = format!("attempt {attempt}");
        check(&[0, 1, 2, 3], blocks, Mode::UNIQUE_OPEN, &info, &what);
    }
}

/// All ranks read the same bytes, the last of which are not in the file.
#[test]
fn ranks_that_read_the_same_bytes_all_get_those_before_the_end() {
    const SIZE: usize = 3259;
    const FIRST: usize = SIZE - 26;
    const ASKED: usize = 640;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("data");
    let data: Vec<u8> = (0..SIZE).map(|byte| 1 + (byte % 251) as u8).collect();
    std::fs::write(&path, &data).unwrap();
    for algorithm in algorithms_known() {
        for pieces in ["1", "2", "1024"] {
            let info = info(&[
                ("pario_algorithm", algorithm),
                ("pario_list_pieces", pieces),
            ]);
            let results = World::new(4).run(|comm| -> pario::Result<()> {
                let file = File::open(&comm, &path, Mode::READ_ONLY, &info)?;
                let mut read = vec![0u8; ASKED];
                let got = file.read_at_all(FIRST as u64, &mut read[..])?.bytes();
                let what = format!("{algorithm}, rank {:?}", comm.rank());
                assert_eq!(got as usize, SIZE - FIRST, "{what}");
                assert_eq!(read[..SIZE - FIRST], data[FIRST..], "{what}");
                assert!(read[SIZE - FIRST..].iter().all(|byte| *byte == 0), "{what}");
                file.close()
            });
            for result in results {
                result.expect("no rank panics").unwrap();
            }
        }
    }
}

/// Zhang 2009, section 3.4: without nonblocking I/O, the groups of timed access are fully serialised.
#[test]
fn timed_groups_wait_for_all_ranks_before_them_without_nonblocking_io() {
    const BYTES: u64 = 2000;
    let log = Log::new();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("data");
    // Every rank needs both servers, so that there are two groups of two.
    let info = Info::from_pairs([
        ("pario_assume_striping", "1000,2"),
        ("pario_assume_nonblocking", "false"),
        ("pario_algorithm", "resonant-timed"),
    ])
    .unwrap();
    let results = World::new(4).run(|comm| -> pario::Result<()> {
        let rank = comm.rank().0;
        // The second rank of the first group is slow.
        let latency = Duration::from_millis(if rank == 1 { 100 } else { 0 });
        let slow = WrappedDriver::new(Arc::new(Posix::new()), Throttle::new(latency));
        let driver = Arc::new(WrappedDriver::new(Arc::new(slow), log.clone()));
        let mode = Mode::CREATE | Mode::READ_WRITE;
        let file = File::open_with(&comm, driver, &path, mode, &info)?;
        file.write_at_all(
            u64::from(rank) * BYTES,
            &vec![rank as u8; BYTES as usize][..],
        )?;
        let explained = file.explain_last_all().unwrap();
        assert!(explained.contains("resonant-timed"), "{explained}");
        file.close()
    });
    results.into_iter().for_each(|it| it.unwrap().unwrap());
    let events = log.events();
    let of_rank = |rank: u64| {
        let mut writes = events.iter().filter(|it| it.operation == Operation::Write);
        let write = writes.find(|it| it.places[0].0 == rank * BYTES).unwrap();
        (write.began, write.began + write.took)
    };
    for later in [2, 3] {
        assert!(
            of_rank(later).0 >= of_rank(1).1,
            "rank {later} did not wait"
        );
    }
}
