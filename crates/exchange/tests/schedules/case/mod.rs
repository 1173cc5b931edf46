//! Random calls: who is where, who moves what, and in which sizes.

mod bytes;

use std::sync::Arc;

use fastrand::Rng;
use pario_exchange::{Direction, Entry, Groups, Limits, Packing, Rank, Realm, Setting};

pub(crate) use bytes::Bytes;
use bytes::{Division, Hull};

/// What happens to the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    /// Some transfers fail.
    Failures,
    /// The file ends here. Reads only.
    End(u64),
    /// A rank's arguments are wrong.
    Argument(Rank),
    /// None; and every rank moves its own data.
    Alone,
}

/// How the ranks start a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// They exchange entries with these flags.
    Entry { flags: u8 },
    /// They know the plan.
    Planned,
}

/// A call of all ranks.
#[derive(Debug)]
pub(crate) struct Case {
    pub(crate) start: Start,
    pub(crate) setting: Arc<Setting>,
    pub(crate) accesses: Arc<Bytes>,
    pub(crate) fault: Fault,
}

impl Case {
    pub(crate) fn random(random: &mut Rng, ranks: u32) -> Case {
        let nodes = nodes(random, ranks);
        let groups = match random.u8(0..6) {
            0 => Groups::alone(ranks),
            1 => Groups::by_node(&nodes).without_layer(),
            _ => Groups::by_node(&nodes),
        };
        let direction = match random.bool() {
            true => Direction::Write,
            false => Direction::Read,
        };
        let limits = limits(random, &groups);
        let accesses = accesses(random, &groups, &limits);
        let fault = match (random.u8(0..8), direction) {
            (0 | 1, _) => Fault::Failures,
            (2, Direction::Read) => Fault::End(random.u64(0..=accesses.end)),
            (3, _) if random.u8(0..8) == 0 => Fault::Argument(Rank(random.u32(0..ranks))),
            (4, _) if random.u8(0..8) == 0 => Fault::Alone,
            _ => Fault::None,
        };
        let start = match (random.u8(0..8), fault) {
            (0, _) => Start::Entry {
                flags: Entry::NOT_EAGER,
            },
            (1, Fault::None | Fault::Failures | Fault::End(_)) => Start::Planned,
            _ => Start::Entry { flags: 0 },
        };
        let setting = Arc::new(Setting {
            direction,
            root: Rank(random.u32(0..ranks)),
            groups: Arc::new(groups),
            limits,
        });
        Case {
            start,
            setting,
            accesses: Arc::new(accesses),
            fault,
        }
    }

    /// Transfers fail while later windows are exchanged in many short slices,
    /// some granted and some not.
    pub(crate) fn failing(random: &mut Rng, ranks: u32) -> Case {
        let mut case = Case::random(random, ranks);
        let setting = Arc::make_mut(&mut case.setting);
        setting.limits.depth = 3;
        setting.limits.slice_bytes = largest_group(&setting.groups);
        setting.limits.eager_bytes = 0;
        case.fault = Fault::Failures;
        case
    }

    /// One buffer of each kind, and every rank aggregates and sends.
    pub(crate) fn minimal(random: &mut Rng, ranks: u32) -> Case {
        let mut case = Case::random(random, ranks);
        let limits = &mut Arc::make_mut(&mut case.setting).limits;
        (limits.depth, limits.staging, limits.node_buffers) = (1, 1, 1);
        limits.eager_bytes = 0;
        let offsets = case.accesses.offsets.clone();
        let division = Division::Striped(limits.unit * random.u64(1..5));
        let aggregators = (0..ranks).map(Rank).collect();
        let end = case.accesses.end;
        case.accesses = Arc::new(Bytes::new(offsets, aggregators, division, end));
        case
    }
}

/// Placements: blocks, interleaved, 1 + the rest, one node, one rank per
/// node, any.
fn nodes(random: &mut Rng, ranks: u32) -> Vec<u32> {
    let count = random.u32(1..=ranks.min(4));
    let kind = random.u8(0..6);
    (0..ranks)
        .map(|rank| match kind {
            0 => rank * count / ranks,
            1 => rank % count,
            2 => rank.min(1),
            3 => 0,
            4 => rank,
            _ => random.u32(0..count),
        })
        .collect()
}

