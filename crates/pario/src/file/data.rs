//! Reading and writing.

use super::File;
use crate::{
    Element, Owned, Request, Result, Selection, Source, Status, Target,
    buffer::Memory,
    collective,
    collective_call::CollectiveCall,
    one_piece,
    operation::{Call, Operation, Position},
    request::{InFlight, KeepAlive},
};

/// # Access at explicit offsets
///
/// Offsets count etypes of the view. The file pointers are neither used nor moved.
///
/// ```
/// # use pario::{File, Info, Mode, threads};
/// # threads::run(2, |comm| {
/// # let mode = Mode::CREATE | Mode::READ_WRITE;
/// # let file = File::open(&comm, "mem:example", mode, &Info::new())?;
/// let rank = u64::from(comm.rank());
/// let status = file.write_at_all(100 * rank, &[comm.rank() as u8; 100])?;
/// assert_eq!(status.bytes(), 100);
///
/// // Each rank reads what the other one wrote.
/// file.sync()?;
/// comm.barrier()?;
/// let mut theirs = [0u8; 100];
/// file.read_at(100 * (1 - rank), &mut theirs)?;
/// assert_eq!(theirs, [1 - comm.rank() as u8; 100]);
/// # file.close()
/// # })?;
/// # Ok::<(), pario::Error>(())
/// ```
impl File {
    /// Reads at an offset.
    pub fn read_at<'a>(&self, offset: u64, target: impl Into<Target<'a>>) -> Result<Status> {
        self.run(
            Call::read("read_at", Position::At(offset)),
            target.into().memory,
        )
    }

    /// Writes at an offset.
    pub fn write_at<'a>(&self, offset: u64, source: impl Into<Source<'a>>) -> Result<Status> {
        self.run(
            Call::write("write_at", Position::At(offset)),
            source.into().memory,
        )
    }

    /// Reads at an offset. *Collective*.
    pub fn read_at_all<'a>(&self, offset: u64, target: impl Into<Target<'a>>) -> Result<Status> {
        self.run_all(
            Call::read("read_at_all", Position::At(offset)),
            target.into().memory,
        )
    }

    /// Writes at an offset. *Collective*.
    pub fn write_at_all<'a>(&self, offset: u64, source: impl Into<Source<'a>>) -> Result<Status> {
        self.run_all(
            Call::write("write_at_all", Position::At(offset)),
            source.into().memory,
        )
    }

    /// Starts a read at an offset into a buffer that the request owns.
    pub fn iread_at<T: Element>(
        &self,
        offset: u64,
        target: impl Into<Owned<T>>,
    ) -> Result<Request<T>> {
        self.start_owned(Call::read("iread_at", Position::At(offset)), target.into())
    }

    /// Starts a write at an offset from a buffer that the request owns.
    pub fn iwrite_at<T: Element>(
        &self,
        offset: u64,
        source: impl Into<Owned<T>>,
    ) -> Result<Request<T>> {
        self.start_owned(
            Call::write("iwrite_at", Position::At(offset)),
            source.into(),
        )
    }
}

/// # Access at the individual file pointer
///
/// Each rank has its own pointer, which a call moves by the amount requested.
///
/// ```
/// # use pario::{File, Info, Mode, Seek, threads};
/// # threads::run(1, |comm| {
/// # let mode = Mode::CREATE | Mode::READ_WRITE;
/// # let file = File::open(&comm, "mem:example", mode, &Info::new())?;
/// file.write(&[1u8, 2, 3])?;
/// file.write(&[4u8])?;
/// assert_eq!(file.position()?, 4);
///
/// file.seek(-2, Seek::Current)?;
/// let mut end = [0u8; 2];
/// file.read(&mut end)?;
/// assert_eq!(end, [3, 4]);
/// # file.close()
/// # })?;
/// # Ok::<(), pario::Error>(())
/// ```
impl File {
    /// Reads at the individual pointer.
    pub fn read<'a>(&self, target: impl Into<Target<'a>>) -> Result<Status> {
        self.run(
            Call::read("read", Position::Individual),
            target.into().memory,
        )
    }

    /// Writes at the individual pointer.
    pub fn write<'a>(&self, source: impl Into<Source<'a>>) -> Result<Status> {
        self.run(
            Call::write("write", Position::Individual),
            source.into().memory,
        )
    }

    /// Reads at the individual pointer. *Collective*.
    pub fn read_all<'a>(&self, target: impl Into<Target<'a>>) -> Result<Status> {
        self.run_all(
            Call::read("read_all", Position::Individual),
            target.into().memory,
        )
    }

    /// Writes at the individual pointer. *Collective*.
    pub fn write_all<'a>(&self, source: impl Into<Source<'a>>) -> Result<Status> {
        self.run_all(
            Call::write("write_all", Position::Individual),
            source.into().memory,
        )
    }

    /// Starts a read at the pointer into a buffer that the request owns.
    pub fn iread<T: Element>(&self, target: impl Into<Owned<T>>) -> Result<Request<T>> {
        self.start_owned(Call::read("iread", Position::Individual), target.into())
    }

    /// Starts a write at the pointer from a buffer that the request owns.
    pub fn iwrite<T: Element>(&self, source: impl Into<Owned<T>>) -> Result<Request<T>> {
        self.start_owned(Call::write("iwrite", Position::Individual), source.into())
    }
}

