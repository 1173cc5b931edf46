//! Resonant I/O with timed groups (Zhang 2009, section 3.4): where the data of
//! the ranks lies in rank order, no exchange is needed. Ranks only have to
//! start in order, so that each server receives ascending requests.
//!
//! Ranks that share a server, directly or through others, form a set. In a set
//! with `n` servers, the `i`-th rank is in group `i / n`; groups start one
//! after another, the ranks of a group together.

use super::{
    Algorithm, Decisions,
    resonant::{by_name_only, signal, unknown_striping},
};
use crate::{Access, Case, Fitness, Plan, Stripes, Timed};

/// Every rank moves its own data, group by group.
#[derive(Debug)]
pub struct ResonantTimed;

impl Algorithm for ResonantTimed {
    fn name(&self) -> &'static str {
        "resonant-timed"
    }

    fn fitness(&self, case: &Case<'_>) -> Fitness {
        if let Some(unfit) = unknown_striping(case) {
            return unfit;
        }
        if !case.is_increasing() || !is_in_rank_order(case.accesses) {
            return Fitness::unfit("the data of the ranks is not in rank order");
        }
        by_name_only()
    }

    fn plan(&self, case: &Case<'_>, _choices: &Decisions<'_>) -> Plan {
        let sets = match case.stripes() {
            Some(stripes) => sets(case.accesses, &stripes),
            None => Vec::new(),
        };
        Plan::Timed(Timed {
            sets,
            signal: signal(case),
        })
    }
}

/// The paper's non-overlapping condition: all bytes of a rank precede those of
/// the next.
fn is_in_rank_order(accesses: &[Access]) -> bool {
    let mut end = 0;
    accesses.iter().filter(|it| !it.is_empty()).all(|access| {
        let span = access.span();
        let follows = span.start >= end;
        end = span.end;
        follows
    })
}

/// Maximum number of stripes examined per rank; a rank with more is assumed to
/// need all servers.
const STRIPES_MAX: u64 = 1 << 12;

/// Sets of ranks that share no servers, each divided into groups.
fn sets(accesses: &[Access], stripes: &Stripes) -> Vec<Vec<Vec<u32>>> {
    let mut servers = Servers::default();
    let mut ranks: Vec<(u32, usize)> = Vec::new();
    for (access, rank) in accesses.iter().zip(0..) {
        let mut needed = servers_of(access, stripes).into_iter();
        let Some(first) = needed.next().map(|server| servers.slot(server)) else {
            continue;
        };
        for server in needed {
            let other = servers.slot(server);
            servers.join(first, other);
        }
        ranks.push((rank, first));
    }
    let mut sets: Vec<(usize, Vec<u32>)> = Vec::new();
    let mut set_of_root = vec![usize::MAX; servers.len()];
    for (rank, slot) in ranks {
        let root = servers.root(slot);
        if set_of_root[root] == usize::MAX {
            set_of_root[root] = sets.len();
            sets.push((root, Vec::new()));
        }
        sets[set_of_root[root]].1.push(rank);
    }
    let sizes = servers.sizes();
    sets.into_iter()
        .map(|(root, ranks)| ranks.chunks(sizes[root]).map(<[u32]>::to_vec).collect())
        .collect()
}

/// The servers that hold data of an access, ascending.
fn servers_of(access: &Access, stripes: &Stripes) -> Vec<u64> {
    let (span, striping) = (access.span(), stripes.striping);
    if span.is_empty() {
        return Vec::new();
    }
    let used = span.start / striping.unit..span.end.div_ceil(striping.unit);
    let count = used.end - used.start;
    // A server too many only makes some ranks wait needlessly.
    let is_too_long = count > STRIPES_MAX;
    let used = match is_too_long {
        true => used.start..used.start + striping.count.min(count),
        false => used,
    };
    let has_data = |stripe: &u64| {
        let start = stripe.saturating_mul(striping.unit);
        let data = access.data_in(start..start.saturating_add(striping.unit));
        is_too_long || !data.is_empty()
    };
    let servers = used.filter(has_data);
    let mut servers: Vec<u64> = servers.map(|it| stripes.server_of_stripe(it)).collect();
    servers.sort_unstable();
    servers.dedup();
    servers
}

