//! Even: the aggregate access region divided into equal contiguous realms, as
//! in ROMIO.

use super::Partition;
use crate::{Case, Fitness, Realm};

/// Equal contiguous realms.
#[derive(Debug)]
pub struct Even;

impl Partition for Even {
    fn name(&self) -> &'static str {
        "even"
    }

    fn fitness(&self, _case: &Case<'_>) -> Fitness {
        Fitness::suits(20, "equal contiguous realms work on any file system")
    }

    fn realms(&self, case: &Case<'_>, candidates: &[u32]) -> Vec<(u32, Realm)> {
        let region = case.region();
        let share = (region.end - region.start).div_ceil(candidates.len().max(1) as u64);
        let cut = |index: usize| {
            region
                .start
                .saturating_add(share.saturating_mul(index as u64))
                .min(region.end)
        };
        let realm = |index| Realm::contiguous(cut(index)..cut(index + 1));
        candidates
            .iter()
            .enumerate()
            .map(|(index, rank)| (*rank, realm(index)))
            .collect()
    }
}
