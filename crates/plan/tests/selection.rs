//! The rules of selection as a table: a situation and the expected selection.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use pario_layout::{Basic, Datatype};
use pario_plan::{
    Access, Case, Client, Direction, Facts, History, LockProtocol, Rewriting, Striping, Tuning,
    decide,
};
use pario_types::{Component, Placement, Storage};

use Direction::{Read, Write};

/// How the ranks' pieces are arranged.
#[derive(Clone, Copy)]
enum Pattern {
    /// Pieces of this length, interleaved by rank.
    Interleaved(u64),
    /// The same, with gaps as long as the pieces.
    Holed(u64),
    /// One contiguous range of this length per rank.
    Apart(u64),
    /// The same, in descending rank order.
    Backwards(u64),
    /// All data in two distant clusters.
    Clusters,
    /// A contiguous range of this length for rank 0, nothing for the others.
    First(u64),
    /// No data.
    Empty,
}

use Pattern::{Apart, Backwards, Clusters, Empty, First, Holed, Interleaved};

const PIECES: u64 = 64;

fn accesses(pattern: Pattern, ranks: u64) -> Vec<Access> {
    let byte = Datatype::basic(Basic::Byte);
    let strided = |rank: u64, len: u64, step: u64| {
        let block = Datatype::contiguous(len, &byte).unwrap();
        let tile = Datatype::resized(&block, 0, (step * ranks) as i64).unwrap();
        Access::new(rank * step, tile.layout().clone(), 0, len * PIECES).unwrap()
    };
    let dense = |at: u64, len: u64| {
        let layout = byte.layout().clone();
        Access::new(at, layout, 0, len).unwrap()
    };
    let access = |rank: u64| match pattern {
        Interleaved(len) => strided(rank, len, len),
        Holed(len) => strided(rank, len, 2 * len),
        Apart(len) => dense(rank * len, len),
        Backwards(len) => dense((ranks - rank) * len, len),
        Clusters => match rank % 8 {
            0 => dense((1 << 40) + rank * 100, 100),
            _ => dense(rank * 100, 100),
        },
        First(len) => dense(0, if rank == 0 { len } else { 0 }),
        Empty => dense(0, 0),
    };
    (0..ranks).map(access).collect()
}

/// A machine and a file system.
#[derive(Clone, Copy)]
enum System {
    /// One node, a local file system.
    Local,
    /// The same with files in memory (tmpfs).
    InMemory,
    /// Four nodes, stripes of 1 MiB on four servers that manage locks, client
    /// in the kernel (Lustre).
    ServerLocks,
    /// The same with token-based locks (GPFS).
    TokenLocks,
    /// Four nodes, client in the kernel, no locks, nothing known of the servers
    /// (NFS).
    Network,
    /// Four nodes, client in each process, stripes on eight servers.
    UserClient,
}

use System::{InMemory, Local, Network, ServerLocks, TokenLocks, UserClient};

fn facts(system: System, ranks: u64) -> Facts {
    let mut facts = Facts::one_node(ranks as usize);
    let spread = || {
        (0..ranks as u32)
            .map(|rank| rank * 4 / ranks as u32)
            .collect()
    };
    let stripes = |count| {
        Some(Striping {
            unit: 1 << 20,
            count,
        })
    };
    match system {
        Local => {}
        InMemory => facts.in_memory = true,
        ServerLocks | TokenLocks => {
            facts.nodes = spread();
            facts.client = Client::Kernel;
            facts.striping = stripes(4);
            facts.lock_granularity = Some(1 << 20);
            facts.lock_protocol = match system {
                TokenLocks => LockProtocol::Token,
                _ => LockProtocol::Server,
            };
        }
        Network => {
            facts.nodes = spread();
            facts.client = Client::Kernel;
        }
        UserClient => {
            facts.nodes = spread();
            facts.striping = stripes(8);
            facts.client = Client::Library;
        }
    }
    facts
}

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// Direction, pattern, ranks, system; then algorithm, partition and exchange.
/// The partition is given only where the algorithm uses one.
type Line = (
    Direction,
    Pattern,
    u64,
    System,
    &'static str,
    &'static str,
    &'static str,
);

