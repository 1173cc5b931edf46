//! Accesses as lists of bytes, and realms in several shapes.

use std::ops::Range;

use pario_exchange::{Accesses, Packing, Rank, Realm};

/// Which bytes belong to which realm.
#[derive(Clone, Debug)]
pub(super) enum Division {
    /// Stripes of this length are assigned to the realms round-robin.
    Striped(u64),
    /// The realm of each rank, which has all of its data. These realms overlap.
    Members(Vec<Realm>),
}

/// The range that a realm claims to lie in.
#[derive(Clone, Copy, Debug)]
pub(super) enum Hull {
    /// The whole file.
    Loose,
    /// From the realm's first byte to its last.
    Tight,
}

/// Accesses as lists of bytes.
#[derive(Debug)]
pub(crate) struct Bytes {
    /// The bytes of the file that each rank moves, ascending.
    pub(crate) offsets: Vec<Vec<u64>>,
    /// The same for each rank and realm.
    parts: Vec<Vec<Vec<u64>>>,
    aggregators: Vec<Rank>,
    division: Division,
    pub(super) hull: Hull,
    pub(super) packing: Packing,
    pub(crate) end: u64,
}

impl Bytes {
    pub(super) fn new(
        offsets: Vec<Vec<u64>>,
        aggregators: Vec<Rank>,
        division: Division,
        end: u64,
    ) -> Bytes {
        let realms = aggregators.len();
        let parts = offsets.iter().enumerate().map(|(rank, offsets)| {
            let mut parts = vec![Vec::new(); realms];
            for offset in offsets {
                let realm = match &division {
                    Division::Striped(stripe) => (offset / stripe) as usize % realms,
                    Division::Members(realm_of) => realm_of[rank].0 as usize,
                };
                parts[realm].push(*offset);
            }
            parts
        });
        Bytes {
            parts: parts.collect(),
            offsets,
            aggregators,
            division,
            hull: Hull::Loose,
            packing: Packing::Sparse,
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

    /// The number of a realm's bytes below a byte of the file.
    fn owned_below(&self, realm: Realm, byte: u64) -> u64 {
        let Division::Striped(stripe) = self.division else {
            return byte;
        };
        let round = stripe * self.aggregators.len() as u64;
        let rest = (byte % round).saturating_sub(u64::from(realm.0) * stripe);
        byte / round * stripe + rest.min(stripe)
    }

    /// The offset of a realm's byte.
    fn owned(&self, realm: Realm, index: u64) -> u64 {
        let Division::Striped(stripe) = self.division else {
            return index;
        };
        let number = index / stripe * self.aggregators.len() as u64 + u64::from(realm.0);
        number * stripe + index % stripe
    }
}

impl Accesses for Bytes {
    fn packing(&self) -> Packing {
        self.packing
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

    fn hull(&self, realm: Realm) -> Range<u64> {
        match (self.hull, self.owned_below(realm, self.end)) {
            (Hull::Loose, _) => 0..self.end,
            (Hull::Tight, 0) => self.end..self.end,
            (Hull::Tight, count) => self.owned(realm, 0)..self.owned(realm, count - 1) + 1,
        }
    }

    fn realm_bytes(&self, realm: Realm, file: Range<u64>) -> u64 {
        self.owned_below(realm, file.end) - self.owned_below(realm, file.start)
    }

    fn realm_end(&self, realm: Realm, from: u64, bytes: u64) -> u64 {
        let count = self.owned_below(realm, from) + bytes;
        (self.owned(realm, count - 1) + 1).min(self.hull(realm).end)
    }

    fn contributors(&self, realm: Realm) -> impl Iterator<Item = Rank> + '_ {
        let is_member = move |rank: &Rank| match &self.division {
            Division::Striped(_) => true,
            Division::Members(realm_of) => realm_of[rank.index()] == realm,
        };
        (0..self.offsets.len() as u32).map(Rank).filter(is_member)
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
