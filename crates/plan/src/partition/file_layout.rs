//! File-layout: one aggregator per server, which owns the stripes of that
//! server (Nitzberg and Lo's file-layout distribution; Liao 2008, section II).

use super::{Partition, cyclic, static_cyclic, stripes};
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
        let stripes = stripes(case, candidates);
        let region = case.region();
        let ranks = aggregators::spread(&case.facts.nodes, stripes.servers());
        // Servers without a stripe in the region need no aggregator.
        cyclic::servers_in(&stripes, &region)
            .into_iter()
            .map(|server| {
                let owner = ranks[(server % ranks.len() as u64) as usize];
                (owner, cyclic::server_realm(&stripes, server, &region))
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
    fn a_server_with_several_stripes_has_one_aggregator() {
        let mut fixture = Fixture::new(vec![dense(35, 100); 6]);
        fixture.overstripe(10, &[4, 4, 6, 4]);
        let realms = FileLayout.realms(&fixture.case(), &[0]);
        assert_eq!(realms.len(), 2);
        for byte in 35..135 {
            let owner = realms.iter().find(|(_, it)| it.owns(byte)).unwrap().0;
            assert_eq!(owner, [0, 0, 3, 0][byte as usize / 10 % 4]);
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
