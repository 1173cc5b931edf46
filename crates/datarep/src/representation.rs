//! The trait that representations implement, and the native representation.

use crate::error::DatarepError;
use crate::user::Callbacks;
use pario_layout::Basic;
use std::fmt::Debug;

/// How values are stored in a file.
///
/// Conversions operate on runs of elements of one basic type, packed on both
/// sides. [`Converter`](crate::Converter) applies them to any datatype.
pub trait Representation: Debug + Send + Sync {
    /// The name used by `set_view` and `get_view`.
    fn name(&self) -> &str;

    /// Size of an element in the file. Can fail only for user-defined
    /// representations.
    fn file_size(&self, basic: Basic) -> Result<u64, DatarepError>;

    /// Whether the file holds the native bytes of this type, so that no
    /// conversion is needed.
    fn keeps_bytes(&self, basic: Basic) -> bool;

    /// Whether the file holds the native bytes of all types.
    fn is_identity(&self) -> bool {
        Basic::ALL.iter().all(|basic| self.keeps_bytes(*basic))
    }

    /// Converts the elements in `native` to file bytes.
    ///
    /// After an error, the contents of `file` are unspecified. The error counts
    /// elements from the start of `native`.
    fn to_file(&self, basic: Basic, native: &[u8], file: &mut [u8]) -> Result<(), DatarepError>;

    /// Converts the elements in `file` to native bytes; the inverse of
    /// [`Representation::to_file`].
    fn to_native(&self, basic: Basic, file: &[u8], native: &mut [u8]) -> Result<(), DatarepError>;

    /// User-defined conversion functions with MPI's arguments, if there are
    /// any.
    fn callbacks(&self) -> Callbacks<'_> {
        Callbacks::default()
    }
}

/// Bytes as they are in memory.
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

/// Checks that both buffers hold the same complete elements and returns the
/// element size in the file.
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
