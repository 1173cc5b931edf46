//! Decoded datatypes against what the host says of them.

use std::collections::HashSet;
use std::ffi::{c_int, c_void};
use std::fmt::Write;
use std::time::{Duration, Instant};

use fastrand::Rng;
use pario_layout::Basic;
use pario_mpi::host::named_types::NamedType;
use pario_mpi::{DataLayout, Datatype, DecodeError, Flavour, Host, Runtime};

use crate::maker::{DarrayArguments, Maker, host_call};
use crate::oracle::compare;

/// Random types a run.
const CASES: u32 = 400;

fn number(variable: &str, default: u64) -> u64 {
    let value = std::env::var(variable).ok();
    value
        .and_then(|value| value.parse().ok())
        .unwrap_or(default)
}

pub(crate) fn predefined(runtime: &Runtime) {
    let host = runtime.host();
    let mut decoded = 0;
    for named in NamedType::ALL {
        let Some(datatype) = host.named_type(named.name) else {
            continue;
        };
        let is_marker = ["MPI_LB", "MPI_UB"].contains(&named.name);
        // A host may lack a type that others of its flavour have.
        if is_marker || !has(host, named.name, datatype) {
            continue;
        }
        assert_eq!(host.standard_name(datatype), Some(named.name));
        let layout = compare(host, datatype, named.name);
        if let Some(basic) = Basic::from_name(named.name) {
            assert_eq!(layout, basic.into(), "{}", named.name);
        }
        decoded += 1;
    }
    println!("{decoded} predefined datatypes");
    assert!(decoded >= 60, "only {decoded}");
    let null = host.decode(host.predefined().datatype_null);
    assert!(matches!(null, Err(DecodeError::Null)), "{null:?}");
}

/// Types that came late. Older MPICHs take any number for a type.
const NEW: &[&str] = &[
    "MPI_REAL2",
    "MPI_COMPLEX4",
    "MPI_LOGICAL1",
    "MPI_LOGICAL2",
    "MPI_LOGICAL4",
    "MPI_LOGICAL8",
    "MPI_LOGICAL16",
];

/// Whether the host was built with a type that others of its flavour have.
fn has(host: &Host, name: &str, datatype: Datatype) -> bool {
    let is_old = host
        .standard_version()
        .is_ok_and(|version| version < (5, 0));
    let is_lacking = is_old && host.flavour() == Flavour::Mpich && NEW.contains(&name);
    !is_lacking && host.type_size(datatype).is_ok_and(|size| size > 0)
}

pub(crate) fn random(runtime: &Runtime) {
    let cases = number("PARIO_CASES", u64::from(CASES));
    let first_seed = number("PARIO_SEED", 1);
    let mut bytes = 0;
    for seed in first_seed..first_seed + cases {
        let mut draw = Draw {
            maker: Maker(runtime.host()),
            rng: Rng::with_seed(seed),
            made: Vec::new(),
            text: String::new(),
            faults: Faults::of(runtime.host()),
        };
        let datatype = draw.datatype(3);
        let context = format!("{} (PARIO_SEED={seed} PARIO_CASES=1)", draw.text);
        bytes += compare(runtime.host(), datatype, &context).size();
        for datatype in draw.made.drain(..).rev() {
            runtime
                .host()
                .type_free(datatype)
                .expect("a type made above");
        }
    }
    println!("{cases} datatypes of {bytes} bytes");
}

/// What a host's own packing is known to get wrong, and what is therefore not drawn for it.
#[derive(Clone, Copy)]
struct Faults {
    /// MPICH divides by the size of empty parts in some nestings.
    empty_parts: bool,
    /// Open MPI packs some vectors whose blocks overlap or go backwards as if they were adjacent.
    overlaps: bool,
    /// Open MPI 5 packs complex numbers that are apart eight bytes too close together.
    complex: bool,
}

impl Faults {
    fn of(host: &Host) -> Faults {
        let is_open_mpi = host.flavour() == Flavour::OpenMpi;
        Faults {
            empty_parts: !is_open_mpi,
            overlaps: is_open_mpi,
            complex: is_open_mpi,
        }
    }

