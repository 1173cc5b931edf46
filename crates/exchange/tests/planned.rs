//! The look-ups over `pario-plan`'s realms and accesses agree with a walk over
//! bytes, and calls over them come to an end in the simulator.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::sync::Arc;

use fastrand::Rng;
use pario_exchange::{
    Accesses, Direction, Groups, Limits, Packing, Planned, Rank, Realm, Setting,
    simulate::{self, Model},
};
use pario_layout::{Basic, Datatype, Layout};
use pario_plan::{Access, Aggregator, Members, Rounds, WindowWriter};

fn strided(len: u64, stride: u64) -> Layout {
    let block = Datatype::contiguous(len, &Basic::Byte.into()).unwrap();
    let tile = Datatype::resized(&block, 0, stride as i64).unwrap();
    tile.layout().clone()
}

fn random_access(random: &mut Rng) -> Access {
    let len = random.u64(1..9);
    let layout = strided(len, len + random.u64(0..12));
    let (at, first) = (random.u64(0..60), random.u64(0..10));
    Access::new(at, layout, first, random.u64(0..60)).unwrap()
}

/// Stripes round-robin, even parts, or the whole file for some of the ranks.
fn random_rounds(random: &mut Rng, ranks: u32, end: u64) -> Rounds {
    let count = random.u32(1..5);
    let stripe = random.u64(1..20);
    let kind = random.u8(0..3);
    let share = end.div_ceil(count.into()).max(1);
    let realm = |index: u32| match kind {
        0 => {
            let layout = strided(stripe, stripe * u64::from(count));
            pario_plan::Realm::tiled(u64::from(index) * stripe, layout, 0..end)
        }
        1 => {
            let start = (u64::from(index) * share).min(end);
            pario_plan::Realm::contiguous(start..(start + share).min(end))
        }
        _ => pario_plan::Realm::contiguous(0..end),
    };
    let members = |index: u32| match kind {
        0 | 1 => Members::All,
        _ => Members::Some((0..ranks).filter(|rank| rank % count == index).collect()),
    };
    let aggregators = (0..count).map(|index| Aggregator {
        rank: random.u32(0..ranks),
        realm: realm(index),
        members: members(index),
        turn: None,
    });
    Rounds {
        aggregators: aggregators.collect(),
        window_bytes: 16,
        writer: WindowWriter::Aggregator,
    }
}

fn is_member(planned: &Planned, realm: Realm, rank: Rank) -> bool {
    match &planned.rounds().aggregators[realm.0 as usize].members {
        Members::All => true,
        Members::Some(members) => members.contains(&rank.0),
    }
}

fn random_planned(random: &mut Rng, ranks: u32) -> Planned {
    let accesses: Vec<Access> = (0..ranks).map(|_| random_access(random)).collect();
    let end = accesses.iter().map(|access| access.span().end).max();
    let rounds = random_rounds(random, ranks, end.unwrap_or(0));
    Planned::new(rounds, accesses.into(), Packing::Sparse)
}

#[test]
fn look_ups_agree_with_a_walk() {
    for seed in 0..300 {
        let mut random = Rng::with_seed(seed);
        let planned = random_planned(&mut random, 3);
        for realm in (0..planned.realms()).map(Realm) {
            let owner = planned.realm(realm);
            let owned: Vec<u64> = (0..1200).filter(|byte| owner.owns(*byte)).collect();
            let contributors: Vec<Rank> = planned.contributors(realm).collect();
            for rank in (0..3).map(Rank) {
                let access = planned.access(rank);
                let all = (0..access.len()).map(|index| access.offset_of(index));
                let is_member = is_member(&planned, realm, rank);
                let own = all.filter(|byte| is_member && owner.owns(*byte));
                let bytes: Vec<u64> = own.collect();
                assert!(
                    bytes.is_empty() || contributors.contains(&rank),
                    "seed {seed}"
                );
                for at in (0..700).step_by(3) {
                    let end = at + random.u64(0..80);
                    let count = |bytes: &[u64]| {
                        bytes.iter().filter(|byte| (at..end).contains(byte)).count() as u64
                    };
                    assert_eq!(
                        planned.bytes(rank, realm, at..end),
                        count(&bytes),
                        "seed {seed}"
                    );
                    assert_eq!(
                        planned.realm_bytes(realm, at..end),
                        count(&owned),
                        "seed {seed}"
                    );
                    let next = bytes.iter().copied().find(|byte| *byte >= at);
                    assert_eq!(planned.next(rank, realm, at), next, "seed {seed}");
                    let last = bytes.iter().copied().rfind(|byte| *byte < at);
                    assert_eq!(planned.last(rank, realm, at), last, "seed {seed}");
                    if let Some(nth) = owned.iter().filter(|byte| **byte >= at).nth(4) {
                        let reach = planned.realm_end(realm, at, 5);
                        let is_last = owned.last() == Some(nth);
                        assert!(reach == nth + 1 || is_last, "seed {seed}");
                    }
                }
            }
        }
    }
}

#[test]
fn calls_over_plans_come_to_an_end() {
    for seed in 0..300 {
        let mut random = Rng::with_seed(seed);
        let ranks = random.u32(1..9);
        let planned = Arc::new(random_planned(&mut random, ranks));
        let nodes: Vec<u32> = (0..ranks).map(|rank| rank % 3).collect();
        let setting = Arc::new(Setting {
            direction: match random.bool() {
                true => Direction::Write,
                false => Direction::Read,
            },
            groups: Arc::new(Groups::by_node(&nodes)),
            root: Rank(0),
            limits: Limits {
                window_bytes: random.u64(1..40),
                slice_bytes: random.u64(8..40),
                depth: 2,
                staging: 2,
                node_buffers: 2,
                unit: 4,
                eager_bytes: 0,
                tags: 0..16,
            },
        });
        let bytes = |rank| planned.access(rank).len();
        simulate::run(&setting, &planned, bytes, &Model::default());
    }
}
