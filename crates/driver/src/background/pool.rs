//! I/O threads: started when there is work, gone when there is none.

use std::{
    collections::VecDeque,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Condvar, Mutex, PoisonError},
    thread,
    time::Duration,
};

use crate::{closing::lock, per_process::PerProcess, posix::sys};

/// The most I/O threads a process has at a time. They wait for storage, not
/// for a core, so the bound does not follow the number of cores.
pub const THREADS_MAX: usize = 8;

/// How long a thread without work stays.
const IDLE: Duration = Duration::from_secs(5);

type Job = Box<dyn FnOnce() + Send>;

static POOL: PerProcess<Pool> = PerProcess::new();

/// Runs a job on an I/O thread, at once where fewer than [`THREADS_MAX`] are
/// busy, else when one is free, in order. Never blocks. A panic ends the job,
/// not the thread.
///
/// A job must not wait for another one: all threads could be waiting. A
/// forked child starts with threads of its own and without the parent's jobs.
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
    /// Threads that wait for work; each serves one job of the queue.
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
            self.do_without();
        }
    }

    fn start(&'static self) -> std::io::Result<()> {
        // The program's signal handlers run on the program's threads.
        let _blocked = sys::SignalsBlocked::new();
        thread::Builder::new()
            .name("pario-io".into())
            .spawn(|| self.serve())
            .map(drop)
    }

    /// No thread could be started: if there is none at all, the caller works.
    fn do_without(&self) {
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

/// The panic message has been printed by then; the thread goes on.
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
    fn panics_are_contained_and_jobs_may_spawn() {
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
    fn jobs_run_at_the_same_time() {
        // On a pool of its own: other tests share the process's.
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
