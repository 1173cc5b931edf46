//! Nonblocking operations: what a program holds while the work goes on.
//!
//! A request owns its buffer ([`Request`]) or lives in a [`scope`] that does
//! not end before it: a request that only borrowed would be unsound, because
//! it can be forgotten.

use std::{
    fmt,
    marker::PhantomData,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use crate::{
    Element, File, Owned, Result, Source, Status, Target,
    buffer::Memory,
    gate::PendingMark,
    operation::{Call, Position},
};

/// Where the result of an operation in flight arrives.
#[derive(Debug, Default)]
pub(crate) struct Completion {
    result: Mutex<Option<Result<Status>>>,
    arrived: Condvar,
}

impl Completion {
    fn result(&self) -> MutexGuard<'_, Option<Result<Status>>> {
        self.result.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn complete(&self, result: Result<Status>) {
        *self.result() = Some(result);
        self.arrived.notify_all();
    }

    fn is_complete(&self) -> bool {
        self.result().is_some()
    }

    /// Waits no longer than `bound`; whether the operation is done.
    fn wait_for(&self, bound: Duration) -> bool {
        let pending = |result: &mut Option<_>| result.is_none();
        let waited = self
            .arrived
            .wait_timeout_while(self.result(), bound, pending);
        let (result, _) = waited.unwrap_or_else(PoisonError::into_inner);
        result.is_some()
    }

    fn wait(&self) -> Result<Status> {
        let mut result = self.result();
        loop {
            match &*result {
                Some(result) => return result.clone(),
                None => {
                    result = self
                        .arrived
                        .wait(result)
                        .unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }
}

/// An operation in flight, without its buffer.
#[derive(Debug)]
pub(crate) struct InFlight {
    pub(crate) completion: Arc<Completion>,
    /// Keeps the operation counted as pending until it is waited for.
    pub(crate) _mark: Arc<PendingMark>,
}

impl InFlight {
    /// An operation that is over already.
    pub(crate) fn complete(mark: Arc<PendingMark>, result: Result<Status>) -> InFlight {
        let completion = Arc::new(Completion::default());
        completion.complete(result);
        InFlight {
            completion,
            _mark: mark,
        }
    }
}

/// A nonblocking operation that owns its buffer. Dropping it lets the
/// operation go on; its result is lost then.
pub struct Request<T: Element> {
    in_flight: InFlight,
    buffer: Arc<Mutex<Option<Owned<T>>>>,
}

impl<T: Element> Request<T> {
    /// Starts an operation with `start`, which gets the memory and something
    /// to keep alive until the operation is done.
    pub(crate) fn start(
        owned: Owned<T>,
        start: impl FnOnce(Memory, Keep) -> Result<InFlight>,
    ) -> Result<Request<T>> {
        let memory = owned.memory.clone();
        let buffer = Arc::new(Mutex::new(Some(owned)));
        let in_flight = start(memory, Keep(Some(buffer.clone())))?;
        Ok(Request { in_flight, buffer })
    }

    /// Whether the operation is done.
    pub fn is_complete(&self) -> bool {
        self.in_flight.completion.is_complete()
    }

    /// Waits for the end of the operation, but not longer than `bound`;
    /// whether it is done.
    pub fn wait_for(&self, bound: Duration) -> bool {
        self.in_flight.completion.wait_for(bound)
    }

    /// The result of an operation that is done; else the request. The buffer
    /// goes with the result.
    pub fn into_result(self) -> std::result::Result<Result<Status>, Request<T>> {
        match self.is_complete() {
            true => Ok(self.wait_with_buffer().0),
            false => Err(self),
        }
    }

    /// Waits for the end of the operation. The buffer is lost with an error;
    /// [`Request::wait_with_buffer`] gives it back in any case.
    pub fn wait(self) -> Result<(Status, Vec<T>)> {
        let (result, buffer) = self.wait_with_buffer();
        result.map(|status| (status, buffer))
    }

    /// Waits for the end of the operation and gives the buffer back, whatever
    /// the result.
    pub fn wait_with_buffer(self) -> (Result<Status>, Vec<T>) {
        let result = self.in_flight.completion.wait();
        let owned = self
            .buffer
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        (
            result,
            owned.expect("a request takes its buffer once").into_vec(),
        )
    }
}

impl<T: Element> fmt::Debug for Request<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("complete", &self.is_complete())
            .finish()
    }
}

/// What an operation in flight keeps alive: the buffer of its request.
pub(crate) struct Keep(
    #[expect(dead_code, reason = "kept for its drop")] Option<Arc<dyn Send + Sync>>,
);

impl Keep {
    /// Nothing: someone else sees to it that the memory stays.
    fn nothing() -> Keep {
        Keep(None)
    }
}

/// Runs `work` with a scope in which nonblocking operations may borrow
/// buffers; returns when all of them are done.
///
/// ```
/// # use pario::{File, Info, Mode, threads};
/// # let path = std::env::temp_dir().join(format!("pario-scope-{}", std::process::id()));
/// # threads::run(1, |comm| {
/// let mode = Mode::CREATE | Mode::READ_WRITE | Mode::DELETE_ON_CLOSE;
/// let file = File::open(&comm, &path, mode, &Info::new())?;
/// let (low, high) = ([1u8; 1000], [2u8; 1000]);
/// pario::scope(|scope| {
///     let first = scope.iwrite_at(&file, 0, &low)?;
///     let second = scope.iwrite_at(&file, 1000, &high)?;
///     assert_eq!(second.wait()?.bytes(), 1000);
///     first.wait()
/// })?;
/// assert_eq!(file.size()?, 2000);
/// file.close()
/// # }).remove(0).unwrap()?;
/// # Ok::<(), pario::Error>(())
/// ```
pub fn scope<'env, R>(work: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> R) -> R {
    let scope = Scope {
        started: Mutex::default(),
        scope: PhantomData,
        env: PhantomData,
    };
    // Waits in `drop`, so also when `work` panics.
    let guard = WaitForAll(&scope.started);
    let result = work(&scope);
    drop(guard);
    result
}

/// Where nonblocking operations that borrow their buffers are started.
#[derive(Debug)]
pub struct Scope<'scope, 'env: 'scope> {
    /// Only their ends: what has been waited for is no longer pending, though
    /// the scope goes on.
    started: Mutex<Vec<Arc<Completion>>>,
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

struct WaitForAll<'a>(&'a Mutex<Vec<Arc<Completion>>>);

