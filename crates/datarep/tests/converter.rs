//! The converter compared with a naive one, on random datatypes.

#![cfg(target_endian = "little")]
#![allow(clippy::unwrap_used, reason = "helpers of tests")]
#![allow(unsafe_code, reason = "gather and scatter work on raw buffers")]

mod common;

use common::{Typed, cases, external32_element, external32_size, random_type, random_value, seed};
use pario_datarep::{
    Conversion, Converter, DatarepError, Elements, Registry, Representation, UserRepresentation,
    external32, internal, native,
};
use pario_layout::{Basic, Datatype};
use std::sync::Arc;

/// A buffer of instances of a datatype, filled with values.
struct Case {
    typed: Typed,
    map: Vec<(Basic, i64)>,
    memory: Vec<u8>,
    values: Vec<Vec<u8>>,
}

impl Case {
    fn random(rng: &mut fastrand::Rng) -> Case {
        let typed = random_type(rng, 3);
        let instances = rng.usize(..40);
        let map = typed.tiled(instances);
        let end = map
            .iter()
            .map(|(basic, at)| at + basic.size() as i64)
            .max()
            .unwrap_or(0);
        let mut memory: Vec<u8> = (0..end).map(|_| rng.u8(..)).collect();
        let values: Vec<_> = map
            .iter()
            .map(|(basic, _)| random_value(rng, *basic))
            .collect();
        for ((_, at), value) in map.iter().zip(&values) {
            memory[*at as usize..][..value.len()].copy_from_slice(value);
        }
        Case {
            typed,
            map,
            memory,
            values,
        }
    }

    fn check(
        &self,
        converter: &Converter,
        form: &Form,
        (start, end): (usize, usize),
        context: &str,
    ) {
        let expected: Vec<u8> = (start..end)
            .flat_map(|index| (form.element)(self.map[index].0, &self.values[index]))
            .collect();
        self.check_packed(converter, &expected, (start, end), context);
        self.check_memory(converter, &expected, (start, end), context);
    }

    fn check_packed(
        &self,
        converter: &Converter,
        expected: &[u8],
        (start, end): (usize, usize),
        context: &str,
    ) {
        let packed: Vec<u8> = self.values[start..end].concat();
        let mut file = vec![0x5a; expected.len()];
        converter.to_file(start as u64, &packed, &mut file).unwrap();
        assert_eq!(file, expected, "to_file {context}");
        let mut back = vec![0x5a; packed.len()];
        converter.to_native(start as u64, &file, &mut back).unwrap();
        assert_eq!(back, packed, "to_native {context}");
    }

    fn check_memory(
        &self,
        converter: &Converter,
        expected: &[u8],
        (start, end): (usize, usize),
        context: &str,
    ) {
        let elements = start as u64..end as u64;
        let mut gathered = vec![0x5a; expected.len()];
        // SAFETY: `memory` holds every element of the case.
        unsafe {
            converter
                .gather(self.memory.as_ptr(), elements.clone(), &mut gathered)
                .unwrap();
        }
        assert_eq!(gathered, expected, "gather {context}");
        let mut memory = vec![0x77; self.memory.len()];
        // SAFETY: as above, and `memory` is exclusive.
        unsafe {
            converter
                .scatter(expected, memory.as_mut_ptr(), elements)
                .unwrap()
        };
        for (value, (basic, at)) in self.values[start..end].iter().zip(&self.map[start..end]) {
            let place = &mut memory[*at as usize..][..value.len()];
            assert_eq!(place, value, "scatter {} {context}", basic.name());
            place.fill(0x77);
        }
        assert!(
            memory.iter().all(|byte| *byte == 0x77),
            "a byte outside the elements {context}"
        );
    }

    /// Compares counts of bytes and elements with sums of the sizes.
    fn check_counts(&self, converter: &Converter, form: &Form, context: &str) {
        let (mut file_bytes, mut native_bytes) = (0, 0);
        for (index, (basic, _)) in self.map.iter().enumerate() {
            let elements = index as u64;
            assert_eq!(
                converter.file_bytes_of(elements).unwrap(),
                file_bytes,
                "{context}"
            );
            assert_eq!(
                converter.native_bytes_of(elements).unwrap(),
                native_bytes,
                "{context}"
            );
            let size = (form.size)(*basic) as u64;
            for rest in [0, 1, size / 2, size - 1]
                .into_iter()
                .filter(|rest| *rest < size)
            {
                let found = converter.elements_in(file_bytes + rest);
                assert_eq!(
                    found,
                    Elements {
                        whole: elements,
                        rest
                    },
                    "{context}"
                );
            }
            file_bytes += size;
            native_bytes += basic.size();
        }
        let all = self.map.len() as u64;
        assert_eq!(
            converter.file_bytes_of(all).unwrap(),
            file_bytes,
            "{context}"
        );
    }

