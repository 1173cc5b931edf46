//! Comparisons that say what differs.

use std::fmt::Debug;

use pario::{ErrorKind, File, Mode, Status};

use crate::{model::Expected, scenario::Access};

/// What went wrong, in words.
pub(crate) type Check = Result<(), String>;

pub(crate) fn same<T: PartialEq + Debug>(what: &str, got: T, expected: T) -> Check {
    if got == expected {
        return Ok(());
    }
    Err(format!("{what} is {got:?} instead of {expected:?}"))
}

pub(crate) fn same_bytes(what: &str, got: &[u8], expected: &[u8]) -> Check {
    same(&format!("the length of {what}"), got.len(), expected.len())?;
    let Some(first) = (0..got.len()).find(|index| got[*index] != expected[*index]) else {
        return Ok(());
    };
    let count = (0..got.len())
        .filter(|index| got[*index] != expected[*index])
        .count();
    let around = first..(first + 8).min(got.len());
    Err(format!(
        "{count} bytes of {what} differ, the first at {first}: {:?} instead of {:?}",
        &got[around.clone()],
        &expected[around]
    ))
}

pub(crate) fn same_result<T: PartialEq + Debug>(
    what: &str,
    got: &pario::Result<T>,
    expected: Result<T, ErrorKind>,
) -> Check {
    match (got, expected) {
        (Ok(got), Ok(expected)) => same(&format!("the result of {what}"), got, &expected),
        (Err(error), Err(kind)) if error.kind() == kind => Ok(()),
        (Err(error), expected) => Err(format!("{what} failed: {error}, instead of {expected:?}")),
        (Ok(got), expected) => Err(format!("{what} gave {got:?} instead of {expected:?}")),
    }
}

pub(crate) fn same_pointer(file: &File, expected: &Expected) -> Check {
    if file.mode().contains(Mode::SEQUENTIAL) {
        return Ok(());
    }
    let position = file.position().map_err(|error| error.to_string())?;
    same("the individual pointer", position, expected.pointer)
}

/// Compares all that an access gives.
pub(crate) fn compare(
    what: &str,
    result: &pario::Result<Status>,
    buffer: &[u8],
    expected: &Expected,
    access: &Access,
) -> Check {
    let bytes = result.clone().map(Status::bytes);
    same_result(what, &bytes, expected.result)?;
    if let Ok(status) = result {
        let datatype = access.memory.spec.build();
        let count = match (status.bytes(), datatype.size()) {
            (0, _) => Some(0),
            (bytes, size) => (bytes % size == 0).then(|| bytes / size),
        };
        same("the count", status.count(&datatype), count)?;
    }
    same_bytes(&format!("the buffer of {what}"), buffer, &expected.buffer)
}