    /// The least count or block length to draw.
    fn least(self) -> c_int {
        c_int::from(self.empty_parts)
    }
}

/// Draws random datatypes and writes down how they were made.
struct Draw<'a> {
    maker: Maker<'a>,
    rng: Rng,
    made: Vec<Datatype>,
    text: String,
    faults: Faults,
}

/// What random types are made of. No `MPI_LONG_DOUBLE`: some hosts copy only its ten used bytes.
const LEAVES: &[&str] = &[
    "MPI_BYTE",
    "MPI_SHORT",
    "MPI_INT",
    "MPI_DOUBLE",
    "MPI_DOUBLE_INT",
    "MPI_SHORT_INT",
    "MPI_C_DOUBLE_COMPLEX",
];

impl Draw<'_> {
    fn datatype(&mut self, depth: u32) -> Datatype {
        if depth == 0 || self.rng.u32(0..8) == 0 {
            let name = match LEAVES[self.rng.usize(0..LEAVES.len())] {
                "MPI_C_DOUBLE_COMPLEX" if self.faults.complex => "MPI_DOUBLE",
                name => name,
            };
            write!(self.text, "{name}").unwrap();
            return self.maker.0.named_type(name).expect("every host has it");
        }
        let datatype = match self.rng.u32(0..12) {
            0 => self.contiguous(depth),
            1 | 2 => self.vector(depth),
            3 | 4 => self.indexed(depth),
            5 => self.blocks(depth),
            6 | 7 => self.structure(depth),
            8 => self.subarray(depth),
            9 => self.darray(depth),
            10 => self.resized(depth),
            _ => self.dup(depth),
        };
        self.made.push(datatype);
        datatype
    }

    fn numbers(&mut self, count: usize, from: c_int, to: c_int) -> Vec<c_int> {
        (0..count).map(|_| self.rng.i32(from..to)).collect()
    }

    /// Byte displacements around zero.
    fn places(&mut self, count: usize) -> Vec<i64> {
        (0..count).map(|_| self.rng.i64(-200..400)).collect()
    }

    fn contiguous(&mut self, depth: u32) -> Datatype {
        let count = self.rng.i32(self.faults.least()..4);
        write!(self.text, "contiguous({count}, ").unwrap();
        let of = self.datatype(depth - 1);
        self.text += ")";
        self.maker.0.type_contiguous(count, of).unwrap()
    }

    fn vector(&mut self, depth: u32) -> Datatype {
        let least = self.faults.least();
        let (count, length) = (self.rng.i32(least..4), self.rng.i32(least..4));
        let in_bytes = self.rng.bool();
        let stride = self.rng.i32(if in_bytes { -100..200 } else { -3..6 });
        write!(
            self.text,
            "vector(bytes {in_bytes}, {count}, {length}, {stride}, "
        )
        .unwrap();
        let of = self.datatype(depth - 1);
        self.text += ")";
        let (_, extent) = self.maker.0.type_extent(of).unwrap();
        let step = if in_bytes {
            i64::from(stride)
        } else {
            extent * i64::from(stride)
        };
        if self.faults.overlaps && step < extent * i64::from(length) {
            self.text += " as contiguous";
            return self.maker.0.type_contiguous(count, of).unwrap();
        }
        match in_bytes {
            true => self.maker.hvector(count, length, i64::from(stride), of),
            false => self.maker.vector(count, length, stride, of),
        }
    }

    fn indexed(&mut self, depth: u32) -> Datatype {
        let least = self.faults.least();
        let count = self.rng.usize(least as usize..5);
        let lengths = self.numbers(count, least, 3);
        let (places, bytes) = (self.numbers(count, -4, 8), self.places(count));
        let in_bytes = self.rng.bool();
        write!(
            self.text,
            "indexed(bytes {in_bytes}, {lengths:?}, {places:?}, {bytes:?}, "
        )
        .unwrap();
        let of = self.datatype(depth - 1);
        self.text += ")";
        match in_bytes {
            true => self.maker.hindexed(&lengths, &bytes, of),
            false => self.maker.indexed(&lengths, &places, of),
        }
    }

    fn blocks(&mut self, depth: u32) -> Datatype {
        let least = self.faults.least();
        let count = self.rng.usize(least as usize..5);
        let length = self.rng.i32(least..3);
        let (places, bytes) = (self.numbers(count, -4, 8), self.places(count));
        let in_bytes = self.rng.bool();
        write!(
            self.text,
            "blocks(bytes {in_bytes}, {length}, {places:?}, {bytes:?}, "
        )
        .unwrap();
        let of = self.datatype(depth - 1);
        self.text += ")";
        match in_bytes {
            true => self.maker.hindexed_block(length, &bytes, of),
            false => self.maker.indexed_block(length, &places, of),
        }
    }

    fn structure(&mut self, depth: u32) -> Datatype {
        let count = self.rng.usize(1..4);
        let lengths = self.numbers(count, self.faults.least(), 3);
        let places = self.places(count);
        write!(self.text, "struct({lengths:?}, {places:?}, ").unwrap();
        let mut of = Vec::new();
        for _ in 0..count {
            of.push(self.datatype(depth - 1));
            self.text += ", ";
        }
        self.text += ")";
        self.maker.structure(&lengths, &places, &of)
    }

    fn order(&mut self) -> c_int {
        let constants = self.maker.0.constants();
        match self.rng.bool() {
            true => constants.order_c,
            false => constants.order_fortran,
        }
    }

    fn subarray(&mut self, depth: u32) -> Datatype {
        let dimensions = self.rng.usize(1..4);
        let sizes = self.numbers(dimensions, 1, 5);
        let subsizes: Vec<_> = sizes.iter().map(|&size| self.rng.i32(1..=size)).collect();
        let starts = sizes.iter().zip(&subsizes);
        let starts: Vec<_> = starts
            .map(|(size, part)| self.rng.i32(0..=size - part))
            .collect();
        let order = self.order();
        write!(
            self.text,
            "subarray({sizes:?}, {subsizes:?}, {starts:?}, {order}, "
        )
        .unwrap();
        let of = self.datatype(depth - 1);
        self.text += ")";
        self.maker.subarray(&sizes, &subsizes, &starts, order, of)
    }

    fn darray(&mut self, depth: u32) -> Datatype {
        let constants = self.maker.0.constants();
        let dimensions = self.rng.usize(1..4);
        let sizes = self.numbers(dimensions, 1, 7);
        let (mut grid, mut kinds, mut parameters) = (Vec::new(), Vec::new(), Vec::new());
        for &size in &sizes {
            let side = self.rng.i32(1..4);
            let (kind, parameter, side) = match self.rng.u32(0..5) {
                0 => (constants.distribute_none, constants.distribute_dflt_darg, 1),
                1 => (
                    constants.distribute_block,
                    constants.distribute_dflt_darg,
                    side,
                ),
                2 => (constants.distribute_block, (size + side - 1) / side, side),
                3 => (
                    constants.distribute_cyclic,
                    constants.distribute_dflt_darg,
                    side,
                ),
                _ => (constants.distribute_cyclic, self.rng.i32(1..4), side),
            };
            kinds.push(kind);
            parameters.push(parameter);
            grid.push(side);
        }
        let ranks = grid.iter().product();
        let array = DarrayArguments {
            ranks,
            rank: self.rng.i32(0..ranks),
            sizes: &sizes,
            distributions: &kinds,
            parameters: &parameters,
            grid: &grid,
            order: self.order(),
        };
        write!(
            self.text,
            "darray({} of {ranks}, {sizes:?}, {kinds:?}, {parameters:?}, {grid:?}, {}, ",
            array.rank, array.order
        )
        .unwrap();
        let of = self.datatype(depth - 1);
        self.text += ")";
        // Open MPI refuses some inner types.
        let made = self.maker.darray(&array, of);
        made.unwrap_or_else(|_| self.maker.0.type_dup(of).unwrap())
    }

    fn resized(&mut self, depth: u32) -> Datatype {
        let (lower_bound, extent) = (self.rng.i64(-50..50), self.rng.i64(0..200));
        write!(self.text, "resized({lower_bound}, {extent}, ").unwrap();
        let of = self.datatype(depth - 1);
        self.text += ")";
        self.maker.resized(of, lower_bound, extent)
    }

    fn dup(&mut self, depth: u32) -> Datatype {
        self.text += "dup(";
        let of = self.datatype(depth - 1);
        self.text += ")";
        self.maker.0.type_dup(of).unwrap()
    }
}

