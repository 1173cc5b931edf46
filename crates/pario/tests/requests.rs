//! The requests that the papers' methods send: how many, how long, in which order at each server,
//! counted by a driver that logs them. Servers are assumed.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::{ops::Range, path::Path, sync::Arc};

use pario::{
    Basic, Datatype, File, Info, Mode, View,
    placement::{Placement, Striping},
};
use pario_driver::{Event, Log, Operation, Posix, WrappedDriver};
use pario_transport::threads::World;

/// Stripes and servers.
const UNIT: u64 = 1000;
const SERVERS: u64 = 2;

/// Pieces of `len` bytes, interleaved by rank, `each` per rank.
#[derive(Clone, Copy)]
struct Pattern {
    nodes: &'static [u32],
    len: u64,
    each: u64,
    /// Bytes after the pieces of all ranks.
    gap: u64,
}

impl Pattern {
    fn ranks(self) -> u64 {
        self.nodes.len() as u64
    }

    fn stride(self) -> u64 {
        self.ranks() * self.len + self.gap
    }

    fn size(self) -> u64 {
        self.stride() * self.each
    }

    /// The bytes of a rank on a server.
    fn bytes_on(self, rank: u64, server: u64) -> u64 {
        (0..self.size())
            .filter(|byte| byte % self.stride() / self.len == rank && server_of(*byte) == server)
            .count() as u64
    }
}

fn server_of(byte: u64) -> u64 {
    byte / UNIT % SERVERS
}

/// Moves all data of a pattern in one call and returns the requests in the order in which they
/// were sent.
fn requests(pattern: Pattern, operation: Operation, hints: &[(&str, &str)]) -> Vec<Event> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("data");
    std::fs::write(&path, contents(pattern.size())).unwrap();
    let log = Log::new();
    let mut info = Info::new();
    let striping = format!("{UNIT},{SERVERS}");
    let common = [
        ("pario_assume_striping", striping.as_str()),
        ("pario_assume_client", "library"),
        ("cb_buffer_size", "8000"),
        ("pario_slice_bytes", "8000"),
    ];
    for (key, value) in common.iter().chain(hints) {
        info.set(key, value).unwrap();
    }
    let world = World::new(pattern.nodes.len() as u32).nodes(pattern.nodes);
    let results = world.run(|comm| -> pario::Result<()> {
        let rank = u64::from(comm.rank().0);
        let driver = Arc::new(WrappedDriver::new(Arc::new(Posix::new()), log.clone()));
        let file = File::open_with(&comm, driver, &path, Mode::READ_WRITE, &info)?;
        let byte = Datatype::basic(Basic::Byte);
        let piece = Datatype::contiguous(pattern.len, &byte)?;
        let tile = Datatype::resized(&piece, 0, pattern.stride() as i64)?;
        file.set_view(&View::new(rank * pattern.len, &byte, &tile))?;
        let mine: Vec<u8> = contents(pattern.size())
            .into_iter()
            .enumerate()
            .filter(|(byte, _)| *byte as u64 % pattern.stride() / pattern.len == rank)
            .map(|(_, value)| value)
            .collect();
        match operation {
            Operation::Read => {
                let mut read = vec![0u8; mine.len()];
                assert_eq!(
                    file.read_at_all(0, &mut read[..])?.bytes(),
                    mine.len() as u64
                );
                assert!(read == mine, "rank {rank} read something else");
            }
            _ => drop(file.write_at_all(0, &mine)?),
        }
        file.close()
    });
    for result in results {
        result.expect("no rank panics").unwrap();
    }
    check_contents(&path, pattern.size());
    let mut events = log.take();
    events.retain(|event| event.operation == operation);
    events.sort_by_key(|event| event.began);
    events
}

fn contents(size: u64) -> Vec<u8> {
    (0..size).map(|byte| ((byte * 31) >> 3) as u8).collect()
}

fn check_contents(path: &Path, size: u64) {
    assert!(std::fs::read(path).unwrap() == contents(size));
}

fn bytes(event: &Event) -> u64 {
    event.places.iter().map(|(_, len)| len).sum()
}

/// The ranges of requests, by server, in the order in which they were sent.
fn by_server(events: &[Event]) -> Vec<Vec<Range<u64>>> {
    let mut servers = vec![Vec::new(); SERVERS as usize];
    for (start, len) in events.iter().flat_map(|event| &event.places) {
        assert_eq!(server_of(*start), server_of(start + len - 1));
        servers[server_of(*start) as usize].push(*start..start + len);
    }
    servers
}

fn assert_ascending(events: &[Event], what: &str) {
    for ranges in by_server(events) {
        for pair in ranges.windows(2) {
            assert!(pair[0].end <= pair[1].start, "{what}: {ranges:?}");
        }
    }
}

