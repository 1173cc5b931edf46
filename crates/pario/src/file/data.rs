//! Reading and writing.

use super::File;
use crate::{
    Element, Owned, Request, Result, Selection, Source, Status, Target,
    buffer::Memory,
    collective,
    operation::{Call, Operation, Position},
    request::{InFlight, KeepAlive},
};

/// At an explicit offset, in etypes of the view. The pointers stay.
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

/// At the individual pointer, which moves on by what was asked for.
impl File {
    /// Reads.
    pub fn read<'a>(&self, target: impl Into<Target<'a>>) -> Result<Status> {
        self.run(
            Call::read("read", Position::Individual),
            target.into().memory,
        )
    }

    /// Writes.
    pub fn write<'a>(&self, source: impl Into<Source<'a>>) -> Result<Status> {
        self.run(
            Call::write("write", Position::Individual),
            source.into().memory,
        )
    }

    /// Reads. *Collective*.
    pub fn read_all<'a>(&self, target: impl Into<Target<'a>>) -> Result<Status> {
        self.run_all(
            Call::read("read_all", Position::Individual),
            target.into().memory,
        )
    }

    /// Writes. *Collective*.
    pub fn write_all<'a>(&self, source: impl Into<Source<'a>>) -> Result<Status> {
        self.run_all(
            Call::write("write_all", Position::Individual),
            source.into().memory,
        )
    }

    /// Starts a read into a buffer that the request owns.
    pub fn iread<T: Element>(&self, target: impl Into<Owned<T>>) -> Result<Request<T>> {
        self.start_owned(Call::read("iread", Position::Individual), target.into())
    }

    /// Starts a write from a buffer that the request owns.
    pub fn iwrite<T: Element>(&self, source: impl Into<Owned<T>>) -> Result<Request<T>> {
        self.start_owned(Call::write("iwrite", Position::Individual), source.into())
    }
}

/// At the shared pointer, which moves on by what was asked for. All ranks
/// must have the same view.
impl File {
    /// Reads what follows next for whichever rank comes.
    pub fn read_shared<'a>(&self, target: impl Into<Target<'a>>) -> Result<Status> {
        self.run(
            Call::read("read_shared", Position::Shared),
            target.into().memory,
        )
    }

    /// Writes next for whichever rank comes.
    pub fn write_shared<'a>(&self, source: impl Into<Source<'a>>) -> Result<Status> {
        self.run(
            Call::write("write_shared", Position::Shared),
            source.into().memory,
        )
    }

    /// Starts a read into a buffer that the request owns.
    pub fn iread_shared<T: Element>(&self, target: impl Into<Owned<T>>) -> Result<Request<T>> {
        self.start_owned(Call::read("iread_shared", Position::Shared), target.into())
    }

    /// Starts a write from a buffer that the request owns.
    pub fn iwrite_shared<T: Element>(&self, source: impl Into<Owned<T>>) -> Result<Request<T>> {
        self.start_owned(
            Call::write("iwrite_shared", Position::Shared),
            source.into(),
        )
    }

    /// Reads in the order of the ranks. *Collective*.
    pub fn read_ordered<'a>(&self, target: impl Into<Target<'a>>) -> Result<Status> {
        self.run_ordered(
            Call::read("read_ordered", Position::Ordered(0)),
            target.into().memory,
        )
    }

    /// Writes in the order of the ranks. *Collective*.
    pub fn write_ordered<'a>(&self, source: impl Into<Source<'a>>) -> Result<Status> {
        self.run_ordered(
            Call::write("write_ordered", Position::Ordered(0)),
            source.into().memory,
        )
    }
}

impl File {
    /// How a read at an offset would reach the file, and why.
    pub fn explain_read_at<'a>(
        &self,
        offset: u64,
        target: impl Into<Target<'a>>,
    ) -> Result<Selection> {
        let call = Call::read("explain_read_at", Position::At(offset));
        Ok(self.prepare(call, target.into().memory)?.explain())
    }

    /// How a write at an offset would reach the file, and why.
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
        self.prepare(call, memory)?.run()
    }

    fn run_all(&self, call: Call, memory: Memory) -> Result<Status> {
        collective::run(&self.inner, &self.inner.context, call, memory)
    }

    fn run_ordered(&self, call: Call, memory: Memory) -> Result<Status> {
        let inner = &self.inner;
        collective::run_ordered(inner, &inner.context, call, memory, inner.check_no_split())
    }

    pub(crate) fn start(&self, call: Call, memory: Memory, keep: KeepAlive) -> Result<InFlight> {
        Ok(self.prepare(call, memory)?.start(keep))
    }

    fn start_owned<T: Element>(&self, call: Call, owned: Owned<T>) -> Result<Request<T>> {
        Request::start(owned, |memory, keep| self.start(call, memory, keep))
    }
}
