//! Agreement on calls that need no other exchange, without a meeting of the
//! ranks.
//!
//! In calls that are foregone (`foregone.rs`) every rank moves its own data, and
//! all that is left to agree on is whether some rank failed. Nonblocking and
//! split calls do that by counting: such calls of a file are numbered, which all
//! ranks do alike because they start them in the same order, and each rank has a
//! word of shared memory that says up to which number it has finished. A rank
//! never waits in the call that starts an operation, and whoever completes it
//! only has to look at the words. Errors are rare: a rank that failed sends a
//! message to all others before it finishes the call.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use pario_transport::{Event, Patience, Rank, Segment, Tag, Transport, TransportError, Waiter};

use super::foregone::{Freedom, Terms};
use crate::{Error, Result, Status, file::Inner, request::Verdict};

const FAILURE: Tag = Tag(7);

/// The shared memory: an event on which ranks wait, then for each rank how many
/// calls it has finished and how many of them failed.
const EVENT_AT: usize = 0;
const RANK_BYTES: usize = 64;
const FAILED_AT: usize = size_of::<u64>();

/// The calls of one file.
#[derive(Debug)]
pub(crate) struct Deferred {
    comm: Arc<dyn Transport>,
    words: Segment,
    /// The failures that this rank knows of, of all ranks.
    known: AtomicU64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    freedom: Freedom,
    started: u64,
    /// By rank, how many of its failures have arrived.
    heard: Vec<u64>,
    /// By call and rank, until someone asks for the call's result.
    failures: BTreeMap<(u64, Rank), Error>,
}

impl Deferred {
    /// `None`, on all ranks, where they share no memory.
    pub(super) fn new(comm: &Arc<dyn Transport>) -> Option<Arc<Deferred>> {
        let ranks = comm.size() as usize;
        let needed = (1 + ranks) * RANK_BYTES;
        let words = comm.scratch().filter(|words| words.bytes() >= needed)?;
        let state = State {
            heard: vec![0; ranks],
            ..State::default()
        };
        Some(Arc::new(Deferred {
            comm: comm.clone(),
            words,
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

    /// The next call of the file, if it is foregone.
    pub(super) fn next(
        self: &Arc<Self>,
        file: &Arc<Inner>,
        name: &'static str,
        terms: &Terms,
    ) -> Option<Turn> {
        let mut state = self.state();
        if !state.freedom.is_foregone(file, &*self.comm, terms) {
            return None;
        }
        state.started += 1;
        Some(Turn {
            deferred: self.clone(),
            number: state.started,
            file: file.clone(),
            name,
        })
    }

    fn has_finished(&self, rank: Rank, number: u64) -> bool {
        self.word(rank).load(Ordering::Acquire) >= number
    }

    /// The first rank that has not finished a call.
    fn missing(&self, number: u64) -> Option<Rank> {
        self.ranks().find(|rank| !self.has_finished(*rank, number))
    }

    /// Takes in what other ranks said of their failures, all of which was sent
    /// before the words said so.
    fn hear(&self, state: &mut State) -> Result<()> {
        for rank in self.ranks().filter(|rank| *rank != self.comm.rank()) {
            while state.heard[rank.index()] < self.failed(rank).load(Ordering::Acquire) {
                let message = self.comm.receive(rank, FAILURE)?;
                let (number, wire) = message.split_first_chunk().unwrap_or((&[0; 8], &[]));
                let error = Error::from_wire(wire, rank);
                let call = (u64::from_le_bytes(*number), rank);
                state.failures.insert(call, error);
                state.heard[rank.index()] += 1;
                self.known.fetch_add(1, Ordering::Relaxed);
            }
        }
        Ok(())
    }

    /// The failure of a call that all ranks have finished, if one failed: that
    /// of the lowest rank. It is told once.
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
            self.hear(&mut state)?;
        }
        let mut later = state.failures.split_off(&(number, Rank(0)));
        let rest = later.split_off(&(number + 1, Rank(0)));
        state.failures.extend(rest);
        match later.into_values().next() {
            None => Ok(()),
            Some(error) => Err(error),
        }
    }
}

/// One call of one rank.
#[derive(Debug)]
pub(super) struct Turn {
    deferred: Arc<Deferred>,
    number: u64,
    file: Arc<Inner>,
    name: &'static str,
}

impl Turn {
    /// Whether this rank has finished all calls before it.
    pub(super) fn is_first(&self) -> bool {
        let deferred = &self.deferred;
        deferred.has_finished(deferred.comm.rank(), self.number - 1)
    }

    /// Tells the other ranks what came of the call on this one, which has
    /// finished all calls before.
    pub(super) fn finish(&self, result: &Result<Status>) {
        let deferred = &*self.deferred;
        let me = deferred.comm.rank();
        if let Err(error) = result {
            let mut message = self.number.to_le_bytes().to_vec();
            message.extend(error.to_wire());
            for rank in deferred.ranks().filter(|rank| *rank != me) {
                // A rank that is gone does not ask.
                let _ = deferred.comm.send(rank, FAILURE, &message);
            }
            let mut state = deferred.state();
            let error = error.clone().on_rank(me);
            state.failures.insert((self.number, me), error);
            deferred.known.fetch_add(1, Ordering::Relaxed);
            deferred.failed(me).fetch_add(1, Ordering::Release);
        }
        deferred.word(me).store(self.number, Ordering::Release);
        deferred.event().notify();
    }

    /// The error of a rank that will not finish the call.
    fn loss(&self) -> Option<TransportError> {
        let missing = self.deferred.missing(self.number)?;
        let lost = self.deferred.comm.check(missing).err()?;
        // It may have finished before it left.
        (!self.deferred.has_finished(missing, self.number)).then_some(lost)
    }

    fn name_error(&self, error: Error) -> Error {
        self.file.name_error(error, self.name)
    }
}

impl Verdict for Turn {
    fn look(&self) -> Option<Result<()>> {
        let verdict = match self.deferred.missing(self.number) {
            None => self.deferred.failure(self.number),
            Some(_) => Err(self.loss()?.into()),
        };
        Some(verdict.map_err(|error| self.name_error(error)))
    }

    fn wait_for(&self, bound: Option<Duration>) -> bool {
        let comm = &*self.deferred.comm;
        let attend = || comm.attend();
        let patience = match bound {
            None => comm.patience(),
            Some(bound) => Patience {
                yield_for: comm.patience().yield_for.min(bound),
                first_sleep: bound,
                longest_sleep: bound,
                give_up_after: Some(bound),
                ..comm.patience()
            },
        };
        let began = Instant::now();
        let waited = Waiter::new(&attend)
            .patience(patience)
            .wait(self.deferred.event(), || {
                let over = self.deferred.missing(self.number).is_none() || self.loss().is_some();
                let late = bound.is_some_and(|bound| began.elapsed() >= bound);
                Ok((over || late).then_some(over))
            });
        waited.unwrap_or_else(|error| !matches!(error, TransportError::Timeout { .. }))
    }
}
