//! Agreement on calls that need no other exchange, without synchronising the ranks.
//!
//! In independent calls (`independent.rs`) every rank moves its own data, and only whether some
//! rank failed remains to be agreed on. Nonblocking and split calls do that by counting. Such calls
//! are numbered, identically on all ranks because they start them in the same order, and each rank
//! publishes in shared memory the number up to which it has finished. A rank never waits in the
//! call that starts an operation, and completing one only takes a look at the numbers. Errors are
//! rare: a rank that failed sends a message to all others before it publishes the number of the
//! call. It does not wait for that either: what cannot be sent immediately is sent when the rank
//! gets here again, and it publishes the number only then.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use pario_transport::{Backoff, Event, Rank, Segment, Tag, Transport, TransportError, Waiter};

use super::{
    call_history::{Begun, CallHistory},
    independent::IndependentPath,
};
use crate::{
    Error, ErrorKind, Result, Status,
    collective_call::CollectiveCall,
    file::{CallSettings, Inner},
    request::{Agreement, TESTS_MAX},
};

const FAILURE: Tag = Tag(7);

/// The shared memory: an event on which ranks wait, then for each rank how many calls it has
/// finished and how many of them failed, and its history.
const EVENT_AT: usize = 0;
const RANK_BYTES: usize = 64;
const FAILED_AT: usize = size_of::<u64>();

/// Making progress and checking for lost ranks takes longer than reading the counters.
const LOOKS_PER_PROGRESS: u32 = 64;

/// The calls of one file.
#[derive(Debug)]
pub(crate) struct Deferred {
    comm: Arc<dyn Transport>,
    words: Segment,
    /// `None` if there is only one rank.
    history: Option<CallHistory>,
    /// The number of failures, of all ranks, that this rank has received.
    known: AtomicU64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    independent_path: IndependentPath,
    started: u64,
    /// The last call that this rank has finished.
    finished: u64,
    /// By rank, how many of its failures have arrived.
    received: Vec<u64>,
    /// By call and rank, until the result of the call is requested.
    failures: BTreeMap<(u64, Rank), Error>,
    /// Calls that this rank has finished but not announced to the others, in order.
    unannounced: VecDeque<Finished>,
}

/// A call that this rank has finished.
#[derive(Debug)]
struct Finished {
    number: u64,
    /// If it failed: the message, and the ranks that have not got it yet.
    failure: Option<(Vec<u8>, Vec<Rank>)>,
}

