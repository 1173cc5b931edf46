//! Nonblocking operations: what a program holds while the work goes on.
//!
//! A request owns its buffer ([`Request`]) or lives in a [`scope`] that does
//! not end before it: a request that only borrowed would be unsound, because
//! it can be forgotten.

use std::{
    fmt,
    marker::PhantomData,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use crate::{
    Element, File, Owned, Result, Source, Status, Target, Unreported,
    buffer::Memory,
    collective::Queue,
    condition::Condition,
    operation::{Call, Position},
    writer_lock::PendingRequest,
};

/// What the other ranks have to say about an operation that this rank is done
/// with.
pub(crate) trait Agreement: Send + Sync + fmt::Debug {
    /// Whether all went well on all ranks, if that is known. Told once.
    fn look(&self) -> Option<Result<()>>;
    /// Waits until it is known, but not longer than the bound; whether it is.
    fn wait_for(&self, bound: Option<Duration>) -> bool;
}

/// Where the result of an operation in flight arrives.
#[derive(Debug, Default)]
pub(crate) struct Completion {
    stage: Mutex<Stage>,
    arrived: Condition,
    agreement: Option<Arc<dyn Agreement>>,
    /// Where the operation waits to be carried out.
    queue: Option<Arc<Queue>>,
}

#[derive(Debug)]
enum Stage {
    /// Nobody waits for it any more if there is a place for its error.
    Running(Option<Unreported>),
    /// It has ended, and does not count as under way much longer.
    Ending(Result<Status>),
    /// This rank is done; others may not be.
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
    /// Of an operation that is not over before the other ranks have spoken.
    pub(crate) fn awaiting(agreement: Arc<dyn Agreement>) -> Completion {
        Completion {
            agreement: Some(agreement),
            ..Completion::default()
        }
    }

    /// Of an operation in a queue.
    pub(crate) fn queued(self, queue: Arc<Queue>) -> Completion {
        Completion {
            queue: Some(queue),
            ..self
        }
    }

    fn stage(&self) -> MutexGuard<'_, Stage> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// This rank is done with it. `uncount` ends its being counted as under way:
    /// an error that nobody waits for is kept by then, and who does wait finds it
    /// uncounted.
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

    /// Nobody waits for it: its error goes to `unreported`.
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

    /// Whether it is over. Who asks this does not wait, so an operation that is
    /// left to those who wait is left to its thread from now on.
    fn is_complete(&self) -> bool {
        let complete = self.look().is_some();
        if let Some(queue) = &self.queue
            && !complete
            && self.is_running()
        {
            queue.hurry();
        }
        complete
    }

    /// Carries the operation out on this thread, if nobody else does yet.
    fn progress(&self) {
        if let Some(queue) = &self.queue {
            queue.run_waiting(|| !self.is_running());
        }
    }

    /// Waits no longer than `bound`; whether the operation is done.
    fn wait_for(&self, bound: Duration) -> bool {
        if self.is_complete() {
            return true;
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

/// An operation in flight, without its buffer.
#[derive(Debug)]
pub(crate) struct InFlight {
    pub(crate) completion: Arc<Completion>,
    /// Keeps the request counted as pending until it is waited for.
    pub(crate) _pending: PendingRequest,
    pub(crate) carried_out: Placement,
    /// Where the error goes if nobody waits for the operation: of writes, until
    /// someone has its result.
    pub(crate) unreported: Option<Unreported>,
}

impl Drop for InFlight {
    fn drop(&mut self) {
        if let Some(unreported) = self.unreported.take() {
            self.completion.abandon(unreported);
        }
    }
}

/// Where an operation's data was moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Placement {
    /// In the call that started it.
    Inline,
    /// Somewhere else, later.
    InBackground,
}

impl InFlight {
    /// An operation that is over already.
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

/// A nonblocking operation that owns its buffer. Dropping it lets the
/// operation go on; the next `sync` or `close` of the file returns the error of
/// a write that failed then.
pub struct Request<T: Element> {
    in_flight: InFlight,
    buffer: Arc<Mutex<Option<Owned<T>>>>,
}

impl<T: Element> Request<T> {
    /// Starts an operation with `start`, which gets the memory and something
    /// to keep alive until the operation is done.
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

    /// Waits for the end of the operation, but not longer than `bound`;
    /// whether it is done.
    pub fn wait_for(&self, bound: Duration) -> bool {
        self.in_flight.completion.wait_for(bound)
    }

    /// Carries out on the calling thread what is left to do of a collective
    /// operation, if no other thread does so yet: for those who are about to
    /// wait. Waits for the other ranks as a blocking call would.
    pub fn progress(&self) {
        self.in_flight.completion.progress();
    }

    /// The result of an operation that was done in the call that started it; else
    /// the request. The buffer goes with the result. One in the background may be
    /// done by now, but whether it is pending must not depend on luck.
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

    /// Where the error of this operation goes if its request is dropped: for
    /// those who take the result out before anyone has asked for it.
    pub fn unreported(&self) -> Option<Unreported> {
        self.in_flight.unreported.clone()
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

/// What an operation in flight keeps alive: the buffer of its request.
pub(crate) struct KeepAlive(
    #[expect(dead_code, reason = "kept for its drop")] Option<Arc<dyn Send + Sync>>,
);

impl KeepAlive {
    /// Nothing: someone else sees to it that the memory stays.
    fn nothing() -> KeepAlive {
        KeepAlive(None)
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
