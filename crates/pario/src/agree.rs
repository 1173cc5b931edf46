//! Agreement in collective calls: an error is data that every rank learns.

use pario_transport::{Rank, Transport};

use crate::{Error, ErrorKind, Result};

const FINE: u8 = 0;
const FAILED: u8 = 1;

/// Tells every rank what this one has to say, or that it failed, and returns
/// what all said. If any rank failed, all return the error of the lowest such
/// rank, so that every rank sees the same kind.
pub(crate) fn gather(comm: &dyn Transport, mine: Result<Vec<u8>>) -> Result<Vec<Vec<u8>>> {
    let message = match &mine {
        Ok(bytes) => prefixed(FINE, bytes),
        Err(error) => prefixed(FAILED, &error.to_wire()),
    };
    let all = comm.all_gather(&message)?;
    let failed = all
        .iter()
        .position(|message| message.first() != Some(&FINE));
    match failed {
        None => Ok(all
            .into_iter()
            .map(|mut message| message.split_off(1))
            .collect()),
        Some(index) => {
            let rank = Rank(index as u32);
            Err(match mine {
                Err(error) if rank == comm.rank() => error.on_rank(rank),
                _ => Error::from_wire(all[index].get(1..).unwrap_or_default(), rank),
            })
        }
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

fn prefixed(tag: u8, bytes: &[u8]) -> Vec<u8> {
    let mut message = Vec::with_capacity(1 + bytes.len());
    message.push(tag);
    message.extend_from_slice(bytes);
    message
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
