//! File-layout: one aggregator per server, which owns the stripes of that
//! server (Nitzberg and Lo's file-layout distribution; Liao 2008, section II).

use super::{Partition, cyclic::Cycle, static_cyclic, stripes};
use crate::{Case, Fitness, Realm, aggregators};

/// As many aggregators as servers.
#[derive(Debug)]
pub struct FileLayout;

impl Partition for FileLayout {
    fn name(&self) -> &'static str {
        "file-layout"
    }

    fn fitness(&self, case: &Case<'_>) -> Fitness {
        match case.one_striping() {
            Err(unfit) => unfit,
            Ok(_) => {
                static_cyclic::fitness(case, 60, "each server gets requests from one aggregator")
            }
        }
    }

    fn realms(&self, case: &Case<'_>, candidates: &[u32]) -> Vec<(u32, Realm)> {
        let striping = stripes(case, candidates);
        let region = case.region();
        let first = region.start / striping.unit;
        let stripes = region.end.div_ceil(striping.unit) - first;
        // Servers without a stripe in the region need no aggregator.
        let servers = (first..first + stripes.min(striping.count)).map(|at| at % striping.count);
        let ranks = aggregators::spread(&case.facts.nodes, striping.count);
        let cycle = Cycle::new(striping.unit, striping.count);
        servers
            .map(|server| {
                let owner = ranks[(server % ranks.len() as u64) as usize];
                (owner, cycle.realm(server, region.clone()))
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Striping,
        testing::{Fixture, dense},
    };

    #[test]
    fn every_server_has_its_own_aggregator() {
        let mut fixture = Fixture::new(vec![dense(35, 100); 6]);
        fixture.facts.striping = Some(Striping { unit: 10, count: 4 });
        let realms = FileLayout.realms(&fixture.case(), &[0]);
        assert_eq!(realms.len(), 4);
        for byte in 35..135 {
            let owners: Vec<_> = realms.iter().filter(|(_, it)| it.owns(byte)).collect();
            assert_eq!(owners.len(), 1);
            // Four of the six ranks, at equal distances.
            assert_eq!(owners[0].0, [0, 1, 3, 4][byte as usize / 10 % 4]);
        }
    }

    #[test]
    fn a_short_region_needs_few_aggregators() {
        let mut fixture = Fixture::new(vec![dense(35, 10); 6]);
        fixture.facts.striping = Some(Striping {
            unit: 10,
            count: 1000,
        });
        assert_eq!(FileLayout.realms(&fixture.case(), &[0]).len(), 2);
    }
}
