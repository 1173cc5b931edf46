//! Large counts, limits, rejected arguments and normal forms.

#![allow(clippy::unwrap_used)] // A test may panic: that is how it fails.

use pario_layout::{
    Basic, Darray, Datatype, Distribution, Layout, MAX_DEPTH, Monotonicity, Order, Run,
    TypeErrorKind, WireError,
};

fn int() -> Datatype {
    Basic::Int.into()
}

fn kind(result: Result<Datatype, pario_layout::TypeError>) -> TypeErrorKind {
    result.unwrap_err().kind()
}

#[test]
fn counts_and_sizes_past_32_bits() {
    let count = 3_000_000_000;
    let vector = Datatype::vector(count, 2, 5, &int()).unwrap();
    assert_eq!(vector.size(), 8 * count);
    assert_eq!(vector.extent(), (count as i64 - 1) * 20 + 8);
    assert!(vector.layout().heap_bytes() < 1000);
    let k = 8 * 2_999_999_999 + 3;
    let offset = vector.layout().offset_of(k).unwrap();
    assert_eq!(offset, 2_999_999_999 * 20 + 3);
    assert_eq!(vector.layout().bytes_below(offset), k);
    let stats = vector.layout().piece_stats(1..8 * count);
    assert_eq!((stats.pieces, stats.bytes), (count, 8 * count - 1));
    assert_eq!(vector.signature().elements(), 2 * count);
}

#[test]
fn distant_tiles_end_at_the_last_offset() {
    let wide = Datatype::resized(&int(), 0, 1 << 61).unwrap();
    let layout = wide.layout();
    assert_eq!(layout.offset_of(4 * 3 + 1), Some((3 << 61) + 1));
    assert_eq!(layout.offset_of(4 * 4), None);
    assert_eq!(layout.run_bounds(0..17), None);
    let runs: Vec<Run> = layout.runs(2..1000).collect();
    assert_eq!(runs.iter().map(Run::bytes).sum::<u64>(), 14);
    assert_eq!(layout.bytes_below(i64::MAX), 16);
    assert_eq!(layout.bytes_below(i64::MIN), 0);
    let backwards = Datatype::resized(&int(), 0, -(1 << 61)).unwrap();
    assert_eq!(backwards.layout().offset_of(16), Some(i64::MIN));
    assert_eq!(backwards.layout().bytes_below(4), u64::MAX);
}

/// A row of tiles from a high offset down to the lowest is longer than 63 bits.
#[test]
fn a_row_may_span_the_whole_range() {
    let high = Datatype::hindexed(&[(1, 1 << 62)], &Basic::Byte.into()).unwrap();
    let down = Datatype::resized(&high, 0, -25).unwrap();
    let run = down.layout().runs(0..u64::MAX).next().unwrap();
    let last = run.piece(run.count - 1);
    assert!(run.count > (3 << 62) / 25 && last < i64::MIN + 25);
    assert_eq!(down.layout().offset_of(run.count - 1), Some(last));
}

/// Tiles that coincide never leave the range, so the data extends to the last position.
#[test]
fn pieces_are_counted_up_to_the_last_position() {
    let stacked = Datatype::resized(&Basic::Byte.into(), 0, 0).unwrap();
    let stats = stacked.layout().piece_stats(0..u64::MAX);
    assert_eq!(
        (stats.pieces, stats.bytes, stats.span),
        (u64::MAX, u64::MAX, 1)
    );
}

/// Checking an etype with holes must not enumerate its elements.
#[test]
fn an_etype_of_many_pieces_is_checked_quickly() {
    let etype = Datatype::vector(1 << 40, 2, 3, &int()).unwrap();
    let two = Datatype::contiguous(2, &etype).unwrap();
    for filetype in [&etype, &two] {
        filetype.check_filetype(&etype).unwrap();
        filetype.check_elements(&etype).unwrap();
    }
}

