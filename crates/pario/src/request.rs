//! Nonblocking operations.
//!
//! A request owns its buffer ([`Request`]) or belongs to a [`scope`] that outlives it. A
//! request that only borrowed its buffer would be unsound, because it can be forgotten.

use std::{
    fmt,
    marker::PhantomData,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use crate::{
    Element, File, Owned, Result, Source, Status, Target,
    buffer::Memory,
    collective::Queue,
    condition::Condition,
    operation::{Call, Position},
    unreported::Unreported,
    writer_lock::PendingRequest,
};

/// The results of the other ranks for an operation that this rank has finished.
pub(crate) trait Agreement: Send + Sync + fmt::Debug {
    /// Whether the operation succeeded on all ranks, if that is known. An error is returned
    /// once.
    fn look(&self) -> Option<Result<()>>;
    /// Waits until the result is known, at most for `bound`; returns whether it is.
    fn wait_for(&self, bound: Option<Duration>) -> bool;
}

/// After this many tests a program is taken to wait for the operation.
pub(crate) const TESTS_MAX: u32 = 1 << 16;

/// The place where the result of an operation arrives.
#[derive(Debug, Default)]
pub(crate) struct Completion {
    stage: Mutex<Stage>,
    arrived: Condition,
    agreement: Option<Arc<dyn Agreement>>,
    /// The queue in which the operation waits to be carried out.
    queue: Option<Arc<Queue>>,
    /// How often a program has found the operation incomplete; [`TESTS_MAX`] once it waits.
    tests: AtomicU32,
}

#[derive(Debug)]
enum Stage {
    /// With a place for the error, if nothing waits for the operation any more.
    Running(Option<Unreported>),
    /// It has ended and is about to be counted as finished.
    Ending(Result<Status>),
    /// Finished on this rank, perhaps not on others.
    Here(Result<Status>),
    Over(Result<Status>),
}

impl Default for Stage {
    fn default() -> Stage {
        Stage::Running(None)
    }
}

impl Stage {
    fn is_running(&self) -> bool {
        matches!(self, Stage::Running(_) | Stage::Ending(_))
    }
}

impl Completion {
    /// For an operation that is complete only when the other ranks have agreed.
    pub(crate) fn awaiting(agreement: Arc<dyn Agreement>) -> Completion {
        Completion {
            agreement: Some(agreement),
            ..Completion::default()
        }
    }

    /// For an operation in a queue.
    pub(crate) fn queued(self, queue: Arc<Queue>) -> Completion {
        Completion {
            queue: Some(queue),
            ..self
        }
    }

    fn stage(&self) -> MutexGuard<'_, Stage> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Finishes the operation on this rank. `uncount` removes it from the operations under way:
    /// by then an error that nothing waits for has been kept, and a waiting thread finds the
    /// operation uncounted.
    pub(crate) fn complete(&self, result: Result<Status>, uncount: impl FnOnce()) {
        let mut stage = self.stage();
        if let (Stage::Running(Some(unreported)), Err(error)) = (&*stage, &result) {
            unreported.note(error.clone());
        }
        *stage = Stage::Ending(result.clone());
        drop(stage);
        uncount();
        *self.stage() = match &self.agreement {
            None => Stage::Over(result),
            Some(_) => Stage::Here(result),
        };
        self.arrived.notify_all();
    }

    /// Nothing waits for the operation: its error goes to `unreported`.
    fn abandon(&self, unreported: Unreported) {
        let mut stage = self.stage();
        match &mut *stage {
            Stage::Running(place) => *place = Some(unreported),
            Stage::Ending(result) | Stage::Here(result) | Stage::Over(result) => {
                if let Err(error) = result {
                    unreported.note(error.clone());
                }
            }
        }
    }

    fn is_running(&self) -> bool {
        self.stage().is_running()
    }

    /// Whether the program waits for the operation.
    pub(crate) fn is_awaited(&self) -> bool {
        self.tests.load(Ordering::Relaxed) >= TESTS_MAX
    }

    /// The result, if all ranks are done.
    fn look(&self) -> Option<Result<Status>> {
        let mut stage = self.stage();
        if let (Stage::Here(mine), Some(agreement)) = (&*stage, &self.agreement) {
            let result = agreement.look()?.map_err(|error| {
                error.after(match mine {
                    Ok(status) => status.bytes(),
                    Err(error) => error.transferred(),
                })
            });
            *stage = Stage::Over(result.and_then(|()| mine.clone()));
        }
        match &*stage {
            Stage::Over(result) => Some(result.clone()),
            _ => None,
        }
    }

    /// Whether the operation is complete. The caller does not wait, so a queued operation is
    /// handed to the queue's thread.
    fn is_complete(&self) -> bool {
        let complete = self.look().is_some();
        if let Some(queue) = &self.queue
            && !complete
            && self.is_running()
        {
            if !self.is_awaited() {
                self.tests.fetch_add(1, Ordering::Relaxed);
            }
            queue.hurry();
        }
        complete
    }

    /// Carries out the operation on this thread, if no other thread does.
    fn progress(&self) {
        if let Some(queue) = &self.queue {
            self.tests.fetch_max(TESTS_MAX, Ordering::Relaxed);
            queue.run_waiting(|| !self.is_running());
        }
    }

    /// Waits for at most `bound`; returns whether the operation is done.
    fn wait_for(&self, bound: Duration) -> bool {
        if self.is_complete() {
            return true;
        }
        if !bound.is_zero() {
            self.tests.fetch_max(TESTS_MAX, Ordering::Relaxed);
        }
        let end = Instant::now() + bound;
        let running = |stage: &mut Stage| stage.is_running();
        let stage = self
            .arrived
            .wait_timeout_while(self.stage(), bound, running);
        let is_here = !stage.is_running();
        drop(stage);
        let rest = end.saturating_duration_since(Instant::now());
        if let Some(agreement) = &self.agreement
            && is_here
        {
            agreement.wait_for(Some(rest));
        }
        self.look().is_some()
    }

    fn wait(&self) -> Result<Status> {
        self.progress();
        loop {
            if let Some(result) = self.look() {
                return result;
            }
            let running = |stage: &mut Stage| stage.is_running();
            drop(self.arrived.wait_while(self.stage(), running));
            if let Some(agreement) = &self.agreement {
                agreement.wait_for(None);
            }
        }
    }
}

/// A nonblocking operation, without its buffer.
#[derive(Debug)]
pub(crate) struct InFlight {
    pub(crate) completion: Arc<Completion>,
    /// Keeps the request counted as pending until it is waited for.
    pub(crate) _pending: PendingRequest,
    pub(crate) carried_out: Placement,
    /// Where the error of a write goes if nothing waits for the operation.
    pub(crate) unreported: Option<Unreported>,
}

impl Drop for InFlight {
    fn drop(&mut self) {
        if let Some(unreported) = self.unreported.take() {
            self.completion.abandon(unreported);
        }
    }
}

/// Where an operation was carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Placement {
    /// In the call that started it.
    Inline,
    /// By another thread or the kernel.
    InBackground,
}

