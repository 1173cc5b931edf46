//! Properties of every partition and every plan, with random accesses, facts
//! and hints. `PARIO_SEED` reproduces a failed case, `PARIO_CASES` sets the
//! number of cases.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::{
    collections::{BTreeMap, BTreeSet},
    env,
    ops::Range,
};

use fastrand::Rng;
use pario_layout::{Basic, Datatype, Layout};
use pario_plan::{
    Access, Case, Client, Direction, Facts, History, LockProtocol, Placement, Plan, Realm, Rounds,
    Stripes, Striping, Timed, Tuning, algorithm::ALGORITHMS, coverage, decide, locks, partition,
    partition::PARTITIONS,
};
use pario_types::{Component, Storage};

const CASES: u64 = 600;

/// A random call.
#[derive(Debug)]
struct Sample {
    direction: Direction,
    accesses: Vec<Access>,
    facts: Facts,
    tuning: Tuning,
    history: History,
}

impl Sample {
    fn case(&self) -> Case<'_> {
        Case::new(
            self.direction,
            &self.accesses,
            &self.facts,
            &self.tuning,
            &self.history,
        )
    }

    fn random(random: &mut Rng) -> Sample {
        let ranks = random.usize(1..=16);
        let same = random.bool().then(|| layout(random));
        let accesses = (0..ranks).map(|_| access(random, same.as_ref())).collect();
        Sample {
            direction: *pick(random, &[Direction::Read, Direction::Write]),
            accesses,
            facts: facts(random, ranks),
            tuning: tuning(random),
            history: History::default(),
        }
    }
}

fn pick<'a, T>(random: &mut Rng, from: &'a [T]) -> &'a T {
    &from[random.usize(..from.len())]
}

/// Dense, strided, nested or irregular; always ascending.
fn layout(random: &mut Rng) -> Layout {
    let byte = Datatype::basic(Basic::Byte);
    let len = random.u64(1..40);
    let datatype = match random.u8(0..4) {
        0 => return Layout::dense(len),
        1 => {
            let block = Datatype::contiguous(len, &byte).unwrap();
            Datatype::resized(&block, 0, (len + random.u64(0..200)) as i64).unwrap()
        }
        2 => {
            let stride = (len + random.u64(0..50)) as i64;
            let rows = Datatype::hvector(random.u64(1..6), len, stride, &byte).unwrap();
            let extent = rows.layout().true_upper_bound() + random.i64(0..300);
            Datatype::resized(&rows, 0, extent).unwrap()
        }
        _ => {
            let mut at = 0;
            let blocks: Vec<(u64, i64)> = (0..random.u64(1..8))
                .map(|_| {
                    at += random.i64(0..60);
                    let block = (random.u64(1..30), at);
                    at += block.0 as i64;
                    block
                })
                .collect();
            let blocks = Datatype::hindexed(&blocks, &byte).unwrap();
            Datatype::resized(&blocks, 0, at + random.i64(0..90)).unwrap()
        }
    };
    datatype.layout().clone()
}

fn access(random: &mut Rng, same: Option<&Layout>) -> Access {
    let layout = same.cloned().unwrap_or_else(|| layout(random));
    let len = match random.u8(0..8) {
        0 => 0,
        1 => random.u64(0..5),
        _ => random.u64(0..600),
    };
    // Occasionally distant clusters.
    let place = *pick(random, &[0, 0, 0, 1_000, 1 << 40]) + random.u64(0..500);
    Access::new(place, layout, random.u64(0..50), len).unwrap()
}

fn facts(random: &mut Rng, ranks: usize) -> Facts {
    let nodes = random.u32(1..5);
    let placement = (random.u8(0..4) == 0).then(|| placement(random));
    Facts {
        nodes: (0..ranks).map(|_| random.u32(0..nodes)).collect(),
        striping: match &placement {
            Some(placement) => Some(placement.striping()),
            None => random.bool().then(|| striping(random)),
        },
        placement,
        lock_granularity: random.bool().then(|| random.u64(1..300)),
        lock_protocol: *pick(
            random,
            &[
                LockProtocol::None,
                LockProtocol::Server,
                LockProtocol::Token,
            ],
        ),
        client: *pick(random, &[Client::Local, Client::Kernel, Client::Library]),
        in_memory: random.bool(),
        block_bytes: random.u64(1..300),
        nonblocking: random.bool(),
    }
}

