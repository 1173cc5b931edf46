//! Byte swapping with the widest vectors available.
#![allow(unsafe_code)] // Functions that need a CPU feature are called after checking for it.

/// Copies `from` to `to`, of equal length, with each group of `N` bytes
/// reversed.
pub(crate) fn reverse<const N: usize>(from: &[u8], to: &mut [u8]) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the CPU has the feature.
        return unsafe { reverse_avx2::<N>(from, to) };
    }
    reverse_groups::<N>(from, to);
}

/// The same loop with AVX2. Baseline x86-64 has no byte shuffle, which makes it
/// three times slower in the cache.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn reverse_avx2<const N: usize>(from: &[u8], to: &mut [u8]) {
    reverse_groups::<N>(from, to);
}

#[inline(always)]
fn reverse_groups<const N: usize>(from: &[u8], to: &mut [u8]) {
    let (from, to) = (from.as_chunks::<N>().0, to.as_chunks_mut::<N>().0);
    for (from, to) in from.iter().zip(to) {
        let mut bytes = *from;
        bytes.reverse();
        *to = bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<const N: usize>() {
        for groups in (0..40).chain([201]) {
            let from: Vec<u8> = (0..groups * N).map(|i| (i * 7 % 251) as u8).collect();
            let expected: Vec<u8> = from
                .chunks(N)
                .flat_map(|group| group.iter().rev().copied())
                .collect();
            for function in [reverse::<N>, reverse_groups::<N>] {
                let mut to = vec![0; from.len()];
                function(&from, &mut to);
                assert_eq!(to, expected, "{groups} groups of {N}");
            }
        }
    }

    #[test]
    fn every_width_and_length() {
        check::<2>();
        check::<4>();
        check::<8>();
        check::<16>();
    }
}