/// Every byte of the file exactly once.
fn assert_covered(events: &[Event], size: u64) {
    let places = events.iter().flat_map(|event| event.places.iter().copied());
    let mut places: Vec<_> = places.collect();
    places.sort_unstable();
    let end = places.into_iter().fold(0, |end, (start, len)| {
        assert_eq!(start, end, "each byte once");
        end + len
    });
    assert_eq!(end, size);
}

const WORLDS: [&[u32]; 2] = [&[0; 4], &[0, 1, 0, 1]];

#[test]
fn agents_prefetch_each_byte_once_and_before_any_rank_reads_its_own() {
    for nodes in WORLDS {
        let pattern = Pattern {
            nodes,
            len: 300,
            each: 40,
            gap: 0,
        };
        let events = requests(
            pattern,
            Operation::Read,
            &[("pario_algorithm", "resonant-prefetch")],
        );
        let mut sum = 0;
        let ahead = events.iter().take_while(|event| {
            let is_ahead = sum < pattern.size();
            sum += bytes(event);
            is_ahead
        });
        let (ahead, rest) = events.split_at(ahead.count());
        assert_covered(ahead, pattern.size());
        assert_ascending(ahead, "requests of the agents");
        // One of the ranks with the most data on each server is its agent. It does not read that
        // data again.
        let most = |server| (0..4).map(|rank| pattern.bytes_on(rank, server)).max();
        let of_agents: u64 = (0..SERVERS).filter_map(most).sum();
        assert_eq!(
            rest.iter().map(bytes).sum::<u64>(),
            pattern.size() - of_agents
        );
    }
}

#[test]
fn runs_of_several_stripes_are_one_list() {
    for (algorithm, nodes) in [
        ("resonant-agents", WORLDS[0]),
        ("one-per-server", WORLDS[1]),
    ] {
        // A stripe has four runs of 200 bytes.
        let pattern = Pattern {
            nodes,
            len: 50,
            each: 400,
            gap: 50,
        };
        let hints = |pieces| {
            [
                ("pario_algorithm", algorithm),
                ("pario_read_method", "list"),
                ("pario_list_pieces", pieces),
                ("cb_buffer_size", "64k"),
                ("pario_slice_bytes", "64k"),
            ]
        };
        for operation in [Operation::Read, Operation::Write] {
            for (pieces, most) in [("64", 64), ("1000", 1000)] {
                let events = requests(pattern, operation, &hints(pieces));
                let runs = pattern.each;
                let expected = (runs / SERVERS).div_ceil(most) * SERVERS;
                assert_eq!(events.len() as u64, expected, "{algorithm} {operation:?}");
                let places = events.iter().map(|event| event.places.len() as u64);
                assert_eq!(places.sum::<u64>(), runs);
            }
        }
    }
}

#[test]
fn agents_of_one_server_send_requests_in_the_order_of_the_file() {
    for nodes in WORLDS {
        for (algorithm, operation) in [
            ("resonant-agents", Operation::Write),
            ("resonant-agents", Operation::Read),
            ("resonant-prefetch", Operation::Read),
        ] {
            let pattern = Pattern {
                nodes,
                len: 500,
                each: 32,
                gap: 0,
            };
            let events = requests(
                pattern,
                operation,
                &[
                    ("pario_algorithm", algorithm),
                    ("pario_agents_per_server", "2"),
                    ("pario_assume_nonblocking", "true"),
                    // The next agent starts when the data has been moved, if that is earlier; on a busy
                    // machine, half a millisecond may pass before a request is even sent.
                    ("pario_timed_delay_us", "1000000"),
                    ("cb_buffer_size", "2000"),
                    ("pario_slice_bytes", "2000"),
                ],
            );
            let mut sum = 0;
            let first = events.iter().take_while(|event| {
                sum += bytes(event);
                sum <= pattern.size()
            });
            let first: Vec<Event> = first.cloned().collect();
            assert_covered(&first, pattern.size());
            assert_ascending(&first, &format!("{algorithm} {operation:?} {nodes:?}"));
        }
    }
}

#[test]
fn timed_ranks_are_serialised_if_transfers_block() {
    // One stripe per rank, so that ranks 0 and 2, and 1 and 3, share a server.
    let pattern = Pattern {
        nodes: WORLDS[1],
        len: UNIT,
        each: 1,
        gap: 0,
    };
    for operation in [Operation::Read, Operation::Write] {
        let events = requests(
            pattern,
            operation,
            &[
                ("pario_algorithm", "resonant"),
                ("pario_assume_nonblocking", "false"),
            ],
        );
        assert_eq!(events.len(), 4);
        assert_ascending(&events, "timed");
        for server in 0..SERVERS {
            let mut own = events
                .iter()
                .filter(|event| server_of(event.places[0].0) == server);
            let (first, second) = (own.next().unwrap(), own.next().unwrap());
            assert!(first.began + first.took <= second.began, "{server}");
        }
    }
}

