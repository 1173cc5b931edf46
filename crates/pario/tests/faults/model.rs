//! What a file may hold after calls of which some failed.

use std::collections::{BTreeMap, BTreeSet};

/// The bytes a file must hold and, where a call failed on the way, those it
/// may hold.
#[derive(Clone, Debug)]
pub(crate) struct Model {
    /// What is there for sure; zeros where the file was extended.
    certain: Vec<u8>,
    /// Bytes that may be another value than the certain one.
    doubtful: BTreeMap<usize, BTreeSet<u8>>,
    /// The sizes that the file may have.
    size_min: usize,
    size_max: usize,
}

impl Model {
    pub(crate) fn new(bytes: Vec<u8>) -> Model {
        Model {
            size_min: bytes.len(),
            size_max: bytes.len(),
            certain: bytes,
            doubtful: BTreeMap::new(),
        }
    }

    fn reach(&mut self, size: usize) {
        self.size_max = self.size_max.max(size);
        if self.certain.len() < size {
            self.certain.resize(size, 0);
        }
    }

    /// Bytes were written: those of the first `sure` places, and perhaps any
    /// of the others.
    pub(crate) fn write(&mut self, places: &[usize], values: &[u8], sure: usize) {
        for (index, (place, value)) in places.iter().zip(values).enumerate() {
            self.reach(place + 1);
            if index < sure {
                self.certain[*place] = *value;
                self.doubtful.remove(place);
                self.size_min = self.size_min.max(place + 1);
            } else if self.certain[*place] != *value {
                self.doubtful.entry(*place).or_default().insert(*value);
            }
        }
    }

    /// The size was set.
    pub(crate) fn set_size(&mut self, size: usize) {
        self.certain.resize(size, 0);
        self.doubtful.retain(|place, _| *place < size);
        (self.size_min, self.size_max) = (size, size);
    }

    /// The size was perhaps set, to one that is no smaller.
    pub(crate) fn extend_perhaps(&mut self, size: usize) {
        self.reach(size);
    }

    /// The size was set for sure, unless it was larger.
    pub(crate) fn extend(&mut self, size: usize) {
        self.reach(size);
        self.size_min = self.size_min.max(size);
    }

    /// What is wrong with a size that was found.
    pub(crate) fn wrong_size(&self, size: u64) -> Option<String> {
        let range = self.size_min as u64..=self.size_max as u64;
        let message = || format!("the size is {size}, it must be in {range:?}");
        (!range.contains(&size)).then(message)
    }

    /// What is wrong with bytes that were found at some places.
    pub(crate) fn wrong_bytes(
        &self,
        places: impl IntoIterator<Item = usize>,
        found: &[u8],
    ) -> Option<String> {
        let mut pairs = places.into_iter().zip(found);
        pairs.find_map(|(place, byte)| {
            let fits = self.certain.get(place) == Some(byte)
                || self
                    .doubtful
                    .get(&place)
                    .is_some_and(|values| values.contains(byte));
            let message = || {
                format!(
                    "byte {place} is {byte}, it must be {:?} or one of {:?}",
                    self.certain.get(place),
                    self.doubtful.get(&place)
                )
            };
            (!fits).then(message)
        })
    }

    /// What is wrong with the number of bytes that a read got.
    pub(crate) fn wrong_count(&self, places: &[usize], got: usize) -> Option<String> {
        let below = |size| places.iter().take_while(|place| **place < size).count();
        let range = below(self.size_min)..=below(self.size_max);
        let message = || format!("a read got {got} bytes, it must get {range:?}");
        (!range.contains(&got)).then(message)
    }
}