fn striping(random: &mut Rng) -> Striping {
    Striping {
        unit: random.u64(1..300),
        count: random.u64(1..9),
    }
}

/// Components, possibly with gaps between them.
fn placement(random: &mut Rng) -> Placement {
    let mut at = 0;
    let components = (0..random.u8(1..4)).map(|_| {
        at += *pick(random, &[0, 0, 100]);
        let start = at;
        at += random.u64(1..2000);
        let striping = striping(random);
        Component {
            file: start..at,
            striping,
            storage: storage(random, striping),
        }
    });
    let mut components: Vec<_> = components.collect();
    if random.bool() {
        components.last_mut().unwrap().file.end = u64::MAX;
    }
    Placement::new(components).unwrap()
}

/// Servers that are not known, or a few that hold several stripes.
fn storage(random: &mut Rng, striping: Striping) -> Storage {
    match random.bool() {
        true => Storage::Unknown,
        false => {
            let servers = random.u32(1..6);
            let server = |_| random.u32(..servers);
            Storage::Servers((0..striping.count).map(server).collect())
        }
    }
}

fn tuning(random: &mut Rng) -> Tuning {
    let lists = ["*:1", "0:2,*:1", "*:*", "3:1"];
    Tuning {
        buffer_bytes: random.u64(1..500),
        slice_bytes: Some(random.u64(1..500)),
        aggregators: random.bool().then(|| random.u32(1..20)),
        config_list: (random.u8(0..4) == 0).then(|| pick(random, &lists).parse().unwrap()),
        realm_alignment: (random.u8(0..4) == 0).then(|| random.u64(1..200)),
        saturation_bytes: random.u64(1..1000),
        agents_per_server: random.u32(1..4),
        stripe_multiple: random.u64(1..5),
        ..Tuning::default()
    }
}

fn for_random_cases(check: impl Fn(&mut Sample, &mut Rng) + std::panic::RefUnwindSafe) {
    let number = |name: &str| env::var(name).ok().and_then(|text| text.parse().ok());
    let seeds: Vec<u64> = match number("PARIO_SEED") {
        Some(seed) => vec![seed],
        None => (0..number("PARIO_CASES").unwrap_or(CASES)).collect(),
    };
    for seed in seeds {
        let outcome = std::panic::catch_unwind(|| {
            let mut random = Rng::with_seed(seed);
            check(&mut Sample::random(&mut random), &mut random);
        });
        if let Err(panic) = outcome {
            eprintln!("reproduce with PARIO_SEED={seed}");
            std::panic::resume_unwind(panic);
        }
    }
}

/// Sorted, and joined where they touch.
fn joined(mut ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
    ranges.sort_unstable_by_key(|range| range.start);
    let mut joined: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        match joined.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => joined.push(range),
        }
    }
    joined
}

/// The ranges of the file that ranks access.
fn touched(case: &Case<'_>) -> Vec<Range<u64>> {
    coverage::covered(case.accesses.iter(), case.region())
}

fn assert_covered(what: &str, ranges: &[Range<u64>], by: &[Range<u64>]) {
    for wanted in ranges {
        let holds = |range: &Range<u64>| range.start <= wanted.start && wanted.end <= range.end;
        assert!(by.iter().any(holds), "{what} leaves out {wanted:?}");
    }
}

/// Realms with more windows are not walked: clusters may be far apart.
const WINDOWS_MAX: u64 = 4000;

