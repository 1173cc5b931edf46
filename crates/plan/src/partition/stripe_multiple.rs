//! Stripe-multiple: blocks of several stripes, set by a hint, assigned
//! round-robin (Nitzberg and Lo's cyclic distribution; Liao 2008, section II).

use super::{Partition, cyclic, static_cyclic, stripes};
use crate::{Case, Fitness, Realm};

/// Blocks of `stripe_multiple` stripes, round-robin.
#[derive(Debug)]
pub struct StripeMultiple;

impl Partition for StripeMultiple {
    fn name(&self) -> &'static str {
        "stripe-multiple"
    }

    fn fitness(&self, case: &Case<'_>) -> Fitness {
        static_cyclic::fitness(case, 45, "longer transfers, but each spans several servers")
    }

    fn realms(&self, case: &Case<'_>, candidates: &[u32]) -> Vec<(u32, Realm)> {
        let unit = stripes(case, candidates).striping.unit;
        let block = unit.checked_mul(case.tuning.stripe_multiple.max(1));
        cyclic::assign(block.unwrap_or(unit), 0, candidates, &case.region())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Fixture, dense};

    #[test]
    fn blocks_are_multiples_of_the_stripe() {
        let mut fixture = Fixture::new(vec![dense(0, 100_000); 2]);
        fixture.tuning.stripe_multiple = 3;
        let realms = StripeMultiple.realms(&fixture.case(), &[0, 1]);
        let window = realms[1].1.window(0, 1 << 20);
        assert_eq!(window.extents()[0], 3 * 4096..6 * 4096);
    }
}
