//! That the draws reach what they are meant to reach: an oracle that is never
//! asked proves nothing.

use std::collections::BTreeMap;

use fastrand::Rng;
use pario::{Basic, Mode};

use crate::{
    drivers::DriverKind,
    generate,
    hints::{algorithms, exchanges, partitions},
    model::{Expected, Model},
    scenario::{Access, Action, Direction, Scenario, Step},
    spec::Spec,
};

const DRAWS: u64 = 3000;
/// Each of these occurs at least so often in that many draws.
const LEAST: usize = 5;

const WANTED: &[&str] = &[
    // Drivers.
    "on Posix",
    "on Uring",
    "on Mapped",
    "on Memory",
    "on Nagging",
    "on Throttled",
    "many ranks",
    "nodes without hints for methods",
    "on Traced",
    "on Library",
    "on Uncached",
    // Modes.
    "READ_ONLY",
    "READ_WRITE",
    "WRITE_ONLY",
    "UNIQUE_OPEN",
    "SEQUENTIAL",
    "APPEND",
    "DELETE_ON_CLOSE",
    "EXCLUSIVE",
    // Steps.
    "Each",
    "Together",
    "InFlight",
    "Race",
    "SetView",
    "SetSize",
    "Preallocate",
    "Sync",
    "SetAtomicity",
    "SeekShared",
    "SetInfo",
    "Reopen",
    "Seek Set",
    "Seek Current",
    "Seek End",
    "ByteOffset",
    // Accesses that moved data.
    "Read At Blocking",
    "Read At Owned",
    "Read At Scoped",
    "Read Individual Blocking",
    "Read Individual Owned",
    "Read Individual Scoped",
    "Read Shared Blocking",
    "Read Shared Owned",
    "Read Shared Scoped",
    "Read Ordered Blocking",
    "Read Ordered Split",
    "Read At Split",
    "Read Individual Split",
    "Write Ordered Blocking",
    "Write Ordered Split",
    "Write At Split",
    "Write Individual Split",
    "Write At Blocking",
    "Write At Owned",
    "Write At Scoped",
    "Write Individual Blocking",
    "Write Individual Owned",
    "Write Individual Scoped",
    "Write Shared Blocking",
    "Write Shared Owned",
    "Write Shared Scoped",
    "Read Native",
    "Read Internal",
    "Read External32",
    "Read Twisted",
    "Read Plain",
    "Write Native",
    "Write Internal",
    "Write External32",
    "Write Twisted",
    "Write Plain",
    // Where they ended.
    "whole read",
    "short read",
    "short read of an unordered view",
    "read of an empty view",
    "write through an unordered view",
    "large access",
    "scattered memory",
    "memory below its origin",
    // What was rejected.
    "rejected Argument",
    "rejected Access",
    "rejected ReadOnly",
    "rejected NotSame",
    "rejected UnsupportedOperation",
    // Types.
    "memory Basic",
    "memory Contiguous",
    "memory Vector",
    "memory Hvector",
    "memory Indexed",
    "memory Hindexed",
    "memory IndexedBlock",
    "memory HindexedBlock",
    "memory Structure",
    "memory Subarray",
    "memory Darray",
    "memory Resized",
    "memory Dup",
    "filetype Basic",
    "filetype Contiguous",
    "filetype Vector",
    "filetype Hvector",
    "filetype Indexed",
    "filetype Hindexed",
    "filetype IndexedBlock",
    "filetype HindexedBlock",
    "filetype Structure",
    "filetype Subarray",
    "filetype Darray",
    "filetype Resized",
    "filetype Dup",
];

const LARGE_BYTES: u64 = 256 << 10;

/// Every pair of these occurs with collective calls that move data: each
/// algorithm and each partition with each exchange, kind of sieving and
/// direction.
fn wanted_methods() -> Vec<String> {
    let sieving = ["unique", "locked", "never"];
    let aspects = || exchanges().into_iter().chain(sieving);
    let partitions = partitions().into_iter();
    let partitions = partitions.map(|name| format!("two-phase, {name}"));
    let algorithms = algorithms().into_iter().map(str::to_owned);
    let methods = algorithms.chain(partitions);
    methods
        .flat_map(|method| aspects().map(move |aspect| format!("{method}, {aspect}")))
        .flat_map(|pair| ["Read", "Write"].map(|direction| format!("{direction} by {pair}")))
        .collect()
}

/// The hints in force.
type Force = BTreeMap<&'static str, String>;

#[derive(Default)]
struct Tally(BTreeMap<String, usize>);

impl Tally {
    fn note(&mut self, what: impl Into<String>) {
        *self.0.entry(what.into()).or_default() += 1;
    }

