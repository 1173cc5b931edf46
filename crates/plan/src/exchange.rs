//! How data gets from rank to rank.

use std::fmt;

use crate::{Case, Fitness};

/// A way to exchange data with the owner of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Exchange {
    /// Through memory that all ranks share.
    Shared,
    /// A message from each rank to each owner that has something of it.
    Messages,
    /// A message from each rank to each owner in each round (Coloma 2006's
    /// Alltoallw).
    AllToAll,
    /// By node first, then one message a node and owner.
    TwoLayer,
}

impl Exchange {
    /// All of them, in the order in which ties are resolved.
    pub const ALL: [Exchange; 4] = [
        Exchange::Shared,
        Exchange::Messages,
        Exchange::AllToAll,
        Exchange::TwoLayer,
    ];

    /// Its name, in hints and explanations.
    pub fn name(self) -> &'static str {
        match self {
            Exchange::Shared => "shared",
            Exchange::Messages => "messages",
            Exchange::AllToAll => "alltoall",
            Exchange::TwoLayer => "two-layer",
        }
    }

    /// The exchange of that name.
    pub fn by_name(name: &str) -> Option<Exchange> {
        Exchange::ALL.into_iter().find(|it| it.name() == name)
    }

    /// How well it suits a case, and why.
    pub fn suit(self, case: &Case<'_>) -> Fitness {
        let nodes = case.pattern().nodes;
        let ranks = case.facts.nodes.len();
        match (self, nodes) {
            (Exchange::Shared, 0 | 1) => {
                Fitness::suits(90, "all ranks share a node: one copy, no messages")
            }
            (Exchange::Shared, _) => Fitness::unfit(format!("{nodes} nodes share no memory")),
            (Exchange::TwoLayer, 0 | 1) => Fitness::suits(5, "there is only one node to gather"),
            (Exchange::TwoLayer, _) if ranks > nodes => Fitness::suits(
                60,
                format!("one message for each of {nodes} nodes instead of {ranks} ranks"),
            ),
            (Exchange::TwoLayer, _) => Fitness::suits(20, "every node has one rank only"),
            (Exchange::Messages, _) => Fitness::suits(40, "works everywhere"),
            (Exchange::AllToAll, _) => {
                Fitness::suits(30, "for networks made for collective communication")
            }
        }
    }
}

impl fmt::Display for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
