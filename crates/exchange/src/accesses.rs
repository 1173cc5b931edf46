//! Look-ups in the ranks' data, each of logarithmic cost in an implementation
//! over datatypes.

use std::ops::Range;

use crate::{Rank, Realm};

/// Whether a window may hold the ranks' parts side by side, without the gaps
/// between their data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Packing {
    /// If the data in reach would fill less than half of the buffer.
    #[default]
    Sparse,
    /// Never: gaps are read or rewritten along with the data.
    Never,
}

/// The plan of a call and the accesses of its ranks.
///
/// All offsets are bytes of the file. An aggregator asks about the ranks that
/// have data in its windows; every other rank about itself only. Accesses
/// ascend in the file; those of different ranks may overlap.
pub trait Accesses {
    /// Whether windows may be packed. The same on all ranks.
    fn packing(&self) -> Packing {
        Packing::Sparse
    }

    /// The size of windows, if it is less than the limit. The same on all ranks.
    fn window_bytes(&self) -> u64 {
        u64::MAX
    }

    /// The number of realms. Each byte of each rank belongs to one of them;
    /// realms for different ranks may overlap.
    fn realms(&self) -> u32;

    /// The aggregator of a realm.
    fn aggregator(&self, realm: Realm) -> Rank;

    /// The realms that a rank aggregates.
    fn realms_of(&self, rank: Rank) -> Vec<Realm>;

    /// From the first byte of a realm to the end of its last.
    fn hull(&self, realm: Realm) -> Range<u64>;

    /// The number of bytes of a range that belong to a realm.
    fn realm_bytes(&self, realm: Realm, file: Range<u64>) -> u64;

    /// The end of the first `bytes` bytes that a realm has from `from` on; the
    /// end of its hull if there are fewer.
    fn realm_end(&self, realm: Realm, from: u64, bytes: u64) -> u64;

    /// The ranks that may have data in a realm: each costs its aggregator one
    /// look-up per call, so an index of the accesses' spans pays off.
    fn contributors(&self, realm: Realm) -> impl Iterator<Item = Rank> + '_;

    /// The number of bytes that a rank has in a range of a realm.
    fn bytes(&self, rank: Rank, realm: Realm, file: Range<u64>) -> u64;

    /// The first byte at or past `at` that a rank has in a realm.
    fn next(&self, rank: Rank, realm: Realm, at: u64) -> Option<u64>;

    /// The last byte before `at` that a rank has in a realm.
    fn last(&self, rank: Rank, realm: Realm, at: u64) -> Option<u64>;
}
