//! Look-ups, runs, bounds, order, signature, flattening and wire form.

use std::collections::HashSet;

use fastrand::Rng;
use pario_layout::{Basic, Datatype, Layout, Monotonicity, Overlap};

use crate::spec::{Flavour, Spec, flavour, random};
use crate::typemap::{TypeMap, type_map};

/// One tile according to the oracle.
struct Tile {
    bytes: Vec<i64>,
    extent: i64,
}

impl Tile {
    fn new(map: &TypeMap, size_of: &dyn Fn(Basic) -> u64) -> Self {
        Self {
            bytes: map.bytes(size_of),
            extent: map.extent(),
        }
    }

    fn offset(&self, k: u64) -> i64 {
        let size = self.bytes.len() as u64;
        self.bytes[(k % size) as usize] + (k / size) as i64 * self.extent
    }

    /// The first data byte at or past `x`.
    fn first_past(&self, x: i64) -> u64 {
        if self.bytes.is_empty() {
            return 0;
        }
        for tile in 0_u64.. {
            let found = self
                .bytes
                .iter()
                .position(|at| at + tile as i64 * self.extent >= x);
            if let Some(index) = found {
                return tile * self.bytes.len() as u64 + index as u64;
            }
            if self.extent <= 0 {
                return u64::MAX;
            }
        }
        unreachable!("an endless row of tiles rises past every offset")
    }

    fn pieces(&self, data: std::ops::Range<u64>) -> Vec<(i64, u64)> {
        let mut pieces: Vec<(i64, u64)> = Vec::new();
        for k in data {
            let at = self.offset(k);
            match pieces.last_mut() {
                Some((start, len)) if *start + *len as i64 == at => *len += 1,
                _ => pieces.push((at, 1)),
            }
        }
        pieces
    }
}

fn check_bounds(layout: &Layout, map: &TypeMap, tile: &Tile) {
    assert_eq!(layout.size(), tile.bytes.len() as u64);
    assert_eq!(layout.lower_bound(), map.lower());
    assert_eq!(layout.extent(), map.extent());
    assert_eq!(layout.upper_bound(), map.lower() + map.extent());
    assert_eq!(
        layout.true_lower_bound(),
        tile.bytes.iter().copied().min().unwrap_or(0)
    );
    let end = tile.bytes.iter().map(|at| at + 1).max().unwrap_or(0);
    assert_eq!(layout.true_upper_bound(), end);
}

fn check_order(layout: &Layout, tile: &Tile) {
    let order = |rises: bool| {
        if rises {
            Monotonicity::Increasing
        } else {
            Monotonicity::Unordered
        }
    };
    let rises = tile.bytes.is_sorted_by(|a, b| a < b);
    assert_eq!(layout.tile_order(), order(rises));
    let size = tile.bytes.len() as u64;
    let two: Vec<i64> = (0..2 * size).map(|k| tile.offset(k)).collect();
    assert_eq!(layout.order(), order(two.is_sorted_by(|a, b| a < b)));
    let dense = size > 0 && (0..2 * size).all(|k| tile.offset(k) == k as i64);
    assert_eq!(layout.is_dense(), dense);
}

fn check_overlap(layout: &Layout, tile: &Tile) {
    let distinct: HashSet<i64> = tile.bytes.iter().copied().collect();
    let overlap = |clash: bool| {
        if clash {
            Overlap::Present
        } else {
            Overlap::Absent
        }
    };
    assert_eq!(
        layout.tile_overlap(),
        overlap(distinct.len() < tile.bytes.len())
    );
    let span = layout.true_upper_bound() - layout.true_lower_bound();
    let tiles = if tile.extent == 0 {
        2
    } else {
        span / tile.extent.abs() + 2
    };
    let count = tiles as u64 * tile.bytes.len() as u64;
    let all: HashSet<i64> = (0..count).map(|k| tile.offset(k)).collect();
    assert_eq!(layout.overlap(), overlap((all.len() as u64) < count));
}

fn check_lookups(layout: &Layout, tile: &Tile) {
    let size = tile.bytes.len() as u64;
    assert_eq!(layout.offset_of(0).is_none(), size == 0);
    for k in 0..3 * size {
        assert_eq!(
            layout.offset_of(k),
            Some(tile.offset(k)),
            "offset of data byte {k}"
        );
    }
    let (low, high) = (layout.true_lower_bound() - 5, layout.true_upper_bound() + 5);
    for x in low..=high + 2 * tile.extent.max(0) {
        assert_eq!(
            layout.bytes_below(x),
            tile.first_past(x),
            "data bytes below {x}"
        );
    }
}

