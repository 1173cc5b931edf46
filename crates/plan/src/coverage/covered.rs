//! The ranges of the file that ranks access.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, binary_heap::PeekMut},
    ops::Range,
};

use pario_layout::{Run, Runs};

use crate::Access;

/// A pattern that repeats at least this often in a range is walked only once.
const REPEATS_MIN: u64 = 4;

/// The parts of a file range that are covered by some access: ascending and not
/// adjacent to each other. The accesses must be increasing.
pub fn covered<'a>(
    accesses: impl Iterator<Item = &'a Access>,
    file: Range<u64>,
) -> Vec<Range<u64>> {
    let here: Vec<&Access> = accesses
        .filter(|access| !access.data_in(file.clone()).is_empty())
        .collect();
    let mut covered = Vec::new();
    match repeats(&here, &file) {
        None => merge(&here, file, &mut covered),
        Some(Repeats { core, period }) => {
            merge(&here, file.start..core.start, &mut covered);
            let first = core.start..core.start + period;
            let mut once = Vec::new();
            merge(&here, first.clone(), &mut once);
            // Without gaps, the period may be one byte and its repetitions very
            // many.
            let (once, period) = match once == [first] {
                true => (vec![core.clone()], core.end - core.start),
                false => (once, period),
            };
            for ahead in (0..core.end - core.start).step_by(period as usize) {
                let moved = once.iter().map(|it| it.start + ahead..it.end + ahead);
                moved.for_each(|range| add(&mut covered, range));
            }
            merge(&here, core.end..file.end, &mut covered);
        }
    }
    covered
}

/// A part of the file in which all patterns repeat with the same period.
struct Repeats {
    /// Its length is a multiple of the period.
    core: Range<u64>,
    period: u64,
}

fn repeats(accesses: &[&Access], file: &Range<u64>) -> Option<Repeats> {
    let extent = accesses.first()?.layout().extent();
    let period = u64::try_from(extent).ok().filter(|period| *period > 0)?;
    if accesses.iter().any(|it| it.layout().extent() != extent) {
        return None;
    }
    // The range in which no access begins or ends.
    let spans = || accesses.iter().map(|access| access.span());
    let start = spans().map(|span| span.start).max()?.max(file.start);
    let end = spans().map(|span| span.end).min()?.min(file.end);
    let times = end.saturating_sub(start) / period;
    (times >= REPEATS_MIN).then(|| Repeats {
        core: start..start + times * period,
        period,
    })
}

/// Adds a range that does not start before the last one.
fn add(covered: &mut Vec<Range<u64>>, range: Range<u64>) {
    match covered.last_mut() {
        Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
        _ => covered.push(range),
    }
}

/// Merges the pieces of all accesses in a range.
fn merge(accesses: &[&Access], file: Range<u64>, covered: &mut Vec<Range<u64>>) {
    let mut cursors: Vec<Cursor<'_>> = accesses
        .iter()
        .filter_map(|access| Cursor::new(access, file.clone()))
        .collect();
    let starts = cursors.iter().map(|cursor| cursor.piece.start).zip(0..);
    let mut next: BinaryHeap<Reverse<(u64, usize)>> = starts.map(Reverse).collect();
    while let Some(mut first) = next.peek_mut() {
        let cursor = &mut cursors[first.0.1];
        add(covered, cursor.piece.clone());
        match cursor.advance() {
            true => first.0.0 = cursor.piece.start,
            false => {
                PeekMut::pop(first);
            }
        }
    }
}

/// Iterates over the pieces of one access in a range.
struct Cursor<'a> {
    displacement: u64,
    runs: Runs<'a>,
    run: Run,
    piece: Range<u64>,
}

impl<'a> Cursor<'a> {
    fn new(access: &'a Access, file: Range<u64>) -> Option<Cursor<'a>> {
        let data = access.data_in(file);
        if data.is_empty() {
            return None;
        }
        let (start, end) = (access.first() + data.start, access.first() + data.end);
        let mut runs = access.layout().runs(start..end);
        let run = runs.next()?;
        let displacement = access.displacement();
        let piece = piece_of(displacement, &run);
        Some(Cursor {
            displacement,
            runs,
            run,
            piece,
        })
    }

    fn advance(&mut self) -> bool {
        if self.run.count > 1 {
            self.run.count -= 1;
            self.run.offset += self.run.stride;
        } else {
            match self.runs.next() {
                Some(run) => self.run = run,
                None => return false,
            }
        }
        self.piece = piece_of(self.displacement, &self.run);
        true
    }
}

fn piece_of(displacement: u64, run: &Run) -> Range<u64> {
    let start = displacement.wrapping_add_signed(run.offset);
    start..start + run.len
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::strided;

    #[test]
    fn gapless_data_of_a_small_type_is_one_range() {
        // More bytes than could be walked one by one.
        let whole = 0..1_u64 << 40;
        let rank = strided(0, 1, 1, whole.end);
        assert_eq!(covered([&rank].into_iter(), whole.clone()), [whole]);
    }

    #[test]
    fn overlapping_pieces_do_not_hide_a_hole() {
        // Bytes 0..6 and 2..6 add up to ten bytes in a window of ten.
        let ranks = [strided(0, 6, 20, 6), strided(2, 4, 20, 4)];
        assert_eq!(covered(ranks.iter(), 0..10), [Range { start: 0, end: 6 }]);
    }

    #[test]
    fn interleaved_pieces_become_one_range() {
        let ranks: Vec<_> = (0..4).map(|rank| strided(rank * 8, 8, 32, 800)).collect();
        let all = Range {
            start: 10,
            end: 3000,
        };
        assert_eq!(covered(ranks.iter(), all.clone()), [all]);
    }

    #[test]
    fn covered_ranges_match_a_byte_map() {
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..1000 {
            let equal = random.bool().then(|| random.u64(9..30));
            let ranks: Vec<_> = (0..random.u64(1..5))
                .map(|_| {
                    let len = random.u64(1..9);
                    let stride = equal.unwrap_or(len + random.u64(0..20));
                    let at = random.u64(0..50);
                    strided(at, len, stride as i64, random.u64(0..100))
                })
                .collect();
            let file = random.u64(0..60)..random.u64(60..400);
            let touched = |byte: u64| {
                ranks
                    .iter()
                    .any(|rank| !rank.data_in(byte..byte + 1).is_empty())
            };
            let mut expected: Vec<Range<u64>> = Vec::new();
            for byte in file.clone().filter(|byte| touched(*byte)) {
                match expected.last_mut() {
                    Some(last) if last.end == byte => last.end += 1,
                    _ => expected.push(byte..byte + 1),
                }
            }
            assert_eq!(covered(ranks.iter(), file), expected);
        }
    }
}
