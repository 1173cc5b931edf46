//! Persistent: realms of the whole file, anchored at byte 0 and fixed by the
//! first call (Coloma 2006). A byte has the same owner in every call, so an
//! aggregator's cache stays valid.

use super::{Partition, cyclic, static_cyclic};
use crate::{Case, Fitness, PersistentRealms, Realm};

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
                .checked_next_multiple_of(case.boundary())
                .unwrap_or(share),
        };
        PersistentRealms {
            block,
            owners: candidates.to_vec(),
        }
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
    fn an_empty_call_does_not_fix_the_realms() {
        let fixture = Fixture::new(vec![dense(0, 0); 3]);
        assert_eq!(Persistent::ANY.remember(&fixture.case(), &[0]), None);
    }
}