fn check_range(layout: &Layout, tile: &Tile, data: std::ops::Range<u64>) {
    let expected = tile.pieces(data.clone());
    let pieces: Vec<_> = layout
        .runs(data.clone())
        .flat_map(|run| run.pieces())
        .collect();
    assert_eq!(pieces, expected, "runs of {data:?}");
    for run in layout.runs(data.clone()) {
        assert!(run.count > 1 || run.stride == 0);
        assert_eq!(run.bytes(), run.len * run.count);
    }
    let low = expected.iter().map(|(at, _)| *at).min();
    let high = expected.iter().map(|(at, len)| at + *len as i64).max();
    // These types have fewer entries than are scanned for exact bounds.
    assert_eq!(
        layout.run_bounds(data.clone()),
        low.zip(high),
        "bounds of {data:?}"
    );
    let stats = layout.piece_stats(data.clone());
    assert_eq!(stats.bytes, data.end - data.start);
    assert!(stats.pieces >= expected.len() as u64 && stats.pieces <= stats.bytes);
    let mut sorted: Vec<_> = expected.iter().map(|(at, len)| (*at, *len)).collect();
    sorted.sort_by_key(|(at, _)| *at);
    let found = layout.sorted_pieces(data.clone());
    assert_eq!(
        found
            .iter()
            .map(|piece| (piece.offset, piece.len))
            .collect::<Vec<_>>(),
        sorted
    );
    for piece in found {
        assert_eq!(layout.offset_of(piece.data), Some(piece.offset));
    }
}

fn check_ranges(rng: &mut Rng, layout: &Layout, tile: &Tile) {
    let size = tile.bytes.len() as u64;
    let whole = 3 * size;
    if size <= 12 {
        for start in 0..=whole {
            (start..=whole).for_each(|end| check_range(layout, tile, start..end));
        }
    }
    for _ in 0..8 {
        let start = rng.u64(0..=whole);
        check_range(layout, tile, start..rng.u64(start..=whole));
    }
}

fn check_wire(datatype: &Datatype) {
    let layout = datatype.layout();
    let wire = layout.to_wire();
    let back = Layout::from_wire(&wire).unwrap();
    assert_eq!(&back, layout);
    assert_eq!(back.content_hash(), layout.content_hash());
    for cut in 0..wire.len() {
        assert!(Layout::from_wire(&wire[..cut]).is_err());
    }
    let wire = datatype.to_wire();
    let back = Datatype::from_wire(&wire).unwrap();
    assert_eq!(&back, datatype);
    assert_eq!(back.layout(), layout);
    assert_eq!(back.signature(), datatype.signature());
}

#[test]
fn layouts_match_the_type_map() {
    crate::for_cases(|rng| {
        let flavour = flavour(rng);
        let spec = random(rng, flavour);
        let (datatype, map) = (spec.build(), type_map(&spec, &Basic::size));
        let tile = Tile::new(&map, &Basic::size);
        let layout = datatype.layout();
        check_bounds(layout, &map, &tile);
        check_order(layout, &tile);
        check_overlap(layout, &tile);
        check_lookups(layout, &tile);
        check_ranges(rng, layout, &tile);
        check_wire(&datatype);
    });
}

/// Sizes that a representation might have: smaller, larger, one and odd.
fn other_size(basic: Basic) -> u64 {
    match basic {
        Basic::Wchar => 2,
        Basic::LongDouble => 10,
        Basic::Double => 8,
        Basic::Int => 8,
        Basic::Short => 3,
        _ => basic.size(),
    }
}

#[test]
fn flattening_scales_displacements_in_extents() {
    crate::for_cases(|rng| {
        let flavour = flavour(rng);
        let spec = random(rng, flavour);
        let datatype = spec.build();
        assert_eq!(&datatype.flatten(&Basic::size).unwrap(), datatype.layout());
        let map = type_map(&spec, &other_size);
        let tile = Tile::new(&map, &other_size);
        let layout = datatype.flatten(&other_size).unwrap();
        check_bounds(&layout, &map, &tile);
        check_lookups(&layout, &tile);
        assert_eq!(
            datatype.signature().size_in(&other_size),
            Some(tile.bytes.len() as u64)
        );
    });
}

#[test]
fn signatures_are_the_elements_in_order() {
    crate::for_cases(|rng| {
        let spec: Spec = random(rng, Flavour::Memory);
        let (datatype, map) = (spec.build(), type_map(&spec, &Basic::size));
        let signature = datatype.signature();
        let elements: Vec<Basic> = map.elements.iter().map(|(basic, _)| *basic).collect();
        let count = elements.len() as u64;
        assert_eq!(signature.elements(), count);
        let first = elements.first().copied();
        let uniform = first.filter(|first| elements.iter().all(|basic| basic == first));
        assert_eq!(signature.uniform(), uniform);
        let start = rng.u64(0..=2 * count);
        let end = rng.u64(start..=3 * count);
        let of_runs: Vec<Basic> = signature
            .runs(start..end)
            .flat_map(|(basic, run)| vec![basic; run as usize])
            .collect();
        let expected: Vec<Basic> = (start..end)
            .map(|index| elements[(index % count) as usize])
            .collect();
        assert_eq!(of_runs, expected);
        let neighbours: Vec<_> = signature.runs(start..end).map(|(basic, _)| basic).collect();
        assert!(neighbours.windows(2).all(|pair| pair[0] != pair[1]));
        check_positions(signature, &elements);
    });
}

/// Elements to bytes and back, for two instances.
fn check_positions(signature: &pario_layout::Signature, elements: &[Basic]) {
    let mut byte = 0;
    for index in 0..2 * elements.len() {
        assert_eq!(signature.bytes_of(index as u64, &other_size), Some(byte));
        let size = other_size(elements[index % elements.len()]);
        for inside in 0..size {
            let place = signature.element_at(byte + inside, &other_size);
            assert_eq!(place, Some((index as u64, inside)));
        }
        byte += size;
    }
}