#[rustfmt::skip]
const TABLE: &[Line] = &[
    // One node, the kernel's own file system.
    (Write, Interleaved(8),         2, Local, "two-phase", "aligned", "shared"),
    (Write, Interleaved(64),        4, Local, "two-phase", "aligned", "shared"),
    (Read,  Interleaved(8),         2, Local, "two-phase", "", "shared"),
    (Read,  Interleaved(8),         8, Local, "two-phase", "aligned", "shared"),
    (Write, Interleaved(4 * KIB),   4, Local, "two-phase", "", "shared"),
    (Write, Interleaved(128 * KIB), 4, Local, "two-phase", "", "shared"),
    (Write, Interleaved(256 * KIB), 4, Local, "individual", "", "shared"),
    (Write, Interleaved(8 * KIB),   4, InMemory, "two-phase", "", "shared"),
    (Write, Interleaved(16 * KIB),  4, InMemory, "individual", "", "shared"),
    (Write, Interleaved(32 * KIB),  8, InMemory, "two-phase", "", "shared"),
    (Write, Interleaved(64 * KIB),  8, InMemory, "individual", "", "shared"),
    (Read,  Interleaved(2 * KIB),   4, Local, "two-phase", "", "shared"),
    (Read,  Interleaved(4 * KIB),   4, Local, "two-phase", "", "shared"),
    (Read,  Interleaved(8 * KIB),   4, Local, "individual", "", "shared"),
    (Read,  Interleaved(4 * MIB),   4, Local, "individual", "", "shared"),
    (Write, Interleaved(8),         1, Local, "individual", "", "shared"),
    (Read,  First(64 * MIB),        4, Local, "individual", "", "shared"),
    (Read,  First(64 * MIB),        4, InMemory, "two-phase", "", "shared"),
    (Read,  First(64 * KIB),        4, InMemory, "individual", "", "shared"),
    (Write, First(64 * MIB),        4, Local, "individual", "", "shared"),
    (Write, Holed(256),             4, Local, "individual", "", "shared"),
    (Read,  Holed(256),             4, Local, "two-phase", "", "shared"),
    (Write, Empty,                  4, Local, "individual", "", "shared"),
    (Write, Clusters,              16, Local, "two-phase", "balanced", "shared"),
    // Servers manage locks: cyclic for writes, never for reads.
    (Write, Interleaved(64),       16, ServerLocks, "two-phase", "group-cyclic", "two-layer"),
    (Write, Interleaved(64 * KIB), 16, ServerLocks, "two-phase", "group-cyclic", "two-layer"),
    (Write, Interleaved(64),        4, ServerLocks, "two-phase", "group-cyclic", "messages"),
    (Write, Interleaved(4 * MIB),  16, ServerLocks, "two-phase", "group-cyclic", "two-layer"),
    (Read,  Interleaved(64),       16, ServerLocks, "two-phase", "neighbours", "two-layer"),
    (Read,  Interleaved(64),        4, ServerLocks, "two-phase", "aligned", "messages"),
    // Every node would read the data of all; large pieces are worth a request.
    (Read,  Interleaved(4 * KIB),  16, ServerLocks, "two-phase", "neighbours", "two-layer"),
    (Read,  Interleaved(4 * MIB),  16, ServerLocks, "individual", "", "two-layer"),
    (Write, Apart(4 * MIB),        16, ServerLocks, "individual", "", "two-layer"),
    // Appended pieces that cut a stripe (FLASH): its lock would change hands.
    (Write, Apart(20 * MIB + KIB), 16, ServerLocks, "two-phase", "group-cyclic", "two-layer"),
    (Write, Apart(20 * MIB + KIB),  1, ServerLocks, "individual", "", "shared"),
    // Token holders manage locks: aligned for writes.
    (Write, Interleaved(64),       16, TokenLocks, "two-phase", "aligned", "two-layer"),
    (Write, Interleaved(64 * KIB), 16, TokenLocks, "two-phase", "aligned", "two-layer"),
    (Write, Interleaved(4 * MIB),  16, TokenLocks, "two-phase", "aligned", "two-layer"),
    (Read,  Interleaved(64),        4, TokenLocks, "two-phase", "aligned", "messages"),
    (Write, Apart(20 * MIB + KIB), 16, TokenLocks, "two-phase", "aligned", "two-layer"),
    (Write, Apart(4 * MIB),        16, TokenLocks, "individual", "", "two-layer"),
    // The client is each node's kernel, but the servers are elsewhere.
    (Write, Interleaved(64 * KIB), 16, Network, "two-phase", "neighbours", "two-layer"),
    (Read,  Interleaved(64 * KIB), 16, Network, "two-phase", "neighbours", "two-layer"),
    (Write, Interleaved(2 * MIB),  16, Network, "individual", "", "two-layer"),
    (Write, Apart(20 * MIB + KIB), 16, Network, "individual", "", "two-layer"),
    // Each process is a client of the servers.
    (Write, Interleaved(64),       16, UserClient, "two-phase", "aligned", "two-layer"),
    (Read,  Interleaved(64),       16, UserClient, "two-phase", "aligned", "two-layer"),
    (Write, Interleaved(4 * MIB),  16, UserClient, "individual", "", "two-layer"),
    (Write, Apart(4 * MIB),        16, UserClient, "individual", "", "two-layer"),
    (Read,  Backwards(64 * KIB),   16, UserClient, "two-phase", "aligned", "two-layer"),
];