/// Constructors that make predefined types, markers of bounds, renamed types, deep nesting.
pub(crate) fn others(runtime: &Runtime) {
    let host = runtime.host();
    let maker = Maker(host);
    let int = host.predefined().int;
    let reals = [(6, 30, Basic::Real4), (15, 300, Basic::Real8)];
    for (precision, range, expected) in reals {
        let real = maker.f90_real(precision, range);
        assert_eq!(compare(host, real, "F90 real"), expected.into());
        let complex = maker.f90_complex(precision, range);
        let layout = compare(host, complex, "F90 complex");
        assert_eq!(layout.size(), 2 * expected.size());
        // The predefined inner type of a derived one must survive the decoding.
        for _ in 0..3 {
            let pair = host.type_contiguous(2, complex).unwrap();
            assert_eq!(
                compare(host, pair, "two F90 complex").size(),
                4 * expected.size()
            );
            host.type_free(pair).unwrap();
        }
    }
    for (range, expected) in [
        (2, Basic::Integer1),
        (9, Basic::Integer4),
        (18, Basic::Integer8),
    ] {
        assert_eq!(
            compare(host, maker.f90_integer(range), "F90 integer"),
            expected.into()
        );
    }

    if host.function("Type_get_value_index").is_some() {
        for (value, index) in [
            ("MPI_FLOAT", "MPI_INT"),
            ("MPI_SHORT", "MPI_INT64_T"),
            ("MPI_LONG_DOUBLE", "MPI_UINT64_T"),
            ("MPI_INT8_T", "MPI_SHORT"),
        ] {
            let named = |name| host.named_type(name).expect("every host has it");
            let pair = maker.value_index(named(value), named(index));
            if pair != host.predefined().datatype_null {
                compare(host, pair, &format!("{value} and {index}"));
            }
        }
    }

    let markers = (host.named_type("MPI_LB"), host.named_type("MPI_UB"));
    if let (Some(lower), Some(upper)) = markers
        && host.flavour() == Flavour::Mpich
    {
        let marked = maker.structure(&[1, 2, 1], &[-8, 4, 40], &[lower, int, upper]);
        let layout = compare(host, marked, "a structure with markers");
        assert_eq!(
            (layout.lower_bound(), layout.extent(), layout.size()),
            (-8, 48, 8)
        );
        let outer = host.type_contiguous(2, marked).unwrap();
        compare(host, outer, "two structures with markers");
        host.type_free(outer).unwrap();
        host.type_free(marked).unwrap();
    }

    let name = c"mine";
    host_call!(host, "Type_set_name"(int.0 => u64, name.as_ptr() => *const std::ffi::c_char))
        .expect("valid arguments");
    assert_eq!(host.decode(int).unwrap(), Basic::Int.into());

    let mut nested = vec![host.type_dup(int).unwrap()];
    for _ in 0..pario_layout::MAX_DEPTH + 10 {
        let inner = *nested.last().expect("one was made above");
        nested.push(maker.resized(inner, 0, 8));
    }
    let deepest = *nested.last().expect("one was made above");
    assert!(matches!(
        host.decode(deepest),
        Err(DecodeError::TooDeep | DecodeError::Type(_))
    ));
    assert_eq!(compare(host, nested[100], "100 levels").size(), 4);
    for datatype in nested {
        host.type_free(datatype).unwrap();
    }
}

