//! Which way a message takes: straight, or through the leader of a node.

use std::collections::HashMap;

use pario_transport::{Rank, Transport};

use super::planning::Exchange;
use crate::Result;

/// How a rank's data reaches a window's owner, or comes from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Route {
    /// In a message of its own.
    Direct,
    /// In one message with that of the other ranks of its node, which this
    /// rank puts together or takes apart.
    Through(u32),
}

/// The routes of a call.
#[derive(Debug)]
pub(super) struct Routes {
    nodes: Vec<u32>,
    exchange: Exchange,
}

impl Routes {
    pub(super) fn new(comm: &dyn Transport, exchange: Exchange) -> Routes {
        let nodes = (0..comm.size())
            .map(|rank| comm.node_of(Rank(rank)).0)
            .collect();
        Routes { nodes, exchange }
    }

    /// Whether ranks send messages even where they have nothing to say.
    pub(super) fn sends_empty(&self) -> bool {
        self.exchange == Exchange::AllToAll
    }

    /// The route of a rank's data to or from an owner.
    pub(super) fn of(&self, rank: u32, owner: u32) -> Route {
        let node = self.nodes[rank as usize];
        if self.exchange != Exchange::TwoLayer || node == self.nodes[owner as usize] {
            return Route::Direct;
        }
        let leader = self.nodes.iter().position(|other| *other == node);
        Route::Through(leader.map_or(rank, |leader| leader as u32))
    }

    /// The ranks, of those that have data, whose leader `me` is.
    pub(super) fn led_by(&self, me: u32, owner: u32, ranks: &[u32]) -> Vec<u32> {
        let led = |rank: &u32| self.of(*rank, owner) == Route::Through(me);
        ranks.iter().copied().filter(led).collect()
    }
}

/// Messages that hold the parts of several ranks, taken apart in rank order.
#[derive(Debug, Default)]
pub(super) struct NodeMessages {
    rest: HashMap<u32, std::vec::IntoIter<u8>>,
}

impl NodeMessages {
    /// The next `bytes` of a leader's message, which is received at first
    /// need.
    pub(super) fn take(
        &mut self,
        leader: u32,
        bytes: usize,
        receive: impl FnOnce() -> Result<Vec<u8>>,
    ) -> Result<Vec<u8>> {
        if let std::collections::hash_map::Entry::Vacant(place) = self.rest.entry(leader) {
            place.insert(receive()?.into_iter());
        }
        let rest = self.rest.get_mut(&leader);
        Ok(rest
            .map(|rest| rest.take(bytes).collect())
            .unwrap_or_default())
    }
}
