//! Smaller cases that still fail.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::case::{Access, Case, Communicator, How, Mode, Scope, Step, View};
use super::compare::{self, Difference};
use super::datatype::Datatype;
use super::execute::{Runner, Server};
use super::model;
use super::record::Values;
use crate::run::TestResult;

/// Shrinking ends after this long, with what it has.
const LIMIT: Duration = Duration::from_secs(90);

/// Candidates that are run in one job.
const BATCH: usize = 24;

/// The smallest case found that fails in the same manner, and how.
pub(super) fn shrink(
    runner: &Runner<'_>,
    server: Server,
    case: Case,
    difference: Difference,
    is_same: &dyn Fn(&Case, &[Values], &Difference) -> bool,
) -> TestResult<(Case, Difference)> {
    let started = Instant::now();
    let mut best = (case, difference);
    'again: while started.elapsed() < LIMIT {
        let candidates: Vec<Case> = candidates(&best.0, best.1.step)
            .into_iter()
            .filter(|it| model::outcome(it).is_ok())
            .collect();
        // A job has one number of ranks; fewer ranks are tried first.
        let mut by_ranks: BTreeMap<usize, Vec<&Case>> = BTreeMap::new();
        for candidate in &candidates {
            by_ranks.entry(candidate.ranks).or_default().push(candidate);
        }
        for batch in by_ranks.values().flat_map(|cases| cases.chunks(BATCH)) {
            let outcomes = runner.run(batch, server, None)?;
            for (candidate, outcome) in batch.iter().zip(&outcomes) {
                let Ok(expected) = model::outcome(candidate) else {
                    continue;
                };
                match compare::difference(candidate, &expected, outcome) {
                    Some(difference) if is_same(candidate, &expected, &difference) => {
                        best = ((*candidate).clone(), difference);
                        continue 'again;
                    }
                    _ => {}
                }
            }
            if started.elapsed() > LIMIT {
                break;
            }
        }
        break;
    }
    Ok(best)
}

/// Simpler cases, the largest strides first. Not all of them have one right outcome.
fn candidates(case: &Case, failed: usize) -> Vec<Case> {
    let mut all = Vec::new();
    let mut add = |change: &dyn Fn(&mut Case)| {
        let mut copy = case.clone();
        change(&mut copy);
        if copy != *case {
            all.push(copy);
        }
    };
    let steps = case.steps.len();
    // Nothing after the step that failed, except what ends it.
    for more in 0..2 {
        if failed + more < steps {
            add(&|it| it.steps.truncate(failed + more));
        }
    }
    if case.ranks > 1 {
        for ranks in 1..case.ranks {
            add(&|it| reduce_ranks(it, ranks));
        }
    }
    for from in 0..steps {
        add(&|it| drop(it.steps.drain(from..(from + 2).min(steps))));
        add(&|it| drop(it.steps.remove(from)));
    }
    add(&|it| it.open.hints.clear());
    for at in 0..case.open.hints.len() {
        add(&|it| drop(it.open.hints.remove(at)));
    }
    add(&|it| it.communicator = Communicator::World);
    add(&|it| it.open.mode = Mode("cb".into()));
    add(&|it| it.asks_shared = false);
    add(&|it| it.fill = None);
    add(&|it| {
        if let Some(fill) = &mut it.fill {
            fill.bytes /= 2;
        }
    });
    for at in 0..steps {
        for simpler in simpler_steps(&case.steps[at], case.ranks) {
            add(&|it| it.steps[at] = simpler.clone());
        }
    }
    all
}

fn reduce_ranks(case: &mut Case, ranks: usize) {
    case.ranks = ranks;
    for step in &mut case.steps {
        match step {
            Step::View(views, _) => views.truncate(ranks),
            Step::Access(access) => access.parts.truncate(ranks),
            Step::Seek(seeks) => seeks.truncate(ranks),
            _ => {}
        }
    }
}

fn simpler_steps(step: &Step, ranks: usize) -> Vec<Step> {
    match step {
        Step::View(views, hints) => {
            let mut all = Vec::new();
            if !hints.is_empty() {
                all.push(Step::View(views.clone(), Vec::new()));
            }
            for rank in 0..ranks {
                for simpler in simpler_views(&views[rank]) {
                    let mut copy = views.clone();
                    copy[rank] = simpler;
                    all.push(Step::View(copy, hints.clone()));
                }
            }
            all
        }
        Step::Access(access) => {
            let all = simpler_accesses(access).into_iter();
            all.map(Step::Access).collect()
        }
        Step::Complete(_) => vec![Step::Complete("wait")],
        Step::Seek(seeks) => {
            let (whence, mut all) = (super::case::Whence::Set, Vec::new());
            for rank in 0..ranks {
                let mut copy = seeks.clone();
                copy[rank] = (copy[rank].0 / 2, whence);
                all.push(Step::Seek(copy));
            }
            all
        }
        Step::SetSize(size) => vec![Step::SetSize(size / 2)],
        Step::Preallocate(size) => vec![Step::Preallocate(size / 2)],
        Step::Reopen(open) => {
            let mut copy = open.clone();
            copy.hints.clear();
            let mut plain = copy.clone();
            plain.mode = Mode("cb".into());
            vec![Step::Reopen(copy), Step::Reopen(plain)]
        }
        _ => Vec::new(),
    }
}

