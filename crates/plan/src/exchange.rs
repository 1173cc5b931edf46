//! How data moves between ranks.

use std::fmt;

use crate::{Case, Fitness};

/// A method to exchange data with the owner of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Exchange {
    /// Through memory that all ranks share.
    Shared,
    /// One message from each rank to each aggregator that it shares data with.
    Messages,
    /// One message from each rank to each aggregator in each round (Coloma
    /// 2006's Alltoallw).
    AllToAll,
    /// Within each node first, then one message per node and aggregator.
    TwoLayer,
}

impl Exchange {
    /// All exchanges, in tie-breaking order.
    pub const ALL: [Exchange; 4] = [
        Exchange::Shared,
        Exchange::Messages,
        Exchange::AllToAll,
        Exchange::TwoLayer,
    ];

    /// Name in hints and explanations.
    pub fn name(self) -> &'static str {
        match self {
            Exchange::Shared => "shared",
            Exchange::Messages => "messages",
            Exchange::AllToAll => "alltoall",
            Exchange::TwoLayer => "two-layer",
        }
    }

    /// The exchange with this name.
    pub fn by_name(name: &str) -> Option<Exchange> {
        Exchange::ALL.into_iter().find(|it| it.name() == name)
    }

    /// How well it suits a case, and why.
    pub fn fitness(self, case: &Case<'_>) -> Fitness {
        let nodes = case.pattern().nodes;
        let ranks = case.facts.nodes.len();
        match (self, nodes) {
            (Exchange::Shared, 0 | 1) => {
                Fitness::suits(90, "all ranks are on one node: one copy, no messages")
            }
            (Exchange::Shared, _) => Fitness::unfit(format!("{nodes} nodes share no memory")),
            (Exchange::TwoLayer, 0 | 1) => Fitness::suits(5, "there is only one node"),
            (Exchange::TwoLayer, _) if ranks > nodes => Fitness::suits(
                60,
                format!("one message per node ({nodes}) instead of per rank ({ranks})"),
            ),
            (Exchange::TwoLayer, _) => Fitness::suits(20, "every node has only one rank"),
            (Exchange::Messages, _) => Fitness::suits(40, "works everywhere"),
            (Exchange::AllToAll, _) => Fitness::suits(30, "suits networks with fast collectives"),
        }
    }
}

impl fmt::Display for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