/// Many blocks are decoded in little time; large counts come through whole.
pub(crate) fn large(runtime: &Runtime) {
    let (host, maker) = (runtime.host(), Maker(runtime.host()));
    let (int, byte) = (host.predefined().int, host.predefined().byte);
    let blocks: c_int = 1_000_000;
    let places: Vec<c_int> = (0..blocks).map(|index| index * 3 + index % 2).collect();
    let lengths: Vec<c_int> = (0..blocks).map(|index| 1 + index % 2).collect();
    let indexed = maker.indexed(&lengths, &places, int);
    let started = Instant::now();
    let layout = compare(host, indexed, "a million blocks");
    let (first, again) = (started.elapsed(), Instant::now());
    assert_eq!(host.decode(indexed).unwrap(), layout);
    println!("a million blocks: {first:?}, again {:?}", again.elapsed());
    assert!(first < Duration::from_secs(10), "took {first:?}");
    host.type_free(indexed).unwrap();

    let gigabyte = host.type_contiguous(1 << 30, byte).unwrap();
    let terabyte = host.type_contiguous(1 << 10, gigabyte).unwrap();
    assert_eq!(compare(host, terabyte, "a terabyte").size(), 1 << 40);
    let apart = maker.hvector(3, 1, 1 << 41, terabyte);
    assert_eq!(
        compare(host, apart, "three terabytes").extent(),
        (1 << 42) + (1 << 40)
    );
    for datatype in [apart, terabyte, gigabyte] {
        host.type_free(datatype).unwrap();
    }
    if host.function("Type_vector_c").is_some() {
        large_counts(host, maker);
    }
}

