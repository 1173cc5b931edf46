//! Hashing of the numbers that contexts, tags and ranks are. The standard library's hash
//! withstands keys that an attacker chose, which takes longer than the rest of a look-up; these
//! are counted by pario itself.

use std::hash::{BuildHasherDefault, Hasher};

/// The hasher of maps and sets whose keys are such numbers.
pub type BuildNumberHasher = BuildHasherDefault<NumberHasher>;

/// A hash of a few numbers.
#[derive(Clone, Copy, Debug, Default)]
pub struct NumberHasher(u64);

impl NumberHasher {
    fn add(&mut self, number: u64) {
        /// 2^64 divided by the golden ratio.
        const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
        self.0 = (self.0.rotate_left(32) ^ number).wrapping_mul(SPREAD);
    }
}

impl Hasher for NumberHasher {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.add(u64::from(*byte));
        }
    }

    fn write_u32(&mut self, number: u32) {
        self.add(u64::from(number));
    }

    fn write_u64(&mut self, number: u64) {
        self.add(number);
    }

    /// Maps use the low bits, which a multiplication mixes least.
    fn finish(&self) -> u64 {
        self.0.rotate_left(32)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::hash::BuildHasher;

    use super::*;
    use crate::{Tag, unexpected::ContextId};

    #[test]
    fn successive_contexts_and_tags_fall_into_different_buckets() {
        let hasher = BuildNumberHasher::default();
        let keys = (0..64u64).flat_map(|context| {
            (0..64u32).flat_map(move |tag| {
                [ContextId(context), ContextId::assigned(context)].map(|it| (it, Tag(tag)))
            })
        });
        let hashes: Vec<_> = keys.map(|key| hasher.hash_one(key)).collect();
        for shift in [0, 64 - 13] {
            let buckets: HashSet<_> = hashes.iter().map(|hash| hash >> shift & 0x1fff).collect();
            // Random numbers would hit 63 % of as many buckets as there are keys.
            assert!(buckets.len() > 8192 * 55 / 100, "{} of 8192", buckets.len());
        }
    }
}
