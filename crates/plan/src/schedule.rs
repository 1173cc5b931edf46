//! The order of windows, which is the same on every rank.

use std::{ops::Range, slice};

use smallvec::SmallVec;

use crate::{Access, Members, Rounds, Window};

/// A window and its aggregator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduledWindow {
    /// Index in the plan's aggregators.
    pub aggregator: usize,
    /// The window.
    pub window: Window,
}

impl Rounds {
    /// The windows in which some rank has data, round by round; each round has
    /// one window of every aggregator that has any left. Ranges without data
    /// are skipped, not walked.
    pub fn schedule<'a>(&'a self, accesses: &'a [Access]) -> Schedule<'a> {
        let queue = self
            .aggregators
            .iter()
            .map(|it| it.realm.file().start)
            .collect();
        Schedule {
            rounds: self,
            accesses,
            next: queue,
            visits: 0,
        }
    }

    /// The first byte at or past `file_byte` that an aggregator moves for some
    /// rank.
    pub fn next_data(&self, accesses: &[Access], aggregator: usize, file_byte: u64) -> Option<u64> {
        let realm = &self.aggregators[aggregator].realm;
        let mut at = file_byte;
        loop {
            let members = self.members(aggregator, accesses.len() as u32);
            let next = members.filter_map(|rank| accesses[rank as usize].next_at(at));
            let next = next.min()?;
            let below = realm.bytes_below(next);
            if below == realm.bytes() {
                return None;
            }
            at = realm.offset_of(below);
            if at == next {
                return Some(next);
            }
        }
    }

    /// The ranks whose data an aggregator moves.
    pub fn members(&self, aggregator: usize, ranks: u32) -> MemberRanks<'_> {
        match &self.aggregators[aggregator].members {
            Members::All => MemberRanks::All(0..ranks),
            Members::Some(members) => MemberRanks::Some(members.iter()),
        }
    }
}

/// The ranks whose data an aggregator moves, ascending.
#[derive(Clone, Debug)]
pub enum MemberRanks<'a> {
    /// All ranks.
    All(Range<u32>),
    /// Those of a list.
    Some(slice::Iter<'a, u32>),
}

impl Iterator for MemberRanks<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        match self {
            MemberRanks::All(ranks) => ranks.next(),
            MemberRanks::Some(ranks) => ranks.next().copied(),
        }
    }
}

/// Iterator over scheduled windows.
#[derive(Clone, Debug)]
pub struct Schedule<'a> {
    rounds: &'a Rounds,
    accesses: &'a [Access],
    /// Where each aggregator continues, as a file offset.
    next: SmallVec<[u64; 8]>,
    /// The number of aggregators visited so far.
    visits: usize,
}

impl Schedule<'_> {
    /// The aggregator's next window with data, if any.
    fn take(&mut self, aggregator: usize) -> Option<Window> {
        let realm = &self.rounds.aggregators[aggregator].realm;
        let ranks = self.accesses.len() as u32;
        let window_at = |byte| realm.window_at(byte, self.rounds.window_bytes);
        let mut window = window_at(self.next[aggregator]);
        while let Some(candidate) = window {
            let end = candidate.span().end;
            if self.has_data(aggregator, &candidate) {
                self.next[aggregator] = end;
                return Some(candidate);
            }
            // Asking every member for its next data byte is expensive, so only
            // do it to skip a range without data.
            let members = self.rounds.members(aggregator, ranks);
            let next = members.filter_map(|rank| self.accesses[rank as usize].next_at(end));
            window = next.min().and_then(window_at);
        }
        self.next[aggregator] = u64::MAX;
        None
    }

    fn has_data(&self, aggregator: usize, window: &Window) -> bool {
        let ranks = self.accesses.len() as u32;
        self.rounds.members(aggregator, ranks).any(|rank| {
            let access = &self.accesses[rank as usize];
            window
                .extents()
                .iter()
                .any(|extent| !access.data_in(extent.clone()).is_empty())
        })
    }
}

impl Iterator for Schedule<'_> {
    type Item = ScheduledWindow;

    fn next(&mut self) -> Option<ScheduledWindow> {
        let aggregators = self.next.len();
        for _ in 0..aggregators {
            let aggregator = self.visits % aggregators;
            self.visits += 1;
            if self.next[aggregator] == u64::MAX {
                continue;
            }
            if let Some(window) = self.take(aggregator) {
                return Some(ScheduledWindow { aggregator, window });
            }
        }
        None
    }
}

/// The part of a window from its first to its last data byte: the most that has
/// to be moved.
pub fn useful<'a>(accesses: impl Iterator<Item = &'a Access>, extent: Range<u64>) -> Range<u64> {
    let parts = accesses.filter_map(|access| {
        let data = access.data_in(extent.clone());
        (!data.is_empty()).then(|| access.offset_of(data.start)..access.offset_of(data.end - 1) + 1)
    });
    parts
        .reduce(|a, b| a.start.min(b.start)..a.end.max(b.end))
        .unwrap_or(extent.start..extent.start)
}

#[cfg(test)]
mod tests {
    use pario_layout::Layout;

    use super::*;
    use crate::{Aggregator, Realm, WindowWriter};

    fn rounds(realms: Vec<Range<u64>>) -> Rounds {
        let aggregator = |file| Aggregator {
            rank: 0,
            realm: Realm::contiguous(file),
            members: Members::All,
            turn: None,
        };
        Rounds {
            aggregators: realms.into_iter().map(aggregator).collect(),
            window_bytes: 100,
            writer: WindowWriter::Aggregator,
        }
    }

    fn access(at: u64, len: u64) -> Access {
        Access::new(at, Layout::dense(1), 0, len).unwrap()
    }

    #[test]
    fn rounds_take_one_window_of_every_realm() {
        let rounds = rounds(vec![0..250, 250..500]);
        let accesses = [access(0, 500)];
        let windows: Vec<_> = rounds
            .schedule(&accesses)
            .map(|item| (item.aggregator, item.window.span()))
            .collect();
        let expected = [
            (0, 0..100),
            (1, 250..300),
            (0, 100..200),
            (1, 300..400),
            (0, 200..250),
            (1, 400..500),
        ];
        assert_eq!(windows, expected);
    }

    #[test]
    fn ranges_without_data_are_skipped() {
        let rounds = rounds(Vec::from([Range {
            start: 0,
            end: 1 << 50,
        }]));
        let accesses = [access(10, 5), access((1 << 49) + 7, 5)];
        let windows: Vec<_> = rounds
            .schedule(&accesses)
            .map(|item| item.window.span())
            .collect();
        assert_eq!(windows.len(), 2);
        assert_eq!(windows[0], 0..100);
        assert!(windows[1].contains(&((1 << 49) + 7)));
        assert_eq!(useful(accesses.iter(), windows[0].clone()), 10..15);
    }
}
