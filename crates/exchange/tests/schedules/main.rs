//! The protocol under random and adversarial schedules: no byte is lost,
//! misplaced or written twice, all ranks agree, nobody hangs, and all buffers
//! come back; with failing transfers, ends of files, wrong arguments and lost
//! ranks. `PARIO_SEED` repeats a schedule that failed, `PARIO_CASES` runs
//! more of them.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod case;
mod world;

use std::{cell::Cell, env, panic, thread};

use case::Case;
use fastrand::Rng;
use pario_exchange::Rank;
use world::{Seen, World};

const CASES: u64 = 100_000;

fn number(name: &str) -> Option<u64> {
    env::var(name).ok().and_then(|text| text.parse().ok())
}

fn schedule(seed: u64) -> Seen {
    let mut random = Rng::with_seed(seed);
    let ranks = match random.u16(0..1024) {
        0 => 64,
        1..64 => random.u32(1..24),
        _ => random.u32(1..7),
    };
    let case = match random.u8(0..8) {
        0 => Case::failing(&mut random, ranks),
        _ => Case::random(&mut random, ranks),
    };
    let kill = victim(&mut random, ranks);
    let pool = Cell::new(random.u32(0..20));
    let mut world = World::new(&case, &pool, random);
    world.run(kill);
    world.seen
}

/// After how many events which rank dies, in some schedules.
fn victim(random: &mut Rng, ranks: u32) -> Option<(u64, Rank)> {
    let is_killing = random.u8(0..8) == 0 && ranks > 1;
    is_killing.then(|| (random.u64(0..300), Rank(random.u32(0..ranks))))
}

/// Two or three calls at the same time, entered in any order, that share the
/// buffers; some with nothing but the reserved ones.
fn several_calls(seed: u64) -> Seen {
    let mut random = Rng::with_seed(seed);
    let ranks = random.u32(1..7);
    let is_minimal = random.u8(0..4) == 0;
    let case = |random: &mut Rng| match is_minimal {
        true => Case::minimal(random, ranks),
        false => Case::random(random, ranks),
    };
    let count = random.usize(2..4);
    let cases: Vec<Case> = (0..count).map(|_| case(&mut random)).collect();
    let kill = victim(&mut random, ranks);
    let pool = Cell::new(match is_minimal {
        true => 0,
        false => random.u32(0..4),
    });
    let before = pool.get();
    let mut worlds: Vec<World<'_>> = cases
        .iter()
        .map(|case| World::new(case, &pool, random.fork()))
        .collect();
    run_together(&mut worlds, kill, &mut random);
    let mut seen = Seen::default();
    let mut kept = 0;
    for world in worlds {
        world.check();
        kept += world.kept();
        seen.add(world.seen);
    }
    assert_eq!(pool.get() + kept, before, "buffers are given back");
    seen
}

/// Interleaves calls. A rank that dies is lost to all of them.
fn run_together(worlds: &mut [World<'_>], mut kill: Option<(u64, Rank)>, random: &mut Rng) {
    let mut events = 0;
    let mut going: Vec<usize> = (0..worlds.len()).collect();
    while !going.is_empty() {
        let at = random.usize(0..going.len());
        if !worlds[going[at]].step() {
            going.swap_remove(at);
        }
        events += 1;
        if let Some((_, victim)) = kill.take_if(|(at, _)| events >= *at) {
            worlds.iter_mut().for_each(|world| world.kill(victim));
            going = (0..worlds.len()).collect();
        }
    }
}

/// Runs schedules on all cores, and says which failed.
fn for_seeds(cases: u64, run: fn(u64) -> Seen) -> Seen {
    let seeds: Vec<u64> = match number("PARIO_SEED") {
        Some(seed) => vec![seed],
        None => (0..number("PARIO_CASES").unwrap_or(cases)).collect(),
    };
    let threads = thread::available_parallelism().map_or(1, |it| it.get());
    let run_all = |seeds: &[u64]| {
        let mut seen = Seen::default();
        for seed in seeds {
            match panic::catch_unwind(|| run(*seed)) {
                Ok(more) => seen.add(more),
                Err(panic) => {
                    eprintln!("repeat with PARIO_SEED={seed}");
                    panic::resume_unwind(panic);
                }
            }
        }
        seen
    };
    let seen = thread::scope(|scope| {
        let shares = seeds.chunks(seeds.len().div_ceil(threads));
        let running: Vec<_> = shares.map(|it| scope.spawn(move || run_all(it))).collect();
        let mut all = Seen::default();
        for share in running {
            all.add(share.join().expect("a schedule failed"));
        }
        all
    });
    println!("{} schedules: {seen:?}", seeds.len());
    seen
}

#[test]
fn every_schedule_moves_every_byte() {
    let seen = for_seeds(CASES, schedule);
    let is_short = number("PARIO_SEED").is_some() || number("PARIO_CASES").is_some();
    assert!(is_short || seen.is_complete(), "{seen:?}");
}

#[test]
fn calls_at_the_same_time_do_not_wait_for_each_others_buffers() {
    for_seeds(CASES / 10, several_calls);
}
