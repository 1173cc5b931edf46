//! Even: the aggregate access region cut into equal stretches (ROMIO's way).

use super::Partition;
use crate::{Case, Fitness, Realm};

/// Equal contiguous realms.
#[derive(Debug)]
pub struct Even;

impl Partition for Even {
    fn name(&self) -> &'static str {
        "even"
    }

    fn suit(&self, _case: &Case<'_>) -> Fitness {
        Fitness::suits(20, "equal stretches suit any file system a little")
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
