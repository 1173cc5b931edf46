//! Copy kernels: rows of equal pieces, strided on both sides.
//!
//! Most time is spent on small pieces. Common lengths have loops with a constant piece size;
//! other lengths are copied with two overlapping moves of constant size. Long pieces are left to
//! the C library, except where its copy is slow.
#![allow(unsafe_code)] // Raw copies between user buffers, whose bounds the caller has checked.

use std::ptr;

/// From about this length on, C libraries copy with the processor's string instruction.
const STRING_COPY_BYTES: usize = 2048;
/// Addresses that differ by a multiple of this look the same to the part of a processor that
/// compares loads with earlier stores.
const ALIAS_BYTES: usize = 4096;
/// Distances up to which a load touches what the store before it wrote.
const ALIAS_DISTANCE: usize = 32;
/// The moves of a backward copy.
const BLOCK: usize = 64;

/// One side of a copy: start of the first piece and distance to the next.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Side<P> {
    pub(crate) start: P,
    pub(crate) stride: isize,
}

/// Copies `count` pieces of `len` bytes.
///
/// # Safety
/// Each piece must be readable at the source and writable at the destination, and no destination
/// piece may overlap a source piece. Destination pieces may overlap each other: the later piece
/// wins.
pub(crate) unsafe fn copy_pieces(
    from: Side<*const u8>,
    to: Side<*mut u8>,
    len: usize,
    count: usize,
) {
    // SAFETY: the caller's contract, passed on unchanged.
    unsafe {
        match len {
            0 => {}
            1 => fixed::<1>(from, to, count),
            2 => fixed::<2>(from, to, count),
            4 => fixed::<4>(from, to, count),
            8 => fixed::<8>(from, to, count),
            16 => fixed::<16>(from, to, count),
            32 => fixed::<32>(from, to, count),
            64 => fixed::<64>(from, to, count),
            3 => paired::<2>(from, to, len, count),
            5..8 => paired::<4>(from, to, len, count),
            9..16 => paired::<8>(from, to, len, count),
            17..32 => paired::<16>(from, to, len, count),
            33..64 => paired::<32>(from, to, len, count),
            65..=128 => paired::<64>(from, to, len, count),
            _ => long(from, to, len, count),
        }
    }
}

/// Pieces of `LEN` bytes. If a side is packed, its stride is a constant too.
///
/// # Safety
/// As [`copy_pieces`] with a length of `LEN`.
unsafe fn fixed<const LEN: usize>(from: Side<*const u8>, to: Side<*mut u8>, count: usize) {
    let packed = LEN.cast_signed();
    // SAFETY: the caller's contract; the strides are merely written as constants.
    unsafe {
        if to.stride == packed {
            row::<LEN>(
                from,
                Side {
                    stride: packed,
                    ..to
                },
                count,
            );
        } else if from.stride == packed {
            row::<LEN>(
                Side {
                    stride: packed,
                    ..from
                },
                to,
                count,
            );
        } else {
            row::<LEN>(from, to, count);
        }
    }
}

/// # Safety
/// As [`copy_pieces`] with a length of `LEN`.
#[inline(always)]
unsafe fn row<const LEN: usize>(from: Side<*const u8>, to: Side<*mut u8>, count: usize) {
    let (mut source, mut target) = (from.start, to.start);
    for _ in 0..count {
        // SAFETY: within the caller's contract. Pointers use wrapping arithmetic because the step
        // after the last piece may leave the buffer.
        unsafe { ptr::copy_nonoverlapping(source, target, LEN) };
        source = source.wrapping_offset(from.stride);
        target = target.wrapping_offset(to.stride);
    }
}

/// Pieces of `HALF` to twice `HALF` bytes: one move from the front, one that ends at the end.
///
/// # Safety
/// As [`copy_pieces`], with `HALF <= len <= 2 * HALF`.
unsafe fn paired<const HALF: usize>(
    from: Side<*const u8>,
    to: Side<*mut u8>,
    len: usize,
    count: usize,
) {
    debug_assert!(
        (HALF..=2 * HALF).contains(&len),
        "two moves must cover the piece"
    );
    let second = len - HALF;
    let (mut source, mut target) = (from.start, to.start);
    for _ in 0..count {
        // SAFETY: both moves lie within the piece, since HALF <= len.
        unsafe {
            ptr::copy_nonoverlapping(source, target, HALF);
            ptr::copy_nonoverlapping(source.add(second), target.add(second), HALF);
        }
        source = source.wrapping_offset(from.stride);
        target = target.wrapping_offset(to.stride);
    }
}

