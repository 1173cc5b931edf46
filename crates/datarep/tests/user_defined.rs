//! Registration of representations and the arguments of their functions.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]
#![allow(unsafe_code, reason = "conversion functions of C work on raw buffers")]

use pario_datarep::{
    Conversion, Converter, DatarepError, FileSizes, MAX_NAME_LEN, Registry, Representation,
    Transfer, UserError, UserRepresentation,
};
use pario_layout::{Basic, Datatype};
use std::sync::{Arc, Mutex};

fn native_sizes(basic: Basic) -> Result<u64, UserError> {
    Ok(basic.size())
}

fn identity() -> UserRepresentation {
    UserRepresentation::new(native_sizes, Conversion::Identity, Conversion::Identity)
}

fn registered(representation: UserRepresentation) -> Arc<dyn Representation> {
    let registry = Registry::new();
    registry.register("mine", representation).unwrap();
    registry.get("mine").unwrap()
}

#[test]
fn names_are_unique_and_bounded() {
    let registry = Registry::new();
    for builtin in ["native", "internal", "external32"] {
        assert_eq!(registry.get(builtin).unwrap().name(), builtin);
        let rejected = registry.register(builtin, identity());
        assert!(
            matches!(rejected, Err(DatarepError::Duplicate { .. })),
            "{builtin}"
        );
    }
    let longest = "n".repeat(MAX_NAME_LEN);
    registry.register(&longest, identity()).unwrap();
    assert_eq!(registry.get(&longest).unwrap().name(), longest);
    let again = registry.register(&longest, identity()).unwrap_err();
    assert!(matches!(&again, DatarepError::Duplicate { name } if *name == longest));
    for bad in ["", "a\0b", &"n".repeat(MAX_NAME_LEN + 1)] {
        let rejected = registry.register(bad, identity());
        assert!(
            matches!(rejected, Err(DatarepError::BadName { .. })),
            "{bad:?}"
        );
    }
    let unknown = Registry::new().get("Native").unwrap_err();
    assert!(
        unknown
            .to_string()
            .ends_with("available: external32, internal, native"),
        "{unknown}"
    );
}

#[test]
fn the_process_has_one_registry() {
    pario_datarep::register("of the process", identity()).unwrap();
    assert!(pario_datarep::register("of the process", identity()).is_err());
    assert_eq!(
        pario_datarep::find("of the process").unwrap().name(),
        "of the process"
    );
    assert!(pario_datarep::find("external64").is_none());
}

#[test]
fn without_functions_bytes_are_native() {
    let representation = registered(identity());
    let converter = Converter::new(representation, &Datatype::basic(Basic::Int)).unwrap();
    assert!(converter.is_identity());
    let mut file = [0; 4];
    converter.to_file(0, &[1, 2, 3, 4], &mut file).unwrap();
    assert_eq!(file, [1, 2, 3, 4]);
}

#[test]
fn other_sizes_without_a_function_are_an_error() {
    let functions = UserRepresentation::new(|_| Ok(3), Conversion::Identity, Conversion::Identity);
    let converter = Converter::new(registered(functions), &Datatype::basic(Basic::Int)).unwrap();
    assert!(!converter.is_identity());
    let error = converter.to_file(0, &[0; 4], &mut [0; 3]).unwrap_err();
    assert!(
        matches!(error, DatarepError::NoConversion { file_size: 3, .. }),
        "{error}"
    );
    let error = converter.to_native(0, &[0; 3], &mut [0; 4]).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("stores MPI_INT in 3 bytes instead of 4"),
        "{error}"
    );
}

#[test]
fn extent_function_is_called_once_per_type_in_use() {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&asked);
    let functions = UserRepresentation::new(
        move |basic| {
            log.lock().unwrap().push(basic);
            match basic {
                Basic::Int => Ok(5),
                Basic::Short => Ok(0),
                _ => Err("only integers".into()),
            }
        },
        Conversion::Identity,
        Conversion::Identity,
    );
    let representation = registered(functions);
    let ints = Datatype::contiguous(1_000_000_000, &Datatype::basic(Basic::Int)).unwrap();
    let sizes = FileSizes::of(&*representation, ints.signature()).unwrap();
    assert_eq!(sizes.get(Basic::Int), 5);
    assert_eq!(sizes.basics().collect::<Vec<_>>(), [Basic::Int]);
    Converter::new(Arc::clone(&representation), &ints).unwrap();
    assert_eq!(*asked.lock().unwrap(), [Basic::Int]);

    let mixed = [(1, 0, Basic::Int.into()), (1, 8, Basic::Double.into())];
    let mixed = Datatype::structure(&mixed).unwrap();
    let error = Converter::new(Arc::clone(&representation), &mixed).unwrap_err();
    assert!(
        error.to_string().ends_with("`mine` failed: only integers"),
        "{error}"
    );
    assert!(std::error::Error::source(&error).is_some());
    let empty = Converter::new(representation, &Datatype::basic(Basic::Short));
    assert!(
        empty
            .unwrap_err()
            .to_string()
            .contains("MPI_SHORT has size zero")
    );
}

#[test]
fn errors_of_functions_are_passed_on() {
    #[derive(Debug, PartialEq)]
    struct Code(i32);
    impl std::fmt::Display for Code {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            write!(f, "code {}", self.0)
        }
    }
    impl std::error::Error for Code {}

    let functions = UserRepresentation::new(
        native_sizes,
        Conversion::runs(|_, _, _| Err(Code(7).into())),
        Conversion::runs(|_, _, _| Err(Code(8).into())),
    );
    let converter = Converter::new(registered(functions), &Datatype::basic(Basic::Int)).unwrap();
    let code = |error: DatarepError| match error {
        DatarepError::User { source, .. } => source.downcast::<Code>().unwrap().0,
        other => panic!("{other}"),
    };
    assert_eq!(
        code(converter.to_file(0, &[0; 4], &mut [0; 4]).unwrap_err()),
        7
    );
    assert_eq!(
        code(converter.to_native(0, &[0; 4], &mut [0; 4]).unwrap_err()),
        8
    );
}

