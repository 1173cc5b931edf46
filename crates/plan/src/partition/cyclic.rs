//! Cyclic realms: blocks of the file assigned round-robin.

use std::ops::Range;

use pario_layout::{Basic, Datatype, Layout};

use crate::{Realm, Stripes, Striping};

/// Blocks assigned round-robin: block `i` of the file belongs to position `i
/// mod positions`.
#[derive(Debug)]
pub(super) struct Cycle {
    block: u64,
    /// One block of the cycle; `None` if a cycle does not fit in 63 bits, so
    /// that no file is long enough to repeat it.
    tile: Option<Layout>,
}

impl Cycle {
    pub(super) fn new(block: u64, positions: u64) -> Cycle {
        let tile = || {
            let cycle = i64::try_from(block.checked_mul(positions)?).ok()?;
            let bytes = Datatype::contiguous(block, &Basic::Byte.into()).ok()?;
            let tile = Datatype::resized(&bytes, 0, cycle).ok()?;
            Some(tile.layout().clone())
        };
        Cycle {
            block,
            tile: tile(),
        }
    }

    /// The blocks of one position within a range of the file.
    pub(super) fn realm(&self, position: u64, file: Range<u64>) -> Realm {
        let start = position.saturating_mul(self.block);
        match &self.tile {
            _ if start >= file.end => Realm::empty(),
            Some(tile) => Realm::tiled(start, tile.clone(), file),
            None => {
                let end = start.saturating_add(self.block).min(file.end);
                let start = start.max(file.start);
                Realm::contiguous(start..end.max(start))
            }
        }
    }
}

/// Assigns the blocks of a file range round-robin: block `first_block` (counted
/// from byte 0 of the file) belongs to the first owner, the next block to the
/// second. The range may start before that block.
pub(super) fn assign(
    block: u64,
    first_block: u64,
    owners: &[u32],
    file: &Range<u64>,
) -> Vec<(u32, Realm)> {
    let positions = owners.len() as u64;
    let cycle = Cycle::new(block, positions);
    let realm =
        |place: u64| cycle.realm((first_block % positions + place) % positions, file.clone());
    owners
        .iter()
        .zip(0..)
        .map(|(owner, place)| (*owner, realm(place)))
        .collect()
}

/// Assigns servers round-robin, and with them all their stripes: the server of
/// stripe `first_stripe` belongs to the first owner, the next server to the
/// second. More owners than servers share the stripes of servers with several.
/// There are no more owners than stripes in a cycle.
pub(super) fn assign_servers(
    stripes: &Stripes,
    first_stripe: u64,
    owners: &[u32],
    file: &Range<u64>,
) -> Vec<(u32, Realm)> {
    let Striping { unit, count } = stripes.striping;
    let step = owners.len() as u64;
    if !stripes.share_servers() && count.is_multiple_of(step) {
        // Every owner has a server in each `step`, so the cycle is shorter.
        return assign(unit, first_stripe, owners, file);
    }
    let shares = match stripes.share_servers() {
        true => shares(stripes, first_stripe, owners.len()),
        false => {
            let of_owner = |place: u64| {
                let indices = 0..(count - place).div_ceil(step);
                let stripe = |index| (first_stripe % count + place + index * step) % count;
                indices.map(stripe).collect()
            };
            (0..step).map(of_owner).collect()
        }
    };
    let realm = |mut share: Vec<u64>| {
        share.sort_unstable();
        tile(stripes.striping, &share).map(|tile| Realm::tiled(0, tile, file.clone()))
    };
    let realms: Option<Vec<_>> = shares.into_iter().map(realm).collect();
    match realms {
        Some(realms) => owners.iter().copied().zip(realms).collect(),
        // No file is long enough for a cycle to repeat.
        None => assign(unit, first_stripe, owners, file),
    }
}

