//! User-defined representations.

use crate::error::{DatarepError, UserError};
use crate::representation::{Representation, check_lengths};
use pario_layout::{Basic, Datatype};
use std::fmt;
use std::sync::OnceLock;

/// Returns the size in the file of an element of a predefined type.
pub type ExtentFunction = dyn Fn(Basic) -> Result<u64, UserError> + Send + Sync;

/// Converts a run of elements of one type from the first slice to the second:
/// native to file when writing, file to native when reading.
pub type RunFunction = dyn Fn(Basic, &[u8], &mut [u8]) -> Result<(), UserError> + Send + Sync;

/// Converts elements in place in the user's buffer, like MPI's conversion
/// functions.
pub type CallbackFunction = dyn Fn(&Transfer<'_>) -> Result<(), UserError> + Send + Sync;

/// The arguments of MPI's conversion functions, for both directions.
///
/// Describes `count` basic elements, starting with element `position` of the type
/// map of `datatype` tiled from `user_buffer`, and as many contiguous elements at
/// `file_buffer`.
#[derive(Clone, Copy, Debug)]
pub struct Transfer<'a> {
    /// The user's buffer, at the origin of the datatype.
    pub user_buffer: *mut u8,
    /// The user's datatype.
    pub datatype: &'a Datatype,
    /// Number of basic elements to convert.
    pub count: u64,
    /// The elements in the file's representation, contiguous.
    pub file_buffer: *mut u8,
    /// Index of the first element in the tiled type map.
    pub position: u64,
}

/// How a user-defined representation converts in one direction.
pub enum Conversion {
    /// No conversion: the file holds native bytes (`MPI_CONVERSION_FN_NULL`).
    Identity,
    /// Runs of equal elements, as safe slices.
    Runs(Box<RunFunction>),
    /// Elements in the user's buffer; see [`Conversion::callback`].
    Callback(Callback),
}

/// A conversion function whose author vouches for its soundness.
pub struct Callback(Box<CallbackFunction>);

impl Conversion {
    /// A conversion of runs of equal elements.
    pub fn runs(
        convert: impl Fn(Basic, &[u8], &mut [u8]) -> Result<(), UserError> + Send + Sync + 'static,
    ) -> Conversion {
        Conversion::Runs(Box::new(convert))
    }

    /// A conversion with the arguments of MPI's functions, for use from C.
    ///
    /// # Safety
    /// When writing, `convert` must not read any byte of the user's buffer other
    /// than those of the given elements; when reading, it must not write any other.
    /// The same holds for the file buffer, where elements have the size given by
    /// the representation's extent function.
    #[allow(
        unsafe_code,
        reason = "the caller makes the promise; nothing unsafe happens here"
    )]
    pub unsafe fn callback(
        convert: impl Fn(&Transfer<'_>) -> Result<(), UserError> + Send + Sync + 'static,
    ) -> Conversion {
        Conversion::Callback(Callback(Box::new(convert)))
    }
}

impl Conversion {
    fn as_callback(&self) -> Option<&CallbackFunction> {
        match self {
            Conversion::Callback(Callback(convert)) => Some(convert),
            _ => None,
        }
    }
}

impl fmt::Debug for Conversion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Conversion::Identity => "Identity",
            Conversion::Runs(_) => "Runs",
            Conversion::Callback(_) => "Callback",
        })
    }
}

/// The functions that a program registers as a representation.
pub struct UserRepresentation {
    /// Size of each predefined type in the file. Called only for types that the
    /// program uses.
    pub file_extent: Box<ExtentFunction>,
    /// From memory to the file.
    pub write: Conversion,
    /// From the file to memory.
    pub read: Conversion,
}

impl UserRepresentation {
    /// A representation in which elements have the size given by `file_extent` and
    /// are converted by `write` and `read`.
    pub fn new(
        file_extent: impl Fn(Basic) -> Result<u64, UserError> + Send + Sync + 'static,
        write: Conversion,
        read: Conversion,
    ) -> UserRepresentation {
        UserRepresentation {
            file_extent: Box::new(file_extent),
            write,
            read,
        }
    }
}

/// The functions of a representation that convert in the user's buffer.
#[derive(Clone, Copy, Default)]
pub struct Callbacks<'a> {
    pub(crate) write: Option<&'a CallbackFunction>,
    pub(crate) read: Option<&'a CallbackFunction>,
}