    fn scenario(&mut self, scenario: &Scenario) {
        self.note(format!("on {:?}", scenario.opening.driver));
        for (name, _) in scenario.opening.mode.iter_names() {
            self.note(name);
        }
        let mut model = Model::new(scenario);
        let mut force: Force = scenario.opening.hints.iter().cloned().collect();
        let mut mode = scenario.opening.mode;
        self.note(format!("{} ranks", scenario.ranks()));
        let is_apart = scenario.nodes.iter().any(|node| *node != scenario.nodes[0]);
        if is_apart && scenario.ranks() > generate::RANKS_MAX_TOGETHER as usize {
            self.note("many ranks");
        }
        let selects = |(name, _): &&(&str, String)| {
            name.starts_with("pario_assume")
                || ["pario_algorithm", "pario_partition", "pario_exchange"].contains(name)
        };
        if is_apart && !scenario.opening.hints.iter().any(|hint| selects(&hint)) {
            self.note("nodes without hints for methods");
        }
        for step in &scenario.steps {
            self.note(first_word(step));
            match step {
                Step::SetInfo(hints) => force.extend(hints.iter().cloned()),
                Step::Reopen(opening) => {
                    force = opening.hints.iter().cloned().collect();
                    mode = opening.mode;
                }
                _ => {}
            }
            let before = model.clone();
            let outcome = model.take(step).expect("scenarios do not depend on timing");
            if let Step::Together(accesses) = step {
                let moved = |expected: &Vec<Expected>| expected[0].result.is_ok_and(|it| it > 0);
                if outcome.ranks.iter().any(moved) {
                    self.methods(&force, mode, accesses[0].direction);
                }
            }
            for (rank, expected) in outcome.ranks.iter().enumerate() {
                for (index, expected) in expected.iter().enumerate() {
                    match step {
                        Step::Each(plans) => {
                            self.action(&before, rank, &plans[rank].actions[index], expected);
                        }
                        Step::Together(accesses) => {
                            self.access(&before, rank, &accesses[rank], expected);
                        }
                        Step::InFlight { calls, .. } => {
                            self.access(&before, rank, &calls[index][rank], expected);
                        }
                        Step::Race(access) => self.access(&before, rank, access, expected),
                        _ => {}
                    }
                }
            }
        }
    }

    /// By which methods a collective call that moves data goes.
    fn methods(&mut self, force: &Force, mode: Mode, direction: Direction) {
        let hint = |name| force.get(name).map_or("automatic", String::as_str);
        let sieving = match hint("pario_rmw") {
            "locked" => "locked",
            _ if mode.contains(Mode::UNIQUE_OPEN) => "unique",
            _ => "never",
        };
        let method = match hint("pario_algorithm") {
            "two-phase" => {
                let pair = format!("two-phase, {}", hint("pario_partition"));
                vec!["two-phase".to_owned(), pair]
            }
            other => vec![other.to_owned()],
        };
        for method in method {
            for aspect in [hint("pario_exchange"), sieving] {
                self.note(format!("{direction:?} by {method}, {aspect}"));
            }
        }
    }

    fn action(&mut self, model: &Model, rank: usize, action: &Action, expected: &Expected) {
        match action {
            Action::Access(access) => self.access(model, rank, access, expected),
            Action::Seek(_, from) => self.note(format!("Seek {from:?}")),
            Action::ByteOffset(_) => self.note("ByteOffset"),
        }
    }

    fn access(&mut self, model: &Model, rank: usize, access: &Access, expected: &Expected) {
        let Access {
            direction,
            place,
            manner,
            memory,
        } = access;
        let (view, buffer) = (&model.views[rank], memory.buffer());
        let asked: u64 = buffer.elements.iter().map(|(basic, _)| basic.size()).sum();
        let unordered = !view.is_increasing();
        let reads = *direction == Direction::Read;
        match expected.result {
            Err(kind) => self.note(format!("rejected {kind:?}")),
            Ok(0) if reads && asked > 0 && view.is_empty() => self.note("read of an empty view"),
            Ok(0) => {}
            Ok(moved) => {
                self.note(format!("{direction:?} {} {manner:?}", first_word(place)));
                self.note(format!("{direction:?} {:?}", view.spec.stored));
                self.note(format!("memory {}", first_word(&memory.spec)));
                self.note(format!("filetype {}", first_word(&view.spec.filetype)));
                let ended = match (reads, moved == asked, unordered) {
                    (true, true, _) => "whole read",
                    (true, false, false) => "short read",
                    (true, false, true) => "short read of an unordered view",
                    (false, _, false) => "write",
                    (false, _, true) => "write through an unordered view",
                };
                self.note(ended);
                if moved > LARGE_BYTES {
                    self.note("large access");
                }
                self.memory(&memory.spec);
            }
        }
    }

    fn memory(&mut self, spec: &Spec) {
        let map = spec.map(&Basic::size);
        let bytes = map.bytes(&Basic::size);
        if bytes.windows(2).any(|pair| pair[1] != pair[0] + 1) {
            self.note("scattered memory");
        }
        if bytes.iter().any(|at| *at < 0) {
            self.note("memory below its origin");
        }
    }
}

/// The name of a variant.
fn first_word(value: &impl std::fmt::Debug) -> String {
    let text = format!("{value:?}");
    let end = text.find(|letter: char| !letter.is_alphanumeric());
    text[..end.unwrap_or(text.len())].to_owned()
}

#[test]
fn the_draws_reach_everything() {
    let mut tally = Tally::default();
    for seed in 1..=DRAWS {
        let scenario = generate::scenario(&mut Rng::with_seed(seed), &DriverKind::ALL);
        tally.scenario(&scenario);
    }
    for (what, count) in &tally.0 {
        println!("{count:6} {what}");
    }
    let seldom = |what: &str, least| tally.0.get(what).is_none_or(|count| *count < least);
    let mut rare: Vec<String> = WANTED
        .iter()
        .filter(|what| seldom(what, LEAST))
        .map(|what| (*what).to_owned())
        .collect();
    let ranks = (1..=generate::RANKS_MAX_TOGETHER).map(|count| format!("{count} ranks"));
    let never = wanted_methods().into_iter().chain(ranks);
    rare.extend(never.filter(|what| seldom(what, 1)));
    assert!(rare.is_empty(), "seldom or never drawn: {rare:?}");
}
