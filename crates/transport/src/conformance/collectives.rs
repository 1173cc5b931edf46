//! Barrier, broadcast and all-gather.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::{Case, Setting};
use crate::{Gathered, Rank, Result, Transport};

/// Around the sizes at which transports switch methods.
const LENGTHS: [usize; 10] = [0, 1, 8, 16, 247, 248, 249, 4096, 65_000, 600_000];

pub(super) fn cases() -> Vec<Case> {
    let case = |name, check| Case {
        name,
        ranks: 1..=7,
        check,
    };
    vec![
        case("collectives::all_gather", |setting| {
            setting.run(|transport| all_gather(transport, setting));
        }),
        case("collectives::all_gather_unless_same", |setting| {
            setting.run(all_gather_unless_same);
        }),
        case("collectives::broadcast", |setting| {
            setting.run(|transport| broadcast(transport, setting));
        }),
        case("collectives::barrier", |setting| setting.run(barrier)),
        case("collectives::random_mix", |setting| {
            setting.run(|transport| random_mix(transport, setting));
        }),
    ]
}

/// What a rank gives in one round.
fn body(setting: &Setting<'_>, round: usize, rank: u32) -> Vec<u8> {
    body_of(&LENGTHS, setting, round, rank)
}

fn body_of(lengths: &[usize], setting: &Setting<'_>, round: usize, rank: u32) -> Vec<u8> {
    let mut dice = setting.dice(((round as u64) << 32) | u64::from(rank));
    dice.bytes(lengths[(round + rank as usize) % lengths.len()])
}

/// Everyone gives another length.
pub(super) fn all_gather(transport: &Arc<dyn Transport>, setting: &Setting<'_>) -> Result<()> {
    let me = transport.rank().0;
    for round in 0..LENGTHS.len() {
        let all = transport.all_gather(&body(setting, round, me))?;
        assert_eq!(all.len(), transport.size() as usize);
        for (rank, bytes) in all.into_iter().enumerate() {
            let expected = body(setting, round, rank as u32);
            assert!(bytes == expected, "round {round}, rank {rank}");
        }
    }
    // Short ones follow each other closely.
    for round in 0..500_u32 {
        let word = |rank: u32| (round * 31 + rank).to_le_bytes().to_vec();
        let all = transport.all_gather(&word(me))?;
        let expected = (0..transport.size()).map(word);
        assert!(all.into_iter().eq(expected), "round {round}");
    }
    Ok(())
}

/// All give the same byte, or one of them something else, and some may not ask.
fn all_gather_unless_same(transport: &Arc<dyn Transport>) -> Result<()> {
    let (me, size) = (transport.rank().0, transport.size());
    let mut all = Gathered::default();
    for round in 0..200_u32 {
        let odd_one = (round % 4 == 3).then_some(round / 4 % size);
        let given = |rank| match odd_one {
            Some(odd) if odd == rank => [&[8][..], &[], &[7, 7], &[0; 300]][round as usize / 4 % 4],
            _ => &[7][..],
        };
        if round % 5 == me {
            transport.all_gather_into(given(me), &mut all)?;
            assert!(all.iter().eq((0..size).map(given)), "round {round}");
            continue;
        }
        match transport.all_gather_unless_same(given(me), &mut all)? {
            true => {
                let mut others = (0..size).map(given);
                assert!(others.all(|theirs| theirs == given(me)), "round {round}");
                assert!(all.is_empty(), "round {round}");
            }
            false => assert!(all.iter().eq((0..size).map(given)), "round {round}"),
        }
    }
    Ok(())
}

/// Every rank is the root; what the others give does not matter.
pub(super) fn broadcast(transport: &Arc<dyn Transport>, setting: &Setting<'_>) -> Result<()> {
    let me = transport.rank().0;
    for round in 0..LENGTHS.len() {
        for root in 0..transport.size() {
            let expected = body(setting, round, root);
            let given = match root == me {
                true => expected.clone(),
                false => vec![0xee; round],
            };
            let bytes = transport.broadcast(Rank(root), given)?;
            assert!(bytes == expected, "round {round}, root {root}");
        }
    }
    Ok(())
}

/// After the n-th barrier, everyone on the node has counted to n.
pub(super) fn barrier(transport: &Arc<dyn Transport>) -> Result<()> {
    let me = transport.rank();
    let neighbours = (0..transport.size())
        .filter(|rank| transport.node_of(Rank(*rank)) == transport.node_of(me))
        .count() as u64;
    let Some(segment) = transport.segment(8)? else {
        return transport.barrier();
    };
    for round in 1..=300 {
        segment.atomic_u64(0).fetch_add(1, Ordering::Relaxed);
        transport.barrier()?;
        let count = segment.atomic_u64(0).load(Ordering::Relaxed);
        assert!(count >= round * neighbours, "round {round}: {count}");
    }
    Ok(())
}

/// Collectives of all kinds in a random order that all ranks know.
pub(super) fn random_mix(transport: &Arc<dyn Transport>, setting: &Setting<'_>) -> Result<()> {
    let (me, size) = (transport.rank().0, transport.size());
    let mut dice = setting.dice(99);
    // The long ones would take most of the time.
    let body = |round, rank| body_of(&LENGTHS[..8], setting, round, rank);
    for round in 0..setting.trials as usize * 20 {
        match dice.below(3) {
            0 => transport.barrier()?,
            1 => {
                let root = dice.below(u64::from(size)) as u32;
                let bytes = transport.broadcast(Rank(root), body(round, me))?;
                assert!(bytes == body(round, root), "round {round}");
            }
            _ => {
                let all = transport.all_gather(&body(round, me))?;
                let expected = (0..size).map(|rank| body(round, rank));
                assert!(all.into_iter().eq(expected), "round {round}");
            }
        }
    }
    Ok(())
}
