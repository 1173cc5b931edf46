//! Failures to put written data on storage.

use std::{
    io,
    sync::{Mutex, PoisonError},
};

/// The first failure of a handle to put its data on storage. The kernel and
/// libraries report it once, but the data stays lost, so every later sync and
/// close of the handle reports it again.
#[derive(Debug, Default)]
pub(crate) struct WriteBack {
    failure: Mutex<Option<Failure>>,
}

/// Enough of an error to report it again.
#[derive(Debug)]
enum Failure {
    Os(i32),
    Other(io::ErrorKind, String),
}

impl WriteBack {
    /// The result of an attempt to put data on storage, or of an earlier one that
    /// failed.
    pub(crate) fn settle(&self, result: io::Result<()>) -> io::Result<()> {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(first) = &*failure {
            return Err(first.error());
        }
        if let Err(error) = &result
            && loses_data(error)
        {
            *failure = Some(Failure::of(error));
        }
        result
    }
}

/// Files that cannot be synced have lost nothing.
fn loses_data(error: &io::Error) -> bool {
    !matches!(error.raw_os_error(), Some(libc::EINVAL | libc::EROFS))
}

impl Failure {
    fn of(error: &io::Error) -> Failure {
        match error.raw_os_error() {
            Some(errno) => Failure::Os(errno),
            None => Failure::Other(error.kind(), error.to_string()),
        }
    }

    fn error(&self) -> io::Error {
        match self {
            Failure::Os(errno) => io::Error::from_raw_os_error(*errno),
            Failure::Other(kind, message) => io::Error::new(*kind, message.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_reported_by_every_later_call() {
        let written = WriteBack::default();
        written.settle(Ok(())).unwrap();
        let failed = |errno| Err(io::Error::from_raw_os_error(errno));
        written.settle(failed(libc::EINVAL)).unwrap_err();
        written.settle(Ok(())).unwrap();
        written.settle(failed(libc::EDQUOT)).unwrap_err();
        for later in [Ok(()), failed(libc::EIO)] {
            let again = written.settle(later).unwrap_err();
            assert_eq!(again.raw_os_error(), Some(libc::EDQUOT));
        }
        let written = WriteBack::default();
        let gone = || io::Error::new(io::ErrorKind::TimedOut, "the client was evicted");
        written.settle(Err(gone())).unwrap_err();
        let again = written.settle(Ok(())).unwrap_err();
        assert_eq!(again.to_string(), gone().to_string());
    }
}
