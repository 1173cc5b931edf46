//! Persistent: realms of the whole file, anchored at byte 0 and fixed by the
//! first call (Coloma 2006). A byte has the same owner in every call, so an
//! aggregator's cache stays valid.

use super::{Partition, cyclic, static_cyclic};
use crate::{Case, Fitness, LockProtocol, PersistentRealms, Realm};

/// Blocks sized by the first call, assigned round-robin for all calls.
#[derive(Debug)]
pub struct Persistent {
    alignment: Alignment,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Alignment {
    Byte,
    Boundary,
}

impl Persistent {
    /// Blocks of any length.
    pub const ANY: Persistent = Persistent {
        alignment: Alignment::Byte,
    };

    /// Blocks that end at lock or stripe boundaries.
    pub const ALIGNED: Persistent = Persistent {
        alignment: Alignment::Boundary,
    };

    fn realms_of(&self, case: &Case<'_>, candidates: &[u32]) -> PersistentRealms {
        if let Some(fixed) = &case.history.persistent {
            return fixed.clone();
        }
        let region = case.region();
        let share = (region.end - region.start)
            .div_ceil(candidates.len().max(1) as u64)
            .max(1);
        let block = match self.alignment {
            Alignment::Byte => share,
            Alignment::Boundary => share
                .checked_next_multiple_of(boundary_of_file(case))
                .unwrap_or(share),
        };
        PersistentRealms {
            block,
            owners: candidates.to_vec(),
        }
    }
}

/// Longer multiples of different stripes are not worth it: a single block would be
/// the whole file.
const COMMON_BYTES_MAX: u64 = 1 << 30;

/// The alignment of blocks of the whole file: a multiple of the stripes of all
/// its components, if there is a reasonable one.
fn boundary_of_file(case: &Case<'_>) -> u64 {
    let boundary = case.boundary();
    if case.tuning.realm_alignment.is_some() || case.facts.lock_protocol == LockProtocol::Token {
        return boundary;
    }
    let components = case.facts.placement.iter().flat_map(|it| it.components());
    let mut units = components.map(|it| it.striping.unit);
    let common = units.try_fold(1, |common: u64, unit| {
        let lowest = common / greatest_common_divisor(common, unit);
        lowest
            .checked_mul(unit)
            .filter(|it| *it <= COMMON_BYTES_MAX)
    });
    match common {
        Some(common) if common > 1 => common,
        _ => boundary,
    }
}

fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    match b {
        0 => a,
        _ => greatest_common_divisor(b, a % b),
    }
}

impl Partition for Persistent {
    fn name(&self) -> &'static str {
        match self.alignment {
            Alignment::Byte => "persistent",
            Alignment::Boundary => "persistent-aligned",
        }
    }

    fn fitness(&self, case: &Case<'_>) -> Fitness {
        let gain = match self.alignment {
            Alignment::Byte => (20, "owners persist across calls, but locks are shared"),
            Alignment::Boundary => (50, "owners persist across calls"),
        };
        static_cyclic::fitness(case, gain.0, gain.1)
    }

    fn realms(&self, case: &Case<'_>, candidates: &[u32]) -> Vec<(u32, Realm)> {
        let PersistentRealms { block, owners } = self.realms_of(case, candidates);
        cyclic::assign(block, 0, &owners, &case.region())
    }

    fn remember(&self, case: &Case<'_>, candidates: &[u32]) -> Option<PersistentRealms> {
        (!case.region().is_empty()).then(|| self.realms_of(case, candidates))
    }
}

#[cfg(test)]
mod tests {
    use pario_types::{Component, Placement, Storage, Striping};

    use super::*;
    use crate::testing::{Fixture, dense};

    #[test]
    fn the_first_call_fixes_the_realms() {
        for partition in [Persistent::ANY, Persistent::ALIGNED] {
            let mut fixture = Fixture::new(vec![dense(5000, 30_000); 3]);
            let first = partition.remember(&fixture.case(), &[0, 1, 2]).unwrap();
            assert_eq!(first.owners, [0, 1, 2]);
            let block = match partition.alignment {
                Alignment::Byte => 10_000,
                Alignment::Boundary => 12_288,
            };
            assert_eq!(first.block, block);
            fixture.history.persistent = Some(first.clone());
            fixture.accesses = vec![dense(1 << 40, 77); 3];
            // Other aggregators and another region: the same owners.
            let later = partition.remember(&fixture.case(), &[1]);
            assert_eq!(later, Some(first));
            let realms = partition.realms(&fixture.case(), &[1]);
            let owner = (1u64 << 40) / block % 3;
            assert!(realms[owner as usize].1.owns(1 << 40));
        }
    }

    #[test]
    fn blocks_are_whole_stripes_of_every_component() {
        let component = |file, unit| Component {
            file,
            striping: Striping { unit, count: 2 },
            storage: Storage::Unknown,
        };
        let block = |units: [u64; 2]| {
            let mut fixture = Fixture::new(vec![dense(0, 30 << 20); 3]);
            let [first, rest] = units;
            let components = vec![
                component(0..64 << 20, first),
                component(64 << 20..u64::MAX, rest),
            ];
            fixture.facts.placement = Placement::new(components);
            let realms = Persistent::ALIGNED.remember(&fixture.case(), &[0, 1, 2]);
            realms.unwrap().block
        };
        assert_eq!(block([1 << 20, 4 << 20]), 12 << 20);
        assert_eq!(block([3 << 20, 2 << 20]), 12 << 20);
    }

    #[test]
    fn an_empty_call_does_not_fix_the_realms() {
        let fixture = Fixture::new(vec![dense(0, 0); 3]);
        assert_eq!(Persistent::ANY.remember(&fixture.case(), &[0]), None);
    }
}