#[test]
fn selection_follows_the_table() {
    for (index, (direction, pattern, ranks, system, algorithm, partition, exchange)) in
        TABLE.iter().enumerate()
    {
        let accesses = accesses(*pattern, *ranks);
        let facts = facts(*system, *ranks);
        let (tuning, history) = (Tuning::default(), History::default());
        let case = Case::new(*direction, &accesses, &facts, &tuning, &history);
        let decision = decide(&case);
        let why = || format!("line {index}:\n{decision}");
        assert_eq!(decision.algorithm.name(), *algorithm, "{}", why());
        assert_eq!(decision.exchange.name(), *exchange, "{}", why());
        if !partition.is_empty() {
            assert_eq!(decision.partition.name(), *partition, "{}", why());
        }
    }
}

/// If holes may be written back, windows are contiguous.
#[test]
fn writes_with_rewritable_holes_are_aggregated() {
    let accesses = accesses(Holed(256), 4);
    let facts = facts(Local, 4);
    let tuning = Tuning {
        rewriting: Rewriting::Allowed,
        ..Tuning::default()
    };
    let history = History::default();
    let decision = decide(&Case::new(Write, &accesses, &facts, &tuning, &history));
    assert_eq!(decision.algorithm.name(), "two-phase", "{decision}");
}

/// Pieces are large compared with what is copied in the time of a call.
#[test]
fn large_pieces_depend_on_the_machine() {
    let facts = facts(InMemory, 4);
    let history = History::default();
    let algorithm = |direction, bytes, call_bytes| {
        let accesses = accesses(Interleaved(bytes), 4);
        let tuning = Tuning {
            call_bytes,
            ..Tuning::default()
        };
        let case = Case::new(direction, &accesses, &facts, &tuning, &history);
        decide(&case).algorithm.name().to_owned()
    };
    for call_bytes in [4 << 10, 8 << 10, 16 << 10] {
        assert_eq!(algorithm(Read, call_bytes, call_bytes), "individual");
        assert_eq!(algorithm(Read, call_bytes - 1, call_bytes), "two-phase");
        assert_eq!(algorithm(Write, 2 * call_bytes, call_bytes), "individual");
        assert_eq!(algorithm(Write, call_bytes, call_bytes), "two-phase");
    }
}

/// A lease takes as long as writing some hundred pieces.
#[test]
fn a_lease_is_worth_its_time_in_large_writes_with_holes() {
    let facts = facts(Local, 4);
    let tuning = Tuning {
        rewriting: Rewriting::WithLease,
        ..Tuning::default()
    };
    let history = History::default();
    let algorithm = |accesses: &[Access]| {
        let case = Case::new(Write, accesses, &facts, &tuning, &history);
        (decide(&case).algorithm.name(), case.is_worth_lease())
    };
    assert_eq!(algorithm(&accesses(Holed(2048), 4)), ("two-phase", true));
    assert_eq!(algorithm(&accesses(Holed(256), 4)), ("individual", false));
    assert!(!algorithm(&accesses(Interleaved(2048), 4)).1, "no holes");
}