    /// Pieces cover the elements without gaps and respect the limit.
    fn check_pieces(&self, converter: &Converter, limit: u64, context: &str) {
        let end = self.map.len() as u64;
        let mut next = 0;
        while next < end {
            let piece = converter.piece(next..end, limit).unwrap();
            assert!(
                piece.start == next && piece.end > next && piece.end <= end,
                "{context}"
            );
            let bytes = |count: fn(&Converter, u64) -> Result<u64, DatarepError>| {
                count(converter, piece.end).unwrap() - count(converter, piece.start).unwrap()
            };
            let longest = bytes(Converter::file_bytes_of).max(bytes(Converter::native_bytes_of));
            assert!(
                longest <= limit || piece.end == next + 1,
                "{piece:?} {context}"
            );
            next = piece.end;
        }
    }
}

/// A representation and its expected behaviour.
struct Form {
    representation: Arc<dyn Representation>,
    size: fn(Basic) -> usize,
    element: fn(Basic, &[u8]) -> Vec<u8>,
}

/// A representation that stores each byte twice, so that all sizes differ.
fn twice() -> Arc<dyn Representation> {
    let registry = Registry::new();
    let representation = UserRepresentation::new(
        |basic| Ok(2 * basic.size()),
        Conversion::runs(|_, native, file| {
            for (byte, pair) in native.iter().zip(file.chunks_mut(2)) {
                pair.fill(*byte);
            }
            Ok(())
        }),
        Conversion::runs(|_, file, native| {
            for (pair, byte) in file.chunks(2).zip(native) {
                *byte = pair[1];
            }
            Ok(())
        }),
    );
    registry.register("twice", representation).unwrap();
    registry.get("twice").unwrap()
}

/// As in memory, except for long double: binary128, each half of a complex number
/// little-endian.
fn internal_element(basic: Basic, native: &[u8]) -> Vec<u8> {
    if !common::is_long_double(basic) {
        return native.to_vec();
    }
    let big_endian = external32_element(basic, native);
    big_endian
        .chunks(16)
        .flat_map(|part| part.iter().rev().copied().collect::<Vec<_>>())
        .collect()
}

fn forms() -> Vec<Form> {
    let native_size = |basic: Basic| basic.size() as usize;
    vec![
        Form {
            representation: native(),
            size: native_size,
            element: |_, bytes| bytes.to_vec(),
        },
        Form {
            representation: internal(),
            size: native_size,
            element: internal_element,
        },
        Form {
            representation: external32(),
            size: external32_size,
            element: external32_element,
        },
        Form {
            representation: twice(),
            size: |basic| 2 * basic.size() as usize,
            element: |_, bytes| bytes.iter().flat_map(|byte| [*byte; 2]).collect(),
        },
    ]
}

#[test]
fn matches_the_naive_converter() {
    let seed = seed();
    let mut rng = fastrand::Rng::with_seed(seed);
    let forms = forms();
    for case_number in 0..cases(300) {
        let case = Case::random(&mut rng);
        let len = case.map.len();
        for form in &forms {
            let name = form.representation.name();
            let context = format!("{name}, case {case_number}, PARIO_SEED={seed}");
            let converter =
                Converter::new(Arc::clone(&form.representation), &case.typed.datatype).unwrap();
            case.check(&converter, form, (0, len), &context);
            let start = rng.usize(..=len);
            case.check(&converter, form, (start, rng.usize(start..=len)), &context);
            case.check_counts(&converter, form, &context);
            case.check_pieces(&converter, rng.u64(1..300), &context);
        }
    }
}

#[test]
fn errors_report_the_element_index() {
    let seed = seed();
    let mut rng = fastrand::Rng::with_seed(seed);
    for _ in 0..cases(300) {
        let mut case = Case::random(&mut rng);
        let longs: Vec<_> = (0..case.map.len())
            .filter(|i| case.map[*i].0 == Basic::Long)
            .collect();
        let Some(&bad) = rng.choice(&longs) else {
            continue;
        };
        case.values[bad] = (1i64 << 31).to_le_bytes().to_vec();
        let first = rng.usize(..=bad);
        let converter = Converter::new(external32(), &case.typed.datatype).unwrap();
        let packed = case.values[first..].concat();
        let end = converter.file_bytes_of(case.map.len() as u64).unwrap();
        let mut file = vec![0; (end - converter.file_bytes_of(first as u64).unwrap()) as usize];
        let error = converter
            .to_file(first as u64, &packed, &mut file)
            .unwrap_err();
        let DatarepError::OutOfRange { element, value, .. } = &error else {
            panic!("{error}")
        };
        assert_eq!(
            (*element, value.as_str()),
            (bad as u64, "2147483648"),
            "PARIO_SEED={seed}"
        );
    }
}

