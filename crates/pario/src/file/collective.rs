//! Nonblocking and split collective calls.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use super::File;
use crate::{
    Element, Error, Owned, Request, Result, Status, collective,
    collective_call::CollectiveCall,
    operation::{Call, Position, check_agreed},
};

/// # Nonblocking collective access
///
/// These calls return at once, and the data moves while the ranks compute. A call that the access
/// mode forbids fails immediately; an invalid argument on one rank fails on all ranks when they
/// wait.
///
/// ```
/// # use pario::{File, Info, Mode, threads};
/// # threads::run(2, |comm| {
/// # let mode = Mode::CREATE | Mode::READ_WRITE;
/// # let file = File::open(&comm, "mem:example", mode, &Info::new())?;
/// let rank = u64::from(comm.rank());
/// let request = file.iwrite_at_all(3 * rank, vec![7u8; 3])?;
/// // … compute …
/// let (status, buffer) = request.wait()?;
/// assert_eq!((status.bytes(), buffer.len()), (3, 3));
/// # file.close()
/// # })?;
/// # Ok::<(), pario::Error>(())
/// ```
impl File {
    /// Starts a read at an offset. *Collective*.
    pub fn iread_at_all<T: Element>(
        &self,
        offset: u64,
        target: impl Into<Owned<T>>,
    ) -> Result<Request<T>> {
        self.start_all(
            Call::read("iread_at_all", Position::At(offset)),
            target.into(),
        )
    }

    /// Starts a write at an offset. *Collective*.
    pub fn iwrite_at_all<T: Element>(
        &self,
        offset: u64,
        source: impl Into<Owned<T>>,
    ) -> Result<Request<T>> {
        self.start_all(
            Call::write("iwrite_at_all", Position::At(offset)),
            source.into(),
        )
    }

    /// Starts a read at the individual pointer. *Collective*.
    pub fn iread_all<T: Element>(&self, target: impl Into<Owned<T>>) -> Result<Request<T>> {
        self.start_all(Call::read("iread_all", Position::Individual), target.into())
    }

    /// Starts a write at the individual pointer. *Collective*.
    pub fn iwrite_all<T: Element>(&self, source: impl Into<Owned<T>>) -> Result<Request<T>> {
        self.start_all(
            Call::write("iwrite_all", Position::Individual),
            source.into(),
        )
    }

    fn start_all<T: Element>(&self, call: Call, owned: Owned<T>) -> Result<Request<T>> {
        Request::start(owned, |memory, keep| {
            self.inner.check_not_closed()?;
            check_agreed(&self.inner, &self.inner.view(), call)?;
            collective::start_all(&self.inner, call, memory, keep)
        })
        .map_err(|error| self.inner.name_error(error, call.name))
    }
}

/// A split collective call between its begin and its end. A file can have one active at a time.
/// Dropping it ends the call and discards its result.
#[derive(Debug)]
pub struct Split<T: Element> {
    request: Request<T>,
    _active: Active,
}

/// The mark of an active split call.
#[derive(Debug)]
struct Active(Arc<AtomicBool>);

impl Drop for Active {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

impl<T: Element> Split<T> {
    /// Waits for the operation for at most `bound`; returns whether it is done.
    pub fn wait_for(&self, bound: Duration) -> bool {
        self.request.wait_for(bound)
    }

    /// As [`Request::progress`], for the end of a call.
    pub fn progress(&self) {
        self.request.progress();
    }

    /// Ends the call: waits for the result and returns it with the buffer. *Collective*.
    pub fn end(self) -> Result<(Status, Vec<T>)> {
        self.request.wait()
    }
}

/// # Split collective access
///
/// A call is begun, and ended later by [`Split::end`]. Until then no other collective call on the
/// file is allowed.
///
/// ```
/// # use pario::{File, Info, Mode, threads};
/// # threads::run(2, |comm| {
/// # let mode = Mode::CREATE | Mode::READ_WRITE;
/// # let file = File::open(&comm, "mem:example", mode, &Info::new())?;
/// let rank = u64::from(comm.rank());
/// let split = file.write_at_all_begin(3 * rank, vec![7u8; 3])?;
/// // … compute …
/// let (status, _buffer) = split.end()?;
/// assert_eq!(status.bytes(), 3);
/// # file.close()
/// # })?;
/// # Ok::<(), pario::Error>(())
/// ```
impl File {
    /// Begins a read at an offset. *Collective*.
    pub fn read_at_all_begin<T: Element>(
        &self,
        offset: u64,
        target: impl Into<Owned<T>>,
    ) -> Result<Split<T>> {
        self.begin(
            Call::read("read_at_all_begin", Position::At(offset)),
            target.into(),
        )
    }

    /// Begins a write at an offset. *Collective*.
    pub fn write_at_all_begin<T: Element>(
        &self,
        offset: u64,
        source: impl Into<Owned<T>>,
    ) -> Result<Split<T>> {
        self.begin(
            Call::write("write_at_all_begin", Position::At(offset)),
            source.into(),
        )
    }

    /// Begins a read at the individual pointer. *Collective*.
    pub fn read_all_begin<T: Element>(&self, target: impl Into<Owned<T>>) -> Result<Split<T>> {
        self.begin(
            Call::read("read_all_begin", Position::Individual),
            target.into(),
        )
    }

    /// Begins a write at the individual pointer. *Collective*.
    pub fn write_all_begin<T: Element>(&self, source: impl Into<Owned<T>>) -> Result<Split<T>> {
        self.begin(
            Call::write("write_all_begin", Position::Individual),
            source.into(),
        )
    }

    /// Begins a read in rank order, at the shared pointer. *Collective*.
    pub fn read_ordered_begin<T: Element>(&self, target: impl Into<Owned<T>>) -> Result<Split<T>> {
        self.begin(
            Call::read("read_ordered_begin", Position::Ordered(0)),
            target.into(),
        )
    }

    /// Begins a write in rank order, at the shared pointer. *Collective*.
    pub fn write_ordered_begin<T: Element>(&self, source: impl Into<Owned<T>>) -> Result<Split<T>> {
        self.begin(
            Call::write("write_ordered_begin", Position::Ordered(0)),
            source.into(),
        )
    }

    fn begin<T: Element>(&self, call: Call, owned: Owned<T>) -> Result<Split<T>> {
        let inner = &self.inner;
        let name = |error: Error| inner.name_error(error, call.name);
        if let Position::Ordered(_) = call.position {
            inner.merge_logs(CollectiveCall::of(call))?;
        }
        if inner.split.swap(true, Ordering::AcqRel) {
            return Err(name(Error::new(
                crate::ErrorKind::FileInUse,
                "a split collective call on the file is active already: end it first",
            )));
        }
        let active = Active(inner.split.clone());
        let request = self.start_all(call, owned)?;
        Ok(Split {
            request,
            _active: active,
        })
    }
}
