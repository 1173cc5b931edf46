//! I/O threads, started when there is work and stopped when idle.

use std::{
    collections::VecDeque,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Condvar, Mutex, PoisonError},
    thread,
    time::Duration,
};

use crate::{closing::lock, per_process::PerProcess, posix::sys};

/// Maximum number of I/O threads per process. They wait for storage, not for a
/// core, so the limit does not depend on the number of cores.
pub const THREADS_MAX: usize = 8;

/// How long an idle thread is kept.
const IDLE: Duration = Duration::from_secs(5);

type Job = Box<dyn FnOnce() + Send>;

static POOL: PerProcess<Pool> = PerProcess::new();

/// Runs a job on an I/O thread: at once if fewer than [`THREADS_MAX`] are busy,
/// otherwise in order when one becomes free. Never blocks. A panic ends the
/// job, not the thread.
///
/// A job must not wait for another job: all threads could be waiting. A forked
/// child has its own threads and none of the parent's jobs.
pub fn spawn(job: Box<dyn FnOnce() + Send>) {
    POOL.get_or_make(Pool::default).spawn(job);
}

#[derive(Default)]
struct Pool {
    state: Mutex<State>,
    work: Condvar,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Job>,
    threads: usize,
    /// Threads waiting for work; each will take one job from the queue.
    idle: usize,
}

impl Pool {
    fn spawn(&'static self, job: Job) {
        let mut state = lock(&self.state);
        state.queue.push_back(job);
        if state.idle >= state.queue.len() {
            drop(state);
            self.work.notify_one();
            return;
        }
        if state.threads == THREADS_MAX {
            return;
        }
        state.threads += 1;
        drop(state);
        if self.start().is_err() {
            self.run_without_threads();
        }
    }

    fn start(&'static self) -> std::io::Result<()> {
        // Signal handlers should run on the program's own threads.
        let _blocked = sys::SignalsBlocked::new();
        thread::Builder::new()
            .name("pario-io".into())
            .spawn(|| self.serve())
            .map(drop)
    }

    /// No thread could be started: if there are none at all, run the jobs here.
    fn run_without_threads(&self) {
        let mut state = lock(&self.state);
        state.threads -= 1;
        while state.threads == 0 {
            let Some(job) = state.queue.pop_front() else {
                return;
            };
            drop(state);
            run(job);
            state = lock(&self.state);
        }
    }

    fn serve(&self) {
        let mut state = lock(&self.state);
        loop {
            if let Some(job) = state.queue.pop_front() {
                drop(state);
                run(job);
                state = lock(&self.state);
                continue;
            }
            state.idle += 1;
            let (woken, waited) = self
                .work
                .wait_timeout(state, IDLE)
                .unwrap_or_else(PoisonError::into_inner);
            state = woken;
            state.idle -= 1;
            if waited.timed_out() && state.queue.is_empty() {
                state.threads -= 1;
                return;
            }
        }
    }
}

/// The panic message has already been printed; the thread continues.
fn run(job: Job) {
    let _ = catch_unwind(AssertUnwindSafe(job));
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Barrier, mpsc};

    #[test]
    fn more_jobs_than_threads_all_run() {
        let (sender, receiver) = mpsc::channel();
        for job in 0..1000 {
            let sender = sender.clone();
            spawn(Box::new(move || sender.send(job).unwrap()));
        }
        let mut jobs: Vec<i32> = receiver.iter().take(1000).collect();
        jobs.sort_unstable();
        assert_eq!(jobs, (0..1000).collect::<Vec<_>>());
    }

    #[test]
    fn panics_do_not_end_threads_and_jobs_may_spawn() {
        let (sender, receiver) = mpsc::channel();
        for _ in 0..2 * THREADS_MAX {
            spawn(Box::new(|| panic!("this panic is part of a test")));
        }
        spawn(Box::new(move || {
            spawn(Box::new(move || sender.send(7).unwrap()))
        }));
        assert_eq!(receiver.recv().unwrap(), 7);
    }

    #[test]
    fn jobs_run_concurrently() {
        // Uses its own pool: other tests share the global one.
        let pool: &'static Pool = Box::leak(Box::default());
        let meeting = std::sync::Arc::new(Barrier::new(THREADS_MAX + 1));
        for _ in 0..THREADS_MAX {
            let meeting = meeting.clone();
            pool.spawn(Box::new(move || {
                meeting.wait();
            }));
        }
        meeting.wait();
    }
}
