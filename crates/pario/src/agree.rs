//! Agreement in collective calls: an error is data that every rank learns.

use pario_transport::{Gathered, Rank, Transport};

use crate::{Error, ErrorKind, Result, collective_call::CollectiveCall};

/// Set in the last byte of a message that holds an error. The other bits are the code of the
/// collective call, or zero.
const FAILED: u8 = 1 << 7;

/// The memory of a gather, which the next one reuses.
#[derive(Debug, Default)]
pub(crate) struct GatherBuffers {
    pub(crate) message: Vec<u8>,
    pub(crate) all: Gathered,
    call: Option<CollectiveCall>,
}

impl GatherBuffers {
    /// Sets the call that the gathers from now on belong to. They fail on all ranks if another
    /// rank is in a different one.
    pub(crate) fn begin(&mut self, call: CollectiveCall) {
        self.call = Some(call);
    }

    /// Sends every rank this rank's bytes, or its error, and returns the bytes of all ranks,
    /// by rank. If any rank failed, all return the error of the lowest such rank, so that
    /// every rank sees the same kind.
    pub(crate) fn gather(
        &mut self,
        comm: &dyn Transport,
        mine: std::result::Result<&[u8], &Error>,
    ) -> Result<impl ExactSizeIterator<Item = &[u8]>> {
        let code = self.call.map_or(0, CollectiveCall::code);
        self.message.clear();
        match mine {
            Ok(bytes) => {
                self.message.extend_from_slice(bytes);
                self.message.push(code);
            }
            Err(error) => {
                self.message.extend(error.to_wire());
                self.message.push(code | FAILED);
            }
        }
        comm.all_gather_into(&self.message, &mut self.all)?;
        self.check(code, comm.rank(), mine.err())?;
        Ok(self.contents())
    }

    /// What the ranks sent in the last gather.
    pub(crate) fn contents(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.all.iter().map(content)
    }

    /// As [`gather`](Self::gather), for a rank that has succeeded and has nothing to send. Returns
    /// whether that is so on all ranks.
    pub(crate) fn gather_nothing(&mut self, comm: &dyn Transport) -> Result<bool> {
        // As `gather` would send it.
        let code = self.call.map_or(0, CollectiveCall::code);
        if comm.size() == 1 || comm.all_gather_unless_same(&[code], &mut self.all)? {
            return Ok(true);
        }
        self.check(code, comm.rank(), None)?;
        Ok(self.contents().all(<[u8]>::is_empty))
    }

    /// Fails if the ranks are in different calls, or if one of them failed.
    fn check(&self, code: u8, me: Rank, mine: Option<&Error>) -> Result<()> {
        let mut messages = self.all.iter();
        match messages.all(|message| message.last() == Some(&code)) {
            true => Ok(()),
            false => self.find_failure(me, mine),
        }
    }

    fn find_failure(&self, me: Rank, mine: Option<&Error>) -> Result<()> {
        let tag = |message: &[u8]| message.last().copied().unwrap_or(FAILED);
        check_same_call(self.all.iter().map(|message| tag(message) & !FAILED))?;
        let failed = self
            .all
            .iter()
            .position(|message| tag(message) & FAILED != 0);
        let Some(index) = failed else { return Ok(()) };
        let rank = Rank(index as u32);
        Err(match mine {
            Some(error) if rank == me => error.clone().on_rank(rank),
            _ => Error::from_wire(content(self.all.of(index)), rank),
        })
    }

    /// All ranks succeed, or all get the same error.
    pub(crate) fn agree<T>(&mut self, comm: &dyn Transport, mine: Result<T>) -> Result<T> {
        if comm.size() == 1 {
            return mine.map_err(|error| error.on_rank(comm.rank()));
        }
        match &mine {
            Ok(_) => _ = self.gather_nothing(comm)?,
            Err(error) => drop(self.gather(comm, Err(error))?),
        }
        mine
    }
}

/// A message without its tag, which is its last byte.
fn content(message: &[u8]) -> &[u8] {
    message.split_last().map_or(&[], |(_, content)| content)
}

/// Fails if the codes, by rank, stand for calls that do not match. A rank that did not name its
/// call matches any.
pub(crate) fn check_same_call(codes: impl Iterator<Item = u8>) -> Result<()> {
    let calls = codes.map(CollectiveCall::from_code);
    let mut named = (0..)
        .zip(calls)
        .filter_map(|(rank, call)| Some((rank, call?)));
    let Some((first_rank, first)) = named.next() else {
        return Ok(());
    };
    match named.find(|(_, call)| !call.matches(first)) {
        None => Ok(()),
        Some((rank, other)) => Err(mismatch((first_rank, first), (rank, other))),
    }
}

fn mismatch(first: (u32, CollectiveCall), other: (u32, CollectiveCall)) -> Error {
    let ((first_rank, first), (rank, other)) = (first, other);
    Error::new(
        ErrorKind::NotSame,
        format!(
            "mismatched collective calls: rank {first_rank} called {first}, rank {rank} called \
             {other}; all ranks must make the same collective calls on a file in the same order"
        ),
    )
}

