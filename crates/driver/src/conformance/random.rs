//! Random numbers that can be reproduced from a printed seed.

use std::{
    env, thread,
    time::{SystemTime, UNIX_EPOCH},
};

/// SplitMix64 (Steele, Lea and Flood). Prints its seed if the check fails.
#[derive(Debug)]
pub(super) struct Random {
    seed: u64,
    state: u64,
}

impl Random {
    /// Seeded from `PARIO_SEED`, else from the clock.
    pub(super) fn new() -> Self {
        let clock = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let seed = number("PARIO_SEED").unwrap_or(clock.as_nanos() as u64);
        Random { seed, state: seed }
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `limit`, which must not be zero.
    pub(super) fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    /// One of the choices.
    pub(super) fn choose<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    /// Random bytes.
    pub(super) fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.next() as u8).collect()
    }

    /// Shuffles the items.
    pub(super) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}

impl Drop for Random {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("reproduce with PARIO_SEED={}", self.seed);
        }
    }
}

/// The number of random cases: `PARIO_CASES`, else `default`.
pub(super) fn cases(default: u64) -> u64 {
    number("PARIO_CASES").unwrap_or(default)
}

fn number(name: &str) -> Option<u64> {
    env::var(name).ok()?.parse().ok()
}
