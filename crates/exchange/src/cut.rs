//! Cutting a realm into windows by the data that is in it.
//!
//! A heap holds, for every rank with data left in the realm, the first byte
//! of it. A window takes the ranks whose first byte lies in its range, and
//! only these are asked how much they have there. So an aggregator's work is
//! in proportion to the (rank, window) pairs that have data, plus one look-up
//! per contributor at the start.

use std::{cmp::Reverse, collections::BinaryHeap, ops::Range};

use crate::{Accesses, Packing, Rank, Realm, core::Core};

/// A window is packed if its data fills less than 1/SPARSE of the buffer.
const SPARSE: u64 = 2;

/// How a window is laid out in its buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// As in the file; it is no longer than the buffer.
    Image,
    /// The ranks' parts side by side, without the gaps between their data
    /// (Coloma 2006, section 5.1).
    Packed,
}

/// One rank's part of a window.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Share {
    /// See `Groups::position`.
    pub(crate) position: u32,
    pub(crate) rank: Rank,
    pub(crate) bytes: u64,
    /// Its offset in a packed window.
    pub(crate) at: u64,
}

#[derive(Debug)]
pub(crate) struct Cut {
    pub(crate) file: Range<u64>,
    pub(crate) shape: Shape,
    /// By position, then rank.
    pub(crate) shares: Vec<Share>,
}

/// How many bytes each rank has in a range.
type Shares = Vec<(Rank, u64)>;

fn total(shares: &[(Rank, u64)]) -> u64 {
    shares.iter().map(|share| share.1).sum()
}

#[derive(Debug)]
pub(crate) struct Cutter {
    realm: Realm,
    hull: Range<u64>,
    /// The first byte of each rank that has any left, and the rank.
    next: BinaryHeap<Reverse<(u64, Rank)>>,
    /// The end of the last window.
    at: u64,
}

impl Cutter {
    pub(crate) fn new<A: Accesses>(core: &Core<A>, realm: Realm) -> Cutter {
        let hull = core.accesses().hull(realm);
        let first = |rank| {
            core.next(rank, realm, hull.start)
                .map(|at| Reverse((at, rank)))
        };
        let contributors = core.accesses().contributors(realm);
        Cutter {
            next: contributors.filter_map(first).collect(),
            at: hull.start,
            realm,
            hull,
        }
    }

    pub(crate) fn is_done(&self) -> bool {
        self.next.is_empty()
    }

    /// The rest of the realm, and the ranks that have data in it.
    pub(crate) fn give_up(&mut self) -> (Range<u64>, Vec<Rank>) {
        let ranks = self.next.drain().map(|Reverse((_, rank))| rank);
        (self.at..self.hull.end, ranks.collect())
    }

    /// The next window that has data.
    pub(crate) fn cut<A: Accesses>(&mut self, core: &Core<A>) -> Option<Cut> {
        let start = self.next.peek()?.0.0;
        let window_bytes = core.window_bytes();
        let reach = core.accesses().realm_end(self.realm, start, window_bytes);
        let image = start..self.on_unit(core, start, reach);
        let mut ranks = Vec::new();
        self.pop_below(image.end, &mut ranks);
        let mut shares = self.ask(core, &ranks, &image);
        let (mut file, mut shape) = (image, Shape::Image);
        if core.accesses().packing() == Packing::Sparse
            && total(&shares) < window_bytes / SPARSE
            && let Some((longer, found)) = self.extend(core, &file, &mut ranks)
        {
            (file, shares, shape) = (longer, found, Shape::Packed);
        }
        for rank in ranks {
            if let Some(next) = core.next(rank, self.realm, file.end) {
                self.next.push(Reverse((next, rank)));
            }
        }
        self.at = file.end;
        Some(self.arranged(core, file, shape, shares))
    }

    /// The last multiple of the unit up to `end`, if it is past `start`.
    fn on_unit<A: Accesses>(&self, core: &Core<A>, start: u64, end: u64) -> u64 {
        let unit = core.setting.limits.unit;
        let cut = end - end % unit;
        match end < self.hull.end && cut > start {
            true => cut,
            false => end,
        }
    }

    fn pop_below(&mut self, end: u64, ranks: &mut Vec<Rank>) {
        while let Some(Reverse((first, rank))) = self.next.peek()
            && *first < end
        {
            ranks.push(*rank);
            self.next.pop();
        }
    }

    fn ask<A: Accesses>(&self, core: &Core<A>, ranks: &[Rank], file: &Range<u64>) -> Shares {
        let bytes = |rank: &Rank| (*rank, core.bytes(*rank, self.realm, file.clone()));
        ranks.iter().map(bytes).filter(|it| it.1 > 0).collect()
    }

    /// A range past `image` with at most as much data as fits the buffer, if
    /// there is one; `ranks` grows by those that were asked. Only multiples of
    /// the unit and the realm's end are tried: first ever farther away, then
    /// between the last that fits and the first that does not.
    fn extend<A: Accesses>(
        &mut self,
        core: &Core<A>,
        image: &Range<u64>,
        ranks: &mut Vec<Rank>,
    ) -> Option<(Range<u64>, Shares)> {
        let (unit, window_bytes) = (core.setting.limits.unit, core.window_bytes());
        let (first, hull_end) = (image.end / unit, self.hull.end);
        let cut = |units: u64| {
            let end = first.saturating_add(units).saturating_mul(unit);
            image.start..end.min(hull_end)
        };
        if image.end >= self.hull.end {
            return None;
        }
        let mut fits = None;
        let (mut low, mut high) = (0, 1);
        loop {
            let file = cut(high);
            self.pop_below(file.end, ranks);
            let shares = self.ask(core, ranks, &file);
            if total(&shares) > window_bytes {
                break;
            }
            let is_last = file.end == self.hull.end;
            fits = Some((file, shares));
            if is_last {
                return fits;
            }
            (low, high) = (high, high.saturating_mul(2));
        }
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            let shares = self.ask(core, ranks, &cut(middle));
            match total(&shares) <= window_bytes {
                true => {
                    fits = Some((cut(middle), shares));
                    low = middle;
                }
                false => high = middle,
            }
        }
        fits
    }

    /// The shares in the order in which they are served.
    fn arranged<A: Accesses>(
        &self,
        core: &Core<A>,
        file: Range<u64>,
        shape: Shape,
        shares: Shares,
    ) -> Cut {
        let groups = &core.setting.groups;
        let mut shares: Vec<Share> = shares
            .into_iter()
            .map(|(rank, bytes)| Share {
                position: groups.position(core.me, rank),
                rank,
                bytes,
                at: 0,
            })
            .collect();
        shares.sort_unstable_by_key(|share| (share.position, share.rank));
        let mut at = 0;
        for share in &mut shares {
            share.at = at;
            at += share.bytes;
        }
        Cut {
            file,
            shape,
            shares,
        }
    }
}