#[test]
fn every_overflow_is_an_error() {
    let far = i64::MAX / 2;
    let overflow = TypeErrorKind::Overflow;
    assert_eq!(kind(Datatype::contiguous(u64::MAX, &int())), overflow);
    assert_eq!(kind(Datatype::contiguous(1 << 61, &int())), overflow);
    assert_eq!(kind(Datatype::vector(3, 1, far, &int())), overflow);
    assert_eq!(kind(Datatype::hvector(3, 1, i64::MAX, &int())), overflow);
    assert_eq!(kind(Datatype::hvector(3, 1, i64::MIN, &int())), overflow);
    assert_eq!(
        kind(Datatype::indexed(&[(1, 0), (1, far)], &int())),
        overflow
    );
    assert_eq!(
        kind(Datatype::indexed(&[(u64::MAX, 0), (u64::MAX, 0)], &int())),
        overflow
    );
    assert_eq!(kind(Datatype::hindexed(&[(1, i64::MAX)], &int())), overflow);
    assert_eq!(
        kind(Datatype::hindexed(
            &[(1, i64::MIN), (1, i64::MAX - 4)],
            &int()
        )),
        overflow
    );
    assert_eq!(kind(Datatype::structure(&[(1, i64::MAX, int())])), overflow);
    assert_eq!(kind(Datatype::resized(&int(), i64::MAX, 1)), overflow);
    let (sizes, none) = ([1 << 40, 1 << 40], [0, 0]);
    assert_eq!(
        kind(Datatype::subarray(&sizes, &none, &none, Order::C, &int())),
        overflow
    );
    let stacked = Datatype::resized(&int(), 0, 0).unwrap();
    assert_eq!(kind(Datatype::contiguous(1 << 62, &stacked)), overflow);
    let message = Datatype::contiguous(1 << 61, &int())
        .unwrap_err()
        .to_string();
    assert!(message.contains("63 bits"), "{message}");
}

#[test]
fn empty_types_do_not_overflow() {
    Datatype::vector(1, 1, i64::MAX, &int()).unwrap();
    Datatype::vector(0, 1, i64::MIN, &int()).unwrap();
    Datatype::indexed(&[(0, i64::MAX), (1, 0)], &int()).unwrap();
    assert_eq!(Datatype::contiguous(0, &int()).unwrap().extent(), 0);
    let empty = Datatype::structure(&[]).unwrap();
    assert_eq!((empty.size(), empty.extent()), (0, 0));
    empty.check_etype().unwrap();
    empty.check_filetype(&int()).unwrap();
    assert_eq!(empty.layout().runs(0..100).count(), 0);
    assert_eq!(empty.layout().bytes_below(5), 0);
    assert_eq!(empty.layout().order(), Monotonicity::Increasing);
}

#[test]
fn nesting_depth_is_limited() {
    let mut datatype = int();
    for _ in 1..MAX_DEPTH {
        datatype = Datatype::hvector(2, 1, 1, &datatype).unwrap_or(datatype);
        datatype = Datatype::resized(&datatype, 0, 8).unwrap_or(datatype);
    }
    assert_eq!(
        kind(Datatype::resized(&datatype, 0, 8)),
        TypeErrorKind::Depth
    );
}

#[test]
fn arguments_outside_the_array_are_rejected() {
    let argument = TypeErrorKind::Argument;
    let subarray = |sizes: &[u64], subsizes: &[u64], starts: &[u64]| {
        kind(Datatype::subarray(
            sizes,
            subsizes,
            starts,
            Order::C,
            &int(),
        ))
    };
    assert_eq!(subarray(&[], &[], &[]), argument);
    assert_eq!(subarray(&[4], &[5], &[0]), argument);
    assert_eq!(subarray(&[4], &[2], &[3]), argument);
    assert_eq!(subarray(&[4], &[2], &[u64::MAX]), argument);
    assert_eq!(subarray(&[4, 4], &[2], &[0]), argument);
    let darray = |ranks, rank, distribution, processes| Darray {
        ranks,
        rank,
        sizes: vec![10],
        distributions: vec![distribution],
        grid: vec![processes],
        order: Order::C,
    };
    for rejected in [
        darray(4, 4, Distribution::Block(None), 4),
        darray(4, 0, Distribution::Block(None), 3),
        darray(0, 0, Distribution::Block(None), 0),
        darray(4, 0, Distribution::Block(Some(2)), 4),
        darray(4, 0, Distribution::Cyclic(Some(0)), 4),
        darray(4, 0, Distribution::None, 4),
    ] {
        assert_eq!(
            kind(Datatype::darray(&rejected, &int())),
            argument,
            "{rejected:?}"
        );
    }
    let huge = darray(4, 3, Distribution::Cyclic(Some(u64::MAX)), 4);
    assert_eq!(Datatype::darray(&huge, &int()).unwrap().size(), 0);
}

