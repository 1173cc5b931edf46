//! Agreement in collective calls: an error is data that every rank learns.

use pario_transport::{Rank, Transport};

use crate::{Error, ErrorKind, Result};

const FINE: u8 = 0;
const FAILED: u8 = 1;

/// Tells every rank what this one has to say, or that it failed, and returns
/// what all said. If any rank failed, all return the error of the lowest such
/// rank, so that every rank sees the same kind.
pub(crate) fn gather(comm: &dyn Transport, mine: Result<Vec<u8>>) -> Result<Vec<Vec<u8>>> {
    // The tag comes last, where it is put on and taken off without a copy.
    let (mut message, tag, failure) = match mine {
        Ok(bytes) => (bytes, FINE, None),
        Err(error) => (error.to_wire(), FAILED, Some(error)),
    };
    message.push(tag);
    let mut all = comm.all_gather(&message)?;
    let mut failed = None;
    for (message, rank) in all.iter_mut().zip((0..).map(Rank)) {
        if message.pop() != Some(FINE) {
            failed = failed.or(Some(rank));
        }
    }
    let Some(rank) = failed else {
        return Ok(all);
    };
    Err(match failure {
        Some(error) if rank == comm.rank() => error.on_rank(rank),
        _ => Error::from_wire(&all[rank.index()], rank),
    })
}

/// What one rank has to say, or its error, on all ranks. Nobody waits for
/// anyone but that rank.
pub(crate) fn told_by(
    comm: &dyn Transport,
    root: Rank,
    mine: impl FnOnce() -> Result<Vec<u8>>,
) -> Result<Vec<u8>> {
    let mine = (comm.rank() == root).then(mine);
    let (mut message, tag, failure) = match mine {
        None => (Vec::new(), FINE, None),
        Some(Ok(bytes)) => (bytes, FINE, None),
        Some(Err(error)) => (error.to_wire(), FAILED, Some(error)),
    };
    message.push(tag);
    let mut told = comm.broadcast(root, message)?;
    match (told.pop(), failure) {
        (Some(FINE), _) => Ok(told),
        (_, Some(error)) => Err(error.on_rank(root)),
        _ => Err(Error::from_wire(&told, root)),
    }
}

/// All ranks succeed, or all get the same error.
pub(crate) fn agree<T>(comm: &dyn Transport, mine: Result<T>) -> Result<T> {
    match mine {
        Ok(value) => gather(comm, Ok(Vec::new())).map(|_| value),
        Err(error) => match gather(comm, Err(error)) {
            Ok(_) => unreachable!("this rank's own failure is among those gathered"),
            Err(error) => Err(error),
        },
    }
}

/// All ranks must have said the same about `what`.
pub(crate) fn same(all: &[Vec<u8>], what: &str) -> Result<()> {
    match all.iter().position(|bytes| *bytes != all[0]) {
        None => Ok(()),
        Some(rank) => Err(differs(what, rank)),
    }
}

pub(crate) fn differs(what: &str, rank: usize) -> Error {
    Error::new(
        ErrorKind::NotSame,
        format!("{what} must be the same on all ranks, but rank {rank} gave another than rank 0"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_failed_rank_speaks_for_all() {
        let results = pario_transport::threads::run(4, |comm| {
            let mine = match comm.rank() {
                Rank(1) => Err(Error::new(ErrorKind::NoSpace, "first")),
                Rank(3) => Err(Error::new(ErrorKind::Access, "second")),
                _ => Ok(()),
            };
            agree(&*comm, mine)
        });
        for result in results {
            let error = result.unwrap().unwrap_err();
            assert_eq!(
                (error.kind(), error.rank()),
                (ErrorKind::NoSpace, Some(Rank(1)))
            );
        }
    }

    #[test]
    fn one_rank_tells_all_or_fails_for_all() {
        let results = pario_transport::threads::run(3, |comm| {
            let fine = told_by(&*comm, Rank(1), || Ok(vec![7, 8])).unwrap();
            let failed = told_by(&*comm, Rank(2), || {
                Err(Error::new(ErrorKind::NoSpace, "full"))
            });
            (fine, failed.unwrap_err())
        });
        for result in results {
            let (fine, error) = result.unwrap();
            assert_eq!(fine, [7, 8]);
            let blamed = (error.kind(), error.rank());
            assert_eq!(blamed, (ErrorKind::NoSpace, Some(Rank(2))));
        }
    }

    #[test]
    fn what_all_said_arrives_in_rank_order() {
        let results = pario_transport::threads::run(3, |comm| {
            gather(
                &*comm,
                Ok(vec![comm.rank().0 as u8; comm.rank().0 as usize]),
            )
            .unwrap()
        });
        for result in results {
            assert_eq!(result.unwrap(), [vec![], vec![1], vec![2, 2]]);
        }
    }
}
