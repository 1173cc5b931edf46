//! Background transfers through one ring per process, served by its own thread.
//!
//! Only that thread uses the ring: the kernel cancels the requests of a thread
//! when the thread exits, and callers' threads come and go. Other threads put
//! operations in a queue and increment an event counter that the ring
//! watches.
//!
//! This file may contain `unsafe`: it pushes requests, and keeps what they
//! refer to in its table of operations until they complete.
#![allow(unsafe_code)]

use std::{
    collections::VecDeque,
    io,
    os::fd::{AsFd, OwnedFd},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex},
    thread,
};

use super::{
    ring::{self, Completed, Execution, Ring},
    window::{Next, Progress},
};
use crate::{
    Batch, Completion, Outcome,
    closing::{ResourceGuard, lock},
    per_process::PerProcess,
    posix::{Descriptor, sys},
};

/// Maximum number of requests in the ring; further operations are queued.
const REQUESTS_MAX: usize = 128;

/// Ring size: the requests and the watch on the counter.
const ENTRIES: u32 = REQUESTS_MAX as u32 * 2;

/// Runs up to this size are not worth a kernel thread.
const INLINE_BYTES_MAX: usize = 16 << 10;

/// Tag of the watch on the counter; tags of operations are smaller.
const WATCH: u64 = u64::MAX;

static ENGINE: PerProcess<Engine> = PerProcess::new();

/// A batch in progress.
pub(crate) struct Operation {
    /// Keeps the file open.
    file: ResourceGuard<Descriptor>,
    batch: Batch<'static>,
    progress: Progress<'static>,
    /// Requests of the current window that have not completed.
    outstanding: usize,
    done: Completion,
}

impl Operation {
    pub(crate) fn new(
        file: ResourceGuard<Descriptor>,
        batch: Batch<'static>,
        done: Completion,
    ) -> Self {
        Operation {
            file,
            batch,
            progress: Progress::new(),
            outstanding: 0,
            done,
        }
    }

    /// Calls back after releasing the file, since the callback may close it.
    fn finish(self, outcome: Outcome) {
        drop(self.file);
        let done = self.done;
        // The panic message has already been printed; other operations
        // continue.
        let _ = catch_unwind(AssertUnwindSafe(|| done(outcome)));
    }

    /// Moves the batch with plain calls on an I/O thread.
    fn run_on_thread(self) {
        crate::background::spawn(Box::new(move || {
            let outcome = self.file.transfer(&self.batch);
            self.finish(outcome);
        }));
    }
}

/// Starts an operation in the background. Never blocks.
pub(crate) fn submit(operation: Operation) {
    let operation = Box::new(operation);
    if let Err(operation) = ENGINE.get_or_make(Engine::default).accept(operation) {
        operation.run_on_thread();
    }
}

/// Lets the next operation retry creating a ring if that failed.
pub(super) fn forget_failure() {
    ENGINE.get_or_make(Engine::default).renew();
}

#[derive(Default)]
struct Engine {
    state: Mutex<State>,
}

#[derive(Default)]
enum State {
    #[default]
    Idle,
    Serving {
        queued: VecDeque<Box<Operation>>,
        counter: Arc<OwnedFd>,
    },
    /// No ring, or a failed one: threads do the work.
    Broken,
    /// The thread of the ring cannot be woken: threads do the work from now on.
    /// Another ring would fail in the same way and leave another thread behind.
    Unreachable,
}

/// Maximum number of attempts to wake the ring's thread.
const WAKE_ATTEMPTS: usize = 8;

impl Engine {
    /// Accepts an operation, or returns it if there is no ring.
    fn accept(&'static self, operation: Box<Operation>) -> Result<(), Box<Operation>> {
        let mut state = lock(&self.state);
        if let State::Idle = *state {
            *state = self.start().unwrap_or(State::Broken);
        }
        let State::Serving { queued, counter } = &mut *state else {
            return Err(operation);
        };
        queued.push_back(operation);
        // One increment is enough until the queue is emptied.
        if queued.len() == 1 {
            let counter = counter.clone();
            drop(state);
            // Fails permanently if the program has closed all descriptors.
            if (0..WAKE_ATTEMPTS).all(|_| sys::raise(counter.as_fd()).is_err()) {
                self.shut_down(State::Unreachable)
                    .into_iter()
                    .for_each(|operation| operation.run_on_thread());
            }
        }
        Ok(())
    }

