//! The nonblocking and split collective calls of a file that wait to be carried out, in order.
//!
//! A thread of the file carries them out, so that they progress while the program computes. But
//! waking it takes longer than a small call itself, and usually the program waits for the call
//! soon. So a small call is left alone for a moment, and a rank that waits for it carries it
//! out on its own thread. Ranks need not do the same, as long as each of them carries out the
//! call.

use std::{
    collections::VecDeque,
    fmt, io,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError},
    thread,
    time::{Duration, Instant},
};

use pario_transport::Transport;

use super::CollectiveContext;

/// How long a small call is left to the program, which may be about to wait for it.
const GRACE: Duration = Duration::from_micros(200);
/// How often the thread looks for calls while they keep coming, so that it need not be woken.
const LOOK_EVERY: Duration = Duration::from_millis(1);
/// After this many looks without a call, the thread sleeps until it is woken.
const IDLE_LOOKS: u32 = 50;

/// How soon a call should be carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Urgency {
    /// By the thread, immediately: it is large.
    Now,
    /// By whichever thread comes first.
    Soon,
}

type Work = Box<dyn FnOnce(&CollectiveContext) + Send>;

struct Job {
    work: Work,
    due: Instant,
}

#[derive(Default)]
struct Jobs {
    waiting: VecDeque<Job>,
    thread: ThreadState,
    /// Whether the thread should carry out all calls, due or not.
    hurry: bool,
    closed: bool,
}

/// The state of the thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ThreadState {
    #[default]
    NotStarted,
    /// It polls.
    Looking,
    /// It must be woken.
    Asleep,
}

/// The calls of one file in one context.
pub(crate) struct Queue {
    context: CollectiveContext,
    jobs: Mutex<Jobs>,
    changed: Condvar,
    /// Held while calls are carried out, one at a time.
    running: Mutex<()>,
}

impl Queue {
    pub(super) fn new(context: CollectiveContext) -> Queue {
        Queue {
            context,
            jobs: Mutex::default(),
            changed: Condvar::new(),
            running: Mutex::default(),
        }
    }

    fn jobs(&self) -> MutexGuard<'_, Jobs> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a call.
    pub(super) fn submit(self: &Arc<Self>, urgency: Urgency, work: Work) {
        let now = Instant::now();
        let due = match urgency {
            Urgency::Now => now,
            Urgency::Soon => now + GRACE,
        };
        let mut jobs = self.jobs();
        jobs.waiting.push_back(Job { work, due });
        if jobs.thread == ThreadState::NotStarted {
            if self.start().is_err() {
                // The other ranks need this rank to take part; an error would leave them
                // waiting.
                drop(jobs);
                self.run_waiting(|| false);
                return;
            }
            jobs.thread = ThreadState::Looking;
        }
        if jobs.thread == ThreadState::Asleep || urgency == Urgency::Now {
            self.changed.notify_one();
        }
    }

    fn start(self: &Arc<Self>) -> io::Result<()> {
        let queue = self.clone();
        let thread = thread::Builder::new().name("pario-collective".into());
        thread.spawn(move || queue.serve()).map(drop)
    }

    /// Carries out calls on the calling thread until `done`, or until there are none. If
    /// another thread does so already, that one continues to the end.
    pub(crate) fn run_waiting(&self, done: impl Fn() -> bool) {
        while !done() {
            let running = match self.running.try_lock() {
                Ok(running) => running,
                Err(TryLockError::Poisoned(running)) => running.into_inner(),
                Err(TryLockError::WouldBlock) => return self.hurry(),
            };
            let next = self.jobs().waiting.pop_front();
            match next {
                Some(job) => (job.work)(&self.context),
                None => return,
            }
            drop(running);
        }
    }

    /// Carries out all calls, or waits until another thread has. All ranks have made them, so
    /// that none waits for this one.
    pub(super) fn finish(&self, comm: &dyn Transport) {
        loop {
            self.run_waiting(|| false);
            let is_running = matches!(self.running.try_lock(), Err(TryLockError::WouldBlock));
            if !is_running && self.jobs().waiting.is_empty() {
                return;
            }
            // The other thread may not be allowed to move messages of the MPI. If a rank is
            // lost, the calls end with that error.
            let _ = comm.progress();
            thread::sleep(Duration::from_micros(50));
        }
    }

    /// Has the thread carry out all calls immediately.
    pub(crate) fn hurry(&self) {
        let mut jobs = self.jobs();
        if !jobs.waiting.is_empty() && !jobs.hurry {
            jobs.hurry = true;
            self.changed.notify_one();
        }
    }

    /// Lets the thread end when there is nothing left to do.
    pub(super) fn close(&self) {
        let mut jobs = self.jobs();
        jobs.closed = true;
        if jobs.thread != ThreadState::NotStarted {
            self.changed.notify_one();
        }
    }

    /// The loop of the thread.
    fn serve(&self) {
        while self.await_due() {
            let _running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
            // A waiting rank may have carried out the call that was due; later ones are carried
            // out as well.
            loop {
                let next = self.jobs().waiting.pop_front();
                match next {
                    Some(job) => (job.work)(&self.context),
                    None => break,
                }
            }
        }
    }

    /// Waits for a call that is due; `false` when the file is closed.
    fn await_due(&self) -> bool {
        let mut idle_looks = 0;
        let mut look_after = LOOK_EVERY;
        let mut jobs = self.jobs();
        loop {
            let now = Instant::now();
            match jobs.waiting.front() {
                Some(job) if jobs.hurry || job.due <= now => {
                    jobs.hurry = false;
                    return true;
                }
                // Usually the program is about to carry it out. Waking up at the moment when
                // each call is due would take the core from ranks many times per millisecond
                // while calls keep coming.
                Some(_) => idle_looks = 0,
                None if jobs.closed => return false,
                None => idle_looks += 1,
            }
            if idle_looks > IDLE_LOOKS {
                jobs.thread = ThreadState::Asleep;
                let woken = self.changed.wait(jobs);
                jobs = woken.unwrap_or_else(PoisonError::into_inner);
                jobs.thread = ThreadState::Looking;
                idle_looks = 0;
                look_after = GRACE;
                continue;
            }
            let woken = self.changed.wait_timeout(jobs, look_after);
            look_after = LOOK_EVERY;
            jobs = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let jobs = self.jobs();
        f.debug_struct("Queue")
            .field("waiting", &jobs.waiting.len())
            .field("thread", &jobs.thread)
            .finish_non_exhaustive()
    }
}