fn large_counts(host: &Host, maker: Maker<'_>) {
    let (int, byte) = (host.predefined().int, host.predefined().byte);
    let order = host.constants().order_fortran;
    let made = [
        ("vector_c", maker.vector_c(3, 1 << 33, 1 << 34, byte)),
        (
            "hindexed_c",
            maker.hindexed_c(&[1 << 32, 2], &[0, 1 << 36], byte),
        ),
        (
            "small hindexed_c",
            maker.hindexed_c(&[1, 2], &[40, -8], int),
        ),
        (
            "struct_c",
            maker.struct_c(&[2, 1 << 35], &[0, 16], &[int, byte]),
        ),
        (
            "small struct_c",
            maker.struct_c(&[2, 3], &[8, 0], &[int, byte]),
        ),
        (
            "subarray_c",
            maker.subarray_c(&[1 << 33, 4], &[1 << 32, 2], &[5, 1], order, byte),
        ),
        (
            "small subarray_c",
            maker.subarray_c(&[5, 4], &[3, 2], &[1, 1], order, int),
        ),
        ("resized_c", maker.resized_c(int, -(1 << 40), 1 << 41)),
    ];
    for (name, datatype) in made {
        compare(host, datatype, name);
        host.type_free(datatype).unwrap();
    }
}

/// A handle that comes to mean another type has that type's layout; duplicates have their own.
pub(crate) fn kept(runtime: &Runtime) {
    let (host, maker) = (runtime.host(), Maker(runtime.host()));
    let int = host.predefined().int;
    for round in 1..200 {
        let datatype = maker.vector(round, 1, 2, int);
        assert_eq!(host.decode(datatype).unwrap().size(), 4 * round as u64);
        let copy = host.type_dup(datatype).unwrap();
        host.type_free(datatype).unwrap();
        let layout = host.decode(copy).unwrap();
        assert_eq!(layout.size(), 4 * round as u64);
        host.type_free(copy).unwrap();
        // The layout outlives the type.
        assert_eq!(layout.layout().offset_of(0), Some(0));
    }
    let datatype = maker.vector(1000, 1, 2, int);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..200 {
                    assert_eq!(host.decode(datatype).unwrap().size(), 4000);
                }
            });
        }
    });
    host.type_free(datatype).unwrap();
}

