//! Random numbers that can be repeated.

/// A stream of random numbers (splitmix64): small, and the same everywhere.
#[derive(Clone, Debug)]
pub struct Dice {
    state: u64,
}

impl Dice {
    /// The dice of a seed, different for each `stream`.
    #[must_use]
    pub fn new(seed: u64, stream: u64) -> Self {
        let mut dice = Dice {
            state: seed ^ stream.wrapping_mul(0x9e37_79b9_7f4a_7c15),
        };
        dice.next();
        dice
    }

    /// The next number.
    #[allow(clippy::should_implement_trait)] // an endless stream needs no Option
    pub fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.state;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    /// A number below `bound`, which is not 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// Puts a slice into a random order.
    pub fn shuffle<T>(&mut self, slice: &mut [T]) {
        for i in (1..slice.len()).rev() {
            slice.swap(i, self.below(i as u64 + 1) as usize);
        }
    }

    /// Random bytes.
    pub fn bytes(&mut self, length: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(length.next_multiple_of(8));
        while bytes.len() < length {
            bytes.extend(self.next().to_le_bytes());
        }
        bytes.truncate(length);
        bytes
    }
}
