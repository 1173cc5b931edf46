//! Agreement in collective calls: an error is data that every rank learns.

use pario_transport::{Gathered, Rank, Transport};

use crate::{Error, ErrorKind, Result};

const FINE: u8 = 0;
const FAILED: u8 = 1;

/// The memory of a gather, which the next one reuses.
#[derive(Debug, Default)]
pub(crate) struct GatherBuffers {
    pub(crate) message: Vec<u8>,
    pub(crate) all: Gathered,
}

impl GatherBuffers {
    /// Sends every rank this rank's bytes, or its error, and returns the bytes of all ranks,
    /// by rank. If any rank failed, all return the error of the lowest such rank, so that
    /// every rank sees the same kind.
    pub(crate) fn gather(
        &mut self,
        comm: &dyn Transport,
        mine: std::result::Result<&[u8], &Error>,
    ) -> Result<impl ExactSizeIterator<Item = &[u8]>> {
        self.message.clear();
        match mine {
            Ok(bytes) => self.message.extend_from_slice(bytes),
            Err(error) => self.message.extend(error.to_wire()),
        }
        self.message.push(match mine {
            Ok(_) => FINE,
            Err(_) => FAILED,
        });
        comm.all_gather_into(&self.message, &mut self.all)?;
        let failed = self
            .all
            .iter()
            .position(|bytes| bytes.last() != Some(&FINE));
        match failed {
            None => Ok(self.all.iter().map(content)),
            Some(index) => {
                let rank = Rank(index as u32);
                Err(match mine {
                    Err(error) if rank == comm.rank() => error.clone().on_rank(rank),
                    _ => Error::from_wire(content(self.all.of(index)), rank),
                })
            }
        }
    }

    /// All ranks succeed, or all get the same error.
    pub(crate) fn agree<T>(&mut self, comm: &dyn Transport, mine: Result<T>) -> Result<T> {
        let _ = self.gather(comm, mine.as_ref().map(|_| &[][..]))?;
        mine
    }
}

/// A message without its tag, which is its last byte.
fn content(message: &[u8]) -> &[u8] {
    message.split_last().map_or(&[], |(_, content)| content)
}

/// As [`GatherBuffers::gather`], for calls that are made once.
pub(crate) fn gather(comm: &dyn Transport, mine: Result<Vec<u8>>) -> Result<Vec<Vec<u8>>> {
    let mut buffers = GatherBuffers::default();
    let all = buffers.gather(comm, mine.as_deref())?;
    Ok(all.map(<[u8]>::to_vec).collect())
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
    GatherBuffers::default().agree(comm, mine)
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