/// A library through which all calls pass says which types are contiguous; the host is not asked. To see
/// that, vectors are reported as if they were.
pub(crate) fn observed(runtime: &Runtime) {
    let (host, maker) = (runtime.host(), Maker(runtime.host()));
    let int = host.predefined().int;
    let make = || maker.vector(3, 1, 2, int);
    let contiguous = |datatype| match host.decode_data(datatype).unwrap() {
        DataLayout::Contiguous(bytes) => Some(bytes),
        DataLayout::Other(_) => None,
    };
    let commit = |datatype| {
        host.type_commit(datatype).unwrap();
        host.type_committed(datatype);
    };

    let first = make();
    host.type_made_contiguous(10, int, first);
    host.decode_data(first).unwrap_err();
    commit(first);
    assert_eq!(contiguous(first), Some(40));
    assert_eq!(host.decode_committed(first).unwrap().size(), 40);
    let copy = host.type_dup(first).unwrap();
    host.type_made_duplicate(first, copy);
    assert_eq!(contiguous(copy), Some(40));
    // Committed again: it may be another type.
    for datatype in [copy, first] {
        commit(datatype);
        assert_eq!(contiguous(datatype), None);
    }

    // Of a type that is contiguous, and of one that is not, whatever was reported about it.
    let (inner, scattered) = (host.type_contiguous(4, int).unwrap(), make());
    host.type_made_contiguous(4, int, inner);
    host.type_made_contiguous(3, int, scattered);
    let (outer, other) = (make(), make());
    host.type_made_contiguous(5, inner, outer);
    host.type_made_contiguous(5, scattered, other);
    commit(outer);
    commit(other);
    assert_eq!((contiguous(outer), contiguous(other)), (Some(80), None));

    // No data, more than fits, and a handle that is given to the duplicate of an unknown type.
    let (empty, huge, replaced, unknown) = (make(), make(), make(), make());
    host.type_made_contiguous(0, int, empty);
    host.type_made_contiguous(u64::MAX / 2, int, huge);
    host.type_made_contiguous(8, int, replaced);
    host.type_made_duplicate(unknown, replaced);
    for datatype in [empty, huge, replaced] {
        commit(datatype);
        assert_eq!(contiguous(datatype), None);
    }
    let all = [
        first, copy, inner, scattered, outer, other, empty, huge, replaced, unknown,
    ];
    for datatype in all {
        host.type_freed(datatype);
        host.type_free(datatype).unwrap();
    }
}

/// The sizes of contiguous types are also kept by handle, outside the host. Types are freed, and
/// others made whose handles are the same: by another constructor, as a duplicate, as a type that
/// is used as a whole layout as well.
pub(crate) fn sizes(runtime: &Runtime) {
    let (host, maker) = (runtime.host(), Maker(runtime.host()));
    let int = host.predefined().int;
    let contiguous = |datatype| match host.decode_data(datatype).unwrap() {
        DataLayout::Contiguous(bytes) => Some(bytes),
        DataLayout::Other(_) => None,
    };
    let mut handles = HashSet::new();
    let mut reused = 0;
    for round in 1..200 {
        let bytes = 4 * round as u64;
        let single = host.type_contiguous(round, int).unwrap();
        // Not committed: no size is kept.
        host.decode_data(single).unwrap_err();
        host.type_commit(single).unwrap();
        let copy = host.type_dup(single).unwrap();
        for datatype in [single, copy, single] {
            assert_eq!(contiguous(datatype), Some(bytes));
        }
        if round % 3 == 0 {
            // Its layout takes the place of its size.
            assert_eq!(host.decode_committed(copy).unwrap().size(), bytes);
            assert_eq!(contiguous(copy), Some(bytes));
        }
        host.type_free(single).unwrap();
        assert_eq!(contiguous(copy), Some(bytes));
        let scattered = maker.vector(round + 1, 1, 2, int);
        host.type_commit(scattered).unwrap();
        assert_eq!(contiguous(scattered), None);
        reused += [single, copy, scattered]
            .map(|it| u32::from(!handles.insert(it)))
            .iter()
            .sum::<u32>();
        for datatype in [copy, scattered] {
            host.type_free(datatype).unwrap();
        }
    }
    assert!(reused > 200, "handles are rarely used again ({reused})");
}
