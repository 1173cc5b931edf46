//! Individual: every rank moves its own data, as in an independent call.

use super::{Algorithm, Decisions};
use crate::{Access, Case, Client, Direction, Fitness, LockProtocol, Plan, coverage, locks};

/// Every rank moves its own data.
#[derive(Debug)]
pub struct Individual;

/// Pieces cost less as system calls than as an exchange, where the file system's
/// client is the node's kernel, from this part of the bytes on that are copied in the
/// time of a call.
const LARGE_PIECE_PART: u64 = 2;
/// The same for writes of interleaved pieces to files in memory, as a multiple: writers
/// wait for each other at every piece.
const LARGE_WRITE_CALLS: u64 = 2;
/// The same for more than [`FEW_WRITERS`].
const LARGE_WRITE_CALLS_OF_MANY: u64 = 8;
const FEW_WRITERS: usize = 4;
/// The same on other file systems, which hold their lock for longer: they also reserve
/// space, and allocate larger pages for longer writes.
const LARGE_STORED_WRITE_CALLS: u64 = 32;
/// The same for reads on one node that need nearly all of the region.
const LARGE_READ_CALLS: u64 = 1;
/// The same for reads from a local file system of ranks that exchange messages
/// (containers of one machine): its cache is nearer than the other ranks.
const LARGE_CACHED_READ_BYTES: u64 = 256;
/// With less data than this, windows are mostly holes that are read needlessly
/// or have to be written around.
const SPARSE_PERCENT: u64 = 25;
/// Pieces below this part of the bytes that are copied in the time of a call cost more
/// as calls than the holes between them.
const SPARSE_PIECE_PART: u64 = 16;

/// A single reader of a file in memory reaches about three quarters of the
/// throughput of two ranks that copy through windows, since its pages are small.
/// A rank with a larger share of the data than this benefits from help.
const LOPSIDED_PERCENT: u64 = 75;
/// With less data than this in the region, windows would read too much unneeded
/// data.
const DENSE_PERCENT: u64 = 75;
/// Smaller reads finish before other ranks could help.
const LOPSIDED_BYTES: u64 = 4 << 20;

/// Size of the file range that is sampled for adjacent pieces: at least so many
/// bytes and pieces.
const SAMPLE_BYTES: u64 = 64 << 10;
const SAMPLE_PIECES: u64 = 8;
/// Windows must merge at least this many pieces into one for the extra copies
/// to pay off.
const MERGED_MIN: u64 = 2;

impl Individual {
    /// Size from which a piece is better moved by itself, if the ranks' pieces are not interleaved
    /// and the file system's client is the node's kernel.
    pub fn piece_bytes_min(call_bytes: u64) -> u64 {
        call_bytes / LARGE_PIECE_PART
    }
}

impl Algorithm for Individual {
    fn name(&self) -> &'static str {
        "individual"
    }

    fn fitness(&self, case: &Case<'_>) -> Fitness {
        let pattern = case.pattern();
        if !case.is_increasing() {
            return Fitness::suits(
                100,
                "some rank's file offsets do not ascend, as windows require",
            );
        }
        if case.ranks() == 1 {
            return Fitness::suits(60, "there is only one rank");
        }
        let piece = pattern.piece_bytes;
        if piece == 0 {
            return Fitness::suits(90, "there is nothing to move");
        }
        match case.facts.client {
            Client::Kernel if locks::is_group_lockable(case) => Fitness::suits(
                82,
                format!("pieces of {piece} bytes are whole pages, written under a group lock"),
            ),
            Client::Library => with_library_client(case, piece),
            _ if contends_for_locks(case, piece) => Fitness::suits(
                5,
                format!(
                    "pieces of {piece} bytes on several nodes would contend for locks of {} bytes",
                    case.boundary_at(case.region().start)
                ),
            ),
            _ if is_lopsided(case) => Fitness::suits(
                20,
                "one rank would read nearly everything while the others are idle",
            ),
            _ if piece >= large_piece(case) => Fitness::suits(
                80,
                format!("pieces of {piece} bytes on average are large enough for a call each"),
            ),
            _ if is_sparse(case) => Fitness::suits(
                80,
                format!("pieces of {piece} bytes with wide gaps would leave windows mostly empty"),
            ),
            _ if has_isolated_pieces(case) => Fitness::suits(
                80,
                format!(
                    "pieces of {piece} bytes are not adjacent: windows would be written piece by piece too"
                ),
            ),
            Client::Kernel if pattern.nodes > 1 => Fitness::suits(
                10,
                format!("pieces of {piece} bytes need many requests to the servers"),
            ),
            _ => Fitness::suits(10, format!("pieces of {piece} bytes need many calls")),
        }
    }

    fn plan(&self, _case: &Case<'_>, _choices: &Decisions<'_>) -> Plan {
        Plan::Individual
    }
}

