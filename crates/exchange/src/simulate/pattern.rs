//! Regular accesses: every rank has pieces at the same distance, and realms
//! are even parts of the file.

use std::ops::Range;

use crate::{Accesses, Rank, Realm};

/// Pieces of all ranks. Rank `r` has `pieces` pieces of `piece_bytes`, `stride`
/// apart, the first at `r * step`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// The number of ranks.
    pub ranks: u32,
    /// The length of a piece.
    pub piece_bytes: u64,
    /// The distance between the pieces of a rank.
    pub stride: u64,
    /// Pieces of each rank.
    pub pieces: u64,
    /// The distance between the first pieces of neighbours.
    pub step: u64,
    /// The ranks that aggregate, one realm each.
    pub aggregators: Vec<Rank>,
    /// Realms start at multiples of it.
    pub unit: u64,
}

impl Pattern {
    /// Each rank has one block, in the order of the ranks.
    pub fn blocks(ranks: u32, bytes: u64) -> Pattern {
        Pattern {
            ranks,
            piece_bytes: bytes,
            stride: bytes,
            pieces: 1,
            step: bytes,
            aggregators: vec![Rank(0)],
            unit: 1,
        }
    }

    /// Records that are assigned to the ranks round-robin.
    pub fn cyclic(ranks: u32, record_bytes: u64, records: u64) -> Pattern {
        Pattern {
            stride: record_bytes * u64::from(ranks),
            pieces: records,
            ..Pattern::blocks(ranks, record_bytes)
        }
    }

    /// All ranks want the same bytes.
    pub fn same(ranks: u32, bytes: u64) -> Pattern {
        Pattern {
            step: 0,
            ..Pattern::blocks(ranks, bytes)
        }
    }

    /// With these aggregators, whose realms start at multiples of `unit`.
    pub fn aggregated_by(self, aggregators: Vec<Rank>, unit: u64) -> Pattern {
        Pattern {
            aggregators,
            unit,
            ..self
        }
    }

    /// Data bytes of a rank.
    pub fn rank_bytes(&self) -> u64 {
        self.piece_bytes * self.pieces
    }

    fn first(&self, rank: Rank) -> u64 {
        u64::from(rank.0) * self.step
    }

    /// From a rank's first byte to the end of its last.
    fn reach(&self) -> u64 {
        (self.pieces - 1) * self.stride + self.piece_bytes
    }

    fn end(&self) -> u64 {
        u64::from(self.ranks - 1) * self.step + self.reach()
    }

    /// A rank's data bytes below a byte of the file.
    fn below(&self, rank: Rank, byte: u64) -> u64 {
        let ahead = byte.saturating_sub(self.first(rank));
        let whole = ahead / self.stride;
        match whole >= self.pieces {
            true => self.rank_bytes(),
            false => whole * self.piece_bytes + (ahead % self.stride).min(self.piece_bytes),
        }
    }

    fn offset_of(&self, rank: Rank, index: u64) -> u64 {
        self.first(rank) + index / self.piece_bytes * self.stride + index % self.piece_bytes
    }

    fn clip(&self, realm: Realm, file: Range<u64>) -> Range<u64> {
        let hull = self.hull(realm);
        let start = file.start.max(hull.start);
        start..file.end.min(hull.end).max(start)
    }
}

impl Accesses for Pattern {
    fn realms(&self) -> u32 {
        self.aggregators.len() as u32
    }

    fn aggregator(&self, realm: Realm) -> Rank {
        self.aggregators[realm.0 as usize]
    }

    fn realms_of(&self, rank: Rank) -> Vec<Realm> {
        match self.aggregators.binary_search(&rank) {
            Ok(realm) => vec![Realm(realm as u32)],
            Err(_) => Vec::new(),
        }
    }

    fn hull(&self, realm: Realm) -> Range<u64> {
        let end = self.end();
        let share = end.div_ceil(self.aggregators.len() as u64);
        let share = share.next_multiple_of(self.unit);
        let start = (u64::from(realm.0) * share).min(end);
        start..(start + share).min(end)
    }

    fn realm_bytes(&self, realm: Realm, file: Range<u64>) -> u64 {
        let file = self.clip(realm, file);
        file.end - file.start
    }

    fn realm_end(&self, realm: Realm, from: u64, bytes: u64) -> u64 {
        from.saturating_add(bytes).min(self.hull(realm).end)
    }

    fn contributors(&self, realm: Realm) -> impl Iterator<Item = Rank> + '_ {
        let hull = self.hull(realm);
        let ranks = match self.step {
            0 => 0..self.ranks,
            step => {
                let first = (hull.start + 1).saturating_sub(self.reach()).div_ceil(step);
                first as u32..(hull.end.div_ceil(step) as u32).min(self.ranks)
            }
        };
        ranks.map(Rank)
    }

    fn bytes(&self, rank: Rank, realm: Realm, file: Range<u64>) -> u64 {
        let file = self.clip(realm, file);
        self.below(rank, file.end) - self.below(rank, file.start)
    }

    fn next(&self, rank: Rank, realm: Realm, at: u64) -> Option<u64> {
        let hull = self.hull(realm);
        let index = self.below(rank, at.max(hull.start));
        let offset = (index < self.rank_bytes()).then(|| self.offset_of(rank, index))?;
        (offset < hull.end).then_some(offset)
    }

    fn last(&self, rank: Rank, realm: Realm, at: u64) -> Option<u64> {
        let hull = self.hull(realm);
        let index = self.below(rank, at.min(hull.end)).checked_sub(1)?;
        let offset = self.offset_of(rank, index);
        (offset >= hull.start).then_some(offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn look_ups_agree_with_a_walk() {
        let patterns = [
            Pattern::blocks(5, 7),
            Pattern::cyclic(4, 3, 5),
            Pattern::same(3, 11),
        ];
        for pattern in patterns {
            let pattern = pattern.aggregated_by(vec![Rank(0), Rank(1), Rank(2)], 4);
            let mut all = 0;
            for realm in (0..3).map(Realm) {
                let hull = pattern.hull(realm);
                let contributors: Vec<Rank> = pattern.contributors(realm).collect();
                for rank in (0..pattern.ranks).map(Rank) {
                    let bytes: Vec<u64> = (0..pattern.rank_bytes())
                        .map(|index| pattern.offset_of(rank, index))
                        .filter(|offset| hull.contains(offset))
                        .collect();
                    all += bytes.len() as u64;
                    assert!(bytes.is_empty() || contributors.contains(&rank));
                    for at in 0..pattern.end() + 2 {
                        let below = bytes.iter().filter(|it| **it < at).count() as u64;
                        assert_eq!(pattern.bytes(rank, realm, 0..at), below);
                        let next = bytes.iter().copied().find(|it| *it >= at);
                        assert_eq!(pattern.next(rank, realm, at), next);
                        let last = bytes.iter().copied().rfind(|it| *it < at);
                        assert_eq!(pattern.last(rank, realm, at), last);
                    }
                }
            }
            assert_eq!(all, pattern.rank_bytes() * u64::from(pattern.ranks));
        }
    }
}
