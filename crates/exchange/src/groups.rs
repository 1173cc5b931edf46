//! Which ranks combine their data, and who sends for them.

use crate::{Rank, Realm};

/// Which rank sends a group's data to the aggregator of another group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Layer {
    /// One rank for the whole group: one message per node and window.
    Node,
    /// Each rank sends its own data: for nodes on which a rank may be busy
    /// while the others wait for it.
    Rank,
}

/// Groups of ranks that fill each other's buffers: the ranks of a node, or
/// single ranks if they share no memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Groups {
    layer: Layer,
    of_rank: Vec<u32>,
    /// The ranks of all groups, group after group, ascending in each.
    members: Vec<Rank>,
    /// The start of each group in `members`, and the end of the last.
    starts: Vec<u32>,
    /// The place of each rank in its group.
    places: Vec<u32>,
}

impl Groups {
    /// One group per node. `nodes` names the node of each rank.
    pub fn by_node(nodes: &[u32]) -> Groups {
        let mut ranks: Vec<(u32, u32)> = nodes.iter().copied().zip(0..).collect();
        ranks.sort_unstable();
        let mut groups = Groups {
            layer: Layer::Node,
            of_rank: vec![0; nodes.len()],
            members: Vec::with_capacity(nodes.len()),
            starts: vec![0],
            places: vec![0; nodes.len()],
        };
        for (group, node) in (0..).zip(ranks.chunk_by(|a, b| a.0 == b.0)) {
            for (place, (_, rank)) in (0..).zip(node) {
                groups.of_rank[*rank as usize] = group;
                groups.places[*rank as usize] = place;
                groups.members.push(Rank(*rank));
            }
            groups.starts.push(groups.members.len() as u32);
        }
        groups
    }

    /// The same groups, in which each rank sends its own part. Those on an
    /// aggregator's node still fill its windows.
    pub fn without_layer(self) -> Groups {
        Groups {
            layer: Layer::Rank,
            ..self
        }
    }

    /// Ranks that share no memory with any other.
    pub fn alone(ranks: u32) -> Groups {
        Groups::by_node(&(0..ranks).collect::<Vec<_>>())
    }

    /// The number of ranks.
    pub fn ranks(&self) -> u32 {
        self.of_rank.len() as u32
    }

    /// The number of groups.
    pub fn count(&self) -> u32 {
        self.starts.len() as u32 - 1
    }

    /// The group of a rank.
    pub fn of(&self, rank: Rank) -> u32 {
        self.of_rank[rank.index()]
    }

    /// The ranks of a group, ascending.
    pub fn members(&self, group: u32) -> &[Rank] {
        let group = group as usize;
        &self.members[self.starts[group] as usize..self.starts[group + 1] as usize]
    }

    /// The place of a rank among the members of its group.
    pub fn place(&self, rank: Rank) -> u32 {
        self.places[rank.index()]
    }

    /// Whether two ranks fill each other's buffers.
    pub fn share(&self, a: Rank, b: Rank) -> bool {
        self.of(a) == self.of(b)
    }

    /// The rank that sends or receives a rank's data of a realm. It is spread
    /// over the group, and every rank computes it alone.
    pub fn relay(&self, rank: Rank, realm: Realm) -> Rank {
        match self.layer {
            Layer::Rank => rank,
            Layer::Node => {
                let members = self.members(self.of(rank));
                members[spread(realm.0, members.len() as u32) as usize]
            }
        }
    }

    /// The position of a rank in the order in which an aggregator serves
    /// ranks, the same for ranks that send together: 0 for the aggregator's
    /// own group, then the groups that follow it cyclically, so that
    /// aggregators do not all start with the same one.
    pub(crate) fn position(&self, aggregator: Rank, rank: Rank) -> u32 {
        let distance = |it: u32, own: u32, all: u32| (it + all - own) % all;
        match self.layer {
            _ if self.share(aggregator, rank) => 0,
            Layer::Node => distance(self.of(rank), self.of(aggregator), self.count()),
            Layer::Rank => distance(rank.0, aggregator.0, self.ranks()),
        }
    }
}

/// A number below `count` for each realm. As many neighbouring realms have
/// different ones; farther apart, the order is scrambled: the realms in which a
/// node has data are often equally spaced, for instance by a multiple of the
/// ranks per node.
fn spread(realm: u32, count: u32) -> u32 {
    (realm % count + scramble(realm / count) % count) % count
}

/// A hash of a number, 0 for 0.
fn scramble(number: u32) -> u32 {
    let mixed = number.wrapping_mul(0x9e37_79b1);
    let mixed = (mixed ^ mixed >> 15).wrapping_mul(0x85eb_ca6b);
    mixed ^ mixed >> 13
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equally_spaced_realms_are_spread_over_a_group() {
        for ranks in [1, 2, 3, 8, 48, 64] {
            let groups = Groups::by_node(&vec![0; ranks as usize]);
            let first = (0..ranks).map(|realm| groups.relay(Rank(0), Realm(realm)));
            assert!(first.eq((0..ranks).map(Rank)));
            for distance in (1..=2 * ranks).chain([ranks * ranks]) {
                let realms = (0..ranks).map(|nth| Realm(5 + nth * distance));
                let mut served = vec![0; ranks as usize];
                for realm in realms {
                    served[groups.relay(Rank(0), realm).index()] += 1;
                }
                let most = served.iter().max().unwrap();
                assert!(*most <= 8, "{ranks} ranks, every {distance}: {served:?}");
            }
        }
    }
}