/// The stripes of a cycle that each of `owners` gets: all of a server's belong to
/// one owner, or to several that have no other server.
fn shares(stripes: &Stripes, first_stripe: u64, owners: usize) -> Vec<Vec<u64>> {
    let count = stripes.striping.count;
    // In the order in which the servers occur.
    let mut servers: Vec<Vec<u64>> = Vec::new();
    let mut place_of = vec![usize::MAX; stripes.servers() as usize];
    for stripe in (0..count).map(|index| (first_stripe % count + index) % count) {
        let place = &mut place_of[stripes.server_of_stripe(stripe) as usize];
        if *place == usize::MAX {
            *place = servers.len();
            servers.push(Vec::new());
        }
        servers[*place].push(stripe);
    }
    let mut owners_of: Vec<usize> = vec![1; servers.len()];
    for _ in servers.len()..owners {
        // To the server with the most stripes per owner.
        let load = |place: &usize| servers[*place].len().div_ceil(owners_of[*place]);
        let busiest = (0..servers.len()).rev().max_by_key(load);
        busiest.into_iter().for_each(|place| owners_of[place] += 1);
    }
    let mut shares = vec![Vec::new(); owners];
    // The first owner of each server, then the second of those with several.
    let mut next = servers.len();
    for ((place, of_server), owners_of) in servers.iter().enumerate().zip(owners_of) {
        let others = next..next + owners_of - 1;
        next = others.end;
        let deal = std::iter::once(place % owners).chain(others).cycle();
        of_server
            .iter()
            .zip(deal)
            .for_each(|(stripe, owner)| shares[owner].push(*stripe));
    }
    shares
}

/// The servers that hold part of a range of the file, ascending.
pub(super) fn servers_in(stripes: &Stripes, file: &Range<u64>) -> Vec<u64> {
    let Striping { unit, count } = stripes.striping;
    let first = file.start / unit;
    let used = (file.end.div_ceil(unit) - first).min(count);
    let servers = (first..first + used).map(|stripe| stripes.server_of_stripe(stripe));
    let mut servers: Vec<u64> = servers.collect();
    servers.sort_unstable();
    servers.dedup();
    servers
}

/// The stripes of a server within a range of the file.
pub(super) fn server_realm(stripes: &Stripes, server: u64, file: &Range<u64>) -> Realm {
    let Striping { unit, count } = stripes.striping;
    let of_server = stripes.stripes_of(server);
    match (of_server.as_slice(), tile(stripes.striping, &of_server)) {
        (several, Some(tile)) if several.len() > 1 => Realm::tiled(0, tile, file.clone()),
        (several, _) => {
            let stripe = several.first().copied().unwrap_or(server);
            Cycle::new(unit, count).realm(stripe, file.clone())
        }
    }
}

/// These stripes of a cycle; `None` if a cycle does not fit in 63 bits.
fn tile(striping: Striping, stripes: &[u64]) -> Option<Layout> {
    let Striping { unit, count } = striping;
    let cycle = i64::try_from(unit.checked_mul(count)?).ok()?;
    let tile = Datatype::resized(&blocks(unit, stripes)?, 0, cycle).ok()?;
    Some(tile.layout().clone())
}

/// These blocks of a cycle.
pub(super) fn blocks(unit: u64, places: &[u64]) -> Option<Datatype> {
    let block = |place: &u64| Some((unit, i64::try_from(place.checked_mul(unit)?).ok()?));
    let blocks: Option<Vec<(u64, i64)>> = places.iter().map(block).collect();
    Datatype::hindexed(&blocks?, &Basic::Byte.into()).ok()
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
    fn blocks_are_assigned_round_robin() {
        let realms = assign(2, 0, &[5, 6, 7], &(1..11));
        let none = u32::MAX;
        assert_eq!(
            owners_of(&realms, 0..12),
            [none, 5, 6, 6, 7, 7, 5, 5, 6, 6, 7, none]
        );
        let turned = assign(2, 4, &[5, 6, 7], &(8..14));
        assert_eq!(owners_of(&turned, 8..14), [5, 5, 6, 6, 7, 7]);
    }

    #[test]
    fn cycles_longer_than_any_file_do_not_repeat() {
        let block = 1 << 62;
        let end = i64::MAX as u64;
        let realms = assign(block, 0, &[0, 1, 2, 3], &(5..end));
        let files: Vec<_> = realms.iter().map(|(_, realm)| realm.file()).collect();
        assert_eq!(files[..2], [5..block, block..end]);
        assert!(realms[2..].iter().all(|(_, realm)| realm.bytes() == 0));
    }

    #[test]
    fn one_owner_has_everything() {
        let realms = assign(10, 3, &[4], &(17..95));
        assert_eq!(realms[0].1.bytes(), 95 - 17);
    }
}
