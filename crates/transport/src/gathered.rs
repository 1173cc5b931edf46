//! The result of an all-gather, in memory that the next one reuses.

/// What each rank contributed, by rank.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gathered {
    bytes: Vec<u8>,
    /// Where each contribution ends.
    ends: Vec<usize>,
}

impl Gathered {
    /// Forgets the contributions and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// Takes the contributions of a gather that made a vector per rank.
    pub fn set(&mut self, contributions: &[Vec<u8>]) {
        self.clear();
        contributions.iter().for_each(|bytes| self.push(bytes));
    }

    /// Adds the contribution of the next rank.
    pub fn push(&mut self, contribution: &[u8]) {
        self.bytes.extend_from_slice(contribution);
        self.ends.push(self.bytes.len());
    }

    /// Adds a contribution of `len` bytes, which `fill` writes.
    pub(crate) fn push_with(&mut self, len: usize, fill: impl FnOnce(&mut [u8])) {
        let start = self.bytes.len();
        self.bytes.resize(start + len, 0);
        fill(&mut self.bytes[start..]);
        self.ends.push(self.bytes.len());
    }

    /// The number of contributions.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The contribution of a rank.
    ///
    /// # Panics
    /// If there is no such rank.
    #[must_use]
    pub fn of(&self, rank: usize) -> &[u8] {
        let start = rank.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start..self.ends[rank]]
    }

    /// The contributions, by rank.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        (0..self.len()).map(|rank| self.of(rank))
    }

    /// A vector per rank.
    #[must_use]
    pub fn to_vecs(&self) -> Vec<Vec<u8>> {
        self.iter().map(<[u8]>::to_vec).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contributions_of_any_length_keep_their_rank() {
        let mut gathered = Gathered::default();
        for _ in 0..2 {
            gathered.clear();
            gathered.push(b"");
            gathered.push(b"abc");
            gathered.push_with(2, |bytes| bytes.copy_from_slice(b"de"));
            gathered.push(b"");
            assert_eq!(gathered.to_vecs(), [&b""[..], b"abc", b"de", b""]);
            assert_eq!((gathered.len(), gathered.of(2)), (4, &b"de"[..]));
        }
    }
}