/// # Access at the shared file pointer
///
/// All ranks share one pointer, which a call moves by the amount requested; they must have the
/// same view. The order of independent accesses is that in which the ranks come; ordered ones are
/// in rank order.
///
/// ```
/// # use pario::{File, Info, Mode, Seek, threads};
/// # threads::run(2, |comm| {
/// # let mode = Mode::CREATE | Mode::READ_WRITE;
/// # let file = File::open(&comm, "mem:example", mode, &Info::new())?;
/// // Rank 0's two bytes come first, then rank 1's three.
/// let mine = vec![comm.rank() as u8; 2 + comm.rank() as usize];
/// file.write_ordered(&mine)?;
/// assert_eq!(file.position_shared()?, 5);
///
/// // Every rank takes one byte that no other rank takes.
/// file.seek_shared(0, Seek::Set)?;
/// let mut next = [9u8];
/// file.read_shared(&mut next)?;
/// assert_eq!(next, [0]);
/// # file.close()
/// # })?;
/// # Ok::<(), pario::Error>(())
/// ```
impl File {
    /// Reads at the shared pointer.
    pub fn read_shared<'a>(&self, target: impl Into<Target<'a>>) -> Result<Status> {
        self.run(
            Call::read("read_shared", Position::Shared),
            target.into().memory,
        )
    }

    /// Writes at the shared pointer.
    pub fn write_shared<'a>(&self, source: impl Into<Source<'a>>) -> Result<Status> {
        self.run(
            Call::write("write_shared", Position::Shared),
            source.into().memory,
        )
    }

    /// Starts a read at the pointer into a buffer that the request owns.
    pub fn iread_shared<T: Element>(&self, target: impl Into<Owned<T>>) -> Result<Request<T>> {
        self.start_owned(Call::read("iread_shared", Position::Shared), target.into())
    }

    /// Starts a write at the pointer from a buffer that the request owns.
    pub fn iwrite_shared<T: Element>(&self, source: impl Into<Owned<T>>) -> Result<Request<T>> {
        self.start_owned(
            Call::write("iwrite_shared", Position::Shared),
            source.into(),
        )
    }

    /// Reads in rank order, at the shared pointer. *Collective*.
    pub fn read_ordered<'a>(&self, target: impl Into<Target<'a>>) -> Result<Status> {
        self.run_ordered(
            Call::read("read_ordered", Position::Ordered(0)),
            target.into().memory,
        )
    }

    /// Writes in rank order, at the shared pointer. *Collective*.
    pub fn write_ordered<'a>(&self, source: impl Into<Source<'a>>) -> Result<Status> {
        self.run_ordered(
            Call::write("write_ordered", Position::Ordered(0)),
            source.into().memory,
        )
    }
}

/// # Explanations
impl File {
    /// How a read at an offset would be carried out, and why.
    pub fn explain_read_at<'a>(
        &self,
        offset: u64,
        target: impl Into<Target<'a>>,
    ) -> Result<Selection> {
        let call = Call::read("explain_read_at", Position::At(offset));
        Ok(self.prepare(call, target.into().memory)?.explain())
    }

    /// How a write at an offset would be carried out, and why.
    pub fn explain_write_at<'a>(
        &self,
        offset: u64,
        source: impl Into<Source<'a>>,
    ) -> Result<Selection> {
        let call = Call::write("explain_write_at", Position::At(offset));
        Ok(self.prepare(call, source.into().memory)?.explain())
    }

    fn prepare(&self, call: Call, memory: Memory) -> Result<Operation> {
        Operation::prepare(&self.inner, call, memory)
            .map_err(|error| self.inner.name_error(error, call.name))
    }

    fn run(&self, call: Call, memory: Memory) -> Result<Status> {
        match one_piece::run(&self.inner, call, &memory) {
            Some(result) => result,
            None => self.run_other(call, memory),
        }
    }

    /// As [`run`](Self::run), for an access of another kind than one piece.
    #[inline(never)]
    fn run_other(&self, call: Call, memory: Memory) -> Result<Status> {
        self.prepare(call, memory)?.run()
    }

    fn run_all(&self, call: Call, memory: Memory) -> Result<Status> {
        let inner = &self.inner;
        inner.collectively(CollectiveCall::of(call), || {
            collective::run(inner, &inner.context, call, memory)
        })
    }

    fn run_ordered(&self, call: Call, memory: Memory) -> Result<Status> {
        let inner = &self.inner;
        inner.merge_logs(CollectiveCall::of(call))?;
        inner.collectively(CollectiveCall::of(call), || {
            inner.finish_earlier(&inner.settings());
            collective::run_ordered(inner, &inner.context, call, memory, inner.check_no_split())
        })
    }

    pub(crate) fn start(&self, call: Call, memory: Memory, keep: KeepAlive) -> Result<InFlight> {
        Ok(self.prepare(call, memory)?.start(keep))
    }

    fn start_owned<T: Element>(&self, call: Call, owned: Owned<T>) -> Result<Request<T>> {
        Request::start(owned, |memory, keep| self.start(call, memory, keep))
    }
}
