//! How data moves between ranks and aggregators.

use pario_hints::Exchange;

use crate::{Case, Fitness};

/// How well an exchange suits a case, and why.
pub fn fitness(exchange: Exchange, case: &Case<'_>) -> Fitness {
    let nodes = case.pattern().nodes;
    let ranks = case.facts.nodes.len();
    match (exchange, nodes) {
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