/// # Safety
/// As [`copy_pieces`].
unsafe fn long(from: Side<*const u8>, to: Side<*mut u8>, len: usize, count: usize) {
    let (mut source, mut target) = (from.start, to.start);
    for _ in 0..count {
        // SAFETY: within the caller's contract.
        unsafe { copy_long(source, target, len) };
        source = source.wrapping_offset(from.stride);
        target = target.wrapping_offset(to.stride);
    }
}

/// Copies one piece that may be long.
///
/// If the target is a few bytes past the source, modulo 4096, each load of a forward copy appears to
/// depend on the store before it and waits for it: 2.7 GB/s instead of 13 with glibc's `memcpy` on
/// an AMD EPYC, at distances of 1 to 31 bytes and from 4 KiB on. A backward copy loads such bytes
/// before it stores there, on any processor.
///
/// # Safety
/// As [`copy_pieces`] with a count of one.
#[inline]
unsafe fn copy_long(from: *const u8, to: *mut u8, len: usize) {
    let distance = to.addr().wrapping_sub(from.addr()) % ALIAS_BYTES;
    let is_slow = len >= STRING_COPY_BYTES && (1..ALIAS_DISTANCE).contains(&distance);
    // SAFETY: the caller's contract.
    unsafe {
        match is_slow {
            true => copy_backward(from, to, len),
            false => ptr::copy_nonoverlapping(from, to, len),
        }
    }
}

/// Not inlined, because it is rarely needed.
///
/// # Safety
/// As [`copy_pieces`] with a count of one.
#[inline(never)]
unsafe fn copy_backward(from: *const u8, to: *mut u8, len: usize) {
    let mut rest = len;
    // SAFETY: all moves lie within the piece.
    unsafe {
        while rest >= BLOCK {
            rest -= BLOCK;
            ptr::copy_nonoverlapping(from.add(rest), to.add(rest), BLOCK);
        }
        ptr::copy_nonoverlapping(from, to, rest);
    }
}