/// A registered representation.
pub(crate) struct UserDefined {
    name: String,
    functions: UserRepresentation,
    /// Results of the extent function, by type code.
    sizes: [OnceLock<u64>; CODES],
}

/// Type codes are bytes.
const CODES: usize = 1 << u8::BITS;

impl UserDefined {
    pub(crate) fn new(name: &str, functions: UserRepresentation) -> UserDefined {
        UserDefined {
            name: name.to_owned(),
            functions,
            sizes: [const { OnceLock::new() }; CODES],
        }
    }

    fn copy(
        &self,
        basic: Basic,
        file_size: u64,
        from: &[u8],
        to: &mut [u8],
    ) -> Result<(), DatarepError> {
        if file_size != basic.size() {
            let representation = self.name.clone();
            return Err(DatarepError::NoConversion {
                representation,
                basic,
                file_size,
            });
        }
        to.copy_from_slice(from);
        Ok(())
    }

    fn failed(&self, source: UserError) -> DatarepError {
        DatarepError::User {
            representation: self.name.clone(),
            source,
        }
    }
}

impl Representation for UserDefined {
    fn name(&self) -> &str {
        &self.name
    }

    fn file_size(&self, basic: Basic) -> Result<u64, DatarepError> {
        let known = &self.sizes[usize::from(basic.code())];
        if let Some(size) = known.get() {
            return Ok(*size);
        }
        let size = (self.functions.file_extent)(basic).map_err(|source| self.failed(source))?;
        if size == 0 {
            return Err(self.failed(format!("{} has size zero in the file", basic.name()).into()));
        }
        // If two threads called the function at once, the first result is kept.
        Ok(*known.get_or_init(|| size))
    }

    fn keeps_bytes(&self, basic: Basic) -> bool {
        let UserRepresentation { write, read, .. } = &self.functions;
        matches!((write, read), (Conversion::Identity, Conversion::Identity))
            && self.file_size(basic).is_ok_and(|size| size == basic.size())
    }

    /// Unknown: finding out would call the extent function for types that the
    /// program may never use and the function need not support.
    fn is_identity(&self) -> bool {
        false
    }

    fn to_file(&self, basic: Basic, native: &[u8], file: &mut [u8]) -> Result<(), DatarepError> {
        let file_size = check_lengths(self, basic, native.len(), file.len())?;
        match &self.functions.write {
            Conversion::Identity => self.copy(basic, file_size, native, file),
            Conversion::Runs(convert) => convert(basic, native, file).map_err(|e| self.failed(e)),
            Conversion::Callback(Callback(convert)) => {
                let transfer = Transfer {
                    // A write conversion only reads it; see `Conversion::callback`.
                    user_buffer: native.as_ptr().cast_mut(),
                    datatype: &Datatype::basic(basic),
                    count: native.len() as u64 / basic.size(),
                    file_buffer: file.as_mut_ptr(),
                    position: 0,
                };
                convert(&transfer).map_err(|e| self.failed(e))
            }
        }
    }

    fn to_native(&self, basic: Basic, file: &[u8], native: &mut [u8]) -> Result<(), DatarepError> {
        let file_size = check_lengths(self, basic, native.len(), file.len())?;
        match &self.functions.read {
            Conversion::Identity => self.copy(basic, file_size, file, native),
            Conversion::Runs(convert) => convert(basic, file, native).map_err(|e| self.failed(e)),
            Conversion::Callback(Callback(convert)) => {
                let transfer = Transfer {
                    user_buffer: native.as_mut_ptr(),
                    datatype: &Datatype::basic(basic),
                    count: native.len() as u64 / basic.size(),
                    // A read conversion only reads it; see `Conversion::callback`.
                    file_buffer: file.as_ptr().cast_mut(),
                    position: 0,
                };
                convert(&transfer).map_err(|e| self.failed(e))
            }
        }
    }

    fn callbacks(&self) -> Callbacks<'_> {
        Callbacks {
            write: self.functions.write.as_callback(),
            read: self.functions.read.as_callback(),
        }
    }
}

impl fmt::Debug for UserDefined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UserDefined")
            .field("name", &self.name)
            .field("write", &self.functions.write)
            .field("read", &self.functions.read)
            .finish_non_exhaustive()
    }
}
