//! Weak scaling of a collective write and read in virtual time.
//!
//! `cargo run --release -p pario-exchange --example scale -- 65536` runs up to
//! so many ranks, 64 to a node.

use std::{env, sync::Arc};

use pario_exchange::{
    Direction, Groups, Limits, Rank, Setting,
    simulate::{self, Model, Pattern},
};

const RANKS_PER_NODE: u32 = 64;
const MIB: u64 = 1 << 20;

fn main() {
    let most = env::args().nth(1).map_or(4096, |ranks| {
        ranks.parse().expect("the number of ranks, such as 65536")
    });
    println!(
        "{:>7} {:>6} {:>9} {:>8} {:>9} {:>10} {:>13} {:>13} {:>12} {:>8} {:>8}",
        "ranks",
        "nodes",
        "pattern",
        "way",
        "virtual",
        "messages",
        "events/member",
        "look-ups/mem.",
        "look-ups/agg",
        "memory",
        "overlap"
    );
    let mut ranks = 256;
    while ranks <= most {
        for name in ["blocks", "records", "same"] {
            for direction in [Direction::Write, Direction::Read] {
                row(ranks, name, direction);
            }
        }
        ranks *= 4;
    }
}

fn row(ranks: u32, name: &str, direction: Direction) {
    let nodes = ranks.div_ceil(RANKS_PER_NODE);
    // One aggregator on every fourth node, at least one.
    let aggregators = (0..nodes)
        .step_by(4)
        .map(|node| Rank(node * RANKS_PER_NODE));
    let pattern = match name {
        "blocks" => Pattern::blocks(ranks, MIB),
        "records" => Pattern::cyclic(ranks, 4096, 32),
        _ => Pattern::same(ranks, MIB),
    };
    if name == "same" && direction == Direction::Write {
        return;
    }
    let pattern = pattern.aggregated_by(aggregators.collect(), 4 * MIB);
    let node_of: Vec<u32> = (0..ranks).map(|rank| rank / RANKS_PER_NODE).collect();
    let setting = Arc::new(Setting {
        direction,
        groups: Arc::new(Groups::by_node(&node_of)),
        root: Rank(0),
        limits: Limits {
            window_bytes: 4 * MIB,
            slice_bytes: 4 * MIB,
            depth: 2,
            staging: 2,
            node_buffers: 2,
            unit: 4 * MIB,
            eager_bytes: 65536,
            tags: 0..4096,
        },
    });
    let bytes = pattern.rank_bytes();
    let report = simulate::run(&setting, &Arc::new(pattern), |_| bytes, &Model::default());
    let total = report.total;
    println!(
        "{:>7} {:>6} {:>9} {:>8} {:>7.1}ms {:>10} {:>13} {:>13} {:>12} {:>5}MiB {:>5}MiB",
        ranks,
        nodes,
        name,
        format!("{direction:?}").to_lowercase(),
        report.makespan_ns as f64 / 1e6,
        total.control_messages + total.data_messages,
        report.most_member.events,
        report.most_member.lookups,
        report.most.lookups,
        report.most.memory_bytes_max / MIB,
        report.overlapped_bytes / MIB,
    );
}