fn largest_group(groups: &Groups) -> u64 {
    let sizes = (0..groups.count()).map(|group| groups.members(group).len() as u64);
    sizes.max().unwrap_or(1)
}

fn limits(random: &mut Rng, groups: &Groups) -> Limits {
    let first_tag = random.u16(0..32760);
    Limits {
        window_bytes: random.u64(1..60),
        slice_bytes: largest_group(groups) + random.u64(0..50) * random.u64(0..2),
        depth: random.u32(1..4),
        staging: random.u32(1..4),
        node_buffers: random.u32(1..4),
        unit: [1, 1, 4, 7, 16][random.usize(0..5)],
        eager_bytes: match random.u8(0..4) {
            0 => random.u64(1..300),
            _ => 0,
        },
        tags: first_tag..first_tag + random.u16(1..8),
    }
}

fn accesses(random: &mut Rng, groups: &Groups, limits: &Limits) -> Bytes {
    let ranks = groups.ranks();
    let offsets = offsets(random, ranks);
    let end = offsets.iter().flatten().max().map_or(1, |last| last + 1);
    let count = random.u32(1..=4);
    let aggregators = aggregators(random, groups, count);
    let even = end.div_ceil(count.into()).next_multiple_of(limits.unit);
    let division = match random.u8(0..8) {
        0 => Division::Members((0..ranks).map(|_| Realm(random.u32(0..count))).collect()),
        1..5 => Division::Striped(even),
        _ => Division::Striped(limits.unit * random.u64(1..20)),
    };
    let mut bytes = Bytes::new(offsets, aggregators, division, end + random.u64(0..3));
    if random.bool() {
        bytes.hull = Hull::Tight;
    }
    if random.u8(0..4) == 0 {
        bytes.packing = Packing::Never;
    }
    bytes
}

/// The bytes of each rank.
fn offsets(random: &mut Rng, ranks: u32) -> Vec<Vec<u64>> {
    let len = random.u64(0..80) / u64::from(ranks.div_ceil(24));
    let sparse = match random.u8(0..4) {
        0 => random.u64(2..40),
        _ => 1,
    };
    let kind = random.u8(0..6);
    let piece = random.u64(1..9);
    let has_idle_ranks = random.u8(0..6) == 0;
    let offsets = (0..u64::from(ranks)).map(|rank| {
        if has_idle_ranks && random.bool() {
            return Vec::new();
        }
        let dense: Vec<u64> = match kind {
            // Blocks, one after the other.
            0 => (rank * len..(rank + 1) * len).collect(),
            // Cyclic pieces.
            1 => (0..len)
                .map(|k| (k / piece * u64::from(ranks) + rank) * piece + k % piece)
                .collect(),
            // All the same.
            2 => (0..len).collect(),
            // One rank has everything.
            3 if rank > 0 => Vec::new(),
            3 => (0..len * 3).collect(),
            // Halos: blocks that overlap.
            4 => (rank * len / 2..rank * len / 2 + len).collect(),
            _ => {
                let density = random.u64(1..9);
                let reach = len * u64::from(ranks.min(4));
                (0..reach).filter(|_| random.u64(0..density) == 0).collect()
            }
        };
        let spread = dense
            .into_iter()
            .map(|k| (k / piece) * piece * sparse + k % piece);
        spread.collect::<Vec<u64>>()
    });
    offsets.collect()
}

/// Any ranks, several realms for some; or those that are alone on their node.
fn aggregators(random: &mut Rng, groups: &Groups, count: u32) -> Vec<Rank> {
    let all: Vec<Rank> = (0..groups.ranks()).map(Rank).collect();
    let is_alone = |rank: &Rank| groups.members(groups.of(*rank)).len() == 1;
    let alone: Vec<Rank> = all.iter().copied().filter(is_alone).collect();
    let candidates = match alone.is_empty() || random.u8(0..4) > 0 {
        true => all,
        false => alone,
    };
    let choose = |_| candidates[random.usize(0..candidates.len())];
    (0..count).map(choose).collect()
}
