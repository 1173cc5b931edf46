//! Our datatypes, made with the host's constructors.

use pario_layout::{Basic, Darray, Datatype, Distribution, Order};
use pario_mpi::{EncodeError, Runtime};

const CASES: u64 = 400;
const DEPTH: u32 = 3;

const LEAVES: [Basic; 5] = [
    Basic::Byte,
    Basic::Short,
    Basic::Int,
    Basic::Double,
    Basic::Char,
];

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// A random datatype without empty parts, some of which hosts refuse or divide by.
fn draw(rng: &mut fastrand::Rng, depth: u32) -> Datatype {
    if depth == 0 {
        return LEAVES[rng.usize(0..LEAVES.len())].into();
    }
    let of = draw(rng, depth - 1);
    let blocks = |rng: &mut fastrand::Rng, from, to| -> Vec<(u64, i64)> {
        let count = rng.usize(1..4);
        (0..count)
            .map(|_| (rng.u64(1..3), rng.i64(from..to)))
            .collect()
    };
    let made = match rng.u32(0..9) {
        0 => Datatype::contiguous(rng.u64(1..4), &of),
        1 => Datatype::vector(rng.u64(1..4), rng.u64(1..3), rng.i64(-3..6), &of),
        2 => Datatype::hvector(rng.u64(1..4), rng.u64(1..3), rng.i64(-90..200), &of),
        3 => Datatype::indexed(&blocks(rng, -4, 8), &of),
        4 => Datatype::hindexed(&blocks(rng, -90, 200), &of),
        5 => {
            let other = draw(rng, depth - 1);
            let place = rng.i64(0..300);
            Datatype::structure(&[(rng.u64(1..3), 0, of), (1, place, other)])
        }
        6 => {
            let sizes = [rng.u64(1..5), rng.u64(1..5)];
            let subsizes = sizes.map(|size| rng.u64(1..=size));
            let starts = [0, 1].map(|axis| rng.u64(0..=sizes[axis] - subsizes[axis]));
            let order = if rng.bool() { Order::C } else { Order::Fortran };
            Datatype::subarray(&sizes, &subsizes, &starts, order, &of)
        }
        7 => darray(rng, &of),
        _ => Datatype::resized(&of, rng.i64(-20..20), rng.i64(1..300)),
    };
    made.expect("small numbers make valid types")
}

fn darray(rng: &mut fastrand::Rng, of: &Datatype) -> Result<Datatype, pario_layout::TypeError> {
    let distributions = [
        Distribution::Block(None),
        Distribution::Cyclic(None),
        Distribution::Cyclic(Some(2)),
    ];
    let grid = vec![rng.u64(1..3), rng.u64(1..3)];
    let ranks = grid.iter().product();
    let array = Darray {
        ranks,
        rank: rng.u64(0..ranks),
        // Enough that both ranks of an axis have some, also of blocks of two.
        sizes: vec![rng.u64(3..7), rng.u64(3..7)],
        distributions: vec![
            distributions[rng.usize(0..3)],
            distributions[rng.usize(0..3)],
        ],
        grid,
        order: Order::C,
    };
    Datatype::darray(&array, of)
}

/// What the host makes of our arguments is what we make of them.
pub(crate) fn random(runtime: &Runtime) {
    let host = runtime.host();
    let seed = number("PARIO_SEED").unwrap_or_else(|| fastrand::u64(..));
    for case in 0..number("PARIO_CASES").unwrap_or(CASES) {
        let mut rng = fastrand::Rng::with_seed(seed.wrapping_add(case));
        let datatype = draw(&mut rng, DEPTH);
        let context = format!("PARIO_SEED={}", seed.wrapping_add(case));
        let encoded = host
            .encode(&datatype)
            .unwrap_or_else(|error| panic!("{context}: {error}: {datatype:?}"));
        let back = host
            .decode(encoded.handle())
            .unwrap_or_else(|error| panic!("{context}: {error}"));
        let bounds = |it: &Datatype| (it.lower_bound(), it.extent(), it.size());
        assert_eq!(bounds(&back), bounds(&datatype), "{context}");
        for byte in 0..datatype.size() {
            let offset = |it: &Datatype| it.layout().offset_of(byte);
            assert_eq!(offset(&back), offset(&datatype), "byte {byte} of {context}");
        }
    }
}

/// Predefined types are the host's own handles, and numbers that do not fit are refused.
pub(crate) fn limits(runtime: &Runtime) {
    let host = runtime.host();
    let byte = Datatype::basic(Basic::Byte);
    let encoded = host.encode(&byte).unwrap();
    assert_eq!(encoded.handle(), host.predefined().byte);
    let long = Datatype::contiguous(1 << 40, &byte).unwrap();
    let error = host.encode(&long).unwrap_err();
    assert_eq!(error, EncodeError::TooLarge(1 << 40));
    assert!(error.to_string().contains("1099511627776"), "{error}");
}
