//! The error type: what failed, on which file, where, and why.

use std::{
    fmt, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use pario_datarep::DatarepError;
use pario_hints::InfoError;
use pario_transport::{Rank, TransportError};

/// The kind of a failure. The kinds are MPI's error classes for files,
/// so that the C layer maps them one to one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(u8)]
pub enum ErrorKind {
    /// Permission denied (`MPI_ERR_ACCESS`).
    Access,
    /// The access mode is invalid or forbids the call (`MPI_ERR_AMODE`).
    Mode,
    /// An argument is not allowed (`MPI_ERR_ARG`).
    Argument,
    /// The file's name is invalid (`MPI_ERR_BAD_FILE`).
    BadFile,
    /// A buffer is too small for what its datatype describes (`MPI_ERR_BUFFER`).
    Buffer,
    /// A data conversion failed (`MPI_ERR_CONVERSION`).
    Conversion,
    /// A count is negative (`MPI_ERR_COUNT`).
    Count,
    /// The file exists already (`MPI_ERR_FILE_EXISTS`).
    FileExists,
    /// The file is in use, or an operation on it is still pending (`MPI_ERR_FILE_IN_USE`).
    FileInUse,
    /// The file handle is closed (`MPI_ERR_FILE`).
    Handle,
    /// A read or write failed (`MPI_ERR_IO`).
    Io,
    /// Memory could not be allocated (`MPI_ERR_NO_MEM`).
    NoMemory,
    /// No space is left (`MPI_ERR_NO_SPACE`).
    NoSpace,
    /// The file does not exist (`MPI_ERR_NO_SUCH_FILE`).
    NoSuchFile,
    /// An argument differs between ranks but must not (`MPI_ERR_NOT_SAME`).
    NotSame,
    /// Another rank panicked, returned early or was killed (`MPI_ERR_OTHER`).
    PeerLost,
    /// The quota is exceeded (`MPI_ERR_QUOTA`).
    Quota,
    /// The file or file system is read-only (`MPI_ERR_READ_ONLY`).
    ReadOnly,
    /// A datatype is not allowed here (`MPI_ERR_TYPE`).
    Type,
    /// The file system or the mode of the file does not support the call
    /// (`MPI_ERR_UNSUPPORTED_OPERATION`).
    UnsupportedOperation,
    /// No data representation has this name (`MPI_ERR_UNSUPPORTED_DATAREP`).
    UnsupportedRepresentation,
    /// A data representation of this name exists (`MPI_ERR_DUP_DATAREP`).
    DuplicateRepresentation,
}

impl ErrorKind {
    const ALL: [ErrorKind; 22] = [
        ErrorKind::Access,
        ErrorKind::Mode,
        ErrorKind::Argument,
        ErrorKind::BadFile,
        ErrorKind::Buffer,
        ErrorKind::Conversion,
        ErrorKind::Count,
        ErrorKind::FileExists,
        ErrorKind::FileInUse,
        ErrorKind::Handle,
        ErrorKind::Io,
        ErrorKind::NoMemory,
        ErrorKind::NoSpace,
        ErrorKind::NoSuchFile,
        ErrorKind::NotSame,
        ErrorKind::PeerLost,
        ErrorKind::Quota,
        ErrorKind::ReadOnly,
        ErrorKind::Type,
        ErrorKind::UnsupportedOperation,
        ErrorKind::UnsupportedRepresentation,
        ErrorKind::DuplicateRepresentation,
    ];

    pub(crate) fn from_code(code: u8) -> Option<ErrorKind> {
        Self::ALL.into_iter().find(|kind| *kind as u8 == code)
    }

    /// The kind of an error of the operating system.
    fn of_io(error: &io::Error) -> ErrorKind {
        match error.kind() {
            io::ErrorKind::NotFound => ErrorKind::NoSuchFile,
            io::ErrorKind::PermissionDenied => ErrorKind::Access,
            io::ErrorKind::AlreadyExists => ErrorKind::FileExists,
            io::ErrorKind::StorageFull | io::ErrorKind::FileTooLarge => ErrorKind::NoSpace,
            io::ErrorKind::QuotaExceeded => ErrorKind::Quota,
            io::ErrorKind::ReadOnlyFilesystem => ErrorKind::ReadOnly,
            io::ErrorKind::OutOfMemory => ErrorKind::NoMemory,
            io::ErrorKind::ResourceBusy | io::ErrorKind::ExecutableFileBusy => ErrorKind::FileInUse,
            io::ErrorKind::Unsupported => ErrorKind::UnsupportedOperation,
            io::ErrorKind::IsADirectory
            | io::ErrorKind::NotADirectory
            | io::ErrorKind::InvalidFilename => ErrorKind::BadFile,
            _ => ErrorKind::Io,
        }
    }
}

/// A failed operation.
#[derive(Clone)]
pub struct Error(Box<Inner>);

#[derive(Clone)]
struct Inner {
    kind: ErrorKind,
    operation: &'static str,
    message: String,
    path: Option<PathBuf>,
    /// The rank on which it happened, which may be another one.
    rank: Option<Rank>,
    offset: Option<u64>,
    transferred: u64,
    source: Option<Arc<dyn std::error::Error + Send + Sync>>,
}

/// The result of every fallible call of this crate.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An error with a sentence that states what is wrong and what is allowed.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Error {
        Error(Box::new(Inner {
            kind,
            operation: "",
            message: message.into(),
            path: None,
            rank: None,
            offset: None,
            transferred: 0,
            source: None,
        }))
    }

    pub(crate) fn argument(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Argument, message)
    }

    pub(crate) fn with_source(
        mut self,
        source: impl std::error::Error + Send + Sync + 'static,
    ) -> Error {
        self.0.source = Some(Arc::new(source));
        self
    }

    /// Sets the operation, unless it is set already.
    pub(crate) fn in_operation(mut self, operation: &'static str) -> Error {
        if self.0.operation.is_empty() {
            self.0.operation = operation;
        }
        self
    }

    pub(crate) fn on_path(mut self, path: &Path) -> Error {
        self.0.path.get_or_insert_with(|| path.to_owned());
        self
    }

    pub(crate) fn on_rank(mut self, rank: Rank) -> Error {
        self.0.rank.get_or_insert(rank);
        self
    }

    pub(crate) fn at_offset(mut self, offset: u64) -> Error {
        self.0.offset.get_or_insert(offset);
        self
    }

    /// Sets the number of bytes that were moved before the failure.
    pub(crate) fn after(mut self, bytes: u64) -> Error {
        self.0.transferred = bytes;
        self
    }

    /// Bytes of memory that this rank's access had moved before the failure,
    /// counted from its first byte without a gap.
    pub fn transferred(&self) -> u64 {
        self.0.transferred
    }

    /// The kind of failure.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The call that failed, by its name in this library.
    pub fn operation(&self) -> &str {
        self.0.operation
    }

    /// The file's name, as passed to `open`.
    pub fn path(&self) -> Option<&Path> {
        self.0.path.as_deref()
    }

    /// The rank on which it happened. In a collective call every rank gets the error of the
    /// lowest rank that failed.
    pub fn rank(&self) -> Option<u32> {
        self.0.rank.map(|rank| rank.0)
    }

    /// The byte of the file at which the transfer stopped.
    pub fn offset(&self) -> Option<u64> {
        self.0.offset
    }

    /// The bytes from which another rank can report the same failure.
    pub(crate) fn to_wire(&self) -> Vec<u8> {
        let mut wire = vec![self.0.kind as u8];
        let offset = self.0.offset.map_or(-1, |offset| offset as i64);
        wire.extend_from_slice(&offset.to_le_bytes());
        let mut text = self.0.message.clone();
        if let Some(source) = &self.0.source {
            text = format!("{text}: {source}");
        }
        wire.extend_from_slice(text.as_bytes());
        wire
    }

    pub(crate) fn from_wire(wire: &[u8], rank: Rank) -> Error {
        let kind = wire.first().and_then(|code| ErrorKind::from_code(*code));
        let offset = wire
            .get(1..9)
            .and_then(|bytes| bytes.try_into().ok())
            .map(i64::from_le_bytes);
        let text = String::from_utf8_lossy(wire.get(9..).unwrap_or_default()).into_owned();
        let mut error = Error::new(kind.unwrap_or(ErrorKind::Io), text).on_rank(rank);
        error.0.offset = offset.and_then(|offset| u64::try_from(offset).ok());
        error
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner {
            operation,
            message,
            path,
            rank,
            offset,
            source,
            ..
        } = &*self.0;
        if !operation.is_empty() {
            write!(f, "{operation}")?;
        }
        if let Some(path) = path {
            write!(f, " {}", path.display())?;
        }
        if let Some(rank) = rank {
            write!(f, " (rank {rank}")?;
            match offset {
                Some(offset) => write!(f, ", file byte {offset})")?,
                None => write!(f, ")")?,
            }
        } else if let Some(offset) = offset {
            write!(f, " (file byte {offset})")?;
        }
        if !operation.is_empty() || path.is_some() || rank.is_some() || offset.is_some() {
            write!(f, ": ")?;
        }
        write!(f, "{message}")?;
        match source {
            Some(source) => write!(f, ": {source}"),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {self}", self.0.kind)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_deref().map(|source| source as _)
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Error {
        Error::new(ErrorKind::of_io(&error), "the file system reported").with_source(error)
    }
}

impl From<TransportError> for Error {
    fn from(error: TransportError) -> Error {
        Error::new(ErrorKind::PeerLost, "communication between ranks failed").with_source(error)
    }
}

impl From<pario_layout::TypeError> for Error {
    fn from(error: pario_layout::TypeError) -> Error {
        Error::new(ErrorKind::Type, "the datatype is not allowed here").with_source(error)
    }
}

impl From<InfoError> for Error {
    fn from(error: InfoError) -> Error {
        Error::new(ErrorKind::Argument, "the hint cannot be set").with_source(error)
    }
}

impl From<DatarepError> for Error {
    fn from(error: DatarepError) -> Error {
        let kind = match &error {
            DatarepError::Unknown { .. } => ErrorKind::UnsupportedRepresentation,
            DatarepError::Duplicate { .. } => ErrorKind::DuplicateRepresentation,
            DatarepError::BadName { .. } | DatarepError::TooLarge => ErrorKind::Argument,
            _ => ErrorKind::Conversion,
        };
        Error::new(kind, "the data representation failed").with_source(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_survives_serialisation() {
        for kind in ErrorKind::ALL {
            let error = Error::new(kind, "why").at_offset(7);
            let other = Error::from_wire(&error.to_wire(), Rank(3));
            assert_eq!(other.kind(), kind);
            assert_eq!(other.offset(), Some(7));
            assert_eq!(other.rank(), Some(3));
            assert!(other.to_string().ends_with("why"), "{other}");
        }
    }

    #[test]
    fn malformed_bytes_are_still_an_error() {
        assert_eq!(Error::from_wire(&[], Rank(0)).kind(), ErrorKind::Io);
        assert_eq!(Error::from_wire(&[250, 1], Rank(0)).kind(), ErrorKind::Io);
    }

    #[test]
    fn a_message_names_operation_file_rank_and_cause() {
        let cause = io::Error::from_raw_os_error(28);
        let error = Error::from(cause)
            .in_operation("write_at")
            .on_path(Path::new("out.dat"))
            .on_rank(Rank(2))
            .at_offset(4096);
        assert_eq!(error.kind(), ErrorKind::NoSpace);
        let text = error.to_string();
        assert!(
            text.starts_with("write_at out.dat (rank 2, file byte 4096): "),
            "{text}"
        );
        assert!(text.contains("No space left"), "{text}");
    }
}