    /// Restarts if threads do the work for lack of a ring.
    fn renew(&self) {
        let mut state = lock(&self.state);
        if let State::Broken = *state {
            *state = State::Idle;
        }
    }

    /// Stops accepting operations; returns those that have not been started.
    fn shut_down(&self, because: State) -> VecDeque<Box<Operation>> {
        match std::mem::replace(&mut *lock(&self.state), because) {
            State::Serving { queued, .. } => queued,
            State::Idle | State::Broken | State::Unreachable => VecDeque::new(),
        }
    }

    fn start(&'static self) -> io::Result<State> {
        let ring = Ring::new(ENTRIES)?;
        let counter = Arc::new(sys::counter()?);
        let server = Server::new(self, ring, counter.clone());
        // Signal handlers should run on the program's own threads.
        let _blocked = sys::SignalsBlocked::new();
        thread::Builder::new()
            .name("pario-ring".into())
            .spawn(|| server.serve())?;
        Ok(State::Serving {
            queued: VecDeque::new(),
            counter,
        })
    }

    fn take_queued(&self) -> VecDeque<Box<Operation>> {
        match &mut *lock(&self.state) {
            State::Serving { queued, .. } => std::mem::take(queued),
            State::Idle | State::Broken | State::Unreachable => VecDeque::new(),
        }
    }
}

/// State of the engine's thread.
struct Server {
    engine: &'static Engine,
    ring: Ring,
    counter: Arc<OwnedFd>,
    /// Where the watch stores the counter's value; leaked, since a watch
    /// outlives a failed ring.
    raised: &'static mut u64,
    watching: bool,
    /// Set when the counter can no longer be watched.
    deaf: bool,
    /// Operations waiting for the ring.
    waiting: VecDeque<Box<Operation>>,
    /// Operations in the ring, by the upper half of their requests' tags.
    table: Vec<Option<Box<Operation>>>,
    /// Tags of requests that the kernel may not have taken yet.
    pushed: VecDeque<u64>,
    in_flight: usize,
}

impl Server {
    fn new(engine: &'static Engine, ring: Ring, counter: Arc<OwnedFd>) -> Self {
        Server {
            engine,
            ring,
            counter,
            raised: Box::leak(Box::default()),
            watching: false,
            deaf: false,
            waiting: VecDeque::new(),
            table: Vec::new(),
            pushed: VecDeque::new(),
            in_flight: 0,
        }
    }

    fn serve(mut self) {
        loop {
            self.watch();
            let arrived = self.engine.take_queued();
            self.waiting.extend(arrived);
            self.fill();
            if self.ring.submit_and_wait().is_err() {
                return self.abandon();
            }
            self.pushed
                .drain(..self.pushed.len() - self.ring.withdraw());
            while let Some(completed) = self.ring.next() {
                self.complete(completed);
            }
            if self.deaf {
                return self.abandon();
            }
        }
    }

    /// After a failure of the ring, waits for the requests that the kernel took
    /// and leaves everything else to threads.
    fn abandon(mut self) {
        self.waiting.extend(self.engine.shut_down(State::Broken));
        let taken = self.pushed.len() - self.ring.withdraw();
        for tag in self.pushed.split_off(taken) {
            self.complete(Completed {
                tag,
                result: -libc::EAGAIN,
            });
        }
        while self.in_flight > 0 {
            let completed = self.ring.poll();
            self.complete(completed);
        }
        for operation in self.waiting {
            operation.run_on_thread();
        }
    }

    /// Watches the counter. Must precede reading the queue, so that later
    /// arrivals increment the counter.
    fn watch(&mut self) {
        if !self.watching {
            // SAFETY: the target lives forever, and the descriptor as long as
            // the ring is used.
            unsafe {
                self.ring
                    .push_counter(self.counter.as_fd(), &raw mut *self.raised, WATCH)
            };
            self.watching = true;
            self.pushed.push_back(WATCH);
        }
    }

