//! Models of sleeping and waking: loom runs them in every order of their steps
//! and with every value that a load may return. A lost wake-up is a deadlock.
//!
//! These run with `--cfg loom` only; `cargo xtask test` does that.

use std::sync::atomic::Ordering;
use std::time::Duration;

use loom::sync::atomic::{AtomicU32, fence};
use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;

use super::sleepers::{SleepWord, Sleepers};
use crate::{Backoff, Loss, Rank, Result, TransportError, Waiter};

/// A word with what the kernel does for it: whether to sleep is decided, and
/// sleepers are woken, under a lock.
#[derive(Debug, Default)]
pub(crate) struct FutexWord {
    word: AtomicU32,
    queue: Mutex<()>,
    woken: Condvar,
}

impl SleepWord for FutexWord {
    fn load(&self, order: Ordering) -> u32 {
        self.word.load(order)
    }

    fn add(&self, value: u32, order: Ordering) {
        self.word.fetch_add(value, order);
    }

    fn subtract(&self, value: u32, order: Ordering) {
        self.word.fetch_sub(value, order);
    }

    fn fence() {
        fence(Ordering::SeqCst);
    }

    /// Sleeps without a bound, so that no bound hides a lost wake-up.
    fn wait(&self, expected: u32, _: Duration) {
        let queue = self.queue.lock().unwrap();
        if self.word.load(Ordering::Relaxed) == expected {
            drop(self.woken.wait(queue).unwrap());
        }
    }

    fn wake_all(&self) {
        let _queue = self.queue.lock().unwrap();
        self.woken.notify_all();
    }
}

/// The words of an event.
#[derive(Debug, Default)]
pub(crate) struct EventWords {
    count: FutexWord,
    sleepers: FutexWord,
}

impl EventWords {
    pub(crate) fn sleepers(&self) -> Sleepers<'_, FutexWord> {
        Sleepers {
            count: &self.count,
            sleepers: &self.sleepers,
        }
    }

    /// Waits as a rank does, except that it sleeps at once. Before each sleep
    /// it calls `progress`.
    pub(crate) fn wait<T>(
        &self,
        progress: &dyn Fn() -> Result<()>,
        ready: impl FnMut() -> Result<Option<T>>,
    ) -> Result<T> {
        let backoff = Backoff {
            looks: 0,
            yield_for: Duration::ZERO,
            ..Backoff::DEFAULT
        };
        let waiter = Waiter::new(progress).backoff(backoff);
        waiter.wait_on(&self.sleepers(), ready)
    }
}

/// Runs a model with at most so many preemptions: switches away from a thread
/// that could go on.
pub(crate) fn check(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 10_000;
    builder.check(model);
}

/// The word is at least `value`, stored by a rank that notifies afterwards.
fn reached(word: &AtomicU32, value: u32) -> Result<Option<()>> {
    Ok((word.load(Ordering::Relaxed) >= value).then_some(()))
}

#[test]
fn no_wake_up_is_lost() {
    check(4, || {
        let shared = Arc::new((EventWords::default(), AtomicU32::new(0)));
        let notifier = Arc::clone(&shared);
        let notifier = thread::spawn(move || {
            let (event, word) = &*notifier;
            for value in 1..=2 {
                word.store(value, Ordering::Relaxed);
                event.sleepers().notify();
            }
        });
        let (event, word) = &*shared;
        for value in 1..=2 {
            event.wait(&|| Ok(()), || reached(word, value)).unwrap();
        }
        notifier.join().unwrap();
    });
}

#[test]
fn two_notifiers_and_one_sleeper() {
    check(3, || {
        let shared = Arc::new((
            EventWords::default(),
            [AtomicU32::new(0), AtomicU32::new(0)],
        ));
        let notifiers = [0, 1].map(|i| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let (event, words) = &*shared;
                words[i].store(1, Ordering::Relaxed);
                event.sleepers().notify();
            })
        });
        let (event, words) = &*shared;
        let both = || Ok(reached(&words[0], 1)?.and(reached(&words[1], 1)?));
        event.wait(&|| Ok(()), both).unwrap();
        notifiers.into_iter().for_each(|it| it.join().unwrap());
    });
}

#[test]
fn one_notification_wakes_all_sleepers() {
    check(3, || {
        let shared = Arc::new((EventWords::default(), AtomicU32::new(0)));
        let other = Arc::clone(&shared);
        let other = thread::spawn(move || {
            let (event, word) = &*other;
            event.wait(&|| Ok(()), || reached(word, 1)).unwrap();
        });
        let notifier = Arc::clone(&shared);
        let notifier = thread::spawn(move || {
            let (event, word) = &*notifier;
            word.store(1, Ordering::Relaxed);
            event.sleepers().notify();
        });
        let (event, word) = &*shared;
        event.wait(&|| Ok(()), || reached(word, 1)).unwrap();
        other.join().unwrap();
        notifier.join().unwrap();
    });
}

/// How far a rank comes before it is killed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Killed {
    BeforeItSends,
    BeforeItNotifies,
    AfterItNotifies,
}

/// A rank waits for a message of another that is killed, and a third notices
/// that: the wait ends with the message if it was sent, else with the loss.
fn loss_of_a_peer(killed: Killed) {
    const LOST: TransportError = TransportError::PeerLost {
        rank: Rank(1),
        reason: Loss::Ended,
    };
    #[derive(Default)]
    struct World {
        event: EventWords,
        message: AtomicU32,
        left: AtomicU32,
    }
    check(4, move || {
        let world = Arc::new(World::default());
        let at_supervisor = Arc::clone(&world);
        let supervisor = thread::spawn(move || {
            let at_peer = Arc::clone(&at_supervisor);
            let peer = thread::spawn(move || {
                if killed != Killed::BeforeItSends {
                    at_peer.message.store(1, Ordering::Release);
                }
                if killed == Killed::AfterItNotifies {
                    at_peer.event.sleepers().notify();
                }
            });
            peer.join().unwrap();
            at_supervisor.left.store(1, Ordering::Release);
            Sleepers::notify_each([at_supervisor.event.sleepers()].into_iter());
        });
        let left = || (world.left.load(Ordering::Acquire) == 1).then_some(LOST);
        // The loss is asked for first, as by a receive.
        let ready = || match (left(), world.message.load(Ordering::Acquire)) {
            (_, 1) => Ok(Some(())),
            (Some(lost), _) => Err(lost),
            (None, _) => Ok(None),
        };
        let progress = || left().map_or(Ok(()), Err);
        let expected = match killed {
            Killed::BeforeItSends => Err(LOST),
            _ => Ok(()),
        };
        assert_eq!(world.event.wait(&progress, ready), expected);
        supervisor.join().unwrap();
    });
}

#[test]
fn a_loss_ends_the_wait() {
    loss_of_a_peer(Killed::BeforeItSends);
}

#[test]
fn a_message_without_its_notification_is_found() {
    loss_of_a_peer(Killed::BeforeItNotifies);
}

#[test]
fn a_message_counts_more_than_the_loss() {
    loss_of_a_peer(Killed::AfterItNotifies);
}
