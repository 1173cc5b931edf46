//! Pack, unpack and copies between layouts.

use fastrand::Rng;
use pario_layout::{Basic, Layout};

use crate::spec::{flavour, random};
use crate::typemap::type_map;

/// A layout in a buffer of the exact size, and every offset according to the oracle.
struct Buffer {
    layout: Layout,
    memory: Vec<u8>,
    origin: usize,
    offsets: Vec<i64>,
}

const TILES: i64 = 3;

impl Buffer {
    /// `None` if the type has no data.
    fn random(rng: &mut Rng) -> Option<Self> {
        let flavour = flavour(rng);
        let spec = random(rng, flavour);
        let map = type_map(&spec, &Basic::size);
        let bytes = map.bytes(&Basic::size);
        let extent = map.extent();
        let shifted = |tile: i64| bytes.iter().map(move |at| at + tile * extent);
        let offsets: Vec<i64> = (0..TILES).flat_map(shifted).collect();
        let (low, high) = (*offsets.iter().min()?, *offsets.iter().max()?);
        let memory = (low..=high).map(|_| rng.u8(..)).collect();
        // Offset zero may lie outside the bytes accessed, but not before the buffer.
        let origin = usize::try_from(-low).unwrap_or(0);
        let lead = usize::try_from(low).unwrap_or(0);
        let mut padded = vec![0; lead];
        padded.extend::<Vec<u8>>(memory);
        Some(Self {
            layout: spec.build().layout().clone(),
            memory: padded,
            origin,
            offsets,
        })
    }

    fn range(&self, rng: &mut Rng) -> std::ops::Range<u64> {
        let start = rng.usize(0..self.offsets.len());
        start as u64..rng.usize(start..=self.offsets.len()) as u64
    }

    fn index(&self, k: u64) -> usize {
        (self.origin as i64 + self.offsets[k as usize]) as usize
    }
}

#[test]
fn pack_and_unpack_move_the_bytes_of_the_type_map() {
    crate::for_cases(|rng| {
        let Some(mut buffer) = Buffer::random(rng) else {
            return;
        };
        let data = buffer.range(rng);
        let expected: Vec<u8> = data
            .clone()
            .map(|k| buffer.memory[buffer.index(k)])
            .collect();
        let mut packed = vec![0; expected.len()];
        let (layout, origin) = (buffer.layout.clone(), buffer.origin);
        layout
            .pack_slice(&buffer.memory, origin, data.clone(), &mut packed)
            .unwrap();
        assert_eq!(packed, expected, "pack {data:?}");

        let fresh: Vec<u8> = expected.iter().map(|_| rng.u8(..)).collect();
        let mut target = buffer.memory.clone();
        for (k, byte) in data.clone().zip(&fresh) {
            target[buffer.index(k)] = *byte;
        }
        layout
            .unpack_slice(&fresh, &mut buffer.memory, origin, data.clone())
            .unwrap();
        assert_eq!(buffer.memory, target, "unpack {data:?}");
    });
}

#[test]
fn short_slices_are_rejected() {
    crate::for_cases(|rng| {
        let Some(buffer) = Buffer::random(rng) else {
            return;
        };
        let data = buffer.range(rng);
        let mut packed = vec![0; (data.end - data.start) as usize];
        let last = data.clone().map(|k| buffer.index(k)).max();
        let Some(last) = last else { return };
        let (layout, origin) = (&buffer.layout, buffer.origin);
        let short = &buffer.memory[..last];
        assert!(
            layout
                .pack_slice(short, origin, data.clone(), &mut packed)
                .is_err()
        );
        let enough = &buffer.memory[..=last];
        assert_eq!(
            layout.pack_slice(enough, origin, data.clone(), &mut packed),
            Ok(())
        );
        packed.push(0);
        assert!(
            layout
                .pack_slice(enough, origin, data, &mut packed)
                .is_err()
        );
    });
}

#[test]
fn copies_between_layouts_equal_pack_then_unpack() {
    crate::for_cases(|rng| {
        let Some(source) = Buffer::random(rng) else {
            return;
        };
        let Some(mut target) = Buffer::random(rng) else {
            return;
        };
        let (from, to) = (source.range(rng), target.range(rng));
        let len = (from.end - from.start).min(to.end - to.start);
        let mut expected = target.memory.clone();
        for k in 0..len {
            expected[target.index(to.start + k)] = source.memory[source.index(from.start + k)];
        }
        let from_origin = source.memory.as_ptr().wrapping_add(source.origin);
        let to_origin = target.memory.as_mut_ptr().wrapping_add(target.origin);
        // SAFETY: both buffers hold all bytes of their tiles, and they are distinct.
        #[allow(unsafe_code)]
        unsafe {
            let from = (&source.layout, from_origin, from.start);
            Layout::copy(from, (&target.layout, to_origin, to.start), len);
        }
        assert_eq!(target.memory, expected);
    });
}
