//! The entries of a call's ranks. Equal entries of neighbours travel once.

use std::sync::Arc;

use crate::Rank;

/// A rank's arguments when it enters a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// First data byte of its view.
    pub first: u64,
    /// Data bytes that it moves.
    pub len: u64,
    /// For the driver loop, except for [`NOT_EAGER`](Entry::NOT_EAGER).
    pub flags: u8,
    /// Set if its arguments are wrong: then nobody moves anything.
    pub failure: Option<Failure>,
}

impl Entry {
    /// In the flags: this rank's data may not be moved by another rank, so
    /// that the call is not eager.
    pub const NOT_EAGER: u8 = 0x80;
}

/// The error of one rank. Its text is opaque to the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The rank. Of several failures, that of the lowest rank is reported.
    pub rank: Rank,
    /// The error in the form in which it travels.
    pub detail: Arc<[u8]>,
}

impl Failure {
    /// The one that is reported.
    pub fn first(a: Option<Failure>, b: Option<Failure>) -> Option<Failure> {
        match (a, b) {
            (Some(a), Some(b)) => Some(if b.rank < a.rank { b } else { a }),
            (a, b) => a.or(b),
        }
    }
}

/// Consecutive ranks with equal entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stretch {
    pub(crate) first: u32,
    pub(crate) ranks: u32,
    pub(crate) entry: Entry,
}

/// The entries of some ranks, and in the end of all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    pub(crate) stretches: Vec<Stretch>,
}

impl Table {
    /// The table of one rank.
    pub fn one(rank: Rank, entry: Entry) -> Table {
        let stretch = Stretch {
            first: rank.0,
            ranks: 1,
            entry,
        };
        Table {
            stretches: vec![stretch],
        }
    }

    /// The table of several ranks' tables.
    pub fn merge(tables: impl Iterator<Item = Table>) -> Table {
        let mut all: Vec<Stretch> = tables.flat_map(|table| table.stretches).collect();
        all.sort_unstable_by_key(|stretch| stretch.first);
        let mut stretches: Vec<Stretch> = Vec::with_capacity(all.len());
        for stretch in all {
            match stretches.last_mut() {
                Some(last)
                    if last.first + last.ranks == stretch.first && last.entry == stretch.entry =>
                {
                    last.ranks += stretch.ranks;
                }
                _ => stretches.push(stretch),
            }
        }
        Table { stretches }
    }

    /// The entry of a rank.
    pub fn get(&self, rank: Rank) -> Option<&Entry> {
        let after = self.stretches.partition_point(|it| it.first <= rank.0);
        let stretch = self.stretches[..after].last()?;
        (rank.0 < stretch.first + stretch.ranks).then_some(&stretch.entry)
    }

    /// All entries, by rank.
    pub fn entries(&self) -> impl Iterator<Item = (Rank, &Entry)> {
        self.stretches.iter().flat_map(|stretch| {
            (stretch.first..stretch.first + stretch.ranks).map(|rank| (Rank(rank), &stretch.entry))
        })
    }

    /// The data bytes of all ranks.
    pub fn bytes(&self) -> u64 {
        let bytes = self
            .stretches
            .iter()
            .map(|it| it.entry.len.saturating_mul(it.ranks.into()));
        bytes.fold(0, u64::saturating_add)
    }

    /// Whether all ranks have the same flags.
    pub fn is_uniform(&self) -> bool {
        let mut flags = self.stretches.iter().map(|it| it.entry.flags);
        let first = flags.next();
        flags.all(|it| Some(it) == first)
    }

    /// The failure to report, if any rank has one.
    pub fn failure(&self) -> Option<Failure> {
        let failures = self.stretches.iter().map(|it| it.entry.failure.clone());
        failures.fold(None, Failure::first)
    }

    /// Its length on the wire.
    pub(crate) fn wire_bytes(&self) -> u64 {
        let failures = self
            .stretches
            .iter()
            .filter_map(|it| it.entry.failure.as_ref());
        let failures: u64 = failures.map(|it| 8 + it.detail.len() as u64).sum();
        4 + 26 * self.stretches.len() as u64 + failures
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_neighbours_travel_once() {
        let entry = |len| Entry {
            len,
            ..Entry::default()
        };
        let of = |rank| Table::one(Rank(rank), entry(if rank == 5 { 9 } else { 4 }));
        let table = Table::merge([3, 0, 5, 1, 4, 2, 6].map(of).into_iter());
        assert_eq!(table.stretches.len(), 3);
        assert_eq!(table.bytes(), 33);
        let lens: Vec<u64> = table.entries().map(|(_, entry)| entry.len).collect();
        assert_eq!(lens, [4, 4, 4, 4, 4, 9, 4]);
        assert_eq!(table.get(Rank(5)), Some(&entry(9)));
        assert_eq!(table.get(Rank(7)), None);
    }
}