/// Copies one piece. Short pieces take two overlapping moves and no call.
///
/// # Safety
/// As [`copy_pieces`] with a count of one.
#[inline(always)]
pub(crate) unsafe fn copy_piece(from: *const u8, to: *mut u8, len: usize) {
    /// # Safety
    /// As [`copy_piece`], with `HALF <= len`.
    #[inline(always)]
    unsafe fn halves<const HALF: usize>(from: *const u8, to: *mut u8, len: usize) {
        // SAFETY: both moves lie within the piece, since HALF <= len.
        unsafe {
            ptr::copy_nonoverlapping(from, to, HALF);
            let second = len - HALF;
            ptr::copy_nonoverlapping(from.add(second), to.add(second), HALF);
        }
    }
    // SAFETY: the caller's contract; in each arm, `HALF` is at least half the length.
    unsafe {
        match len {
            8..=16 => halves::<8>(from, to, len),
            17..=32 => halves::<16>(from, to, len),
            4..8 => halves::<4>(from, to, len),
            33..=64 => halves::<32>(from, to, len),
            _ => copy_long(from, to, len),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(len: usize) -> Vec<u8> {
        (0..len)
            .map(|index| (index * 7 + index / 251) as u8)
            .collect()
    }

    /// Copies with the kernel and byte by byte, between buffers of the exact size.
    fn check(len: usize, count: usize, from_stride: isize, to_stride: isize) {
        let span = |stride: isize| stride.unsigned_abs() * (count - 1) + len;
        let first = |stride: isize| {
            if stride < 0 {
                stride.unsigned_abs() * (count - 1)
            } else {
                0
            }
        };
        let source = pattern(span(from_stride));
        let mut target = vec![0xEE; span(to_stride)];
        let mut expected = target.clone();
        for index in 0..count.cast_signed() {
            let from = first(from_stride).wrapping_add_signed(index * from_stride);
            let to = first(to_stride).wrapping_add_signed(index * to_stride);
            expected[to..to + len].copy_from_slice(&source[from..from + len]);
        }
        let from = Side {
            start: source.as_ptr().wrapping_add(first(from_stride)),
            stride: from_stride,
        };
        let to = Side {
            start: target.as_mut_ptr().wrapping_add(first(to_stride)),
            stride: to_stride,
        };
        // SAFETY: the buffers hold all pieces and are distinct.
        unsafe { copy_pieces(from, to, len, count) };
        assert_eq!(
            target, expected,
            "len {len} count {count} {from_stride} -> {to_stride}"
        );
    }

    #[test]
    fn every_length_and_stride_sign() {
        // Miri checks only the lengths at which the kernel changes.
        let few = [1, 2, 3, 4, 5, 8, 15, 16, 17, 32, 33, 64, 65, 128, 129];
        let lengths: Vec<usize> = if cfg!(miri) {
            few.into()
        } else {
            (1..=300).collect()
        };
        for len in lengths {
            let packed = len.cast_signed();
            for (from, to) in [
                (packed, packed),
                (packed, packed + 3),
                (2 * packed, packed),
                (-2 * packed, packed),
                (packed + 5, -(packed + 1)),
                (0, packed),
                (packed, packed / 2),
            ] {
                check(len, 5, from, to);
                check(len, 1, from, to);
            }
        }
    }

    #[test]
    fn single_pieces_of_every_length() {
        for len in 0..=130 {
            let source = pattern(len);
            let mut target = vec![0xEE; len];
            // SAFETY: both buffers are `len` bytes long and distinct.
            unsafe { copy_piece(source.as_ptr(), target.as_mut_ptr(), len) };
            assert_eq!(target, source);
        }
    }

    /// Source and target lie at every distance modulo a page that matters, and nothing around the
    /// target is written.
    #[test]
    fn long_pieces_at_aliasing_addresses() {
        let source = pattern(3 * ALIAS_BYTES);
        let distances = [0, 1, 16, 31, 32, 63, 64, 1000, ALIAS_BYTES - 1];
        for len in [STRING_COPY_BYTES - 1, STRING_COPY_BYTES, 4097, 8000] {
            for distance in distances {
                let mut target = vec![0xEE; 4 * ALIAS_BYTES];
                let phase = (source.as_ptr().addr() + distance) % ALIAS_BYTES;
                let to = (phase + ALIAS_BYTES - target.as_ptr().addr() % ALIAS_BYTES) % ALIAS_BYTES;
                let mut expected = target.clone();
                expected[to..to + len].copy_from_slice(&source[..len]);
                let at = target.as_mut_ptr().wrapping_add(to);
                assert_eq!(
                    at.addr().wrapping_sub(source.as_ptr().addr()) % ALIAS_BYTES,
                    distance
                );
                // SAFETY: the piece lies within both buffers, which are distinct.
                unsafe { copy_piece(source.as_ptr(), at, len) };
                assert_eq!(target, expected, "length {len}, distance {distance}");
                target.fill(0xEE);
                let (from, to) = (source.as_ptr(), at);
                let (from, to) = (
                    Side {
                        start: from,
                        stride: 0,
                    },
                    Side {
                        start: to,
                        stride: 0,
                    },
                );
                // SAFETY: as above; the second copy of the piece goes to the same place.
                unsafe { copy_pieces(from, to, len, 2) };
                assert_eq!(target, expected, "length {len}, distance {distance}, twice");
            }
        }
    }

    #[test]
    fn empty_copies_access_nothing() {
        let none = Side {
            start: ptr::null(),
            stride: 8,
        };
        let nowhere = Side {
            start: ptr::null_mut(),
            stride: 8,
        };
        // SAFETY: no piece is read or written.
        unsafe { copy_pieces(none, nowhere, 8, 0) };
        // SAFETY: the pieces are empty.
        unsafe { copy_pieces(none, nowhere, 0, 3) };
    }
}