#[test]
fn structures_longer_than_a_block() {
    let members = [
        (1, 0, Basic::Int.into()),
        (3, 8, Basic::Long.into()),
        (1, 32, Basic::Char.into()),
    ];
    let converter = Converter::new(external32(), &Datatype::structure(&members).unwrap()).unwrap();
    let longs = |i: i64| [-i, i, 7].into_iter();
    let (mut native, mut expected) = (Vec::new(), Vec::new());
    for i in 0..10_007i64 {
        native.extend((i as i32).to_le_bytes());
        native.extend(longs(i).flat_map(i64::to_le_bytes));
        native.push(i as u8);
        expected.extend((i as i32).to_be_bytes());
        expected.extend(longs(i).flat_map(|long| (long as i32).to_be_bytes()));
        expected.push(i as u8);
    }
    let mut file = vec![0; expected.len()];
    converter.to_file(0, &native, &mut file).unwrap();
    assert!(file == expected);
    let mut back = vec![0; native.len()];
    converter.to_native(0, &file, &mut back).unwrap();
    assert!(back == native);
    // From the middle of an instance to the middle of another.
    let mut part = vec![0; file.len() - 4 - 1];
    converter
        .to_file(1, &native[4..native.len() - 1], &mut part)
        .unwrap();
    assert!(part == expected[4..expected.len() - 1]);

    // The second long of instance 9000, whose instances have 5 elements and 29 bytes.
    let bad = 9000 * 29 + 4 + 8;
    native[bad..bad + 8].copy_from_slice(&i64::MAX.to_le_bytes());
    let error = converter.to_file(0, &native, &mut file).unwrap_err();
    assert!(
        matches!(
            error,
            DatarepError::OutOfRange {
                element: 45_002,
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn partial_elements_and_wrong_lengths_are_rejected() {
    let converter = Converter::new(external32(), &Datatype::basic(Basic::Long)).unwrap();
    assert_eq!(converter.elements_in(11), Elements { whole: 2, rest: 3 });
    for (native, file) in [(8, 3), (7, 4), (8, 8), (0, 4), (16, 4)] {
        let mut bytes = vec![0; file];
        let result = converter.to_file(5, &vec![0; native], &mut bytes);
        assert!(
            matches!(result, Err(DatarepError::Lengths { .. })),
            "{native} {file}"
        );
        let result = converter.to_native(5, &bytes, &mut vec![0; native]);
        assert!(
            matches!(result, Err(DatarepError::Lengths { .. })),
            "{native} {file}"
        );
    }
    let beyond = converter.to_file(u64::MAX, &[0; 8], &mut [0; 4]);
    assert!(matches!(beyond, Err(DatarepError::TooLarge)));
    assert!(matches!(
        converter.file_bytes_of(u64::MAX),
        Err(DatarepError::TooLarge)
    ));
}

#[test]
fn a_type_without_elements_takes_no_bytes() {
    let nothing = Datatype::contiguous(0, &Datatype::basic(Basic::Int)).unwrap();
    let converter = Converter::new(external32(), &nothing).unwrap();
    converter.to_file(0, &[], &mut []).unwrap();
    assert_eq!(converter.elements_in(100), Elements { whole: 0, rest: 0 });
    assert!(converter.to_file(0, &[0], &mut [0]).is_err());
    assert!(converter.is_identity());
}

#[test]
fn identity_is_detected() {
    let identity = |representation, basic: Basic| {
        Converter::new(representation, &Datatype::basic(basic))
            .unwrap()
            .is_identity()
    };
    assert!(identity(native(), Basic::LongDouble));
    assert!(identity(internal(), Basic::Double));
    assert!(identity(internal(), Basic::Real16));
    assert_eq!(
        identity(internal(), Basic::LongDouble),
        !cfg!(target_arch = "x86_64")
    );
    assert!(identity(external32(), Basic::Packed));
    assert!(!identity(external32(), Basic::Int));
    assert!(!identity(external32(), Basic::CBool));
    assert!(native().is_identity() && !external32().is_identity());
}
