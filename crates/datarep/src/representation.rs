//! What every representation answers, and the native one.

use crate::error::DatarepError;
use crate::user::Callbacks;
use pario_layout::Basic;
use std::fmt::Debug;

/// How a file holds values.
///
/// Conversions work on runs of elements of one basic type, packed on both
/// sides. [`Converter`](crate::Converter) applies them to any datatype.
pub trait Representation: Debug + Send + Sync {
    /// The name that `set_view` takes and `get_view` returns.
    fn name(&self) -> &str;

    /// The bytes that an element takes in the file. Only the functions of
    /// user-defined representations can fail.
    fn file_size(&self, basic: Basic) -> Result<u64, DatarepError>;

    /// Whether the file holds the native bytes of this type, so that nothing
    /// needs to be converted.
    fn keeps_bytes(&self, basic: Basic) -> bool;

    /// Whether it holds the native bytes of all types.
    fn is_identity(&self) -> bool {
        Basic::ALL.iter().all(|basic| self.keeps_bytes(*basic))
    }

    /// Converts the elements in `native` for the file.
    ///
    /// After an error the contents of `file` are unspecified. The element that
    /// the error names is counted from the start of `native`.
    fn to_file(&self, basic: Basic, native: &[u8], file: &mut [u8]) -> Result<(), DatarepError>;

    /// Converts the elements in `file` for memory; the counterpart of
    /// [`Representation::to_file`].
    fn to_native(&self, basic: Basic, file: &[u8], native: &mut [u8]) -> Result<(), DatarepError>;

    /// The functions with C's calling conventions that do the converting, if
    /// the user gave such.
    fn callbacks(&self) -> Callbacks<'_> {
        Callbacks::default()
    }
}

/// The bytes as they are in memory.
#[derive(Debug)]
pub(crate) struct Native;

impl Representation for Native {
    fn name(&self) -> &str {
        "native"
    }

    fn file_size(&self, basic: Basic) -> Result<u64, DatarepError> {
        Ok(basic.size())
    }

    fn keeps_bytes(&self, _basic: Basic) -> bool {
        true
    }

    fn to_file(&self, basic: Basic, native: &[u8], file: &mut [u8]) -> Result<(), DatarepError> {
        check_lengths(self, basic, native.len(), file.len())?;
        file.copy_from_slice(native);
        Ok(())
    }

    fn to_native(&self, basic: Basic, file: &[u8], native: &mut [u8]) -> Result<(), DatarepError> {
        check_lengths(self, basic, native.len(), file.len())?;
        native.copy_from_slice(file);
        Ok(())
    }
}

/// Checks that both buffers hold the same whole elements and returns the size
/// of one in the file.
pub(crate) fn check_lengths(
    representation: &dyn Representation,
    basic: Basic,
    native: usize,
    file: usize,
) -> Result<u64, DatarepError> {
    let file_size = representation.file_size(basic)?;
    let elements = native as u64 / basic.size();
    let whole = (native as u64).is_multiple_of(basic.size());
    if whole && elements.checked_mul(file_size) == Some(file as u64) {
        Ok(file_size)
    } else {
        Err(DatarepError::Lengths { native, file })
    }
}