/// Equal bytes have equal wire forms, whichever constructors made them.
#[test]
fn equal_layouts_have_equal_wire_forms() {
    let contiguous = Datatype::contiguous(24, &int()).unwrap();
    let row = Datatype::contiguous(6, &int()).unwrap();
    let starts = [0, 6, 12, 18];
    let same = [
        Datatype::contiguous(4, &row).unwrap(),
        Datatype::vector(4, 6, 6, &int()).unwrap(),
        Datatype::indexed(&[(6, 0), (0, 99), (6, 6), (12, 12)], &int()).unwrap(),
        Datatype::indexed_block(6, &starts, &int()).unwrap(),
        Datatype::subarray(&[4, 6], &[4, 6], &[0, 0], Order::Fortran, &int()).unwrap(),
        Datatype::structure(&[(12, 0, int()), (12, 48, int())]).unwrap(),
    ];
    for datatype in &same {
        assert_eq!(datatype.layout(), contiguous.layout());
        assert_eq!(datatype.layout().to_wire(), contiguous.layout().to_wire());
        assert_eq!(
            datatype.layout().content_hash(),
            contiguous.layout().content_hash()
        );
        assert!(datatype.layout().is_dense());
    }
    let vector = Datatype::vector(5, 2, 7, &int()).unwrap();
    let places: Vec<i64> = (0..5).map(|index| 7 * index).collect();
    let indexed = Datatype::indexed_block(2, &places, &int()).unwrap();
    assert_eq!(indexed.layout(), vector.layout());
    assert_ne!(
        vector.layout().content_hash(),
        contiguous.layout().content_hash()
    );
}

#[test]
fn regular_types_take_few_bytes() {
    let cube = [1 << 20, 1 << 20, 1 << 12];
    let (half, start) = ([1 << 19, 1 << 19, 1 << 11], [5, 6, 7]);
    let part = Datatype::subarray(&cube, &half, &start, Order::C, &int()).unwrap();
    assert!(part.layout().heap_bytes() < 1000 && part.layout().to_wire().len() < 100);
    let cyclic = Darray {
        ranks: 12,
        rank: 7,
        sizes: vec![1_000_003, 999_999],
        distributions: vec![Distribution::Cyclic(Some(7)), Distribution::Cyclic(Some(5))],
        grid: vec![3, 4],
        order: Order::Fortran,
    };
    let part = Datatype::darray(&cyclic, &int()).unwrap();
    assert!(
        part.layout().heap_bytes() < 3000,
        "{}",
        part.layout().heap_bytes()
    );
    assert_eq!(part.layout().order(), Monotonicity::Increasing);
}

#[test]
fn irregular_blocks_take_about_sixteen_bytes() {
    let blocks: Vec<(u64, i64)> = (0..100_000)
        .map(|index| (1 + index % 3, 7 * index as i64 + (index % 5) as i64))
        .collect();
    let datatype = Datatype::indexed(&blocks, &int()).unwrap();
    assert!(datatype.layout().heap_bytes() < 18 * blocks.len());
    let same_length: Vec<i64> = blocks.iter().map(|block| block.1).collect();
    let datatype = Datatype::indexed_block(2, &same_length, &int()).unwrap();
    assert!(datatype.layout().heap_bytes() < 9 * blocks.len());
    // Every look-up in a long list, which has a search index.
    let layout = datatype.layout();
    for (index, place) in same_length.iter().enumerate() {
        assert_eq!(layout.offset_of(8 * index as u64 + 1), Some(4 * place + 1));
        assert_eq!(layout.bytes_below(4 * place + 8), 8 * index as u64 + 8);
    }
}

/// The last block of a tile is adjacent to the first of the next.
#[test]
fn pieces_join_across_tiles() {
    let vector = Datatype::vector(3, 2, 3, &int()).unwrap();
    let runs: Vec<_> = vector.layout().runs(0..48).flat_map(Run::pieces).collect();
    assert_eq!(runs, [(0, 8), (12, 8), (24, 16), (44, 8), (56, 8)]);
    assert_eq!(vector.layout().piece_stats(0..48).pieces, 5);
    let contiguous = Datatype::contiguous(1 << 40, &int()).unwrap();
    assert_eq!(contiguous.layout().runs(5..1 << 50).count(), 1);
}

