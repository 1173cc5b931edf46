//! The tree along which entries and results travel: a binomial tree of the
//! groups' leaders, and one below each leader.
//!
//! A rank has at most log2(groups) + log2(members) children, and the root is
//! as many steps away.

use crate::{Groups, Rank};

/// The place of one rank in the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tree {
    pub(crate) parent: Option<Rank>,
    pub(crate) children: Vec<Rank>,
}

/// The parent and the children of a node of a binomial tree with root 0.
fn binomial(node: u32, nodes: u32) -> (Option<u32>, Vec<u32>) {
    let parent = (node != 0).then(|| node & (node - 1));
    let below = match node {
        0 => 32,
        _ => node.trailing_zeros(),
    };
    let children = (0..below)
        .map_while(|bit| node.checked_add(1 << bit))
        .filter(|child| *child < nodes);
    (parent, children.collect())
}

impl Tree {
    /// The place of `me`, with the tree's root at `root`.
    pub(crate) fn new(groups: &Groups, root: Rank, me: Rank) -> Tree {
        let (group, root_group) = (groups.of(me), groups.of(root));
        let leader_place = |group: u32| match group == root_group {
            true => groups.place(root),
            false => 0,
        };
        let members = groups.members(group);
        let count = members.len() as u32;
        let first = leader_place(group);
        let member = |node: u32| members[((node + first) % count) as usize];
        let (parent, children) = binomial((groups.place(me) + count - first) % count, count);
        let mut tree = Tree {
            parent: parent.map(member),
            children: children.into_iter().map(member).collect(),
        };
        if parent.is_none() {
            let all = groups.count();
            let leader = |node: u32| {
                let group = (node + root_group) % all;
                groups.members(group)[leader_place(group) as usize]
            };
            let (parent, children) = binomial((group + all - root_group) % all, all);
            tree.parent = parent.map(leader);
            // Far ranks first: their messages take longer than notes.
            tree.children.splice(0..0, children.into_iter().map(leader));
        }
        tree
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rank_is_the_child_of_its_parent_and_near_the_root() {
        let patterns: [fn(u32) -> u32; 4] =
            [|_| 0, |rank| rank, |rank| rank % 3, |rank| rank.min(1)];
        for ranks in 1..40 {
            for pattern in patterns {
                let groups = Groups::by_node(&(0..ranks).map(pattern).collect::<Vec<_>>());
                for root in [0, ranks / 2, ranks - 1].map(Rank) {
                    let tree = |rank| Tree::new(&groups, root, rank);
                    for rank in (0..ranks).map(Rank) {
                        let (mut at, mut steps) = (rank, 0);
                        for child in tree(rank).children {
                            assert_eq!(tree(child).parent, Some(rank));
                        }
                        while let Some(parent) = tree(at).parent {
                            assert!(tree(parent).children.contains(&at));
                            (at, steps) = (parent, steps + 1);
                        }
                        assert_eq!(at, root);
                        assert!(steps <= 2 * (u32::BITS - ranks.leading_zeros()));
                    }
                }
            }
        }
    }
}
