//! Whether range locks exclude ranks that see the file through different caches.
//!
//! Mount options say when locks are local to a node, but a lock service may also be missing or
//! misconfigured. So before something relies on locks, two ranks of different caches try: one locks a
//! byte that no data has, the other must not get it. Neither waits: a lock service that is gone would never
//! answer.

use std::ops::Range;

use pario_driver::{Handle, LockMode};
use pario_transport::{Rank, Transport};

use super::FileSharing;
use crate::{Error, ErrorKind, Result, agree};

/// The byte: the last one that range locks may cover.
const PROBED: Range<u64> = (1 << 60) - 1..1 << 60;

/// Fails on all ranks if locks do not exclude ranks of another cache. `what` needs them.
/// *Collective*; the handles must be able to write.
pub(super) fn run(
    comm: &dyn Transport,
    handle: &dyn Handle,
    sharing: &FileSharing,
    what: &str,
) -> Result<()> {
    let Some(elsewhere) = sharing.elsewhere else {
        return Ok(());
    };
    let first = match comm.rank() {
        Rank(0) => handle.try_lock(PROBED, LockMode::Exclusive),
        _ => Ok(None),
    };
    let is_held = match &first {
        Ok(lock) => Ok(vec![u8::from(lock.is_some())]),
        Err(cause) => Err(failed(what, &cause.to_string())),
    };
    let is_held = agree::gather(comm, is_held)?[0] == [1];
    // Somebody else may be trying too, which tells nothing.
    let second = match is_held && comm.rank() == elsewhere {
        true => handle.try_lock(PROBED, LockMode::Exclusive),
        false => Ok(None),
    };
    let tried = match &second {
        Ok(None) => Ok(()),
        Ok(Some(_)) => Err(failed(
            what,
            &format!("ranks 0 and {elsewhere} could lock the same bytes at the same time"),
        )),
        Err(cause) => Err(failed(what, &cause.to_string())),
    };
    let agreed = agree::agree(comm, tried);
    drop((first, second));
    agreed
}

fn failed(what: &str, cause: &str) -> Error {
    Error::new(
        ErrorKind::UnsupportedOperation,
        format!(
            "{what} needs locks between all ranks, which do not work on this file system: {cause}"
        ),
    )
}

#[cfg(test)]
mod tests {
    use pario_driver::{Access, Create, Driver, OpenHow, Posix};
    use pario_transport::threads;

    use super::*;

    /// Three ranks, of which the last is elsewhere, probe the files of their names.
    fn probe(names: [&'static str; 3]) -> Vec<Result<()>> {
        let directory = tempfile::tempdir().unwrap();
        let sharing = FileSharing {
            elsewhere: Some(Rank(2)),
            ..FileSharing::alone()
        };
        let results = threads::run(3, |comm| {
            let path = directory.path().join(names[comm.rank().index()]);
            let how = OpenHow::new(Access::ReadWrite).create(Create::IfMissing);
            let handle = Posix::default().open(&path, &how).unwrap();
            let found = run(&*comm, &*handle, &sharing, "atomic mode");
            comm.barrier().unwrap();
            let again = handle.try_lock(PROBED, LockMode::Shared).unwrap();
            assert!(again.is_some(), "a lock is left behind");
            comm.barrier().unwrap();
            found
        });
        results
            .into_iter()
            .map(std::result::Result::unwrap)
            .collect()
    }

    #[test]
    fn locks_that_exclude_are_accepted() {
        assert!(probe(["a", "a", "a"]).iter().all(Result::is_ok));
    }

    /// Two files stand for a file whose locks are local to each node.
    #[test]
    fn locks_that_both_get_are_refused_on_all_ranks() {
        for result in probe(["a", "a", "b"]) {
            let error = result.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::UnsupportedOperation);
            assert!(error.to_string().contains("ranks 0 and 2"), "{error}");
        }
    }
}
