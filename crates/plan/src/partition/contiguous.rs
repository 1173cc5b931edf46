//! Contiguous realms: a region cut at ascending points.

use std::ops::Range;

use crate::Realm;

/// Gives every owner the range up to its cut; the last takes the rest. `cut`
/// returns where range `index` of the region should start.
pub(super) fn divide(
    region: &Range<u64>,
    owners: &[u32],
    mut cut: impl FnMut(u64) -> u64,
) -> Vec<(u32, Realm)> {
    let mut from = region.start;
    let mut realms = Vec::with_capacity(owners.len());
    for (owner, next) in owners.iter().zip(1..) {
        let to = match next == owners.len() as u64 {
            true => region.end,
            false => cut(next).clamp(from, region.end),
        };
        realms.push((*owner, Realm::contiguous(from..to)));
        from = to;
    }
    realms
}

/// Where range `index` of `count` equal ranges starts.
pub(super) fn even_cut(region: &Range<u64>, index: u64, count: u64) -> u64 {
    let len = u128::from(region.end - region.start);
    let below = len * u128::from(index) / u128::from(count.max(1));
    region.start + below as u64
}

/// The multiple of `boundary` nearest to a byte; ties go up.
pub(super) fn nearest(byte: u64, boundary: u64) -> u64 {
    let below = byte - byte % boundary;
    match byte - below >= boundary.div_ceil(2) {
        true => below.saturating_add(boundary),
        false => below,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_boundary_may_be_above() {
        let nearest_to = |byte| nearest(byte, 10);
        assert_eq!([0, 4, 5, 9, 10, 14].map(nearest_to), [0, 0, 10, 10, 10, 10]);
        assert_eq!(nearest(u64::MAX - 1, 1 << 63), u64::MAX, "it saturates");
        assert_eq!(nearest(7, 1), 7);
    }

    #[test]
    fn cuts_are_clamped_to_ascending_order() {
        let cuts = [0, 50, 5, 200];
        let realms = divide(&(10..100), &[3, 1, 2, 0], |index| cuts[index as usize]);
        let files: Vec<_> = realms.iter().map(|(_, realm)| realm.file()).collect();
        assert_eq!(files, [10..50, 50..50, 50..100, 100..100]);
    }
}