/// Checks that the windows cover the realm once, in order; returns their
/// ranges.
fn window_extents(what: &str, realm: &Realm, window_bytes: u64) -> Vec<Range<u64>> {
    let windows: Vec<_> = (0..realm.windows(window_bytes))
        .map(|index| realm.window(index, window_bytes))
        .collect();
    assert!(
        windows
            .iter()
            .all(|window| (1..=window_bytes).contains(&window.bytes())),
        "{what}: a window is empty or too long"
    );
    let bytes: u64 = windows.iter().map(|window| window.bytes()).sum();
    assert_eq!(bytes, realm.bytes(), "{what}: windows add up to the realm");
    let extents: Vec<_> = windows
        .iter()
        .flat_map(|window| window.extents().to_vec())
        .collect();
    assert!(
        extents.windows(2).all(|pair| pair[0].end <= pair[1].start),
        "{what}: windows ascend"
    );
    let file = realm.file();
    assert!(
        extents
            .iter()
            .all(|extent| file.start <= extent.start && extent.end <= file.end)
    );
    extents
}

#[test]
fn realms_are_disjoint_and_cover_every_byte() {
    for_random_cases(|sample, random| {
        let case = sample.case();
        let aggregators = decide(&case).aggregators.ranks;
        assert!(aggregators.is_sorted() && !aggregators.is_empty());
        for partition in PARTITIONS {
            let name = partition.name();
            let realms = partition.realms(&case, &aggregators);
            assert!(realms.iter().all(|(rank, _)| *rank < case.ranks()));
            let window_bytes = random.u64(1..200);
            let near = realms
                .iter()
                .all(|(_, realm)| realm.windows(window_bytes) <= WINDOWS_MAX);
            if near {
                let extents: Vec<_> = realms
                    .iter()
                    .flat_map(|(_, realm)| window_extents(name, realm, window_bytes))
                    .collect();
                let bytes: u64 = extents.iter().map(|it| it.end - it.start).sum();
                let owned = joined(extents);
                let joined_bytes: u64 = owned.iter().map(|it| it.end - it.start).sum();
                assert_eq!(bytes, joined_bytes, "{name}: realms overlap");
                assert_covered(name, &touched(&case), &owned);
            }
            for access in case.accesses.iter().filter(|access| !access.is_empty()) {
                let byte = access.offset_of(random.u64(..access.len()));
                let owners = realms.iter().filter(|(_, realm)| realm.owns(byte)).count();
                assert_eq!(owners, 1, "{name}: owners of byte {byte}");
            }
        }
    });
}

#[test]
fn persistent_realms_hold_for_later_calls() {
    for_random_cases(|sample, random| {
        let name = *pick(random, &["persistent", "persistent-aligned"]);
        let partition = partition::by_name(name).unwrap();
        let aggregators = decide(&sample.case()).aggregators.ranks;
        let first = partition.realms(&sample.case(), &aggregators);
        sample.history.persistent = partition.remember(&sample.case(), &aggregators);
        let before = std::mem::take(&mut sample.accesses);
        sample.accesses = (0..before.len()).map(|_| access(random, None)).collect();
        let later = partition.realms(&sample.case(), &[0]);
        let owner = |realms: &[(u32, Realm)], byte| {
            let owner = realms.iter().find(|(_, realm)| realm.owns(byte));
            owner.map(|(rank, _)| *rank)
        };
        for access in before.iter().chain(&sample.accesses) {
            if access.is_empty() {
                continue;
            }
            let byte = access.offset_of(random.u64(..access.len()));
            let owners = (owner(&first, byte), owner(&later, byte));
            if let (Some(first), Some(later)) = owners {
                assert_eq!(first, later, "byte {byte}");
            }
        }
    });
}

#[test]
fn plans_cover_every_byte_of_every_rank_deterministically() {
    for_random_cases(|sample, random| {
        sample.tuning.algorithm = Some(pick(random, ALGORITHMS).name().to_owned());
        sample.tuning.partition = Some(pick(random, PARTITIONS).name().to_owned());
        let case = sample.case();
        let decision = decide(&case);
        let plan = decision.plan(&case);
        assert_eq!(decision.to_string(), decide(&case).to_string());
        assert_eq!(format!("{plan:?}"), format!("{:?}", decision.plan(&case)));
        assert!(!plan.to_string().is_empty());
        match &plan {
            Plan::Rounds(rounds) | Plan::Prefetch(rounds) => assert_covered_once(&case, rounds),
            Plan::Segments(segments) => {
                let mut members: Vec<u32> = Vec::new();
                for group in &segments.groups {
                    assert!(group.members.contains(&group.aggregator));
                    assert!(group.members.is_sorted());
                    members.extend(&group.members);
                }
                members.sort_unstable();
                assert!(members.into_iter().eq(0..case.ranks()), "each rank once");
                let moved = segments.cycles.saturating_mul(segments.segment_bytes);
                assert!(case.accesses.iter().all(|access| access.len() <= moved));
            }
            Plan::Timed(timed) => assert_groups_in_order(&case, timed),
            Plan::Individual | Plan::PrivateSieve { .. } => {}
        }
        let _picture = pario_plan::picture::svg(&case, &plan);
    });
}