/// Methods for long pieces, where an exchange does not pay off.
#[test]
fn stripe_sized_pieces_need_no_merging() {
    let mut facts = facts(UserClient, 16);
    facts.striping = Some(Striping {
        unit: 64 * KIB,
        count: 8,
    });
    let (tuning, history) = (Tuning::default(), History::default());
    for (pattern, expected) in [
        (Apart(128 * KIB), "resonant"),
        (Backwards(128 * KIB), "dynamic-segmentation"),
        (Interleaved(128 * KIB), "dynamic-segmentation"),
        (Interleaved(KIB), "two-phase"),
    ] {
        let accesses = accesses(pattern, 16);
        let case = Case::new(Write, &accesses, &facts, &tuning, &history);
        let decision = decide(&case);
        assert_eq!(decision.algorithm.name(), expected, "{decision}");
    }
}

#[test]
fn requested_methods_win_where_usable() {
    let accesses = accesses(Interleaved(64), 4);
    let facts = facts(Local, 4);
    let history = History::default();
    let decided = |tuning: &Tuning| {
        let case = Case::new(Write, &accesses, &facts, tuning, &history);
        let decision = decide(&case);
        (
            decision.algorithm.name(),
            decision.partition.name(),
            decision.exchange.name(),
        )
    };
    let asked = |algorithm: &str, partition: &str, exchange: &str| Tuning {
        algorithm: Some(algorithm.into()),
        partition: Some(partition.into()),
        exchange: Some(exchange.into()),
        ..Tuning::default()
    };
    assert_eq!(
        decided(&asked("two-phase", "balanced", "alltoall")),
        ("two-phase", "balanced", "alltoall")
    );
    // Striping is unknown, a write cannot be sieved privately, there is no such
    // method.
    assert_eq!(
        decided(&asked("resonant", "by-server", "two-layer")),
        ("two-phase", "aligned", "two-layer")
    );
    assert_eq!(
        decided(&asked("private-sieve", "static-cyclic", "telepathy")),
        ("two-phase", "static-cyclic", "shared")
    );
}

/// Methods that assign servers to ranks used to take the striping of the largest part for all of
/// it.
#[test]
fn methods_by_server_need_one_striping() {
    let striping = |count| Striping {
        unit: 1 << 20,
        count,
    };
    let component = |file, count| Component {
        file,
        striping: striping(count),
        storage: Storage::Unknown,
    };
    let first = 8 << 20;
    let placement = Placement::new(vec![component(0..first, 1), component(first..u64::MAX, 4)]);
    let facts = Facts {
        striping: Some(striping(4)),
        placement,
        lock_granularity: Some(1 << 20),
        lock_protocol: LockProtocol::Server,
        client: Client::Kernel,
        nodes: vec![0, 0, 1, 1],
        ..Facts::one_node(4)
    };
    let byte = Datatype::basic(Basic::Byte);
    let (tuning, history) = (Tuning::default(), History::default());
    for (start, is_fit) in [(0, true), (first - 100, false), (first, true)] {
        let access = |rank: u64| Access::new(start + rank * 100, byte.layout().clone(), 0, 100);
        let accesses: Vec<_> = (0..4).map(|rank| access(rank).unwrap()).collect();
        let case = Case::new(Write, &accesses, &facts, &tuning, &history);
        let decision = decide(&case);
        let answers = [&decision.algorithms, &decision.partitions].map(|it| &it.candidates);
        for (name, fitness) in answers.into_iter().flatten() {
            let by_server = [
                "by-server",
                "file-layout",
                "static-cyclic",
                "one-per-server",
                "resonant-agents",
                "resonant-timed",
            ];
            if by_server.contains(name) {
                let found = fitness.priority().is_some();
                assert_eq!(found, is_fit, "{name} at {start}: {}", fitness.reason());
            }
        }
        assert_eq!(decision.partition.name(), "group-cyclic");
    }
}
