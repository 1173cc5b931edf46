//! The individual and the shared pointer.

use pario_transport::{Rank, Transport};

use super::{File, Inner, Seek};
use crate::{Error, Result, agree, collective_call::CollectiveCall, shared_pointer::Log};

/// # File pointers
///
/// ```
/// # use pario::{File, Info, Mode, Seek, threads};
/// # threads::run(1, |comm| {
/// # let mode = Mode::CREATE | Mode::READ_WRITE;
/// # let file = File::open(&comm, "mem:example", mode, &Info::new())?;
/// file.write(&[1u8; 10])?;
/// file.seek(-3, Seek::End)?;
/// assert_eq!((file.position()?, file.position_shared()?), (7, 0));
/// # file.close()
/// # })?;
/// # Ok::<(), pario::Error>(())
/// ```
impl File {
    /// Moves the individual pointer, in etypes of the view.
    pub fn seek(&self, offset: i64, from: Seek) -> Result<()> {
        let inner = &self.inner;
        let seek = || {
            inner.check_open()?;
            inner.check_not_sequential()?;
            // Queried before the pointer is locked, because it may take long.
            let end = inner.end(from)?;
            let mut pointer = inner.pointer();
            *pointer = target(from, *pointer, end, offset)?;
            Ok(())
        };
        seek().map_err(|error| inner.name_error(error, "seek"))
    }

    /// The position of the individual pointer, in etypes of the view.
    pub fn position(&self) -> Result<u64> {
        let inner = &self.inner;
        inner
            .check_open()
            .and_then(|()| inner.check_not_sequential())
            .map(|()| *inner.pointer())
            .map_err(|error| inner.name_error(error, "position"))
    }

    /// The byte of the file at which an etype of the view lies. Also allowed in files opened with
    /// [`Mode::SEQUENTIAL`](crate::Mode::SEQUENTIAL).
    pub fn byte_offset(&self, offset: u64) -> Result<u64> {
        let inner = &self.inner;
        inner
            .check_open()
            .and_then(|()| inner.view().file_byte(offset))
            .map_err(|error| inner.name_error(error, "byte_offset"))
    }

    /// Moves the shared pointer. *Collective*, with the same arguments on all
    /// ranks.
    pub fn seek_shared(&self, offset: i64, from: Seek) -> Result<()> {
        let inner = &self.inner;
        inner.merge_logs(CollectiveCall::SeekShared)?;
        inner
            .collectively(CollectiveCall::SeekShared, || {
                inner.seek_shared(offset, from)
            })
            .map_err(|error| inner.name_error(error, "seek_shared"))
    }

    /// The position of the shared pointer, in etypes of the view.
    pub fn position_shared(&self) -> Result<u64> {
        let inner = &self.inner;
        inner
            .check_open()
            .and_then(|()| inner.check_not_sequential())
            .and_then(|()| inner.position_shared())
            .map_err(|error| inner.name_error(error, "position_shared"))
    }
}

impl Inner {
    /// The end of the file in etypes of the view, if the seek needs it.
    fn end(&self, from: Seek) -> Result<u64> {
        match from {
            Seek::End => Ok(self.view().etypes_below(self.handle.size()?)),
            Seek::Set | Seek::Current => Ok(0),
        }
    }

    /// What is in this rank's log comes after the position that all ranks see.
    fn position_shared(&self) -> Result<u64> {
        let position = self.shared_pointer.load()?;
        let logged = self.shared_pointer.log().map_or(0, Log::bytes);
        Ok(position.saturating_add(self.view().whole_etypes(logged)?))
    }

    /// Advances the shared pointer once for all ranks, which have all arrived, and returns the
    /// old position on all of them.
    pub(crate) fn advance_for_all(&self, comm: &dyn Transport, etypes: u64) -> Result<u64> {
        let stood = agree::broadcast(comm, Rank(0), || {
            let base = self.shared_pointer.advance(etypes)?;
            Ok(base.to_le_bytes().to_vec())
        })?;
        Ok(stood.as_slice().try_into().map_or(0, u64::from_le_bytes))
    }

    fn seek_shared(&self, offset: i64, from: Seek) -> Result<()> {
        let mine = self
            .check_open()
            .and_then(|()| self.check_not_sequential())
            .map(|()| {
                let mut message = offset.to_le_bytes().to_vec();
                message.push(from as u8);
                message
            });
        let all = self.begin_with(CollectiveCall::SeekShared, mine)?;
        agree::same(&all, "the arguments of seek_shared")?;
        let moved = match self.comm.rank() {
            Rank(0) => self.end(from).and_then(|end| {
                let position = self.shared_pointer.load()?;
                self.shared_pointer
                    .store(target(from, position, end, offset)?)
            }),
            _ => Ok(()),
        };
        agree::agree(&*self.comm, moved)
    }
}

fn target(from: Seek, pointer: u64, end: u64, offset: i64) -> Result<u64> {
    let base = match from {
        Seek::Set => 0,
        Seek::Current => pointer,
        Seek::End => end,
    };
    base.checked_add_signed(offset).ok_or_else(|| {
        Error::argument(format!(
            "a seek by {offset} from {base} leaves the view: positions go from 0 to 2^64 - 1"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seek_stays_in_the_view() {
        assert_eq!(target(Seek::Set, 5, 9, 3).unwrap(), 3);
        assert_eq!(target(Seek::Current, 5, 9, -5).unwrap(), 0);
        assert_eq!(target(Seek::End, 5, 9, 1).unwrap(), 10);
        assert!(target(Seek::Current, 5, 9, -6).is_err());
        assert!(target(Seek::Set, 5, 9, -1).is_err());
        assert!(target(Seek::Current, u64::MAX, 9, 1).is_err());
    }
}