/// The first call fixes who owns which bytes, whether it blocks or not.
#[test]
fn persistent_realms_are_those_of_the_first_call() {
    const FIRST: u64 = 4 * 1000;
    const SECOND: u64 = 10 * FIRST;
    for nodes in WORLDS {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("data");
        let logs: Vec<Log> = (0..4).map(|_| Log::new()).collect();
        let mut info = Info::new();
        for (key, value) in [
            ("romio_cb_pfr", "enable"),
            ("romio_cb_write", "enable"),
            ("cb_nodes", "4"),
            ("pario_assume_client", "library"),
            ("pario_saturation_bytes", "1"),
        ] {
            info.set(key, value).unwrap();
        }
        let world = World::new(4).nodes(nodes);
        let results = world.run(|comm| -> pario::Result<()> {
            let rank = u64::from(comm.rank().0);
            let log = logs[rank as usize].clone();
            let driver = Arc::new(WrappedDriver::new(Arc::new(Posix::new()), log));
            let mode = Mode::CREATE | Mode::READ_WRITE;
            let file = File::open_with(&comm, driver, &path, mode, &info)?;
            let mine = |size: u64| vec![rank as u8; size as usize / 4];
            let started = file.iwrite_at_all(rank * FIRST / 4, mine(FIRST))?;
            file.write_at_all(rank * SECOND / 4, &mine(SECOND)[..])?;
            started.wait()?;
            file.close()
        });
        for result in results {
            result.expect("no rank panics").unwrap();
        }
        let mut written = 0;
        for (log, rank) in logs.iter().zip(0..) {
            let events = log.take().into_iter();
            let writes = events.filter(|event| event.operation == Operation::Write);
            for (start, len) in writes.flat_map(|event| event.places) {
                written += len;
                assert_eq!(start / 1000 % 4, rank, "rank {rank} wrote {start}, {len}");
                assert_eq!(start / 1000, (start + len - 1) / 1000);
            }
        }
        assert_eq!(written, FIRST + SECOND, "all of it through aggregators");
    }
}

/// Plans follow a placement that the program sets, until it is withdrawn.
#[test]
fn a_placement_that_is_set_decides_who_writes_what() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("data");
    let info = Info::from_pairs([
        ("pario_algorithm", "one-per-server"),
        ("pario_assume_client", "library"),
    ])
    .unwrap();
    let log = Log::new();
    let placement = Placement::uniform(Striping {
        unit: UNIT,
        count: SERVERS,
    });
    let results = World::new(2).run(|comm| -> pario::Result<()> {
        let driver = Arc::new(WrappedDriver::new(Arc::new(Posix::new()), log.clone()));
        let mode = Mode::CREATE | Mode::READ_WRITE;
        let file = File::open_with(&comm, driver, &path, mode, &info)?;
        assert_eq!(file.placement(), None);
        let mine = [comm.rank().0 as u8; 2000];
        let write = || file.write_at_all(2000 * u64::from(comm.rank().0), &mine[..]);
        for set in [Some(&placement), None] {
            file.set_placement(set)?;
            assert_eq!(file.placement().as_ref(), set);
            write()?;
            let algorithm = file.explain_last_all().unwrap();
            assert_eq!(
                algorithm.contains("one-per-server"),
                set.is_some(),
                "{algorithm}"
            );
        }
        let other = Placement::uniform(Striping { unit: 7, count: 2 });
        let mixed = [&placement, &other][comm.rank().index()];
        let error = file.set_placement(Some(mixed)).unwrap_err();
        assert_eq!(error.kind(), pario::ErrorKind::NotSame);
        file.close()
    });
    for result in results {
        result.expect("no rank panics").unwrap();
    }
    let events = log.take();
    let mut writes = events
        .iter()
        .filter(|event| event.operation == Operation::Write);
    let by_server = |event: &Event| {
        let servers = event.places.iter().map(|(start, _)| server_of(*start));
        servers.collect::<Vec<_>>()
    };
    let (first, second) = (writes.next().unwrap(), writes.next().unwrap());
    let mut servers = [by_server(first), by_server(second)];
    servers.sort_unstable();
    assert_eq!(servers, [[0, 0], [1, 1]]);
}

/// Ranks that see contiguous parts of a file plan their calls nevertheless.
#[test]
fn a_placement_that_is_set_is_planned_for_without_hints() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("data");
    let placement = Placement::uniform(Striping {
        unit: UNIT,
        count: SERVERS,
    });
    let results = World::new(2).run(|comm| -> pario::Result<()> {
        let mode = Mode::CREATE | Mode::READ_WRITE;
        let file = File::open(&comm, &path, mode, &Info::new())?;
        for set in [None, Some(&placement), None] {
            file.set_placement(set)?;
            file.write_at_all(2000 * u64::from(comm.rank().0), &[1u8; 2000][..])?;
            let how = file.explain_last_all().unwrap();
            let is_planned = !how.contains("all on one machine");
            assert_eq!(is_planned, set.is_some(), "{how}");
        }
        file.close()
    });
    for result in results {
        result.expect("no rank panics").unwrap();
    }
}
