//! Cost of a two-phase call for a given number of aggregators: a model to compare numbers of
//! aggregators, not to predict times.
//!
//! In Chaarawi 2011, the number of aggregators grows until each has just enough data to saturate
//! one process. That number is the upper limit here; below it, this model weighs the exchange, the
//! transfers and the servers. With `B` bytes of `P` ranks on `N` nodes, `a` aggregators with
//! windows of `w` bytes, and `S` servers:
//!
//! ```text
//! rounds    R = ceil(B / (a w))
//! exchange    = (P + a) R latency + B / min(a, N) / node_speed
//! streams   s = a, or min(a, N) where a node's kernel is the client
//! transfer    = max((B / s + R saturation) / process_speed,  B / S / server_speed)
//! contention  = max(a / S - 1, 0) R saturation / process_speed
//! time        = exchange + transfer + contention
//! ```
//!
//! `saturation` is the transfer size at which a process reaches half of its bandwidth: each
//! transfer costs as much extra time as that many bytes. Contention is the cost of a server that
//! several aggregators access alternately. Unknown servers are no limit.

use crate::Case;

/// Speeds of the machine. The defaults are typical of a cluster; only their ratios matter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CostModel {
    /// Latency of a message in microseconds.
    pub latency_us: f64,
    /// Network bandwidth of a node in bytes per microsecond.
    pub node_speed: f64,
    /// Bandwidth between a process and the file system in bytes per microsecond.
    pub process_speed: f64,
    /// Bandwidth of a server in bytes per microsecond.
    pub server_speed: f64,
}

impl Default for CostModel {
    fn default() -> CostModel {
        CostModel {
            latency_us: 2.0,
            node_speed: 10_000.0,
            process_speed: 1_000.0,
            server_speed: 1_000.0,
        }
    }
}

impl CostModel {
    /// Maximum number of aggregators that each have enough data to saturate a process (Chaarawi
    /// 2011).
    pub fn saturated(case: &Case<'_>) -> u64 {
        case.pattern()
            .bytes
            .div_ceil(case.tuning.saturation_bytes.max(1))
            .max(1)
    }

    /// Modelled time of a call in microseconds with this many aggregators on `nodes` nodes.
    pub fn time_us(&self, case: &Case<'_>, nodes: usize, aggregators: u64) -> f64 {
        let bytes = case.pattern().bytes as f64;
        let ranks = f64::from(case.ranks());
        let count = aggregators.max(1) as f64;
        let saturation_us = case.tuning.saturation_bytes as f64 / self.process_speed;
        let rounds = (bytes / (count * case.tuning.buffer_bytes.max(1) as f64)).ceil();
        let busy_nodes = count.min(nodes as f64);
        let exchange =
            (ranks + count) * rounds * self.latency_us + bytes / busy_nodes / self.node_speed;
        let streams = match case.facts.client.is_shared() {
            true => busy_nodes,
            false => count,
        };
        let process = bytes / streams / self.process_speed + rounds * saturation_us;
        let (servers, contention) = match case.stripes() {
            None => (0.0, 0.0),
            Some(stripes) => {
                let servers = stripes.servers() as f64;
                let crowd = (count / servers - 1.0).max(0.0);
                (
                    bytes / servers / self.server_speed,
                    crowd * rounds * saturation_us,
                )
            }
        };
        exchange + process.max(servers) + contention
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Client, Striping,
        testing::{Fixture, dense},
    };

    fn cluster(ranks: u32, bytes: u64) -> Fixture {
        let each = bytes / u64::from(ranks);
        let accesses = (0..u64::from(ranks)).map(|rank| dense(rank * each, each));
        let mut fixture = Fixture::new(accesses.collect());
        fixture.facts.nodes = (0..ranks).collect();
        fixture.facts.client = Client::Library;
        fixture
    }

    fn best(fixture: &Fixture) -> u64 {
        let case = fixture.case();
        let nodes = case.pattern().nodes;
        let time = |count: &u64| CostModel::default().time_us(&case, nodes, *count);
        let counts = (0..7).map(|power| 1u64 << power);
        counts
            .min_by(|a, b| time(a).total_cmp(&time(b)))
            .unwrap_or(1)
    }

    #[test]
    fn more_data_needs_more_aggregators() {
        let counts: Vec<u64> = [64 << 10, 4 << 20, 1 << 30]
            .map(|bytes| best(&cluster(64, bytes)))
            .into();
        assert!(counts.is_sorted() && counts[0] < counts[2], "{counts:?}");
    }

    #[test]
    fn few_servers_need_few_aggregators() {
        let mut fixture = cluster(64, 64 << 20);
        let free = best(&fixture);
        fixture.facts.striping = Some(Striping {
            unit: 1 << 20,
            count: 4,
        });
        assert!(best(&fixture) <= 16, "{}", best(&fixture));
        assert!(best(&fixture) < free);
    }
}
