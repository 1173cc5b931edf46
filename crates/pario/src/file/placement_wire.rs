//! Placements of files in messages: ranks that open a file later plan from the placement that
//! another rank of their node has seen.

use pario_driver::{Component, Placement, Storage, Striping};

/// The numbers of a component: its range, its striping, and its storage.
const NUMBERS: usize = 5;

/// No pool's name is longer.
const POOL_BYTES: usize = 256;

/// In place of the number of servers.
const METADATA: u64 = u64::MAX;
const UNKNOWN: u64 = u64::MAX - 1;
const UNALLOCATED: u64 = u64::MAX - 2;

/// The length and the name of the pool, then the components.
pub(super) fn to_wire(placement: &Placement) -> Vec<u8> {
    let pool = placement.pool().unwrap_or("").as_bytes();
    let pool = &pool[..pool.len().min(POOL_BYTES)];
    let mut wire = (pool.len() as u64).to_le_bytes().to_vec();
    wire.extend(pool);
    let mut words: Vec<u64> = Vec::new();
    for component in placement.components() {
        let servers = match &component.storage {
            Storage::Servers(servers) => servers.as_slice(),
            Storage::Metadata | Storage::Unallocated | Storage::Unknown => &[],
        };
        let storage = match &component.storage {
            Storage::Servers(servers) => servers.len() as u64,
            Storage::Metadata => METADATA,
            Storage::Unallocated => UNALLOCATED,
            Storage::Unknown => UNKNOWN,
        };
        let Striping { unit, count } = component.striping;
        let file = &component.file;
        words.extend([file.start, file.end, unit, count, storage]);
        words.extend(servers.iter().map(|server| u64::from(*server)));
    }
    wire.extend(words.into_iter().flat_map(u64::to_le_bytes));
    wire
}

/// `None` if the bytes are not those of a placement.
pub(super) fn from_wire(wire: &[u8]) -> Option<Placement> {
    let (len, wire) = wire.split_first_chunk()?;
    let len = usize::try_from(u64::from_le_bytes(*len)).ok()?;
    let (pool, wire) = wire.split_at_checked(len)?;
    let pool = std::str::from_utf8(pool).ok()?;
    let (words, []) = wire.as_chunks::<8>() else {
        return None;
    };
    let words: Vec<u64> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
    let mut rest = words.as_slice();
    let mut components = Vec::new();
    while let Some((&[start, end, unit, count, storage], after)) =
        rest.split_first_chunk::<NUMBERS>()
    {
        let len = match storage {
            METADATA | UNKNOWN | UNALLOCATED => 0,
            len => usize::try_from(len).ok()?,
        };
        let (servers, after) = after.split_at_checked(len)?;
        components.push(Component {
            file: start..end,
            striping: Striping { unit, count },
            storage: match storage {
                METADATA => Storage::Metadata,
                UNKNOWN => Storage::Unknown,
                UNALLOCATED => Storage::Unallocated,
                _ => {
                    let servers = servers.iter().map(|it| u32::try_from(*it).ok());
                    Storage::Servers(servers.collect::<Option<_>>()?)
                }
            },
        });
        rest = after;
    }
    let placement = Placement::new(components).filter(|_| rest.is_empty())?;
    Some(placement.with_pool(Some(pool).filter(|pool| !pool.is_empty())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placements_round_trip() {
        let striping = |unit, count| Striping { unit, count };
        let component = |file, striping, storage| Component {
            file,
            striping,
            storage,
        };
        let mixed = Placement::new(vec![
            component(0..1 << 20, striping(1 << 20, 1), Storage::Metadata),
            component(
                1 << 20..1 << 24,
                striping(1 << 20, 2),
                Storage::Servers(vec![7, 3]),
            ),
            component(1 << 24..1 << 30, striping(1 << 22, 4), Storage::Unknown),
            component(
                1 << 30..u64::MAX,
                striping(1 << 22, 8),
                Storage::Unallocated,
            ),
        ]);
        let mixed = mixed.unwrap();
        let pooled = mixed.clone().with_pool(Some("flash"));
        for placement in [Placement::uniform(striping(1 << 16, 3)), mixed, pooled] {
            let wire = to_wire(&placement);
            let back = from_wire(&wire).unwrap();
            assert_eq!(back, placement);
            assert_eq!(back.fingerprint(), placement.fingerprint());
            assert_eq!(from_wire(&wire[..wire.len() - 1]), None);
        }
        assert_eq!(from_wire(&[]), None);
    }
}
