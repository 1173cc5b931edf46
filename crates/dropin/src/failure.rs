//! Errors for C programs: a class and a message.

use std::ffi::c_int;
use std::fmt;

use engine::ErrorKind;
use pario_mpi::{DecodeError, ErrorClass, Host, MpiError};

use crate::codes;

/// A function that failed.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    class: ErrorClass,
    message: String,
}

impl Failure {
    pub(crate) fn new(class: ErrorClass, message: impl Into<String>) -> Failure {
        Failure {
            class,
            message: message.into(),
        }
    }

    /// Adds the function's name, unless the message has it.
    pub(crate) fn in_function(mut self, name: &str) -> Failure {
        if !self.message.starts_with("MPI_") {
            self.message = format!("{name}: {}", self.message);
        }
        self
    }

    /// The error code for the program. Its class is that of the failure, and its string is the
    /// message.
    pub(crate) fn code(&self, host: &Host) -> c_int {
        codes::with_message(host, self.class, &self.message)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<engine::Error> for Failure {
    fn from(error: engine::Error) -> Failure {
        Failure {
            class: class_of(error.kind()),
            message: error.to_string(),
        }
    }
}

impl From<MpiError> for Failure {
    fn from(error: MpiError) -> Failure {
        let class = error.class.unwrap_or(ErrorClass::Other);
        Failure::new(class, error.to_string())
    }
}

impl From<DecodeError> for Failure {
    fn from(error: DecodeError) -> Failure {
        Failure::new(ErrorClass::Type, error.to_string())
    }
}

fn class_of(kind: ErrorKind) -> ErrorClass {
    match kind {
        ErrorKind::Access => ErrorClass::Access,
        ErrorKind::Mode => ErrorClass::Amode,
        ErrorKind::Argument => ErrorClass::Arg,
        ErrorKind::BadFile => ErrorClass::BadFile,
        ErrorKind::Buffer => ErrorClass::Buffer,
        ErrorKind::Conversion => ErrorClass::Conversion,
        ErrorKind::Count => ErrorClass::Count,
        ErrorKind::FileExists => ErrorClass::FileExists,
        ErrorKind::FileInUse => ErrorClass::FileInUse,
        ErrorKind::Handle => ErrorClass::File,
        ErrorKind::Io => ErrorClass::Io,
        ErrorKind::NoMemory => ErrorClass::NoMem,
        ErrorKind::NoSpace => ErrorClass::NoSpace,
        ErrorKind::NoSuchFile => ErrorClass::NoSuchFile,
        ErrorKind::NotSame => ErrorClass::NotSame,
        ErrorKind::Quota => ErrorClass::Quota,
        ErrorKind::ReadOnly => ErrorClass::ReadOnly,
        ErrorKind::Type => ErrorClass::Type,
        ErrorKind::UnsupportedOperation => ErrorClass::UnsupportedOperation,
        ErrorKind::UnsupportedRepresentation => ErrorClass::UnsupportedDatarep,
        ErrorKind::DuplicateRepresentation => ErrorClass::DupDatarep,
        _ => ErrorClass::Other,
    }
}
