//! A second, naive implementation: one element at a time, directly from the
//! definitions, and datatypes with explicit type maps.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]
#![allow(dead_code, reason = "not every test uses all of it")]

use pario_layout::{Basic, Datatype};

pub(crate) use testing::{cases, seed};

#[path = "../../src/testing.rs"]
mod testing;

/// A datatype and its type map: types and displacements of its elements.
#[derive(Clone, Debug)]
pub(crate) struct Typed {
    pub(crate) datatype: Datatype,
    pub(crate) map: Vec<(Basic, i64)>,
}

impl Typed {
    fn basic(basic: Basic) -> Typed {
        Typed {
            datatype: Datatype::basic(basic),
            map: vec![(basic, 0)],
        }
    }

    /// The type map of `instances` instances.
    pub(crate) fn tiled(&self, instances: usize) -> Vec<(Basic, i64)> {
        let extent = self.datatype.extent();
        (0..instances as i64)
            .flat_map(|i| {
                self.map
                    .iter()
                    .map(move |(basic, at)| (*basic, at + i * extent))
            })
            .collect()
    }
}

/// A random type of at most `depth` nested constructors, without overlap.
pub(crate) fn random_type(rng: &mut fastrand::Rng, depth: u32) -> Typed {
    if depth == 0 || rng.u8(..5) == 0 {
        return Typed::basic(Basic::ALL[rng.usize(..Basic::ALL.len())]);
    }
    match rng.u8(..3) {
        0 => {
            let (inner, count) = (random_type(rng, depth - 1), rng.u64(..5));
            let datatype = Datatype::contiguous(count, &inner.datatype).unwrap();
            let map = inner.tiled(count as usize);
            Typed { datatype, map }
        }
        1 => {
            let inner = random_type(rng, depth - 1);
            let (count, length) = (rng.u64(..4), rng.u64(..4));
            let stride = length as i64 + rng.i64(0..3);
            let datatype = Datatype::vector(count, length, stride, &inner.datatype).unwrap();
            let block = inner.tiled(length as usize);
            let step = stride * inner.datatype.extent();
            let map = (0..count as i64)
                .flat_map(|i| block.iter().map(move |(basic, at)| (*basic, at + i * step)))
                .collect();
            Typed { datatype, map }
        }
        _ => random_structure(rng, depth),
    }
}

fn random_structure(rng: &mut fastrand::Rng, depth: u32) -> Typed {
    let (mut members, mut map, mut end) = (Vec::new(), Vec::new(), 0);
    for _ in 0..rng.usize(1..5) {
        let (inner, length) = (random_type(rng, depth - 1), rng.u64(..3));
        let start = end + rng.i64(0..9);
        map.extend(
            inner
                .tiled(length as usize)
                .iter()
                .map(|(basic, at)| (*basic, start + at)),
        );
        // Not the extent, which leaves out what is below the lower bound.
        let ends = map
            .iter()
            .map(|(basic, at): &(Basic, i64)| at + basic.size() as i64);
        end = ends.max().unwrap_or(start);
        members.push((length, start, inner.datatype));
    }
    Typed {
        datatype: Datatype::structure(&members).unwrap(),
        map,
    }
}

/// Size in external32, by kind of type.
pub(crate) fn external32_size(basic: Basic) -> usize {
    match basic {
        Basic::Long | Basic::UnsignedLong => 4,
        Basic::Wchar => 2,
        _ => basic.size() as usize,
    }
}

fn is_logical(basic: Basic) -> bool {
    use Basic::*;
    matches!(
        basic,
        CBool | CxxBool | Logical | Logical1 | Logical2 | Logical4 | Logical8 | Logical16
    )
}

pub(crate) fn is_long_double(basic: Basic) -> bool {
    use Basic::*;
    matches!(
        basic,
        LongDouble | CLongDoubleComplex | CxxLongDoubleComplex
    )
}

fn is_complex(basic: Basic) -> bool {
    basic.name().contains("COMPLEX")
}

/// A random native value that every representation can hold and return
/// unchanged.
pub(crate) fn random_value(rng: &mut fastrand::Rng, basic: Basic) -> Vec<u8> {
    match basic {
        Basic::Long => i64::from(rng.i32(..)).to_le_bytes().to_vec(),
        Basic::UnsignedLong => u64::from(rng.u32(..)).to_le_bytes().to_vec(),
        Basic::Wchar => u32::from(rng.u16(..)).to_le_bytes().to_vec(),
        _ if is_logical(basic) => {
            let mut bytes = vec![0; basic.size() as usize];
            bytes[0] = u8::from(rng.bool());
            bytes
        }
        _ if is_long_double(basic) => (0..basic.size() / 16)
            .flat_map(|_| random_long_double(rng))
            .collect(),
        _ => (0..basic.size()).map(|_| rng.u8(..)).collect(),
    }
}

/// A normal, subnormal or infinite long double.
fn random_long_double(rng: &mut fastrand::Rng) -> [u8; 16] {
    if !cfg!(target_arch = "x86_64") {
        return rng.u128(..).to_le_bytes();
    }
    let sign = u128::from(rng.bool()) << 79;
    let magnitude = match rng.u8(..8) {
        0 => u128::from(rng.u64(..) >> 1),
        1 => 0x7fff << 64 | 1 << 63,
        _ => u128::from(rng.u16(1..0x7fff)) << 64 | 1 << 63 | u128::from(rng.u64(..)),
    };
    (sign | magnitude).to_le_bytes()
}

/// One element of a little-endian machine in external32, bit by bit where
/// formats differ.
pub(crate) fn external32_element(basic: Basic, native: &[u8]) -> Vec<u8> {
    if is_logical(basic) {
        let mut file = vec![0; native.len()];
        *file.last_mut().unwrap() = u8::from(native.iter().any(|byte| *byte != 0));
        return file;
    }
    if is_long_double(basic) && cfg!(target_arch = "x86_64") {
        return native.chunks(16).flat_map(binary128_by_bits).collect();
    }
    let parts = if is_complex(basic) { 2 } else { 1 };
    let size = external32_size(basic) / parts;
    native
        .chunks(native.len() / parts)
        .flat_map(|part| part.iter().take(size).rev().copied().collect::<Vec<_>>())
        .collect()
}

/// The big-endian binary128 of an x87 number, one bit at a time.
fn binary128_by_bits(x87: &[u8]) -> Vec<u8> {
    let source = |bit: usize| x87[bit / 8] >> (bit % 8) & 1;
    let mut file = vec![0; 16];
    let mut set = |bit: usize, value: u8| file[15 - bit / 8] |= value << (bit % 8);
    // Sign, exponent, then the fraction below the explicit integer bit.
    set(127, source(79));
    (0..15).for_each(|bit| set(112 + bit, source(64 + bit)));
    (0..63).for_each(|bit| set(49 + bit, source(bit)));
    file
}