    /// Starts windows of waiting operations while there is space in the ring.
    fn fill(&mut self) {
        while self.in_flight < REQUESTS_MAX
            && let Some(operation) = self.waiting.pop_front()
        {
            self.start(operation);
        }
    }

    fn start(&mut self, mut operation: Box<Operation>) {
        let space = REQUESTS_MAX - self.in_flight;
        operation.progress.load(&operation.batch, space);
        operation.outstanding = operation.progress.vectors().len();
        if operation.outstanding == 0 {
            return self.settle(operation);
        }
        let place = self
            .table
            .iter()
            .position(Option::is_none)
            .unwrap_or(self.table.len());
        if place == self.table.len() {
            self.table.push(None);
        }
        for (run, vector) in operation.progress.vectors().enumerate() {
            let tag = (place as u64) << 32 | run as u64;
            let execution = if vector.bytes() <= INLINE_BYTES_MAX {
                Execution::Inline
            } else {
                Execution::Async
            };
            // SAFETY: the operation stays in the table, with the file, the
            // parts and the batch's `'static` memory, until all its requests
            // have completed or been withdrawn.
            unsafe {
                self.ring
                    .push(operation.file.buffered().as_fd(), vector, tag, execution)
            };
            self.pushed.push_back(tag);
            self.in_flight += 1;
        }
        self.table[place] = Some(operation);
    }

    fn complete(&mut self, completed: Completed) {
        if completed.tag == WATCH {
            self.watching = false;
            self.deaf = completed.result < 0 && !ring::is_transient(-completed.result);
            return;
        }
        self.in_flight -= 1;
        let (place, run) = (
            (completed.tag >> 32) as usize,
            completed.tag as u32 as usize,
        );
        let slot = &mut self.table[place];
        let operation = slot
            .as_mut()
            .expect("an operation stays until its requests complete");
        operation.progress.complete(run, completed.result);
        operation.outstanding -= 1;
        if operation.outstanding == 0
            && let Some(operation) = slot.take()
        {
            self.settle(operation);
        }
    }

    /// After a window, puts the operation's next one at the front, ahead of
    /// newer operations.
    fn settle(&mut self, mut operation: Box<Operation>) {
        match operation.progress.settle(&operation.batch) {
            Next::Window => self.waiting.push_front(operation),
            Next::Finished(outcome) => operation.finish(outcome),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Access, Create, OpenHow, closing::Closing, posix::ListMethod};
    use std::{fs::File, sync::mpsc};

    /// Operations waiting for a failed ring, and later ones, are moved by
    /// threads.
    #[test]
    fn threads_take_over_from_a_ring_that_fails() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        let how = OpenHow::new(Access::ReadWrite).create(Create::IfMissing);
        let mut options = File::options();
        let opened = options.read(true).write(true).create_new(true).open(&path);
        let file = Descriptor::of(
            opened.unwrap().into(),
            &how,
            Default::default(),
            ListMethod::Ring,
        )
        .unwrap();
        let file = Closing::new(file);
        let (sender, receiver) = mpsc::channel();
        let operation = |at: u64| {
            let sender = sender.clone();
            let done = move |outcome: Outcome| sender.send(outcome.into_result()).unwrap();
            let batch = Batch::write(at * 2, b"ok");
            Box::new(Operation::new(file.enter().unwrap(), batch, Box::new(done)))
        };

        let engine: &'static Engine = Box::leak(Box::default());
        let counter = Arc::new(sys::counter().unwrap());
        let queued = VecDeque::from([operation(0)]);
        *lock(&engine.state) = State::Serving {
            queued,
            counter: counter.clone(),
        };
        let ring = Ring::new(ENTRIES).unwrap();
        ring.replace_descriptor(File::open("/dev/null").unwrap().as_fd());
        let mut server = Server::new(engine, ring, counter);
        server.waiting.push_back(operation(1));
        server.serve();
        let Err(rejected) = engine.accept(operation(2)) else {
            panic!("the engine is broken")
        };
        rejected.run_on_thread();
        for _ in 0..3 {
            assert_eq!(receiver.recv().unwrap().unwrap(), 2);
        }
        assert_eq!(std::fs::read(&path).unwrap(), b"okokok");
    }
}
