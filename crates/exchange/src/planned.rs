//! The plans of `pario-plan`, as the machine asks about them.

use std::{ops::Range, sync::Arc};

use pario_plan::{Access, Members, Rounds};

use crate::{Accesses, Packing, Rank, Realm};

/// A plan and the accesses it was made for. One for all ranks of a node.
///
/// Look-ups in one stretch of the file are logarithmic. In a realm of several
/// stretches (stripes), those about a range walk the stretches in it.
#[derive(Clone, Debug)]
pub struct Planned {
    packing: Packing,
    rounds: Rounds,
    accesses: Arc<Vec<Access>>,
    /// The ranks that have data, by the start of their span.
    by_start: Vec<Spanning>,
    /// The aggregators and their realms, ascending.
    by_aggregator: Vec<(Rank, Realm)>,
}

#[derive(Clone, Copy, Debug)]
struct Spanning {
    start: u64,
    /// The end of the span that reaches farthest, of this and those before.
    farthest: u64,
    rank: Rank,
}

impl Planned {
    /// The accesses must ascend in the file.
    pub fn new(rounds: Rounds, accesses: Arc<Vec<Access>>, packing: Packing) -> Planned {
        debug_assert!(accesses.iter().all(Access::is_increasing));
        let ranks = (0..).map(Rank).zip(&*accesses);
        let mut by_start: Vec<Spanning> = ranks
            .filter(|(_, access)| !access.is_empty())
            .map(|(rank, access)| Spanning {
                start: access.span().start,
                farthest: access.span().end,
                rank,
            })
            .collect();
        by_start.sort_unstable_by_key(|it| (it.start, it.rank));
        let mut farthest = 0;
        for it in &mut by_start {
            farthest = farthest.max(it.farthest);
            it.farthest = farthest;
        }
        let aggregators = rounds.aggregators.iter().map(|it| Rank(it.rank));
        let mut by_aggregator: Vec<_> = aggregators.zip((0..).map(Realm)).collect();
        by_aggregator.sort_unstable();
        Planned {
            packing,
            rounds,
            accesses,
            by_start,
            by_aggregator,
        }
    }

    /// The plan.
    pub fn rounds(&self) -> &Rounds {
        &self.rounds
    }

    /// What each rank moves.
    pub fn accesses(&self) -> &[Access] {
        &self.accesses
    }

    /// What a rank moves.
    pub fn access(&self, rank: Rank) -> &Access {
        &self.accesses[rank.index()]
    }

    /// The part of the file that belongs to a realm.
    pub fn realm(&self, realm: Realm) -> &pario_plan::Realm {
        &self.rounds.aggregators[realm.0 as usize].realm
    }

    fn serves(&self, realm: Realm, rank: Rank) -> bool {
        match &self.rounds.aggregators[realm.0 as usize].members {
            Members::All => true,
            Members::Some(members) => members.binary_search(&rank.0).is_ok(),
        }
    }
}

impl Accesses for Planned {
    fn packing(&self) -> Packing {
        self.packing
    }

    fn window_bytes(&self) -> u64 {
        self.rounds.window_bytes
    }

    fn realms(&self) -> u32 {
        self.rounds.aggregators.len() as u32
    }

    fn aggregator(&self, realm: Realm) -> Rank {
        Rank(self.rounds.aggregators[realm.0 as usize].rank)
    }

    fn realms_of(&self, rank: Rank) -> Vec<Realm> {
        let first = self.by_aggregator.partition_point(|it| it.0 < rank);
        let own = self.by_aggregator[first..].iter();
        own.take_while(|it| it.0 == rank).map(|it| it.1).collect()
    }

    fn hull(&self, realm: Realm) -> Range<u64> {
        self.realm(realm).file()
    }

    fn realm_bytes(&self, realm: Realm, file: Range<u64>) -> u64 {
        let realm = self.realm(realm);
        let start = realm.bytes_below(file.start);
        realm.bytes_below(file.end).max(start) - start
    }

    fn realm_end(&self, realm: Realm, from: u64, bytes: u64) -> u64 {
        let realm = self.realm(realm);
        let end = realm.bytes_below(from).saturating_add(bytes);
        match end < realm.bytes() {
            true => realm.offset_of(end - 1) + 1,
            false => realm.file().end,
        }
    }

    fn contributors(&self, realm: Realm) -> impl Iterator<Item = Rank> + '_ {
        let hull = self.hull(realm);
        let first = self
            .by_start
            .partition_point(|it| it.farthest <= hull.start);
        let end = self.by_start.partition_point(|it| it.start < hull.end);
        let near = self.by_start[first..end.max(first)].iter();
        near.map(|it| it.rank)
            .filter(move |rank| self.serves(realm, *rank))
    }

    fn bytes(&self, rank: Rank, realm: Realm, file: Range<u64>) -> u64 {
        let access = self.access(rank);
        let span = access.span();
        let file = file.start.max(span.start)..file.end.min(span.end);
        if file.is_empty() || !self.serves(realm, rank) {
            return 0;
        }
        let bytes = |file: Range<u64>| {
            let data = access.data_in(file);
            data.end - data.start
        };
        let owner = self.realm(realm);
        match owner.is_contiguous() {
            true => {
                let hull = owner.file();
                bytes(file.start.max(hull.start)..file.end.min(hull.end))
            }
            false => owner.extents_in(file).into_iter().map(bytes).sum(),
        }
    }

    fn next(&self, rank: Rank, realm: Realm, at: u64) -> Option<u64> {
        let (access, owner) = (self.access(rank), self.realm(realm));
        if !self.serves(realm, rank) {
            return None;
        }
        // The access and the realm take turns in moving on to the other.
        let mut at = at.max(owner.file().start);
        loop {
            let byte = access.next_at(at)?;
            let index = owner.bytes_below(byte);
            at = (index < owner.bytes()).then(|| owner.offset_of(index))?;
            if at == byte {
                return Some(byte);
            }
        }
    }

    fn last(&self, rank: Rank, realm: Realm, at: u64) -> Option<u64> {
        let (access, owner) = (self.access(rank), self.realm(realm));
        if !self.serves(realm, rank) {
            return None;
        }
        let mut end = at;
        loop {
            let byte = access.offset_of(access.bytes_below(end).checked_sub(1)?);
            let owned = owner.offset_of(owner.bytes_below(byte + 1).checked_sub(1)?);
            if owned == byte {
                return Some(byte);
            }
            end = owned + 1;
        }
    }
}
