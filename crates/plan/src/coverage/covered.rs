//! The stretches of the file that ranks touch.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, binary_heap::PeekMut},
    ops::Range,
};

use pario_layout::{Run, Runs};

use crate::Access;

/// A pattern that repeats at least so often in a range is walked once only.
const REPEATS_MIN: u64 = 4;

/// The stretches of a range of the file that some access touches: ascending,
/// not touching each other. The accesses must increase.
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
            // Without gaps the period may be a byte, and its times many.
            let (once, period) = match once == [first] {
                true => (vec![core.clone()], core.end - core.start),
                false => (once, period),
            };
            for ahead in (0..core.end - core.start).step_by(period as usize) {
                let moved = once.iter().map(|it| it.start + ahead..it.end + ahead);
                moved.for_each(|stretch| add(&mut covered, stretch));
            }
            merge(&here, core.end..file.end, &mut covered);
        }
    }
    covered
}

/// A part of the file in which all patterns repeat at the same distance.
struct Repeats {
    /// As long as a multiple of the period.
    core: Range<u64>,
    period: u64,
}

fn repeats(accesses: &[&Access], file: &Range<u64>) -> Option<Repeats> {
    let extent = accesses.first()?.layout().extent();
    let period = u64::try_from(extent).ok().filter(|period| *period > 0)?;
    if accesses.iter().any(|it| it.layout().extent() != extent) {
        return None;
    }
    // Where no access begins or ends.
    let spans = || accesses.iter().map(|access| access.span());
    let start = spans().map(|span| span.start).max()?.max(file.start);
    let end = spans().map(|span| span.end).min()?.min(file.end);
    let times = end.saturating_sub(start) / period;
    (times >= REPEATS_MIN).then(|| Repeats {
        core: start..start + times * period,
        period,
    })
}

/// Adds a stretch that does not start before the last one.
fn add(covered: &mut Vec<Range<u64>>, stretch: Range<u64>) {
    match covered.last_mut() {
        Some(last) if stretch.start <= last.end => last.end = last.end.max(stretch.end),
        _ => covered.push(stretch),
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

/// The pieces of one access in a range, one after the other.
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
    fn data_without_gaps_is_one_stretch_however_small_its_type() {
        // As many bytes as would take minutes one by one.
        let whole = 0..1_u64 << 40;
        let rank = strided(0, 1, 1, whole.end);
        assert_eq!(covered([&rank].into_iter(), whole.clone()), [whole]);
    }

    #[test]
    fn sums_that_fill_a_window_do_not_hide_its_hole() {
        // Bytes 0..6 and 2..6 add up to ten bytes of a window of ten.
        let ranks = [strided(0, 6, 20, 6), strided(2, 4, 20, 4)];
        assert_eq!(covered(ranks.iter(), 0..10), [Range { start: 0, end: 6 }]);
    }

    #[test]
    fn interleaved_pieces_become_one_stretch() {
        let ranks: Vec<_> = (0..4).map(|rank| strided(rank * 8, 8, 32, 800)).collect();
        let all = Range {
            start: 10,
            end: 3000,
        };
        assert_eq!(covered(ranks.iter(), all.clone()), [all]);
    }

    #[test]
    fn covered_stretches_agree_with_a_map_of_bytes() {
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