/// As [`GatherBuffers::gather`], within a call whose ranks are known to be together.
pub(crate) fn gather(comm: &dyn Transport, mine: Result<Vec<u8>>) -> Result<Vec<Vec<u8>>> {
    gather_with(&mut GatherBuffers::default(), comm, mine)
}

/// As [`GatherBuffers::gather`], for the first gather of a call that is made rarely.
pub(crate) fn gather_in(
    call: CollectiveCall,
    comm: &dyn Transport,
    mine: Result<Vec<u8>>,
) -> Result<Vec<Vec<u8>>> {
    let mut buffers = GatherBuffers::default();
    buffers.begin(call);
    gather_with(&mut buffers, comm, mine)
}

fn gather_with(
    buffers: &mut GatherBuffers,
    comm: &dyn Transport,
    mine: Result<Vec<u8>>,
) -> Result<Vec<Vec<u8>>> {
    let all = buffers.gather(comm, mine.as_deref())?;
    Ok(all.map(<[u8]>::to_vec).collect())
}

/// Returns the root's bytes, or its error, on all ranks. They wait for no rank but the root.
pub(crate) fn broadcast(
    comm: &dyn Transport,
    root: Rank,
    mine: impl FnOnce() -> Result<Vec<u8>>,
) -> Result<Vec<u8>> {
    let mine = (comm.rank() == root).then(mine);
    let (mut message, tag, failure) = match mine {
        None => (Vec::new(), 0, None),
        Some(Ok(bytes)) => (bytes, 0, None),
        Some(Err(error)) => (error.to_wire(), FAILED, Some(error)),
    };
    message.push(tag);
    let mut received = comm.broadcast(root, message)?;
    match (received.pop(), failure) {
        (Some(0), _) => Ok(received),
        (_, Some(error)) => Err(error.on_rank(root)),
        _ => Err(Error::from_wire(&received, root)),
    }
}

/// All ranks succeed, or all get the same error.
pub(crate) fn agree<T>(comm: &dyn Transport, mine: Result<T>) -> Result<T> {
    GatherBuffers::default().agree(comm, mine)
}

/// As [`agree`], for the first agreement of a call. Operations that are not collective calls
/// of their own match any call.
pub(crate) fn agree_in<T>(
    operation: &'static str,
    comm: &dyn Transport,
    mine: Result<T>,
) -> Result<T> {
    let mut buffers = GatherBuffers {
        call: CollectiveCall::named(operation),
        ..GatherBuffers::default()
    };
    buffers.agree(comm, mine)
}

/// Fails unless all ranks sent the same bytes, which stand for `what`.
pub(crate) fn same(all: &[Vec<u8>], what: &str) -> Result<()> {
    match all.iter().position(|bytes| *bytes != all[0]) {
        None => Ok(()),
        Some(rank) => Err(differs(what, rank)),
    }
}

pub(crate) fn differs(what: &str, rank: usize) -> Error {
    Error::new(
        ErrorKind::NotSame,
        format!("{what} must be the same on all ranks, but rank {rank} and rank 0 differ"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_ranks_get_the_error_of_the_lowest_failed_rank() {
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
            assert_eq!((error.kind(), error.rank()), (ErrorKind::NoSpace, Some(1)));
        }
    }

    #[test]
    fn all_ranks_get_the_bytes_or_the_error_of_the_root() {
        let results = pario_transport::threads::run(3, |comm| {
            let fine = broadcast(&*comm, Rank(1), || Ok(vec![7, 8])).unwrap();
            let failed = broadcast(&*comm, Rank(2), || {
                Err(Error::new(ErrorKind::NoSpace, "full"))
            });
            (fine, failed.unwrap_err())
        });
        for result in results {
            let (fine, error) = result.unwrap();
            assert_eq!(fine, [7, 8]);
            let blamed = (error.kind(), error.rank());
            assert_eq!(blamed, (ErrorKind::NoSpace, Some(2)));
        }
    }

    #[test]
    fn ranks_in_different_calls_get_the_same_error() {
        let results = pario_transport::threads::run(3, |comm| {
            let mut buffers = GatherBuffers::default();
            match comm.rank() {
                // Its own error is less telling than the mismatch.
                Rank(0) => buffers.begin(CollectiveCall::WriteAll),
                Rank(1) => buffers.begin(CollectiveCall::WriteAtAll),
                _ => buffers.begin(CollectiveCall::Close),
            }
            let mine = match comm.rank() {
                Rank(0) => Err(Error::new(ErrorKind::NoSpace, "full")),
                _ => Ok(()),
            };
            let first = buffers.agree(&*comm, mine).unwrap_err();
            buffers.begin(CollectiveCall::Sync);
            (first, buffers.agree(&*comm, Ok(())))
        });
        for result in results {
            let (error, next) = result.unwrap();
            assert_eq!(error.kind(), ErrorKind::NotSame);
            let text = error.to_string();
            assert!(
                text.contains("rank 0 called write_all, rank 2 called close"),
                "{text}"
            );
            next.unwrap();
        }
    }

    #[test]
    fn gathered_messages_are_in_rank_order() {
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
