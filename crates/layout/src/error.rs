//! Errors of types and of their wire forms.

use std::fmt;

/// Why a type was rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TypeErrorKind {
    /// A size, extent or displacement does not fit in 63 bits.
    Overflow,
    /// An argument of a constructor is not allowed by the standard.
    Argument,
    /// Constructors nest deeper than [`MAX_DEPTH`](crate::MAX_DEPTH).
    Depth,
    /// The type cannot describe a file: it has negative or decreasing
    /// displacements.
    Displacement,
    /// The filetype does not consist of whole etypes.
    Etype,
}

/// A type that cannot be built or used; displays as a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeError {
    kind: TypeErrorKind,
    message: String,
}

impl TypeError {
    pub(crate) fn new(kind: TypeErrorKind, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { kind, message }
    }

    /// Arithmetic overflow while computing `what`.
    pub(crate) fn overflow(what: &str) -> Self {
        let message = format!("{what} of the datatype does not fit in 63 bits");
        Self::new(TypeErrorKind::Overflow, message)
    }

    pub(crate) fn argument(message: impl Into<String>) -> Self {
        Self::new(TypeErrorKind::Argument, message)
    }

    pub(crate) fn depth() -> Self {
        let limit = crate::MAX_DEPTH;
        let message = format!("datatype constructors nest deeper than {limit} levels");
        Self::new(TypeErrorKind::Depth, message)
    }

    /// The class of the error.
    pub fn kind(&self) -> TypeErrorKind {
        self.kind
    }
}

impl fmt::Display for TypeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for TypeError {}

/// Why bytes are not the wire form of a layout or datatype.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WireError {
    /// The input ends before the value does.
    Truncated,
    /// Bytes follow the value.
    Trailing,
    /// Unknown format or version.
    Version(u8),
    /// An invalid tag, code or count.
    Invalid(&'static str),
    /// The bytes describe a value, but not in canonical form.
    NotCanonical,
    /// The value described is not a valid type.
    Type(TypeError),
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated => f.write_str("the wire form is truncated"),
            Self::Trailing => f.write_str("bytes follow the end of the wire form"),
            Self::Version(found) => write!(f, "unknown wire format or version {found}"),
            Self::Invalid(what) => write!(f, "the wire form has an invalid {what}"),
            Self::NotCanonical => f.write_str("the wire form is not canonical"),
            Self::Type(error) => write!(f, "the wire form describes an invalid type: {error}"),
        }
    }
}

impl std::error::Error for WireError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Type(error) => Some(error),
            _ => None,
        }
    }
}

impl From<TypeError> for WireError {
    fn from(error: TypeError) -> Self {
        Self::Type(error)
    }
}
