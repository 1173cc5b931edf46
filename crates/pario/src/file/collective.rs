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
    operation::{Call, Position, check_agreed},
};

/// Nonblocking collective calls: they return at once, and the work goes on
/// while the ranks compute. What the file's mode does not allow is reported at
/// once; what is wrong with any rank's arguments, on all ranks when they wait.
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

/// A split collective call between its begin and its end. One can be active
/// on a file; dropping it ends it without its result.
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
    /// Waits for the end of the operation, but not longer than `bound`;
    /// whether it is done.
    pub fn wait_for(&self, bound: Duration) -> bool {
        self.request.wait_for(bound)
    }

    /// As [`Request::progress`], for the end of a call.
    pub fn progress(&self) {
        self.request.progress();
    }

    /// Ends the call: waits for its result and gives the buffer back.
    /// *Collective*.
    pub fn end(self) -> Result<(Status, Vec<T>)> {
        self.request.wait()
    }
}

/// Split collective calls: begun, and ended later.
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

    /// Begins a read in the order of the ranks. *Collective*.
    pub fn read_ordered_begin<T: Element>(&self, target: impl Into<Owned<T>>) -> Result<Split<T>> {
        self.begin(
            Call::read("read_ordered_begin", Position::Ordered(0)),
            target.into(),
        )
    }

    /// Begins a write in the order of the ranks. *Collective*.
    pub fn write_ordered_begin<T: Element>(&self, source: impl Into<Owned<T>>) -> Result<Split<T>> {
        self.begin(
            Call::write("write_ordered_begin", Position::Ordered(0)),
            source.into(),
        )
    }

    fn begin<T: Element>(&self, call: Call, owned: Owned<T>) -> Result<Split<T>> {
        let inner = &self.inner;
        let name = |error: Error| inner.name_error(error, call.name);
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
