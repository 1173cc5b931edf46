//! Errors of data representations.

use pario_layout::Basic;
use std::error::Error;
use std::fmt;

/// An error that a user's function returned.
pub type UserError = Box<dyn Error + Send + Sync>;

/// Why data could not be converted, or why a representation was not found or
/// not registered.
#[derive(Debug)]
#[non_exhaustive]
pub enum DatarepError {
    /// A value does not fit its type in the other representation
    /// (`MPI_ERR_CONVERSION`).
    OutOfRange {
        /// Type of the element.
        basic: Basic,
        /// Index of the element in the buffer.
        element: u64,
        /// Its value.
        value: String,
        /// The representation that cannot hold it.
        representation: String,
    },
    /// A user's function failed (`MPI_ERR_CONVERSION`, or the code it
    /// returned).
    User {
        /// The representation that the function belongs to.
        representation: String,
        /// The error that it returned.
        source: UserError,
    },
    /// A user's representation changes the size of a type but has no conversion
    /// function (`MPI_ERR_CONVERSION`).
    NoConversion {
        /// The representation.
        representation: String,
        /// The type.
        basic: Basic,
        /// Its size in the file.
        file_size: u64,
    },
    /// The buffer lengths do not match each other or the elements
    /// (`MPI_ERR_ARG`).
    Lengths {
        /// Length of the native buffer in bytes.
        native: usize,
        /// Length of the file buffer in bytes.
        file: usize,
    },
    /// The size does not fit in 64 bits (`MPI_ERR_ARG`).
    TooLarge,
    /// Unknown representation (`MPI_ERR_UNSUPPORTED_DATAREP`).
    Unknown {
        /// The requested name.
        name: String,
        /// The registered names.
        known: Vec<String>,
    },
    /// The name is already registered (`MPI_ERR_DUP_DATAREP`).
    Duplicate {
        /// The name.
        name: String,
    },
    /// The name is empty, too long or contains a NUL (`MPI_ERR_ARG`).
    BadName {
        /// The name.
        name: String,
        /// What is wrong with it.
        reason: &'static str,
    },
}

impl DatarepError {
    /// Shifts the element index of an error by `first`.
    pub(crate) fn after(mut self, first: u64) -> DatarepError {
        if let DatarepError::OutOfRange { element, .. } = &mut self {
            *element = element.saturating_add(first);
        }
        self
    }
}

impl fmt::Display for DatarepError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DatarepError::OutOfRange {
                basic,
                element,
                value,
                representation,
            } => write!(
                f,
                "element {element} ({}) has the value {value}, which {representation} cannot hold",
                basic.name()
            ),
            DatarepError::User {
                representation,
                source,
            } => {
                write!(
                    f,
                    "a function of data representation `{representation}` failed: {source}"
                )
            }
            DatarepError::NoConversion {
                representation,
                basic,
                file_size,
            } => write!(
                f,
                "data representation `{representation}` stores {} in {file_size} bytes instead of {} but has no conversion function",
                basic.name(),
                basic.size()
            ),
            DatarepError::Lengths { native, file } => write!(
                f,
                "a native buffer of {native} bytes and a file buffer of {file} bytes do not hold the same complete elements"
            ),
            DatarepError::TooLarge => write!(
                f,
                "the size of the elements in bytes does not fit in 64 bits"
            ),
            DatarepError::Unknown { name, known } => write!(
                f,
                "unknown data representation `{name}`; available: {}",
                known.join(", ")
            ),
            DatarepError::Duplicate { name } => {
                write!(f, "data representation `{name}` is already registered")
            }
            DatarepError::BadName { name, reason } => {
                write!(f, "invalid data representation name `{name}`: {reason}")
            }
        }
    }
}

impl Error for DatarepError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            DatarepError::User { source, .. } => Some(&**source),
            _ => None,
        }
    }
}
