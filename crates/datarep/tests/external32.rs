//! external32 compared with the standard's table and hand-made test vectors.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use pario_datarep::{DatarepError, external32};
use pario_layout::Basic;

/// The standard's table of sizes, in its order; Fortran logicals of explicit
/// size are an extension and keep their size.
const TABLE: &[(Basic, u64)] = &[
    (Basic::Packed, 1),
    (Basic::Byte, 1),
    (Basic::Char, 1),
    (Basic::UnsignedChar, 1),
    (Basic::SignedChar, 1),
    (Basic::Wchar, 2),
    (Basic::Short, 2),
    (Basic::UnsignedShort, 2),
    (Basic::Int, 4),
    (Basic::Unsigned, 4),
    (Basic::Long, 4),
    (Basic::UnsignedLong, 4),
    (Basic::LongLong, 8),
    (Basic::UnsignedLongLong, 8),
    (Basic::Float, 4),
    (Basic::Double, 8),
    (Basic::LongDouble, 16),
    (Basic::CBool, 1),
    (Basic::Int8, 1),
    (Basic::Int16, 2),
    (Basic::Int32, 4),
    (Basic::Int64, 8),
    (Basic::Uint8, 1),
    (Basic::Uint16, 2),
    (Basic::Uint32, 4),
    (Basic::Uint64, 8),
    (Basic::Aint, 8),
    (Basic::Count, 8),
    (Basic::Offset, 8),
    (Basic::CFloatComplex, 2 * 4),
    (Basic::CDoubleComplex, 2 * 8),
    (Basic::CLongDoubleComplex, 2 * 16),
    (Basic::Character, 1),
    (Basic::Logical, 4),
    (Basic::Integer, 4),
    (Basic::Real, 4),
    (Basic::DoublePrecision, 8),
    (Basic::Complex, 2 * 4),
    (Basic::DoubleComplex, 2 * 8),
    (Basic::CxxBool, 1),
    (Basic::CxxFloatComplex, 2 * 4),
    (Basic::CxxDoubleComplex, 2 * 8),
    (Basic::CxxLongDoubleComplex, 2 * 16),
    (Basic::Integer1, 1),
    (Basic::Integer2, 2),
    (Basic::Integer4, 4),
    (Basic::Integer8, 8),
    (Basic::Integer16, 16),
    (Basic::Real2, 2),
    (Basic::Real4, 4),
    (Basic::Real8, 8),
    (Basic::Real16, 16),
    (Basic::Complex4, 2 * 2),
    (Basic::Complex8, 2 * 4),
    (Basic::Complex16, 2 * 8),
    (Basic::Complex32, 2 * 16),
    (Basic::Logical1, 1),
    (Basic::Logical2, 2),
    (Basic::Logical4, 4),
    (Basic::Logical8, 8),
    (Basic::Logical16, 16),
];

fn written(basic: Basic, native: &[u8]) -> Result<Vec<u8>, DatarepError> {
    let size = external32().file_size(basic).unwrap() as usize;
    let mut file = vec![0xaa; native.len() / basic.size() as usize * size];
    external32()
        .to_file(basic, native, &mut file)
        .map(|()| file)
}

fn read(basic: Basic, file: &[u8]) -> Result<Vec<u8>, DatarepError> {
    let size = external32().file_size(basic).unwrap() as usize;
    let mut native = vec![0xaa; file.len() / size * basic.size() as usize];
    external32()
        .to_native(basic, file, &mut native)
        .map(|()| native)
}

/// Checks that native and file form convert to each other.
#[track_caller]
fn assert_same(basic: Basic, native: &[u8], file: &[u8]) {
    assert_eq!(
        written(basic, native).unwrap(),
        file,
        "writing {}",
        basic.name()
    );
    assert_eq!(
        read(basic, file).unwrap(),
        native,
        "reading {}",
        basic.name()
    );
}

#[test]
fn sizes_match_the_standard() {
    assert_eq!(
        TABLE.len(),
        Basic::ALL.len(),
        "a type is missing from the table"
    );
    for (basic, size) in TABLE {
        assert_eq!(
            external32().file_size(*basic).unwrap(),
            *size,
            "{}",
            basic.name()
        );
    }
}