/// Checks that every rank's bytes lie in the scheduled windows of its
/// aggregators exactly once.
fn assert_covered_once(case: &Case<'_>, rounds: &Rounds) {
    let mut moved: BTreeMap<u32, Vec<Range<u64>>> = BTreeMap::new();
    for scheduled in rounds.schedule(case.accesses) {
        assert!(scheduled.window.bytes() <= rounds.window_bytes);
        for rank in rounds.members(scheduled.aggregator, case.ranks()) {
            let extents = scheduled.window.extents().iter().cloned();
            moved.entry(rank).or_default().extend(extents);
        }
    }
    for (rank, access) in (0..).zip(case.accesses) {
        let extents = moved.remove(&rank).unwrap_or_default();
        let bytes: u64 = extents
            .iter()
            .map(|extent| access.data_in(extent.clone()))
            .map(|data| data.end - data.start)
            .sum();
        assert_eq!(bytes, access.len(), "rank {rank}: each byte once");
        let own = coverage::covered(std::iter::once(access), access.span());
        assert_covered("the schedule", &own, &joined(extents));
    }
}

/// Makes a sample a write where servers manage the locks: each process a client, or
/// each node; one striping, or several.
fn write_with_server_locks(sample: &mut Sample, random: &mut Rng) {
    sample.direction = Direction::Write;
    sample.facts.lock_protocol = LockProtocol::Server;
    sample.facts.client = *pick(random, &[Client::Kernel, Client::Library]);
    let striping = match random.bool() {
        true => {
            let placement = placement(random);
            sample.facts.placement = Some(placement.clone());
            placement.striping()
        }
        false => {
            sample.facts.placement = None;
            striping(random)
        }
    };
    sample.facts.striping = Some(striping);
    sample.facts.lock_granularity = Some(striping.unit);
    sample.tuning.realm_alignment = None;
}

/// With the methods that are chosen by themselves.
#[test]
fn no_two_clients_share_a_stripe_where_servers_manage_locks() {
    for_random_cases(|sample, random| {
        write_with_server_locks(sample, random);
        let case = sample.case();
        let decision = decide(&case);
        if decision.algorithm.name() != "two-phase" || case.bytes() == 0 {
            return;
        }
        assert_eq!(decision.partition.name(), "group-cyclic");
        let plan = decision.plan(&case);
        let counted = locks::count(&case, &plan).unwrap();
        assert_eq!(counted.shared_stripes, 0);
        let Plan::Rounds(rounds) = &plan else {
            panic!("two-phase has rounds");
        };
        let aggregators = decision.aggregators.ranks.len() as u64;
        assert_few_servers(&case, rounds, aggregators);
    });
}

/// An automatic choice needs no more locks than one aggregator per object would: the
/// factor is 1. No lock is called back, unless ranks write their own data.
#[test]
fn automatic_writes_take_no_more_locks_than_one_aggregator_per_object() {
    for_random_cases(|sample, random| {
        write_with_server_locks(sample, random);
        sample.tuning.aggregators = None;
        let (algorithm, chosen) = {
            let case = sample.case();
            let decision = decide(&case);
            let Some(locks) = locks::count(&case, &decision.plan(&case)) else {
                return;
            };
            if decision.algorithm.name() == "two-phase" {
                assert_eq!(locks.revoked, 0, "{decision}");
                assert_eq!(locks.requests, locks.pairs, "{decision}");
            }
            (decision.algorithm.name(), locks)
        };
        let largest = sample.case().stripes().map(|it| it.striping.count);
        sample.tuning.algorithm = Some(algorithm.to_owned());
        sample.tuning.aggregators = largest.map(|count| count as u32);
        sample.tuning.config_list = None;
        let case = sample.case();
        let capped = locks::count(&case, &decide(&case).plan(&case)).unwrap();
        assert!(
            chosen.requests <= capped.requests,
            "{algorithm}: {chosen:?}, with one aggregator per object {capped:?}"
        );
    });
}

