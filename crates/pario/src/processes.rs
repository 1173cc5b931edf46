//! Ranks that are processes forked from this one.

use crate::{Comm, Error, ErrorKind, Result, threads::all_or_cause};

/// Runs `work` as each of so many ranks, every one in a process forked from this one, and returns
/// when all have ended. A rank that is killed does not take the others with it: their collective
/// calls fail.
///
/// If ranks fail, the error is that of the lowest one, leaving aside those that failed only
/// because another rank did. Fork from a program with one thread: a forked process has only the
/// thread that forked, and locks that other threads held stay locked in it.
///
/// ```no_run
/// use pario::{File, Info, Mode, processes};
///
/// processes::run(4, |comm| {
///     let file = File::open(&comm, "out.dat", Mode::CREATE | Mode::WRITE_ONLY, &Info::new())?;
///     file.write_at_all(8 * u64::from(comm.rank()), &[f64::from(comm.rank())])?;
///     file.close()
/// })?;
/// # Ok::<(), pario::Error>(())
/// ```
pub fn run(ranks: u32, work: impl Fn(Comm) -> Result<()>) -> Result<()> {
    let results = pario_transport::processes::run(ranks, |transport| {
        work(Comm::from(transport)).map_or_else(|error| to_bytes(&error), |()| Vec::new())
    });
    let mut errors = Vec::new();
    for result in results {
        match result {
            Ok(bytes) if bytes.is_empty() => errors.push(Ok(())),
            Ok(bytes) => errors.push(Err(from_bytes(&bytes))),
            Err(failure) => {
                let error = Error::new(ErrorKind::PeerLost, "a rank ended early");
                return Err(error.with_source(failure));
            }
        }
    }
    all_or_cause(errors.into_iter()).map(drop)
}

/// The kind of an error and its text, which names the call, the file and the rank.
fn to_bytes(error: &Error) -> Vec<u8> {
    let mut bytes = vec![error.kind() as u8];
    bytes.extend(error.to_string().into_bytes());
    bytes
}

fn from_bytes(bytes: &[u8]) -> Error {
    let (code, text) = bytes.split_first().unwrap_or((&u8::MAX, &[]));
    let kind = ErrorKind::from_code(*code).unwrap_or(ErrorKind::Io);
    Error::new(kind, String::from_utf8_lossy(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_keep_their_kind_and_text() {
        let error = Error::new(ErrorKind::Quota, "why").in_operation("write_at");
        let other = from_bytes(&to_bytes(&error));
        assert_eq!(other.kind(), ErrorKind::Quota);
        assert_eq!(other.to_string(), "write_at: why");
        assert_eq!(from_bytes(&[]).kind(), ErrorKind::Io);
    }
}
