//! The same collective calls by every method.

use std::borrow::Cow;

use pario::Mode;

use crate::scenario::{ALL_RANKS, How::*, Lie::*, Pattern, Scenario, Step, Step::*, Telling};

/// With the exchanges that they take.
const ALGORITHMS: &[(&str, &[&str])] = &[
    ("individual", &["automatic"]),
    ("private-sieve", &["automatic"]),
    ("two-phase", EXCHANGES),
    ("static-segmentation", &["automatic"]),
    ("dynamic-segmentation", EXCHANGES),
    ("one-per-server", EXCHANGES),
    ("resonant", EXCHANGES),
    ("resonant-prefetch", &["automatic"]),
    ("resonant-timed", &["automatic"]),
];

const EXCHANGES: &[&str] = &["shared", "messages", "alltoall", "two-layer"];

/// What may be done about holes.
struct Sieving {
    name: &'static str,
    mode: Mode,
    rmw: &'static str,
}

const SIEVING: &[Sieving] = &[
    Sieving {
        name: "no sieving",
        mode: Mode::empty(),
        rmw: "never",
    },
    Sieving {
        name: "sieving alone",
        mode: Mode::UNIQUE_OPEN,
        rmw: "never",
    },
    Sieving {
        name: "sieving with locks",
        mode: Mode::empty(),
        rmw: "locked",
    },
];

const STEPS: &[Step] = &[
    View(Pattern::Strided),
    Write(AtAll, Dense),
    Read(All, Scattered),
    Write(NonblockingAtAll, Dense),
    Read(NonblockingAtAll, Dense),
    Write(SplitAtAll, Scattered),
    Read(SplitAll, Dense),
    View(Pattern::BeyondTheEnd),
    Write(SplitAll, Dense),
    Read(AtAll, Dense),
    View(Pattern::Common),
    Write(Ordered, Dense),
    Write(SplitOrdered, Dense),
    Sync,
];

/// A scenario for each algorithm with each exchange, on assumed servers and
/// with windows of a few bytes. Two-phase comes with every kind of sieving,
/// the others with one in turn.
pub(crate) fn scenarios() -> Vec<Scenario> {
    let mut scenarios = Vec::new();
    for (algorithm, exchanges) in ALGORITHMS.iter().copied() {
        for exchange in exchanges.iter().copied() {
            let turn = scenarios.len() % SIEVING.len();
            let sieving = match algorithm {
                "two-phase" => SIEVING,
                _ => &SIEVING[turn..=turn],
            };
            let scenario = |sieving: &Sieving| scenario(algorithm, exchange, sieving);
            scenarios.extend(sieving.iter().map(scenario));
        }
    }
    scenarios
}

fn scenario(algorithm: &'static str, exchange: &'static str, sieving: &Sieving) -> Scenario {
    Scenario {
        name: Cow::Owned(format!("{algorithm}, {exchange}, {}", sieving.name)),
        ranks: &[3],
        ranks_per_node: match exchange {
            "two-layer" => 2,
            _ => ALL_RANKS,
        },
        mode: Mode::READ_WRITE | sieving.mode,
        hints: Cow::Owned(vec![
            ("pario_algorithm", algorithm),
            ("pario_exchange", exchange),
            ("pario_rmw", sieving.rmw),
            ("pario_assume_striping", "80,2"),
            ("pario_timed_delay_us", "1"),
            ("cb_buffer_size", "120"),
            ("pario_slice_bytes", "100"),
            ("cb_nodes", "2"),
        ]),
        steps: STEPS,
        telling: match algorithm {
            // What could not be read ahead is read again. `resonant` may read ahead, too.
            "resonant" | "resonant-prefetch" => Telling::Perhaps,
            _ => Telling::Always,
        },
    }
}
