//! How data moves between ranks and aggregators.

use pario_hints::Exchange;

use crate::{Case, Fitness};

/// How well an exchange suits a case, and why.
pub fn fitness(exchange: Exchange, case: &Case<'_>) -> Fitness {
    let nodes = case.pattern().nodes;
    let ranks = case.facts.nodes.len();
    match (exchange, nodes) {
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
        (Exchange::AllToAll, _) => Fitness::suits(30, "all ranks take part in every round"),
    }
}