/// Each object has its own locks, so that those of one server may have several
/// aggregators, but only if there are more aggregators than servers.
#[test]
fn no_two_aggregators_share_a_server_unless_there_are_more_of_them() {
    for_random_cases(|sample, random| {
        let mut placement = placement(random);
        let with_servers = |it: &Component| matches!(it.storage, Storage::Servers(_));
        while !placement.components().iter().any(with_servers) {
            placement = self::placement(random);
        }
        sample.facts.striping = Some(placement.striping());
        sample.facts.placement = Some(placement);
        sample.tuning.agents_per_server = 1;
        let case = sample.case();
        let owners: Vec<u32> = (0..random.u32(1..=case.ranks())).collect();
        let aggregators = owners.len() as u64;
        for name in ["group-cyclic", "by-server", "file-layout"] {
            let partition = partition::by_name(name).unwrap();
            if partition.fitness(&case).priority().is_none() {
                continue;
            }
            let realms = partition.realms(&case, &owners);
            for (file, stripes) in case.facts.sections(case.region()) {
                let Some(stripes) = stripes else { continue };
                let users = users(&case, &realms, &file, &stripes);
                let shared = |users: &BTreeMap<u64, BTreeSet<u32>>| {
                    users.iter().find(|it| it.1.len() > 1).map(|it| *it.0)
                };
                let striping = stripes.striping;
                if name != "group-cyclic" || aggregators <= stripes.servers() {
                    assert_eq!(
                        shared(&users.servers),
                        None,
                        "{name}, {stripes:?}, {file:?}"
                    );
                }
                if name == "group-cyclic" && aggregators <= striping.count {
                    assert_eq!(shared(&users.objects), None, "{stripes:?}, {file:?}");
                }
            }
        }
    });
}

/// The ranks that move data of each server and of each object.
#[derive(Default)]
struct Users {
    servers: BTreeMap<u64, BTreeSet<u32>>,
    objects: BTreeMap<u64, BTreeSet<u32>>,
}

fn users(case: &Case<'_>, realms: &[(u32, Realm)], file: &Range<u64>, stripes: &Stripes) -> Users {
    let mut users = Users::default();
    let striping = stripes.striping;
    for piece in touched(case) {
        let piece = piece.start.max(file.start)..piece.end.min(file.end);
        for stripe in piece.start / striping.unit..piece.end.div_ceil(striping.unit) {
            let start = (stripe * striping.unit).max(piece.start);
            let end = ((stripe + 1) * striping.unit).min(piece.end);
            for (rank, realm) in realms {
                if !realm.extents_in(start..end).is_empty() {
                    let server = users.servers.entry(stripes.server_of_stripe(stripe));
                    server.or_default().insert(*rank);
                    let object = users.objects.entry(stripe % striping.count);
                    object.or_default().insert(*rank);
                }
            }
        }
    }
    users
}

/// In each part of the file with one striping, the aggregators of a group share
/// its servers evenly.
fn assert_few_servers(case: &Case<'_>, rounds: &Rounds, aggregators: u64) {
    for (file, stripes) in case.facts.sections(case.region()) {
        let Some(stripes) = stripes else { continue };
        let striping = stripes.striping;
        let mut servers: BTreeMap<u32, BTreeSet<u64>> = BTreeMap::new();
        for scheduled in rounds.schedule(case.accesses) {
            let rank = rounds.aggregators[scheduled.aggregator].rank;
            for extent in scheduled.window.extents() {
                let part = extent.start.max(file.start)..extent.end.min(file.end);
                let parts = striping.parts(part.start..part.end.max(part.start));
                let used = servers.entry(rank).or_default();
                used.extend(parts.map(|part| stripes.server_of_stripe(part.server)));
            }
        }
        // The last group may be smaller.
        let last = match aggregators % striping.count {
            0 => striping.count,
            rest => rest,
        };
        let most = stripes.servers().div_ceil(last);
        for (rank, used) in servers {
            assert!(
                used.len() as u64 <= most,
                "rank {rank} of {aggregators} uses {used:?} of {striping:?} in {file:?}"
            );
        }
    }
}