fn simpler_views(view: &View) -> Vec<View> {
    let mut all = Vec::new();
    let mut add = |displacement, etype: &Datatype, filetype: &Datatype| {
        all.push(View {
            displacement,
            etype: etype.clone(),
            filetype: filetype.clone(),
        });
    };
    let View {
        displacement,
        etype,
        filetype,
    } = view;
    add(*displacement, etype, etype);
    for simpler in simpler_types(filetype) {
        add(*displacement, etype, &simpler);
    }
    add(0, etype, filetype);
    add(displacement / 2, etype, filetype);
    let leaf = Datatype::Basic(etype.leaf());
    add(*displacement, &leaf, filetype);
    add(*displacement, &leaf, &leaf);
    all
}

fn simpler_accesses(access: &Access) -> Vec<Access> {
    let mut all = Vec::new();
    let mut add = |change: &dyn Fn(&mut Access)| {
        let mut copy = access.clone();
        change(&mut copy);
        all.push(copy);
    };
    add(&|it| it.how = How::Blocking);
    add(&|it| it.scope = Scope::Independent);
    for rank in 0..access.parts.len() {
        let part = &access.parts[rank];
        if part.is_active {
            add(&|it| it.parts[rank].is_active = false);
            add(&|it| it.parts[rank].count = 0);
            add(&|it| it.parts[rank].count = 1);
            add(&|it| it.parts[rank].count /= 2);
            add(&|it| it.parts[rank].count -= 1);
            add(&|it| it.parts[rank].is_absolute = false);
            add(&|it| it.parts[rank].is_large = false);
            add(&|it| it.parts[rank].offset = 0);
            add(&|it| it.parts[rank].offset /= 2);
            let leaf = Datatype::Basic(part.memory.leaf());
            add(&|it| it.parts[rank].memory = leaf.clone());
            for simpler in simpler_types(&part.memory) {
                add(&|it| it.parts[rank].memory = simpler.clone());
            }
        }
    }
    all.retain(|it| it != access && it.parts.iter().all(|part| part.count >= 0));
    all
}

/// Parts of a type, and the type with fewer items.
fn simpler_types(it: &Datatype) -> Vec<Datatype> {
    let mut all = Vec::new();
    match it {
        Datatype::Basic(_) => {}
        Datatype::Contiguous(count, of) => {
            all.push((**of).clone());
            if *count > 1 {
                all.push(Datatype::Contiguous(count / 2, of.clone()));
            }
        }
        Datatype::Struct(fields) => {
            all.extend(fields.iter().map(|field| field.datatype.clone()));
            if fields.len() > 1 {
                all.push(Datatype::Struct(fields[..1].to_vec()));
                all.push(Datatype::Struct(fields[1..].to_vec()));
            }
        }
        Datatype::Vector { of, count, .. } => {
            all.push((**of).clone());
            let mut copy = it.clone();
            if let Datatype::Vector { count: it, .. } = &mut copy {
                *it = (count / 2).max(1);
            }
            all.push(copy);
        }
        Datatype::Indexed { blocks, unit, of } => {
            all.push((**of).clone());
            for at in 0..blocks.len().min(8) {
                let mut fewer = blocks.clone();
                fewer.remove(at);
                all.push(Datatype::Indexed {
                    blocks: fewer,
                    unit: *unit,
                    of: of.clone(),
                });
            }
        }
        Datatype::IndexedBlock { of, .. }
        | Datatype::Subarray { of, .. }
        | Datatype::Darray { of, .. }
        | Datatype::Dup(of) => all.push((**of).clone()),
        Datatype::Resized { low, extent, of } => {
            all.push((**of).clone());
            for simpler in simpler_types(of) {
                all.push(Datatype::Resized {
                    low: *low,
                    extent: *extent,
                    of: Box::new(simpler),
                });
            }
        }
    }
    all.retain(|simpler| simpler != it && !simpler.layout().runs.is_empty());
    all
}