/// Shapes that contain one shape twice at each of many levels: nothing may walk every path.
#[test]
fn shared_subtrees_are_visited_once() {
    let doubled = |first: Datatype| {
        let mut datatype = first;
        for _ in 0..24 {
            let extent = datatype.extent();
            let members = [
                (1, 0, datatype.clone()),
                (1, extent, Basic::Char.into()),
                (1, extent + 8, datatype),
            ];
            datatype = Datatype::structure(&members).unwrap();
        }
        datatype
    };
    let places: Vec<i64> = (0..12).map(|index| index * index).collect();
    let one = doubled(Datatype::indexed_block(1, &places, &int()).unwrap());
    let blocks: Vec<(u64, i64)> = places.iter().map(|&place| (1, place)).collect();
    let other = doubled(Datatype::indexed(&blocks, &int()).unwrap());
    assert_eq!(one.layout(), other.layout());
    assert_eq!(one.signature(), other.signature());
    assert!(one.layout().heap_bytes() < 20_000 && one.to_wire().len() < 2000);
    assert_eq!(Datatype::from_wire(&one.to_wire()).unwrap(), one);
    one.check_filetype(&one).unwrap();
    assert!(one.check_filetype(&Basic::Int.into()).is_err());
    assert_eq!(
        one.flatten(&Basic::size).unwrap(),
        other.flatten(&Basic::size).unwrap()
    );
    let both = Datatype::structure(&[(1, 0, one.clone()), (1, one.extent(), other)]).unwrap();
    assert_eq!(both.size(), 2 * one.size());
}

#[test]
fn malformed_wire_forms_are_rejected() {
    let vector = Datatype::vector(9, 2, 5, &int()).unwrap();
    let wire = vector.layout().to_wire();
    let rejected = |bytes: &[u8]| Layout::from_wire(bytes).unwrap_err();
    assert_eq!(rejected(&[]), WireError::Truncated);
    assert_eq!(rejected(&[0x77, 0]), WireError::Version(0x77));
    assert_eq!(
        rejected(&[wire.as_slice(), &[0]].concat()),
        WireError::Trailing
    );
    // A repeat that refers to itself, a repeat of count one, a repeat that should be dense.
    let dense = [1, 8];
    let table = |nodes: &[&[u8]]| {
        let mut bytes = vec![0x11, nodes.len() as u8];
        nodes.iter().for_each(|node| bytes.extend_from_slice(node));
        bytes.extend([0, 0, 0]);
        bytes
    };
    assert!(matches!(
        rejected(&table(&[&dense, &[2, 1, 3, 40]])),
        WireError::Invalid(_)
    ));
    assert!(matches!(
        rejected(&table(&[&dense, &[2, 0, 1, 40]])),
        WireError::Invalid(_)
    ));
    assert_eq!(
        rejected(&table(&[&dense, &[2, 0, 3, 16]])),
        WireError::NotCanonical
    );
    assert_eq!(rejected(&table(&[&dense, &dense])), WireError::NotCanonical);
    assert_eq!(
        rejected(&table(&[&dense, &[1, 9]])),
        WireError::NotCanonical
    );
    assert!(Layout::from_wire(&table(&[&dense, &[2, 0, 3, 40]])).is_ok());
    // A count that the input cannot hold must not be trusted.
    let lying = [0x11, 1, 4, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F, 0, 0, 0];
    assert_eq!(rejected(&lying), WireError::Truncated);
}

/// Found by fuzzing the wire form: the run is longer than the largest offset.
#[test]
fn a_run_from_below_zero_to_the_last_offset_is_not_split() {
    let shifted = Datatype::hindexed(&[(1, -46)], &Basic::Byte.into()).unwrap();
    let bytes = Datatype::resized(&shifted, -1, 1).unwrap();
    let runs: Vec<_> = bytes.layout().runs(0..u64::MAX).collect();
    assert_eq!(runs.len(), 1);
    assert_eq!((runs[0].offset, runs[0].count), (-46, 1));
    assert_eq!(
        runs[0].offset.checked_add_unsigned(runs[0].len),
        Some(i64::MAX)
    );
}

/// Found by fuzzing: a short shape at the last possible offset, in a sequence of others.
#[test]
fn a_serialised_shape_past_the_last_offset_is_rejected() {
    let wire = [
        17, 4, 1, 1, 3, 0, 3, 4, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1, 1, 17, 5, 4, 12,
        0, 255, 81, 1, 1, 1, 0, 0, 102, 1, 128, 148, 17,
    ];
    assert!(Layout::from_wire(&wire).is_err());
}