/// Size from which a piece is better moved by itself.
fn large_piece(case: &Case<'_>) -> u64 {
    let pattern = case.pattern();
    let call_bytes = case.tuning.call_bytes;
    let usual = Individual::piece_bytes_min(call_bytes);
    // The clients of several nodes would each request what lies between their
    // pieces too, or send requests that are too small.
    if case.facts.client == Client::Kernel && pattern.nodes > 1 && pattern.is_interleaved {
        return case.tuning.saturation_bytes;
    }
    if case.facts.client == Client::Local && pattern.nodes > 1 {
        return match case.direction {
            Direction::Read => LARGE_CACHED_READ_BYTES,
            Direction::Write => usual,
        };
    }
    match (pattern.is_interleaved, case.direction) {
        (true, Direction::Write) => {
            let calls = match (case.facts.in_memory, has_few_writers(case)) {
                (true, true) => LARGE_WRITE_CALLS,
                (true, false) => LARGE_WRITE_CALLS_OF_MANY,
                (false, _) => LARGE_STORED_WRITE_CALLS,
            };
            calls * call_bytes
        }
        (true, Direction::Read) if pattern.nodes == 1 && is_mostly_data(case) => {
            LARGE_READ_CALLS * call_bytes
        }
        _ => usual,
    }
}

fn has_few_writers(case: &Case<'_>) -> bool {
    let writers = case.accesses.iter().filter(|access| !access.is_empty());
    writers.take(FEW_WRITERS + 1).count() <= FEW_WRITERS
}

/// Whether one rank reads nearly all of the data on a node from a file in memory,
/// and enough of it for help to pay off.
fn is_lopsided(case: &Case<'_>) -> bool {
    let most = case.accesses.iter().map(Access::len).max().unwrap_or(0);
    case.direction == Direction::Read
        && case.facts.in_memory
        && case.pattern().nodes == 1
        && is_mostly_data(case)
        && most >= LOPSIDED_BYTES
        && u128::from(most) * 100 > u128::from(case.bytes()) * u128::from(LOPSIDED_PERCENT)
}

/// Whether windows would hold little unneeded data.
fn is_mostly_data(case: &Case<'_>) -> bool {
    let pattern = case.pattern();
    u128::from(pattern.bytes) * 100 >= u128::from(pattern.region_bytes) * u128::from(DENSE_PERCENT)
}

/// Whether windows would be mostly holes.
fn is_sparse(case: &Case<'_>) -> bool {
    let pattern = case.pattern();
    let data = u128::from(pattern.bytes) * 100;
    pattern.piece_bytes >= case.tuning.call_bytes / SPARSE_PIECE_PART
        && data < u128::from(pattern.region_bytes) * u128::from(SPARSE_PERCENT)
}

/// Whether windows would be written in about as many pieces as the ranks have.
/// Sampled where all ranks have data.
fn has_isolated_pieces(case: &Case<'_>) -> bool {
    if case.direction == Direction::Read || case.can_rewrite_holes() {
        return false;
    }
    let region = case.region();
    let used = || case.accesses.iter().filter(|access| !access.is_empty());
    let together = used().map(|access| access.span().start).max();
    let start = together
        .filter(|start| used().all(|access| *start < access.span().end))
        .unwrap_or(region.start);
    let bytes = SAMPLE_BYTES.max(case.pattern().piece_bytes.saturating_mul(SAMPLE_PIECES));
    let sample = start..start.saturating_add(bytes).min(region.end);
    let pieces: u64 = used()
        .map(|access| access.stats_in(sample.clone()).pieces)
        .sum();
    let merged = coverage::covered(used(), sample).len() as u64;
    pieces < merged.saturating_mul(MERGED_MIN)
}

/// If each process is a client of the servers, a call is a request to them,
/// which must be large enough to saturate the process.
fn with_library_client(case: &Case<'_>, piece: u64) -> Fitness {
    match piece >= case.tuning.saturation_bytes && !contends_for_locks(case, piece) {
        true => Fitness::suits(
            75,
            format!("pieces of {piece} bytes are enough to saturate a process"),
        ),
        false => Fitness::suits(5, "the file system prefers few large requests"),
    }
}

/// Whether writes of different nodes would contend for locks.
pub(super) fn contends_for_locks(case: &Case<'_>, piece: u64) -> bool {
    case.direction == Direction::Write
        && case.facts.lock_protocol != LockProtocol::None
        && case.pattern().nodes > 1
        // Locks are granted on ranges that are as long as possible, so that those of interleaved
        // pieces are in each other's way even if no piece shares a lock.
        && (piece < case.boundary_at(case.region().start) || case.pattern().is_interleaved || locks::are_shared(case))
}