impl Deferred {
    /// `None`, on all ranks, if they share no memory.
    pub(super) fn new(comm: &Arc<dyn Transport>) -> Option<Arc<Deferred>> {
        let ranks = comm.size() as usize;
        let needed = (1 + ranks) * RANK_BYTES;
        let words = comm.scratch().filter(|words| words.bytes() >= needed)?;
        let state = State {
            received: vec![0; ranks],
            ..State::default()
        };
        let history = (ranks > 1)
            .then(|| CallHistory::new(words.clone(), RANK_BYTES, comm.rank(), comm.size()));
        Some(Arc::new(Deferred {
            comm: comm.clone(),
            words,
            history,
            known: AtomicU64::new(0),
            state: Mutex::new(state),
        }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn word(&self, rank: Rank) -> &AtomicU64 {
        self.words.atomic_u64((1 + rank.index()) * RANK_BYTES)
    }

    fn failed(&self, rank: Rank) -> &AtomicU64 {
        let at = (1 + rank.index()) * RANK_BYTES + FAILED_AT;
        self.words.atomic_u64(at)
    }

    fn ranks(&self) -> impl Iterator<Item = Rank> {
        (0..self.comm.size()).map(Rank)
    }

    fn event(&self) -> Event<'_> {
        self.words.event(EVENT_AT)
    }

    pub(super) fn is_independent(&self, file: &Inner, settings: &CallSettings) -> bool {
        let path = &mut self.state().independent_path;
        path.is_independent(file, &*self.comm, settings)
    }

    /// The next call of the file, if it is independent.
    pub(super) fn next(
        self: &Arc<Self>,
        file: &Arc<Inner>,
        name: &'static str,
        settings: &CallSettings,
        begun: Option<Begun>,
    ) -> Option<DeferredCall> {
        let mut state = self.state();
        if !state
            .independent_path
            .is_independent(file, &*self.comm, settings)
        {
            return None;
        }
        state.started += 1;
        Some(DeferredCall {
            deferred: self.clone(),
            number: state.started,
            is_first: state.finished + 1 == state.started,
            file: file.clone(),
            name,
            begun,
            has_failed_blocking: AtomicBool::new(false),
            looks: AtomicU32::new(1),
        })
    }

    /// Publishes that this rank begins a collective call.
    pub(super) fn begin(&self, call: CollectiveCall) -> Option<Begun> {
        let begun = self.history.as_ref()?.begin(call);
        if call.is_in_background() {
            self.event().notify();
        }
        Some(begun)
    }

    /// If some rank made a call in the background in place of this blocking one, publishes that
    /// this rank takes part in it, and returns the call.
    pub(super) fn join_background(&self, begun: Begun) -> Option<CollectiveCall> {
        let history = self.history.as_ref()?;
        let made = history.made_in_background(begun)?;
        history.join_background();
        self.event().notify();
        Some(made)
    }

    /// Waits until all ranks have begun a call in the background. Fails if that will not happen,
    /// because a rank has made a blocking call instead, and this rank `is_awaited`.
    pub(super) fn await_ranks(
        &self,
        file: &Inner,
        call: CollectiveCall,
        begun: Begun,
        is_awaited: &dyn Fn() -> bool,
    ) -> Result<()> {
        let Some(history) = &self.history else {
            return Ok(());
        };
        let comm = &*self.comm;
        let progress = || comm.progress();
        // The program may be computing in the meantime.
        let waiter = Waiter::new(&progress).backoff(Backoff {
            yield_for: Backoff::DEFAULT.yield_for,
            ..comm.backoff()
        });
        let blocked = waiter.wait(self.event(), || {
            let Some(missing) = history.missing(begun) else {
                return Ok(Some(false));
            };
            if is_awaited() && history.is_blocked(begun) {
                return Ok(Some(true));
            }
            comm.check(missing).map(|()| None)
        });
        // The call itself reports ranks that have exited or been killed.
        match blocked.unwrap_or(false) {
            true => self.fail_blocking(file, call, begun),
            false => Ok(()),
        }
    }

    /// If a rank waits in a blocking call in place of this one, takes part in that call with an
    /// error, which names both calls, and returns it.
    fn fail_blocking(&self, file: &Inner, call: CollectiveCall, begun: Begun) -> Result<()> {
        // Excludes blocking calls of this rank.
        let mut state = file.context.state();
        let history = self.history.as_ref();
        if !history.is_some_and(|history| history.is_blocked(begun)) {
            return Ok(());
        }
        state.buffers.begin(call);
        let error = Error::new(ErrorKind::NotSame, "mismatched collective calls");
        state.buffers.agree(&*file.context.comm, Err(error))
    }

    fn has_finished(&self, rank: Rank, number: u64) -> bool {
        self.word(rank).load(Ordering::Acquire) >= number
    }

    /// The first rank that has not finished a call.
    fn missing(&self, number: u64) -> Option<Rank> {
        self.ranks().find(|rank| !self.has_finished(*rank, number))
    }

    /// Receives the failures of other ranks, which were sent before the counters showed them.
    fn receive_failures(&self, state: &mut State) -> Result<()> {
        for rank in self.ranks().filter(|rank| *rank != self.comm.rank()) {
            while state.received[rank.index()] < self.failed(rank).load(Ordering::Acquire) {
                let message = self.comm.receive(rank, FAILURE)?;
                let (number, wire) = message.split_first_chunk().unwrap_or((&[0; 8], &[]));
                let error = Error::from_wire(wire, rank);
                let call = (u64::from_le_bytes(*number), rank);
                state.failures.insert(call, error);
                state.received[rank.index()] += 1;
                self.known.fetch_add(1, Ordering::Relaxed);
            }
        }
        Ok(())
    }

    /// The failure of a call that all ranks have finished, if it failed: that of the lowest
    /// rank. It is returned once.
    fn failure(&self, number: u64) -> Result<()> {
        let failures = self
            .ranks()
            .map(|rank| self.failed(rank).load(Ordering::Acquire));
        let all: u64 = failures.sum();
        if all == 0 {
            return Ok(());
        }
        let mut state = self.state();
        if all > self.known.load(Ordering::Relaxed) {
            self.receive_failures(&mut state)?;
        }
        let of_call = (number, Rank(0))..(number + 1, Rank(0));
        let first = state.failures.range(of_call.clone()).next();
        let first = first.map(|(_, error)| error.clone());
        let ranks: Vec<_> = state.failures.range(of_call).map(|(key, _)| *key).collect();
        for key in ranks {
            state.failures.remove(&key);
        }
        first.map_or(Ok(()), Err)
    }

    /// Announces what this rank has finished, as far as messages can be sent without waiting.
    fn announce(&self, state: &mut State) {
        let me = self.comm.rank();
        let mut finished = None;
        while let Some(next) = state.unannounced.front_mut() {
            if let Some((message, unsent)) = &mut next.failure {
                // A rank that has exited does not need it.
                unsent.retain(|rank| {
                    matches!(self.comm.try_send(*rank, FAILURE, message), Ok(false))
                });
                if !unsent.is_empty() {
                    break;
                }
                self.known.fetch_add(1, Ordering::Relaxed);
                self.failed(me).fetch_add(1, Ordering::Release);
            }
            finished = Some(next.number);
            state.unannounced.pop_front();
        }
        if let Some(number) = finished {
            self.publish(number);
        }
    }

    /// Announces that this rank has finished all calls up to `number`.
    fn publish(&self, number: u64) {
        self.word(self.comm.rank()).store(number, Ordering::Release);
        self.event().notify();
    }

    /// Announces what could not be announced before; returns whether that is everything.
    fn announce_rest(&self) -> bool {
        let mut state = self.state();
        if !state.unannounced.is_empty() {
            self.announce(&mut state);
        }
        state.unannounced.is_empty()
    }

    /// Returns when everything has been announced, or cannot be.
    pub(super) fn announce_all(&self) {
        while !self.announce_rest() && self.comm.progress().is_ok() {
            std::thread::yield_now();
        }
    }
}

/// One call of one rank.
#[derive(Debug)]
pub(super) struct DeferredCall {
    deferred: Arc<Deferred>,
    number: u64,
    /// Whether this rank had finished all earlier calls when the call began.
    is_first: bool,
    file: Arc<Inner>,
    name: &'static str,
    begun: Option<Begun>,
    /// Whether this rank has taken part in a blocking call in its place.
    has_failed_blocking: AtomicBool,
    /// How often a caller has found the call incomplete.
    looks: AtomicU32,
}

impl DeferredCall {
    /// Whether this rank has finished all earlier calls.
    pub(super) fn is_first(&self) -> bool {
        self.is_first
    }

    /// Announces the result of the call on this rank, which has finished all earlier calls.
    pub(super) fn finish(&self, result: &Result<Status>) {
        let deferred = &*self.deferred;
        let me = deferred.comm.rank();
        let mut state = deferred.state();
        if result.is_ok() && state.unannounced.is_empty() {
            state.finished = self.number;
            return deferred.publish(self.number);
        }
        let failure = result.as_ref().err().map(|error| {
            let mut message = self.number.to_le_bytes().to_vec();
            message.extend(error.to_wire());
            let error = error.clone().on_rank(me);
            state.failures.insert((self.number, me), error);
            (
                message,
                deferred.ranks().filter(|rank| *rank != me).collect(),
            )
        });
        state.finished = self.number;
        state.unannounced.push_back(Finished {
            number: self.number,
            failure,
        });
        deferred.announce(&mut state);
    }

    /// The error of a rank that will not finish the call.
    fn loss(&self) -> Option<TransportError> {
        let missing = self.deferred.missing(self.number)?;
        let lost = self.deferred.comm.check(missing).err()?;
        // It may have finished before it left.
        (!self.deferred.has_finished(missing, self.number)).then_some(lost)
    }

    /// Ends the wait of ranks that made a blocking call instead, if this rank waits for the call:
    /// they then fail this one.
    fn fail_blocking(&self) {
        let is_awaited = self.looks.load(Ordering::Relaxed) >= TESTS_MAX;
        if let Some(begun) = self.begun.filter(|_| is_awaited) {
            let history = self.deferred.history.as_ref();
            if history.is_some_and(|history| history.is_blocked(begun))
                && !self.has_failed_blocking.swap(true, Ordering::Relaxed)
            {
                // Its error comes with the agreement.
                if let Some(call) = CollectiveCall::named(self.name) {
                    let _ = self.deferred.fail_blocking(&self.file, call, begun);
                }
            }
        }
    }

    fn name_error(&self, error: Error) -> Error {
        self.file.name_error(error, self.name)
    }
}

impl Agreement for DeferredCall {
    fn look(&self) -> Option<Result<()>> {
        let agreement = match self.deferred.missing(self.number) {
            None => self.deferred.failure(self.number),
            Some(_) => {
                self.deferred.announce_rest();
                // A caller that only tests must also notice lost ranks.
                let looks = self.looks.fetch_add(1, Ordering::Relaxed);
                if looks.is_multiple_of(LOOKS_PER_PROGRESS) {
                    // A lost rank is reported below if it matters for this call.
                    let _ = self.deferred.comm.progress();
                    self.fail_blocking();
                }
                Err(self.loss()?.into())
            }
        };
        Some(agreement.map_err(|error| self.name_error(error)))
    }

    fn wait_for(&self, bound: Option<Duration>) -> bool {
        let comm = &*self.deferred.comm;
        if bound != Some(Duration::ZERO) {
            self.looks.fetch_max(TESTS_MAX, Ordering::Relaxed);
        }
        let progress = || {
            self.deferred.announce_rest();
            self.fail_blocking();
            comm.progress()
        };
        let backoff = match bound {
            None => comm.backoff(),
            Some(bound) => Backoff {
                // Callers repeat this wait and have yielded before.
                yield_for: Backoff::DEFAULT.yield_for.min(bound),
                first_sleep: bound,
                longest_sleep: bound,
                give_up_after: Some(bound),
                ..comm.backoff()
            },
        };
        let began = Instant::now();
        let waited = Waiter::new(&progress)
            .backoff(backoff)
            .wait(self.deferred.event(), || {
                let over = self.deferred.missing(self.number).is_none() || self.loss().is_some();
                let late = bound.is_some_and(|bound| began.elapsed() >= bound);
                Ok((over || late).then_some(over))
            });
        waited.unwrap_or_else(|error| !matches!(error, TransportError::Timeout { .. }))
    }
}