/// The arguments of a conversion function.
#[derive(Clone, Debug, PartialEq)]
struct Call {
    user_buffer: usize,
    elements: u64,
    count: u64,
    position: u64,
}

type Calls = Arc<Mutex<Vec<Call>>>;

fn record(calls: &Calls, transfer: &Transfer<'_>) {
    calls.lock().unwrap().push(Call {
        user_buffer: transfer.user_buffer.addr(),
        elements: transfer.datatype.signature().elements(),
        count: transfer.count,
        position: transfer.position,
    });
}

/// The position of the `index`-th int of a transfer on both sides.
fn place(transfer: &Transfer<'_>, index: u64) -> (*mut u32, *mut u32) {
    let offset = transfer
        .datatype
        .layout()
        .offset_of((transfer.position + index) * 4)
        .unwrap();
    let user = transfer.user_buffer.wrapping_offset(offset as isize).cast();
    (
        user,
        transfer.file_buffer.wrapping_add(index as usize * 4).cast(),
    )
}

/// Functions as in C: ints stored with all bits inverted, found by walking the
/// datatype from `position` on.
fn callbacks(calls: &Calls) -> UserRepresentation {
    let (written, read) = (Arc::clone(calls), Arc::clone(calls));
    // SAFETY: it accesses `count` ints, found through the datatype.
    let write = unsafe {
        Conversion::callback(move |transfer| {
            record(&written, transfer);
            for (user, file) in (0..transfer.count).map(|index| place(transfer, index)) {
                file.write_unaligned(!user.read_unaligned());
            }
            Ok(())
        })
    };
    // SAFETY: as above.
    let read = unsafe {
        Conversion::callback(move |transfer| {
            record(&read, transfer);
            for (user, file) in (0..transfer.count).map(|index| place(transfer, index)) {
                user.write_unaligned(!file.read_unaligned());
            }
            Ok(())
        })
    };
    UserRepresentation::new(native_sizes, write, read)
}

#[test]
fn c_functions_get_the_users_buffer_and_datatype() {
    let calls = Calls::default();
    let every_second = Datatype::vector(3, 1, 2, &Datatype::basic(Basic::Int)).unwrap();
    let converter = Converter::new(registered(callbacks(&calls)), &every_second).unwrap();
    let memory: Vec<u8> = (0..11u32).flat_map(u32::to_ne_bytes).collect();
    let mut file = [0; 16];
    // SAFETY: elements 1..5 of the tiled vector lie within the 11 ints.
    unsafe { converter.gather(memory.as_ptr(), 1..5, &mut file).unwrap() };
    let expected: Vec<u8> = [2u32, 4, 5, 7]
        .into_iter()
        .flat_map(|i| (!i).to_ne_bytes())
        .collect();
    assert_eq!(file, expected[..]);
    let call = |user_buffer| Call {
        user_buffer,
        elements: 3,
        count: 4,
        position: 1,
    };
    assert_eq!(*calls.lock().unwrap(), [call(memory.as_ptr().addr())]);

    let mut back = vec![0; memory.len()];
    calls.lock().unwrap().clear();
    // SAFETY: as above.
    unsafe { converter.scatter(&file, back.as_mut_ptr(), 1..5).unwrap() };
    assert_eq!(*calls.lock().unwrap(), [call(back.as_ptr().addr())]);
    for (index, value) in back.chunks(4).enumerate() {
        let expected = if [2, 4, 5, 7].contains(&index) {
            index as u32
        } else {
            0
        };
        assert_eq!(value, expected.to_ne_bytes(), "{index}");
    }
}

#[test]
fn c_functions_also_convert_packed_elements() {
    let calls = Calls::default();
    let ints = Datatype::contiguous(4, &Datatype::basic(Basic::Int)).unwrap();
    let converter = Converter::new(registered(callbacks(&calls)), &ints).unwrap();
    let packed: Vec<u8> = (0..6u32).flat_map(u32::to_ne_bytes).collect();
    let mut file = vec![0; 24];
    converter.to_file(3, &packed, &mut file).unwrap();
    assert!(
        file.iter()
            .zip(&packed)
            .all(|(file, native)| *file == !native)
    );
    let mut back = vec![0; 24];
    converter.to_native(3, &file, &mut back).unwrap();
    assert_eq!(back, packed);
    assert!(
        calls
            .lock()
            .unwrap()
            .iter()
            .all(|call| call.count == 6 && call.position == 0)
    );
}

#[test]
fn gather_and_scatter_check_the_lengths() {
    let converter = Converter::new(registered(identity()), &Datatype::basic(Basic::Int)).unwrap();
    let mut memory = [0; 8];
    let backwards = std::ops::Range { start: 2, end: 0 };
    for elements in [0..1, 0..3, backwards] {
        let mut file = [0; 8];
        // SAFETY: ranges that would leave `memory` are rejected.
        unsafe {
            assert!(
                converter
                    .gather(memory.as_ptr(), elements.clone(), &mut file)
                    .is_err()
            );
            assert!(
                converter
                    .scatter(&file, memory.as_mut_ptr(), elements)
                    .is_err()
            );
        }
    }
}
