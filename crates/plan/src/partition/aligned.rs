//! Aligned: equal contiguous realms whose boundaries are moved to the nearest
//! lock or stripe boundary (Liao 2008, section III-A), so that no two
//! aggregators share a lock.

use super::{Partition, contiguous};
use crate::{Case, Direction, Fitness, LockProtocol, Realm};

/// Contiguous realms that share no lock.
#[derive(Debug)]
pub struct Aligned;

impl Partition for Aligned {
    fn name(&self) -> &'static str {
        "aligned"
    }

    fn fitness(&self, case: &Case<'_>) -> Fitness {
        let boundary = case.boundary();
        match (case.direction, case.facts.lock_protocol) {
            _ if case.tuning.realm_alignment.is_some() => {
                Fitness::suits(85, format!("the hint romio_cb_fr_alignment is {boundary}"))
            }
            (Direction::Write, LockProtocol::Token) => Fitness::suits(
                80,
                format!(
                    "one token per realm covers all its writes: realms are multiples of {boundary} bytes"
                ),
            ),
            (Direction::Write, LockProtocol::Server) => Fitness::suits(
                40,
                "locks are not shared, but each realm needs locks from all servers",
            ),
            _ => Fitness::suits(
                30,
                format!("realm boundaries are multiples of {boundary} bytes"),
            ),
        }
    }

    fn realms(&self, case: &Case<'_>, candidates: &[u32]) -> Vec<(u32, Realm)> {
        realms(case, candidates)
    }
}

/// Equal ranges, with boundaries moved to the nearest multiples.
pub(super) fn realms(case: &Case<'_>, owners: &[u32]) -> Vec<(u32, Realm)> {
    let region = case.region();
    let count = owners.len() as u64;
    contiguous::divide(&region, owners, |index| {
        let cut = contiguous::even_cut(&region, index, count);
        contiguous::nearest(cut, case.boundary_at(cut))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Fixture, dense};

    #[test]
    fn cuts_are_at_the_nearest_boundaries() {
        let mut fixture = Fixture::new(vec![dense(10, 150); 4]);
        fixture.facts.lock_granularity = Some(16);
        let files: Vec<_> = Aligned
            .realms(&fixture.case(), &[0, 1, 2, 3])
            .into_iter()
            .map(|(_, realm)| realm.file())
            .collect();
        // Even cuts are 47, 85 and 122.
        assert_eq!(files, [10..48, 48..80, 80..128, 128..160]);
    }

    #[test]
    fn a_region_within_one_lock_has_one_owner() {
        let fixture = Fixture::new(vec![dense(100, 300); 3]);
        let realms = Aligned.realms(&fixture.case(), &[0, 1, 2]);
        let busy = realms.iter().filter(|(_, realm)| realm.bytes() > 0);
        assert_eq!(busy.count(), 1);
    }
}
