//! Individual: every rank moves its own data, as in an independent call.

use super::{Algorithm, Decisions};
use crate::{Access, Case, Client, Direction, Fitness, LockProtocol, Plan, Rewriting, coverage};

/// Every rank for itself.
#[derive(Debug)]
pub struct Individual;

/// Pieces of this size cost a system call less than they cost to exchange,
/// where the file system's client is the node's kernel.
const LARGE_PIECE_BYTES: u64 = 4096;
/// The same for writes where the pieces of ranks take turns: writers wait for
/// each other at every one.
const LARGE_WRITE_BYTES: u64 = 16 << 10;
/// The same for reads on one node that want nearly all of what lies there.
const LARGE_READ_BYTES: u64 = 8 << 10;
/// Windows that hold less data than this are mostly holes, read for nothing
/// or written around.
const SPARSE_PERCENT: u64 = 25;
/// Smaller pieces cost more as calls than the holes between them.
const SPARSE_PIECE_BYTES: u64 = 512;

/// A reader keeps about three quarters of what two copies through windows move
/// together: with more than that of the data it is better helped.
const LOPSIDED_PERCENT: u64 = 75;
/// Where less of the region is data, windows would read too much in vain.
const DENSE_PERCENT: u64 = 75;
/// Less is read before others could help.
const LOPSIDED_BYTES: u64 = 4 << 20;

/// The part of the file that is looked at to see whether pieces touch.
const SAMPLE_BYTES: u64 = 64 << 10;
/// Windows must make so many pieces one for their copies to be worth it.
const MERGED_MIN: u64 = 2;

impl Algorithm for Individual {
    fn name(&self) -> &'static str {
        "individual"
    }

    fn suit(&self, case: &Case<'_>) -> Fitness {
        let pattern = case.pattern();
        if !case.is_increasing() {
            return Fitness::suits(
                100,
                "some rank's bytes do not ascend: no window can hold them",
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
            Client::Library => of_servers(case, piece),
            Client::Kernel if meets_in_locks(case, piece) => Fitness::suits(
                5,
                format!("pieces of {piece} bytes of several nodes would share locks"),
            ),
            Client::Kernel if is_lopsided(case) => Fitness::suits(
                20,
                "one rank would read nearly everything while the others of the node stand idle",
            ),
            Client::Kernel if piece >= large_piece(case) => Fitness::suits(
                80,
                format!("pieces of {piece} bytes on average go straight to the kernel"),
            ),
            Client::Kernel if is_sparse(case) => Fitness::suits(
                80,
                format!("pieces of {piece} bytes with wide gaps would leave windows mostly empty"),
            ),
            Client::Kernel if stays_apart(case) => Fitness::suits(
                80,
                format!(
                    "pieces of {piece} bytes do not touch each other: windows would be written piece by piece as well"
                ),
            ),
            Client::Kernel => Fitness::suits(10, format!("pieces of {piece} bytes are many calls")),
        }
    }

    fn plan(&self, _case: &Case<'_>, _choices: &Decisions<'_>) -> Plan {
        Plan::Individual
    }
}

/// From which size on a piece is better moved by itself.
fn large_piece(case: &Case<'_>) -> u64 {
    let pattern = case.pattern();
    match (pattern.is_interleaved, case.direction) {
        (true, Direction::Write) => LARGE_WRITE_BYTES,
        (true, Direction::Read) if pattern.nodes == 1 && is_mostly_data(case) => LARGE_READ_BYTES,
        _ => LARGE_PIECE_BYTES,
    }
}

/// Whether one rank wants nearly all of what is read on a node, and more than
/// is over before others could help.
fn is_lopsided(case: &Case<'_>) -> bool {
    let most = case.accesses.iter().map(Access::len).max().unwrap_or(0);
    case.direction == Direction::Read
        && case.pattern().nodes == 1
        && is_mostly_data(case)
        && most >= LOPSIDED_BYTES
        && u128::from(most) * 100 > u128::from(case.bytes()) * u128::from(LOPSIDED_PERCENT)
}

/// Whether windows would hold little that no one wants.
fn is_mostly_data(case: &Case<'_>) -> bool {
    let pattern = case.pattern();
    u128::from(pattern.bytes) * 100 >= u128::from(pattern.region_bytes) * u128::from(DENSE_PERCENT)
}

/// Whether windows would be mostly holes.
fn is_sparse(case: &Case<'_>) -> bool {
    let pattern = case.pattern();
    let data = u128::from(pattern.bytes) * 100;
    pattern.piece_bytes >= SPARSE_PIECE_BYTES
        && data < u128::from(pattern.region_bytes) * u128::from(SPARSE_PERCENT)
}

/// Whether windows would be written in about as many pieces as the ranks
/// have, seen in a part of the file where all of them have some.
fn stays_apart(case: &Case<'_>) -> bool {
    if case.direction == Direction::Read || case.tuning.rewriting == Rewriting::Allowed {
        return false;
    }
    let region = case.region();
    let used = || case.accesses.iter().filter(|access| !access.is_empty());
    let together = used().map(|access| access.span().start).max();
    let start = together
        .filter(|start| used().all(|access| *start < access.span().end))
        .unwrap_or(region.start);
    let sample = start..start.saturating_add(SAMPLE_BYTES).min(region.end);
    let pieces: u64 = used()
        .map(|access| access.stats_in(sample.clone()).pieces)
        .sum();
    let merged = coverage::covered(used(), sample).len() as u64;
    pieces < merged.saturating_mul(MERGED_MIN)
}

/// Where each process is a client of the servers, a call is a message to
/// them: it must carry enough to saturate the process.
fn of_servers(case: &Case<'_>, piece: u64) -> Fitness {
    match piece >= case.tuning.saturation_bytes && !meets_in_locks(case, piece) {
        true => Fitness::suits(
            75,
            format!("pieces of {piece} bytes saturate every process by themselves"),
        ),
        false => Fitness::suits(5, "the file system prefers few large requests"),
    }
}

/// Whether writes of different nodes would wait for each other's locks.
fn meets_in_locks(case: &Case<'_>, piece: u64) -> bool {
    case.direction == Direction::Write
        && case.facts.lock_protocol != LockProtocol::None
        && case.pattern().nodes > 1
        && piece < case.boundary()
}
