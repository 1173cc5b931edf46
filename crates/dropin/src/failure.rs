//! Errors on their way to a C program: a class, and words.

use std::collections::HashMap;
use std::ffi::c_int;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use engine::ErrorKind;
use pario_mpi::{DecodeError, ErrorClass, Host, MpiError};

/// A function that failed.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    class: ErrorClass,
    message: String,
    /// Bytes that were transferred all the same.
    transferred: u64,
}

impl Failure {
    pub(crate) fn new(class: ErrorClass, message: impl Into<String>) -> Failure {
        Failure {
            class,
            message: message.into(),
            transferred: 0,
        }
    }

    /// Names the function unless the message does.
    pub(crate) fn in_function(mut self, name: &str) -> Failure {
        if !self.message.starts_with("MPI_") {
            self.message = format!("{name}: {}", self.message);
        }
        self
    }

    pub(crate) fn transferred(&self) -> u64 {
        self.transferred
    }

    /// The error code that the program gets. Its class is the failure's, and
    /// its string is the message, where the host lets others define strings.
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
            transferred: error.transferred(),
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

/// Error codes of pario's own: one a class, whose string is the last message.
mod codes {
    use super::*;

    /// By class; `None` where the host makes nonsense of such codes.
    static CODES: Mutex<Option<HashMap<ErrorClass, Option<c_int>>>> = Mutex::new(None);

    pub(super) fn with_message(host: &Host, class: ErrorClass, message: &str) -> c_int {
        let bare = host.error_class(class);
        let mut codes = CODES.lock().unwrap_or_else(PoisonError::into_inner);
        let codes = codes.get_or_insert_default();
        let made = codes.entry(class).or_insert_with(|| make(host, bare));
        match made {
            Some(code) if host.add_error_string(*code, message).is_ok() => *code,
            _ => bare,
        }
    }

    /// A code of that class, if what the host says of it is true.
    fn make(host: &Host, class: c_int) -> Option<c_int> {
        const PROBE: &str = "pario";
        let code = host.add_error_code(class).ok()?;
        host.add_error_string(code, PROBE).ok()?;
        let faithful =
            host.class_number_of(code) == class && host.error_string(code).contains(PROBE);
        faithful.then_some(code)
    }
}
