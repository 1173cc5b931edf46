//! Memory of the program, by address.
#![allow(unsafe_code)] // whoever adds an address promises that it may be used

/// Runs of memory, each an address and a length in bytes, in the order of the data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryRuns {
    runs: Vec<(usize, usize)>,
}

impl MemoryRuns {
    /// Adds a run, to the last one if it continues it.
    ///
    /// # Safety
    /// The bytes may be read and written as long as an operation uses these runs. If
    /// one fails, they stay allocated.
    pub unsafe fn push(&mut self, address: usize, len: usize) {
        match self.runs.last_mut() {
            Some((start, before)) if *start + *before == address => *before += len,
            _ => self.runs.push((address, len)),
        }
    }

    /// The addresses and lengths.
    #[must_use]
    pub fn as_slice(&self) -> &[(usize, usize)] {
        &self.runs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adjacent_runs_are_one() {
        let mut runs = MemoryRuns::default();
        for (address, len) in [(100, 10), (110, 5), (200, 1), (100, 2)] {
            // SAFETY: nobody uses them.
            unsafe { runs.push(address, len) };
        }
        assert_eq!(runs.as_slice(), [(100, 15), (200, 1), (100, 2)]);
    }
}