impl InFlight {
    /// An operation that is already complete.
    pub(crate) fn complete(
        pending: PendingRequest,
        result: Result<Status>,
        unreported: Option<Unreported>,
    ) -> InFlight {
        let completion = Arc::new(Completion::default());
        completion.complete(result, || ());
        InFlight {
            completion,
            _pending: pending,
            carried_out: Placement::Inline,
            unreported,
        }
    }

    /// Waits for the result, which counts as reported.
    fn wait(mut self) -> Result<Status> {
        self.unreported = None;
        self.completion.wait()
    }
}

/// A nonblocking operation that owns its buffer. If a request is dropped, the operation
/// continues; if a write then fails, the next `sync` or `close` of the file returns the error.
pub struct Request<T: Element> {
    in_flight: InFlight,
    buffer: Arc<Mutex<Option<Owned<T>>>>,
}

impl<T: Element> Request<T> {
    /// Starts an operation with `start`, which gets the memory and a value to keep alive until
    /// the operation is done.
    pub(crate) fn start(
        owned: Owned<T>,
        start: impl FnOnce(Memory, KeepAlive) -> Result<InFlight>,
    ) -> Result<Request<T>> {
        let memory = owned.memory.clone();
        let buffer = Arc::new(Mutex::new(Some(owned)));
        let in_flight = start(memory, KeepAlive(Some(buffer.clone())))?;
        Ok(Request { in_flight, buffer })
    }

    /// Whether the operation is done.
    pub fn is_complete(&self) -> bool {
        self.in_flight.completion.is_complete()
    }

    /// Waits for at most `bound`; returns whether the operation is done.
    pub fn wait_for(&self, bound: Duration) -> bool {
        self.in_flight.completion.wait_for(bound)
    }

    /// Carries out the rest of a collective operation on the calling thread, unless another
    /// thread already does: for callers that are about to wait. Waits for the other ranks as a
    /// blocking call would.
    pub fn progress(&self) {
        self.in_flight.completion.progress();
    }

    /// The result of an operation that was carried out in the call that started it; otherwise
    /// the request. The buffer is dropped with the result. An operation in the background counts
    /// as pending even if it is done by now: that must not depend on timing.
    #[doc(hidden)]
    pub fn into_result(mut self) -> std::result::Result<Result<Status>, Request<T>> {
        let inline = self.in_flight.carried_out == Placement::Inline;
        match inline.then(|| self.in_flight.completion.look()).flatten() {
            Some(result) => {
                self.in_flight.unreported = None;
                Ok(result)
            }
            None => Err(self),
        }
    }

    /// Where the error of this operation goes if its request is dropped: for callers that take
    /// the result before anyone has asked for it.
    #[doc(hidden)]
    pub fn unreported(&self) -> Option<Unreported> {
        self.in_flight.unreported.clone()
    }

    /// Waits for the operation. If it failed, the buffer is dropped;
    /// [`Request::wait_with_buffer`] always returns it.
    pub fn wait(self) -> Result<(Status, Vec<T>)> {
        let (result, buffer) = self.wait_with_buffer();
        result.map(|status| (status, buffer))
    }

    /// Waits for the operation and returns its result and the buffer.
    pub fn wait_with_buffer(self) -> (Result<Status>, Vec<T>) {
        let result = self.in_flight.wait();
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

/// Keeps the buffer of a request alive while the operation is under way.
pub(crate) struct KeepAlive(
    #[expect(dead_code, reason = "kept for its drop")] Option<Arc<dyn Send + Sync>>,
);

impl KeepAlive {
    /// Keeps nothing alive: the caller does.
    fn nothing() -> KeepAlive {
        KeepAlive(None)
    }
}

/// Runs `work` with a scope in which nonblocking operations may borrow their buffers; returns
/// when all of them are done.
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
/// # })?;
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

/// Starts nonblocking operations that borrow their buffers; see [`scope`].
#[derive(Debug)]
pub struct Scope<'scope, 'env: 'scope> {
    /// Only the completions: an operation that has been waited for is no longer pending, even
    /// while the scope exists.
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

    /// Waits for the operation.
    pub fn wait(self) -> Result<Status> {
        self.in_flight.wait()
    }
}

impl<'scope> Scope<'scope, '_> {
    fn start(
        &'scope self,
        file: &File,
        call: Call,
        memory: Memory,
    ) -> Result<ScopedRequest<'scope>> {
        let in_flight = file.start(call, memory, KeepAlive::nothing())?;
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