#[test]
fn integers_are_big_endian_two_complement() {
    assert_same(Basic::Short, &(-2i16).to_ne_bytes(), &[0xff, 0xfe]);
    assert_same(Basic::Int, &0x0102_0304i32.to_ne_bytes(), &[1, 2, 3, 4]);
    assert_same(Basic::Integer, &(-1i32).to_ne_bytes(), &[0xff; 4]);
    assert_same(
        Basic::Offset,
        &0x0102_0304_0506_0708i64.to_ne_bytes(),
        &[1, 2, 3, 4, 5, 6, 7, 8],
    );
    assert_same(
        Basic::Integer16,
        &1i128.to_ne_bytes(),
        &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
    );
    assert_same(Basic::Packed, b"as it is", b"as it is");
    assert_same(Basic::Character, b"\xe9t\xe9", b"\xe9t\xe9");
}

#[test]
fn floats_are_big_endian_ieee() {
    assert_same(Basic::Float, &1.0f32.to_ne_bytes(), &[0x3f, 0x80, 0, 0]);
    assert_same(Basic::Real, &f32::from_bits(1).to_ne_bytes(), &[0, 0, 0, 1]);
    assert_same(
        Basic::Double,
        &std::f64::consts::PI.to_ne_bytes(),
        &[0x40, 0x09, 0x21, 0xfb, 0x54, 0x44, 0x2d, 0x18],
    );
    assert_same(
        Basic::DoublePrecision,
        &f64::NEG_INFINITY.to_ne_bytes(),
        &[0xff, 0xf0, 0, 0, 0, 0, 0, 0],
    );
    // 1.5 in binary16: exponent 15, highest bit of the fraction.
    assert_same(Basic::Real2, &0x3e00u16.to_ne_bytes(), &[0x3e, 0]);
    // 1.0 in binary128.
    let one = 0x3fffu128 << 112;
    assert_same(
        Basic::Real16,
        &one.to_ne_bytes(),
        &[0x3f, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
    );
}

#[test]
fn complex_numbers_keep_real_before_imaginary() {
    let native = [1.0f32.to_ne_bytes(), (-2.0f32).to_ne_bytes()].concat();
    for basic in [
        Basic::Complex,
        Basic::CFloatComplex,
        Basic::CxxFloatComplex,
        Basic::Complex8,
    ] {
        assert_same(basic, &native, &[0x3f, 0x80, 0, 0, 0xc0, 0, 0, 0]);
    }
    let native = [1.0f64.to_ne_bytes(), (-2.0f64).to_ne_bytes()].concat();
    let file = [[0x3f, 0xf0, 0, 0, 0, 0, 0, 0], [0xc0, 0, 0, 0, 0, 0, 0, 0]].concat();
    for basic in [
        Basic::DoubleComplex,
        Basic::CDoubleComplex,
        Basic::Complex16,
    ] {
        assert_same(basic, &native, &file);
    }
}

/// A native long double, from x87 or binary128 fields.
fn long_double(sign_exponent: u16, significand: u64) -> [u8; 16] {
    let bits = if cfg!(target_arch = "x86_64") {
        u128::from(sign_exponent) << 64 | u128::from(significand)
    } else {
        u128::from(sign_exponent) << 112 | u128::from(significand << 1) << 48
    };
    bits.to_ne_bytes()
}

#[test]
fn long_double_is_binary128() {
    // -1.5: exponent 16383, significand 1.1 in binary.
    let native = long_double(0xbfff, 3 << 62);
    let mut file = [0; 16];
    file[..3].copy_from_slice(&[0xbf, 0xff, 0x80]);
    assert_same(Basic::LongDouble, &native, &file);
    let one = long_double(0x3fff, 1 << 63);
    let mut one_file = [0; 16];
    one_file[..2].copy_from_slice(&[0x3f, 0xff]);
    assert_same(
        Basic::CLongDoubleComplex,
        &[native, one].concat(),
        &[file, one_file].concat(),
    );
}

#[test]
#[cfg(target_arch = "x86_64")]
fn long_double_ignores_padding_and_clears_it() {
    let mut native = long_double(0x3fff, 1 << 63);
    let clean = written(Basic::LongDouble, &native).unwrap();
    native[10..].fill(0x55);
    assert_eq!(written(Basic::LongDouble, &native).unwrap(), clean);
    assert_eq!(read(Basic::LongDouble, &clean).unwrap()[10..], [0; 6]);
}

#[test]
#[cfg(target_arch = "x86_64")]
fn a_binary128_beyond_x87_range_is_an_error() {
    let mut file = [0; 3 * 32];
    file[2 * 32 + 16..].fill(0xff);
    file[2 * 32 + 16..][..2].copy_from_slice(&[0x7f, 0xfe]);
    let error = read(Basic::CLongDoubleComplex, &file).unwrap_err();
    assert!(
        matches!(error, DatarepError::OutOfRange { element: 2, .. }),
        "{error}"
    );
}

#[test]
fn longs_that_need_more_than_four_bytes_are_errors() {
    assert_same(
        Basic::Long,
        &(-2i64).to_ne_bytes(),
        &[0xff, 0xff, 0xff, 0xfe],
    );
    assert_same(
        Basic::Long,
        &i64::from(i32::MAX).to_ne_bytes(),
        &[0x7f, 0xff, 0xff, 0xff],
    );
    assert_same(
        Basic::UnsignedLong,
        &u64::from(u32::MAX).to_ne_bytes(),
        &[0xff; 4],
    );
    let too_large = [0i64, 1, i64::from(i32::MIN) - 1, 1 << 40];
    let native: Vec<u8> = too_large.into_iter().flat_map(i64::to_ne_bytes).collect();
    let error = written(Basic::Long, &native).unwrap_err();
    let DatarepError::OutOfRange {
        basic,
        element,
        value,
        representation,
    } = &error
    else {
        panic!("{error}")
    };
    assert_eq!(
        (*basic, *element, value.as_str(), representation.as_str()),
        (Basic::Long, 2, "-2147483649", "external32")
    );
    assert!(error.to_string().contains("element 2 (MPI_LONG)"));
    let error = written(Basic::UnsignedLong, &(1u64 << 32).to_ne_bytes()).unwrap_err();
    assert!(error.to_string().contains("4294967296"), "{error}");
    let all = written(Basic::UnsignedLong, &u64::MAX.to_ne_bytes()).unwrap_err();
    assert!(all.to_string().contains("18446744073709551615"), "{all}");
}

#[test]
fn wide_characters_that_need_more_than_two_bytes_are_errors() {
    assert_same(Basic::Wchar, &0x20acu32.to_ne_bytes(), &[0x20, 0xac]);
    assert_same(Basic::Wchar, &0xffffu32.to_ne_bytes(), &[0xff, 0xff]);
    let error = written(Basic::Wchar, &0x1_f600u32.to_ne_bytes()).unwrap_err();
    assert!(error.to_string().contains("0x1f600"), "{error}");
    assert!(written(Basic::Wchar, &(-1i32).to_ne_bytes()).is_err());
}

#[test]
fn any_nonzero_is_true() {
    assert_eq!(
        written(Basic::CBool, &[0, 1, 2, 255]).unwrap(),
        [0, 1, 1, 1]
    );
    assert_eq!(
        read(Basic::CxxBool, &[0, 1, 0x80, 255]).unwrap(),
        [0, 1, 1, 1]
    );
    let native = [0i32, 1, -1, 1 << 30].map(i32::to_ne_bytes).concat();
    let file = [[0, 0, 0, 0], [0, 0, 0, 1], [0, 0, 0, 1], [0, 0, 0, 1]].concat();
    assert_eq!(written(Basic::Logical, &native).unwrap(), file);
    let foreign = [
        [0, 0, 0, 0],
        [1, 0, 0, 0],
        [0, 0, 1, 0],
        [255, 255, 255, 255],
    ]
    .concat();
    let expected = [0i32, 1, 1, 1].map(i32::to_ne_bytes).concat();
    assert_eq!(read(Basic::Logical, &foreign).unwrap(), expected);
    assert_eq!(read(Basic::Logical16, &[0; 16]).unwrap(), [0; 16]);
    assert_eq!(read(Basic::Logical8, &[9; 8]).unwrap(), 1u64.to_ne_bytes());
    assert_eq!(written(Basic::Logical2, &[0, 1]).unwrap(), [0, 1]);
}

#[test]
fn lengths_must_match() {
    let mut file = [0; 8];
    for native in [0, 4, 12, 15, 17, 24] {
        let result = external32().to_file(Basic::Long, &vec![0; native], &mut file);
        assert!(
            matches!(result, Err(DatarepError::Lengths { .. })),
            "{native}"
        );
        let mut memory = vec![0; native];
        assert!(
            external32()
                .to_native(Basic::Long, &file, &mut memory)
                .is_err(),
            "{native}"
        );
    }
    external32()
        .to_file(Basic::Long, &[0; 16], &mut file)
        .unwrap();
    external32().to_file(Basic::Long, &[], &mut []).unwrap();
}
