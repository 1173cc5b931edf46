//! What can go wrong with a representation.

use pario_layout::Basic;
use std::error::Error;
use std::fmt;

/// An error that a user's function returned.
pub type UserError = Box<dyn Error + Send + Sync>;

/// Why data could not be converted, or a representation not be found or
/// registered.
#[derive(Debug)]
#[non_exhaustive]
pub enum DatarepError {
    /// A value does not fit its type in the other representation
    /// (`MPI_ERR_CONVERSION`).
    OutOfRange {
        /// The type of the element.
        basic: Basic,
        /// Its position among the elements of the buffer.
        element: u64,
        /// Its value.
        value: String,
        /// The representation that cannot hold it.
        representation: String,
    },
    /// A user's function failed (`MPI_ERR_CONVERSION`, or whatever it says).
    User {
        /// The representation that the function belongs to.
        representation: String,
        /// What it said.
        source: UserError,
    },
    /// A user's representation changes the size of a type but does not
    /// convert (`MPI_ERR_CONVERSION`).
    NoConversion {
        /// The representation.
        representation: String,
        /// The type.
        basic: Basic,
        /// Its size in the file.
        file_size: u64,
    },
    /// Buffers whose lengths do not fit each other or the elements
    /// (`MPI_ERR_ARG`).
    Lengths {
        /// Bytes of the native buffer.
        native: usize,
        /// Bytes of the file buffer.
        file: usize,
    },
    /// More bytes than 64 bits count (`MPI_ERR_ARG`).
    TooLarge,
    /// No such representation (`MPI_ERR_UNSUPPORTED_DATAREP`).
    Unknown {
        /// The name asked for.
        name: String,
        /// The names there are.
        known: Vec<String>,
    },
    /// The name is taken (`MPI_ERR_DUP_DATAREP`).
    Duplicate {
        /// The name.
        name: String,
    },
    /// The name is empty, too long or holds a NUL (`MPI_ERR_ARG`).
    BadName {
        /// The name.
        name: String,
        /// What is wrong with it.
        reason: &'static str,
    },
}

impl DatarepError {
    /// Counts the element of an error on from `first`.
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
                "a native buffer of {native} bytes and a file buffer of {file} do not hold the same whole elements"
            ),
            DatarepError::TooLarge => write!(f, "the elements take more bytes than 64 bits count"),
            DatarepError::Unknown { name, known } => write!(
                f,
                "there is no data representation `{name}`; there are {}",
                known.join(", ")
            ),
            DatarepError::Duplicate { name } => {
                write!(f, "data representation `{name}` is registered already")
            }
            DatarepError::BadName { name, reason } => {
                write!(f, "`{name}` cannot name a data representation: {reason}")
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