/// The rules for sets and groups (Zhang 2009, section 3.4).
fn assert_groups_in_order(case: &Case<'_>, timed: &Timed) {
    let stripes = case.stripes().unwrap();
    let servers_of = |rank: u32| -> Vec<u64> {
        let access = &case.accesses[rank as usize];
        let server = |index| stripes.server_of(access.offset_of(index));
        let mut servers: Vec<u64> = (0..access.len()).map(server).collect();
        servers.sort_unstable();
        servers.dedup();
        servers
    };
    let mut seen: Vec<u32> = Vec::new();
    let mut used: Vec<u64> = Vec::new();
    for groups in &timed.sets {
        let ranks: Vec<u32> = groups.concat();
        assert!(ranks.is_sorted(), "groups are in rank order");
        let mut servers: Vec<u64> = ranks.iter().flat_map(|rank| servers_of(*rank)).collect();
        servers.sort_unstable();
        servers.dedup();
        for (place, rank) in ranks.iter().enumerate() {
            let group = groups.iter().position(|group| group.contains(rank));
            assert_eq!(group, Some(place / servers.len()), "group of rank {rank}");
        }
        assert!(servers.iter().all(|server| !used.contains(server)));
        used.extend(servers);
        seen.extend(ranks);
    }
    seen.sort_unstable();
    let busy = (0..case.ranks()).filter(|rank| !case.accesses[*rank as usize].is_empty());
    assert!(seen.into_iter().eq(busy), "each rank with data once");
}

#[test]
fn balanced_realms_have_equal_amounts_of_data() {
    for_random_cases(|sample, random| {
        let case = sample.case();
        let owners: Vec<u32> = (0..random.u32(1..=case.ranks())).collect();
        let share = case.bytes() / owners.len() as u64;
        let balanced = partition::by_name("balanced").unwrap();
        for (rank, realm) in balanced.realms(&case, &owners) {
            let data: u64 = case
                .accesses
                .iter()
                .map(|access| access.data_in(realm.file()))
                .map(|data| data.end - data.start)
                .sum();
            // One part in 32 at either end, plus one byte per rank, which no
            // cut can divide, at either end.
            let slack = share / 16 + 2 * u64::from(case.ranks()) + 2;
            assert!(
                data.abs_diff(share) <= slack,
                "rank {rank}: {data} of {share}"
            );
        }
    });
}

#[test]
fn agents_are_the_ranks_with_the_most_data() {
    for_random_cases(|sample, _| {
        sample.tuning.agents_per_server = 1;
        let case = sample.case();
        let Some(stripes) = case.stripes() else {
            return;
        };
        // With more stripes, counts may be estimates.
        let exact = |access: &Access| {
            access.span().end - access.span().start < 4096 * stripes.striping.unit
        };
        if !case.accesses.iter().all(exact) {
            return;
        }
        let by_server = partition::by_name("by-server").unwrap();
        let realms = by_server.realms(&case, &[0]);
        let on = |rank: u32, server: u64| {
            let access = &case.accesses[rank as usize];
            let here = |index: &u64| stripes.server_of(access.offset_of(*index)) == server;
            (0..access.len()).filter(here).count()
        };
        let mut taken: Vec<u32> = Vec::new();
        for (agent, realm) in &realms {
            if taken.len() == case.accesses.len() {
                taken.clear();
            }
            let Some(server) = first_byte(realm).map(|byte| stripes.server_of(byte)) else {
                continue;
            };
            let free = (0..case.ranks()).filter(|rank| !taken.contains(rank));
            let best = free.rev().max_by_key(|rank| on(*rank, server));
            assert_eq!(Some(*agent), best, "agent of server {server}");
            taken.push(*agent);
        }
    });
}

fn first_byte(realm: &Realm) -> Option<u64> {
    let window = realm.window_at(realm.file().start, 1)?;
    Some(window.span().start)
}
