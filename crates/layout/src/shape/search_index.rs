//! Sorted numbers with a cache-friendly index.

/// Numbers in one allocation, with index levels above it that hold every [`FANOUT`]-th number of
/// the level below. A search among millions of numbers examines one short window per level. All but
/// the last two levels stay in the cache, whereas a plain binary search misses at almost every
/// step.
#[derive(Debug)]
pub(crate) struct SearchIndex<T> {
    values: Box<[T]>,
    /// Lowest level first. Empty if there are few values or if they are not sorted.
    levels: Box<[Box<[T]>]>,
}

/// Numbers per window: two cache lines.
const FANOUT: usize = 16;

/// With fewer values, a plain binary search stays in the cache.
const INDEXED_VALUES: usize = 1024;

impl<T: Copy + Ord> SearchIndex<T> {
    /// Sorted values, which can be searched.
    pub(crate) fn sorted(values: Vec<T>) -> Self {
        let mut index = Self::unsorted(values);
        if index.values.len() < INDEXED_VALUES {
            return index;
        }
        let mut levels: Vec<Box<[T]>> = Vec::new();
        loop {
            let below = levels.last().unwrap_or(&index.values);
            if below.len() <= FANOUT {
                break;
            }
            levels.push(below.iter().copied().step_by(FANOUT).collect());
        }
        index.levels = levels.into_boxed_slice();
        index
    }

    /// Values that are only accessed by index.
    pub(crate) fn unsorted(values: Vec<T>) -> Self {
        Self {
            values: values.into_boxed_slice(),
            levels: Box::default(),
        }
    }

    /// Number of values not above `x`. The values must be sorted.
    pub(crate) fn count_up_to(&self, x: T) -> usize {
        if self.levels.is_empty() {
            return self.values.partition_point(|value| *value <= x);
        }
        let mut window = 0;
        for level in self.levels.iter().rev() {
            match count_in_window(level, window, x) {
                // Only at the top: lower windows are entered because of a value in them that is not
                // above.
                0 => return 0,
                count => window = count - 1,
            }
        }
        count_in_window(&self.values, window, x)
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        let levels: usize = self.levels.iter().map(|level| size_of_val(&**level)).sum();
        size_of_val(&*self.values) + size_of_val(&*self.levels) + levels
    }
}

/// Number of values not above `x`, given that all before the window are not and all after it are.
/// Branch-free.
fn count_in_window<T: Copy + Ord>(numbers: &[T], window: usize, x: T) -> usize {
    let first = window * FANOUT;
    let last = (first + FANOUT).min(numbers.len());
    let inside = numbers[first..last].iter();
    first
        + inside
            .map(|number| usize::from(*number <= x))
            .sum::<usize>()
}

impl<T> std::ops::Deref for SearchIndex<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.values
    }
}

impl<T: PartialEq> PartialEq for SearchIndex<T> {
    fn eq(&self, other: &Self) -> bool {
        self.values == other.values
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_match_a_plain_search() {
        for len in [1, 63, 1023, 1024, 1025, 4096, 4097, 9999] {
            let values: Vec<u64> = (0..len).map(|index| 3 + index * 3 - index % 2).collect();
            let index = SearchIndex::sorted(values.clone());
            for x in (0..3 * len + 9).step_by(if len > 100 { 7 } else { 1 }) {
                let plain = values.iter().filter(|value| **value <= x).count();
                assert_eq!(index.count_up_to(x), plain, "{x} among {len}");
            }
        }
    }
}