/// Servers joined into sets (union-find). Slots are assigned on first use, so
/// that a few out of very many servers cost little.
#[derive(Debug, Default)]
struct Servers {
    slots: std::collections::HashMap<u64, usize>,
    parents: Vec<usize>,
}

impl Servers {
    fn slot(&mut self, server: u64) -> usize {
        let next = self.parents.len();
        let slot = *self.slots.entry(server).or_insert(next);
        if slot == next {
            self.parents.push(next);
        }
        slot
    }

    fn len(&self) -> usize {
        self.parents.len()
    }

    fn root(&mut self, slot: usize) -> usize {
        let mut at = slot;
        while self.parents[at] != at {
            self.parents[at] = self.parents[self.parents[at]];
            at = self.parents[at];
        }
        at
    }

    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.root(a), self.root(b));
        self.parents[a.max(b)] = a.min(b);
    }

    /// Number of servers in each root's set.
    fn sizes(&mut self) -> Vec<usize> {
        let mut sizes = vec![0; self.len()];
        for slot in 0..self.len() {
            let root = self.root(slot);
            sizes[root] += 1;
        }
        sizes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Striping,
        testing::{dense, strided},
    };

    fn stripes() -> Stripes {
        Striping { unit: 10, count: 4 }.into()
    }

    #[test]
    fn ranks_that_share_servers_are_in_different_groups() {
        // Ranks 0, 1, 4 and 5 on servers 0 and 1; 2 and 3 on servers 2 and 3.
        let accesses: Vec<_> = [0, 5, 20, 25, 40, 45, 80]
            .into_iter()
            .map(|at| dense(at, 5))
            .collect();
        assert!(is_in_rank_order(&accesses));
        assert_eq!(
            sets(&accesses, &stripes()),
            [
                vec![vec![0], vec![1], vec![4], vec![5], vec![6]],
                vec![vec![2], vec![3]]
            ],
            "one server per set: one rank per group"
        );
        let wide: Vec<_> = (0..5).map(|rank| dense(rank * 20, 20)).collect();
        // 0, 2 and 4 use servers 0 and 1; 1 and 3 use the others.
        assert_eq!(
            sets(&wide, &stripes()),
            [vec![vec![0, 2], vec![4]], vec![vec![1, 3]]]
        );
    }

    #[test]
    fn servers_of_long_and_of_sparse_accesses() {
        assert_eq!(servers_of(&dense(0, 1 << 40), &stripes()), [0, 1, 2, 3]);
        assert_eq!(servers_of(&strided(12, 2, 40, 8), &stripes()), [1]);
        assert_eq!(servers_of(&dense(7, 0), &stripes()), [0u64; 0]);
    }

    #[test]
    fn stripes_of_one_server_count_once() {
        let stripes = Stripes::on(stripes().striping, &[5, 6, 5, 6]);
        // Stripes 0 and 2 are on one server, so that ranks 0 and 1 take turns.
        let accesses = [0, 20, 10].map(|at| dense(at, 10));
        let expected = [vec![vec![0], vec![1]], vec![vec![2]]];
        assert_eq!(sets(&accesses, &stripes), expected);
    }

    #[test]
    fn interleaved_ranks_are_not_in_order() {
        assert!(!is_in_rank_order(&[
            strided(0, 5, 10, 20),
            strided(5, 5, 10, 20)
        ]));
        assert!(!is_in_rank_order(&[dense(10, 5), dense(0, 5)]));
        assert!(is_in_rank_order(&[dense(0, 5), dense(0, 0), dense(5, 5)]));
    }
}
