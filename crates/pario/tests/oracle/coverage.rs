//! That the draws reach what they are meant to reach: an oracle that is never
//! asked proves nothing.

use std::collections::BTreeMap;

use fastrand::Rng;
use pario::Basic;

use crate::{
    carriers::Carrier,
    generate,
    model::{Expected, Model},
    scenario::{Access, Action, Scenario, Step},
    spec::Spec,
};

const DRAWS: u64 = 2000;
/// Each of these occurs at least so often in that many draws.
const LEAST: usize = 5;

const WANTED: &[&str] = &[
    // Drivers.
    "on Posix",
    "on Uring",
    "on Memory",
    "on Nagging",
    "on Throttled",
    "on Traced",
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
    // What was refused.
    "refused Argument",
    "refused Access",
    "refused ReadOnly",
    "refused NotSame",
    "refused UnsupportedOperation",
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

#[derive(Default)]
struct Tally(BTreeMap<String, usize>);

impl Tally {
    fn note(&mut self, what: impl Into<String>) {
        *self.0.entry(what.into()).or_default() += 1;
    }

    fn scenario(&mut self, scenario: &Scenario) {
        self.note(format!("on {:?}", scenario.opening.carrier));
        for (name, _) in scenario.opening.mode.iter_names() {
            self.note(name);
        }
        let mut model = Model::new(scenario);
        for step in &scenario.steps {
            self.note(first_word(step));
            let before = model.clone();
            let outcome = model.take(step).expect("scenarios do not depend on timing");
            for (rank, expected) in outcome.ranks.iter().enumerate() {
                for (index, expected) in expected.iter().enumerate() {
                    match step {
                        Step::Each(plans) => {
                            self.action(&before, rank, &plans[rank].actions[index], expected);
                        }
                        Step::Together(accesses) => {
                            self.access(&before, rank, &accesses[rank], expected);
                        }
                        Step::Race(access) => self.access(&before, rank, access, expected),
                        _ => {}
                    }
                }
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
        let reads = *direction == crate::scenario::Direction::Read;
        match expected.result {
            Err(kind) => self.note(format!("refused {kind:?}")),
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
        let scenario = generate::scenario(&mut Rng::with_seed(seed), &Carrier::ALL);
        tally.scenario(&scenario);
    }
    for (what, count) in &tally.0 {
        println!("{count:6} {what}");
    }
    let rare: Vec<_> = WANTED
        .iter()
        .filter(|what| tally.0.get(**what).copied().unwrap_or(0) < LEAST)
        .collect();
    assert!(rare.is_empty(), "seldom or never drawn: {rare:?}");
}
