//! Random calls: who is where, who moves what, and in which sizes.

use std::{ops::Range, sync::Arc};

use fastrand::Rng;
use pario_exchange::{Accesses, Direction, Groups, Limits, Rank, Realm, Setting};

/// Accesses as lists of bytes, and realms as lists of cuts.
#[derive(Debug)]
pub(crate) struct Bytes {
    /// The bytes of the file that each rank moves, ascending.
    pub(crate) offsets: Vec<Vec<u64>>,
    /// The same for each rank and realm.
    parts: Vec<Vec<Vec<u64>>>,
    aggregators: Vec<Rank>,
    /// Stripes of this length go to the realms in turn.
    stripe: u64,
    pub(crate) end: u64,
}

impl Bytes {
    fn new(offsets: Vec<Vec<u64>>, aggregators: Vec<Rank>, stripe: u64, end: u64) -> Bytes {
        let realms = aggregators.len();
        let parts = offsets.iter().map(|offsets| {
            let mut parts = vec![Vec::new(); realms];
            for offset in offsets {
                parts[(offset / stripe) as usize % realms].push(*offset);
            }
            parts
        });
        Bytes {
            parts: parts.collect(),
            offsets,
            aggregators,
            stripe,
            end,
        }
    }

    /// A rank's bytes in a realm and range.
    pub(crate) fn part(&self, rank: Rank, realm: Realm, file: Range<u64>) -> &[u64] {
        let part = &self.parts[rank.index()][realm.0 as usize];
        let below = |byte: u64| part.partition_point(|offset| *offset < byte);
        let start = below(file.start);
        &part[start..below(file.end).max(start)]
    }

    /// The place of a byte among a rank's data.
    pub(crate) fn index(&self, rank: Rank, offset: u64) -> usize {
        self.offsets[rank.index()].partition_point(|other| *other < offset)
    }

    /// The realm's bytes below one of the file.
    fn owned_below(&self, realm: Realm, byte: u64) -> u64 {
        let turn = self.stripe * self.aggregators.len() as u64;
        let rest = (byte % turn).saturating_sub(u64::from(realm.0) * self.stripe);
        byte / turn * self.stripe + rest.min(self.stripe)
    }
}

impl Accesses for Bytes {
    fn packing(&self) -> Packing {
        match self.end % 4 {
            0 => Packing::Never,
            _ => Packing::Sparse,
        }
    }

    fn realms(&self) -> u32 {
        self.aggregators.len() as u32
    }

    fn aggregator(&self, realm: Realm) -> Rank {
        self.aggregators[realm.0 as usize]
    }

    fn realms_of(&self, rank: Rank) -> Vec<Realm> {
        let realms = (0..self.realms()).map(Realm);
        realms
            .filter(|realm| self.aggregator(*realm) == rank)
            .collect()
    }

    fn hull(&self, _: Realm) -> Range<u64> {
        0..self.end
    }

    fn realm_bytes(&self, realm: Realm, file: Range<u64>) -> u64 {
        self.owned_below(realm, file.end) - self.owned_below(realm, file.start)
    }

    fn realm_end(&self, realm: Realm, from: u64, bytes: u64) -> u64 {
        let target = self.owned_below(realm, from) + bytes;
        let (round, rest) = ((target - 1) / self.stripe, (target - 1) % self.stripe);
        let stripe = round * self.aggregators.len() as u64 + u64::from(realm.0);
        (stripe * self.stripe + rest + 1).min(self.end)
    }

    fn contributors(&self, _: Realm) -> impl Iterator<Item = Rank> + '_ {
        (0..self.offsets.len() as u32).map(Rank)
    }

    fn bytes(&self, rank: Rank, realm: Realm, file: Range<u64>) -> u64 {
        self.part(rank, realm, file).len() as u64
    }

    fn next(&self, rank: Rank, realm: Realm, at: u64) -> Option<u64> {
        self.part(rank, realm, at..u64::MAX).first().copied()
    }

    fn last(&self, rank: Rank, realm: Realm, at: u64) -> Option<u64> {
        self.part(rank, realm, 0..at).last().copied()
    }
}

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

/// A call of all ranks.
#[derive(Debug)]
pub(crate) struct Case {
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
        let accesses = accesses(random, ranks, &limits);
        let fault = match (random.u8(0..8), direction) {
            (0 | 1, _) => Fault::Failures,
            (2, Direction::Read) => Fault::End(random.u64(0..=accesses.end)),
            (3, _) if random.u8(0..8) == 0 => Fault::Argument(Rank(random.u32(0..ranks))),
            (4, _) if random.u8(0..8) == 0 => Fault::Alone,
            _ => Fault::None,
        };
        let setting = Arc::new(Setting {
            direction,
            root: Rank(random.u32(0..ranks)),
            groups: Arc::new(groups),
            limits,
        });
        Case {
            setting,
            accesses: Arc::new(accesses),
            fault,
        }
    }

    /// One buffer of each kind, and every rank aggregates and sends.
    pub(crate) fn minimal(random: &mut Rng, ranks: u32) -> Case {
        let mut case = Case::random(random, ranks);
        let limits = &mut Arc::make_mut(&mut case.setting).limits;
        (limits.depth, limits.staging, limits.node_buffers) = (1, 1, 1);
        limits.eager_bytes = 0;
        let offsets = case.accesses.offsets.clone();
        let stripe = limits.unit * random.u64(1..5);
        let aggregators = (0..ranks).map(Rank).collect();
        case.accesses = Arc::new(Bytes::new(offsets, aggregators, stripe, case.accesses.end));
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

fn limits(random: &mut Rng, groups: &Groups) -> Limits {
    let largest = (0..groups.count()).map(|group| groups.members(group).len() as u64);
    let largest = largest.max().unwrap_or(1);
    let first_tag = random.u16(0..32760);
    Limits {
        window_bytes: random.u64(1..60),
        slice_bytes: largest + random.u64(0..50) * random.u64(0..2),
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

fn accesses(random: &mut Rng, ranks: u32, limits: &Limits) -> Bytes {
    let len = random.u64(0..80);
    let sparse = match random.u8(0..4) {
        0 => random.u64(2..40),
        _ => 1,
    };
    let kind = random.u8(0..6);
    let piece = random.u64(1..9);
    let offsets = (0..u64::from(ranks)).map(|rank| {
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
    let offsets: Vec<Vec<u64>> = offsets.collect();
    let end = offsets.iter().flatten().max().map_or(1, |last| last + 1);
    let count = random.u64(1..=4);
    let aggregators = (0..count).map(|_| Rank(random.u32(0..ranks)));
    let aggregators = aggregators.collect();
    let stripe = match random.bool() {
        true => end.div_ceil(count).next_multiple_of(limits.unit),
        false => limits.unit * random.u64(1..20),
    };
    Bytes::new(offsets, aggregators, stripe, end + random.u64(0..3))
}
