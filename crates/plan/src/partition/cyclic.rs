//! Realms that take turns: blocks of the file dealt out in a circle.

use std::ops::Range;

use pario_layout::{Basic, Datatype, Layout};

use crate::Realm;

/// Blocks that come round: block `i` of the file has turn `i mod turns`.
#[derive(Debug)]
pub(super) struct Cycle {
    block: u64,
    /// One block of the circle; `None` if the circle does not fit in 63 bits:
    /// no file is long enough to come round.
    tile: Option<Layout>,
}

impl Cycle {
    pub(super) fn new(block: u64, turns: u64) -> Cycle {
        let tile = || {
            let cycle = i64::try_from(block.checked_mul(turns)?).ok()?;
            let bytes = Datatype::contiguous(block, &Basic::Byte.into()).ok()?;
            let tile = Datatype::resized(&bytes, 0, cycle).ok()?;
            Some(tile.layout().clone())
        };
        Cycle {
            block,
            tile: tile(),
        }
    }

    /// The blocks of one turn within a range of the file.
    pub(super) fn realm(&self, turn: u64, file: Range<u64>) -> Realm {
        let start = turn.saturating_mul(self.block);
        match &self.tile {
            _ if start >= file.end => Realm::nothing(),
            Some(tile) => Realm::tiled(start, tile.clone(), file),
            None => {
                let end = start.saturating_add(self.block).min(file.end);
                let start = start.max(file.start);
                Realm::contiguous(start..end.max(start))
            }
        }
    }
}

/// Deals the blocks of a range of the file to the owners in turn: block
/// `first_block` (counted from byte 0 of the file) is the first owner's, the
/// next one the second's. The range may start before that block.
pub(super) fn deal(
    block: u64,
    first_block: u64,
    owners: &[u32],
    file: &Range<u64>,
) -> Vec<(u32, Realm)> {
    let turns = owners.len() as u64;
    let cycle = Cycle::new(block, turns);
    let realm = |place: u64| cycle.realm((first_block % turns + place) % turns, file.clone());
    owners
        .iter()
        .zip(0..)
        .map(|(owner, place)| (*owner, realm(place)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owners_of(realms: &[(u32, Realm)], bytes: Range<u64>) -> Vec<u32> {
        let owner = |byte| {
            let mut owners = realms.iter().filter(|(_, realm)| realm.owns(byte));
            let owner = owners.next().map(|(rank, _)| *rank);
            assert!(owners.next().is_none(), "byte {byte} has two owners");
            owner.unwrap_or(u32::MAX)
        };
        bytes.map(owner).collect()
    }

    #[test]
    fn blocks_go_round() {
        let realms = deal(2, 0, &[5, 6, 7], &(1..11));
        let none = u32::MAX;
        assert_eq!(
            owners_of(&realms, 0..12),
            [none, 5, 6, 6, 7, 7, 5, 5, 6, 6, 7, none]
        );
        let turned = deal(2, 4, &[5, 6, 7], &(8..14));
        assert_eq!(owners_of(&turned, 8..14), [5, 5, 6, 6, 7, 7]);
    }

    #[test]
    fn circles_longer_than_any_file_are_once_round() {
        let block = 1 << 62;
        let end = i64::MAX as u64;
        let realms = deal(block, 0, &[0, 1, 2, 3], &(5..end));
        let files: Vec<_> = realms.iter().map(|(_, realm)| realm.file()).collect();
        assert_eq!(files[..2], [5..block, block..end]);
        assert!(realms[2..].iter().all(|(_, realm)| realm.bytes() == 0));
    }

    #[test]
    fn one_owner_has_everything() {
        let realms = deal(10, 3, &[4], &(17..95));
        assert_eq!(realms[0].1.bytes(), 95 - 17);
    }
}