impl Drop for WaitForAll<'_> {
    fn drop(&mut self) {
        let started = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        for completion in started {
            let _ = completion.wait();
        }
    }
}

/// A nonblocking operation in a scope.
#[derive(Debug)]
pub struct ScopedRequest<'scope> {
    in_flight: InFlight,
    scope: PhantomData<&'scope ()>,
}

impl ScopedRequest<'_> {
    /// Whether the operation is done.
    pub fn is_complete(&self) -> bool {
        self.in_flight.completion.is_complete()
    }

    /// Waits for the end of the operation.
    pub fn wait(self) -> Result<Status> {
        self.in_flight.completion.wait()
    }
}

impl<'scope> Scope<'scope, '_> {
    fn start(
        &'scope self,
        file: &File,
        call: Call,
        memory: Memory,
    ) -> Result<ScopedRequest<'scope>> {
        let in_flight = file.start(call, memory, Keep::nothing())?;
        self.started
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(in_flight.completion.clone());
        Ok(ScopedRequest {
            in_flight,
            scope: PhantomData,
        })
    }

    /// Starts a read at an offset of the view, in etypes.
    pub fn iread_at(
        &'scope self,
        file: &File,
        offset: u64,
        target: impl Into<Target<'scope>>,
    ) -> Result<ScopedRequest<'scope>> {
        self.start(
            file,
            Call::read("iread_at", Position::At(offset)),
            target.into().memory,
        )
    }

    /// Starts a write at an offset of the view, in etypes.
    pub fn iwrite_at(
        &'scope self,
        file: &File,
        offset: u64,
        source: impl Into<Source<'scope>>,
    ) -> Result<ScopedRequest<'scope>> {
        self.start(
            file,
            Call::write("iwrite_at", Position::At(offset)),
            source.into().memory,
        )
    }

    /// Starts a read at the individual pointer.
    pub fn iread(
        &'scope self,
        file: &File,
        target: impl Into<Target<'scope>>,
    ) -> Result<ScopedRequest<'scope>> {
        self.start(
            file,
            Call::read("iread", Position::Individual),
            target.into().memory,
        )
    }

    /// Starts a write at the individual pointer.
    pub fn iwrite(
        &'scope self,
        file: &File,
        source: impl Into<Source<'scope>>,
    ) -> Result<ScopedRequest<'scope>> {
        self.start(
            file,
            Call::write("iwrite", Position::Individual),
            source.into().memory,
        )
    }

    /// Starts a read at the shared pointer.
    pub fn iread_shared(
        &'scope self,
        file: &File,
        target: impl Into<Target<'scope>>,
    ) -> Result<ScopedRequest<'scope>> {
        self.start(
            file,
            Call::read("iread_shared", Position::Shared),
            target.into().memory,
        )
    }

    /// Starts a write at the shared pointer.
    pub fn iwrite_shared(
        &'scope self,
        file: &File,
        source: impl Into<Source<'scope>>,
    ) -> Result<ScopedRequest<'scope>> {
        self.start(
            file,
            Call::write("iwrite_shared", Position::Shared),
            source.into().memory,
        )
    }
}
