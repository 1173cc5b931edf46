//! Background transfers through one ring of the process, which a thread of
//! its own serves.
//!
//! Only that thread uses the ring: the kernel cancels what a thread submitted
//! when that thread ends, and callers' threads come and go. Others leave
//! operations in the inbox and raise a counter that the ring watches.
//!
//! One of the files that may hold `unsafe`: it pushes requests, and keeps
//! what they name in its table of operations until they have completed.
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
    ring::{self, Completed, Pace, Ring},
    window::{Next, Progress},
};
use crate::{
    Batch, Completion, Outcome,
    closing::{ResourceGuard, lock},
    per_process::PerProcess,
    posix::{Descriptor, sys},
};

/// Requests that are in the ring at a time; operations beyond wait in line.
const REQUESTS_MAX: usize = 128;

/// Entries of the ring: the requests and the watch on the counter.
const ENTRIES: u32 = REQUESTS_MAX as u32 * 2;

/// Runs up to this size are worth no kernel thread.
const INLINE_BYTES_MAX: usize = 16 << 10;

/// The tag of the watch on the counter; operations have smaller ones.
const WATCH: u64 = u64::MAX;

static ENGINE: PerProcess<Engine> = PerProcess::new();

/// A batch on its way.
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

    /// Calls back, after letting go of the file: the callback may close it.
    fn finish(self, outcome: Outcome) {
        drop(self.file);
        let done = self.done;
        // The panic message has been printed by then; the others go on.
        let _ = catch_unwind(AssertUnwindSafe(|| done(outcome)));
    }

    /// Moves the batch with plain calls, on an I/O thread.
    fn move_by_thread(self) {
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
        operation.move_by_thread();
    }
}

/// Lets the next operation try to make a ring again, if that failed.
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
        inbox: VecDeque<Box<Operation>>,
        counter: Arc<OwnedFd>,
    },
    /// No ring, or one that failed: threads do the work.
    Broken,
    /// A ring whose thread cannot be woken: threads do the work from now on.
    /// Another ring would fail in the same way, and its thread stay as well.
    Unreachable,
}

/// How often to try to wake the ring's thread.
const WAKE_ATTEMPTS: usize = 8;

impl Engine {
    /// Takes an operation, or gives it back where there is no ring.
    fn accept(&'static self, operation: Box<Operation>) -> Result<(), Box<Operation>> {
        let mut state = lock(&self.state);
        if let State::Idle = *state {
            *state = self.start().unwrap_or(State::Broken);
        }
        let State::Serving { inbox, counter } = &mut *state else {
            return Err(operation);
        };
        inbox.push_back(operation);
        // One raise is enough until the inbox is emptied.
        if inbox.len() == 1 {
            let counter = counter.clone();
            drop(state);
            // It fails for good where the program has closed all descriptors.
            if (0..WAKE_ATTEMPTS).all(|_| sys::raise(counter.as_fd()).is_err()) {
                self.break_off(State::Unreachable)
                    .into_iter()
                    .for_each(|operation| operation.move_by_thread());
            }
        }
        Ok(())
    }

    /// Starts anew where threads do the work for want of a ring.
    fn renew(&self) {
        let mut state = lock(&self.state);
        if let State::Broken = *state {
            *state = State::Idle;
        }
    }

    /// Takes no more operations; returns those that no one has begun.
    fn break_off(&self, because: State) -> VecDeque<Box<Operation>> {
        match std::mem::replace(&mut *lock(&self.state), because) {
            State::Serving { inbox, .. } => inbox,
            State::Idle | State::Broken | State::Unreachable => VecDeque::new(),
        }
    }

    fn start(&'static self) -> io::Result<State> {
        let ring = Ring::new(ENTRIES)?;
        let counter = Arc::new(sys::counter()?);
        let server = Server::new(self, ring, counter.clone());
        // The program's signal handlers run on the program's threads.
        let _blocked = sys::SignalsBlocked::new();
        thread::Builder::new()
            .name("pario-ring".into())
            .spawn(|| server.serve())?;
        Ok(State::Serving {
            inbox: VecDeque::new(),
            counter,
        })
    }

    fn take_inbox(&self) -> VecDeque<Box<Operation>> {
        match &mut *lock(&self.state) {
            State::Serving { inbox, .. } => std::mem::take(inbox),
            State::Idle | State::Broken | State::Unreachable => VecDeque::new(),
        }
    }
}

/// What the engine's thread owns.
struct Server {
    engine: &'static Engine,
    ring: Ring,
    counter: Arc<OwnedFd>,
    /// Where the watch puts the counter's value; leaked, as a watch outlives
    /// a ring that failed.
    raised: &'static mut u64,
    watching: bool,
    /// The counter cannot be watched any more.
    deaf: bool,
    /// In line for the ring.
    waiting: VecDeque<Box<Operation>>,
    /// In the ring, by the upper half of their requests' tags.
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
            let arrived = self.engine.take_inbox();
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

    /// The ring failed: waits for what the kernel took, and leaves the rest
    /// and what comes later to threads.
    fn abandon(mut self) {
        self.waiting.extend(self.engine.break_off(State::Broken));
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
            operation.move_by_thread();
        }
    }

    /// Watches the counter, before the inbox is looked at: what arrives later
    /// raises it.
    fn watch(&mut self) {
        if !self.watching {
            // SAFETY: the target lives for ever, and the descriptor as long as
            // the ring is used.
            unsafe {
                self.ring
                    .push_counter(self.counter.as_fd(), &raw mut *self.raised, WATCH)
            };
            self.watching = true;
            self.pushed.push_back(WATCH);
        }
    }

    /// Starts windows of operations in line while there is room.
    fn fill(&mut self) {
        while self.in_flight < REQUESTS_MAX
            && let Some(operation) = self.waiting.pop_front()
        {
            self.start(operation);
        }
    }

    fn start(&mut self, mut operation: Box<Operation>) {
        let room = REQUESTS_MAX - self.in_flight;
        operation.progress.load(&operation.batch, room);
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
            let pace = if vector.bytes() <= INLINE_BYTES_MAX {
                Pace::Inline
            } else {
                Pace::Handover
            };
            // SAFETY: the operation stays in the table, with the file, the
            // parts and the batch's `'static` memory, until all its requests
            // have completed or been withdrawn.
            unsafe {
                self.ring
                    .push(operation.file.buffered().as_fd(), vector, tag, pace)
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
            .expect("an operation stays until its requests are done");
        operation.progress.complete(run, completed.result);
        operation.outstanding -= 1;
        if operation.outstanding == 0
            && let Some(operation) = slot.take()
        {
            self.settle(operation);
        }
    }

    /// A window is done: the next one goes in front, ahead of newer operations.
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

    /// What was in line for a ring that fails, and what comes after, is moved
    /// by threads.
    #[test]
    fn threads_take_over_from_a_ring_that_fails() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let how = OpenHow::new(Access::ReadWrite).create(Create::IfMissing);
        let file = Descriptor::open(&path, &how, Default::default(), ListMethod::Calls).unwrap();
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
        let inbox = VecDeque::from([operation(0)]);
        *lock(&engine.state) = State::Serving {
            inbox,
            counter: counter.clone(),
        };
        let ring = Ring::new(ENTRIES).unwrap();
        ring.sabotage(File::open("/dev/null").unwrap().as_fd());
        let mut server = Server::new(engine, ring, counter);
        server.waiting.push_back(operation(1));
        server.serve();
        let Err(refused) = engine.accept(operation(2)) else {
            panic!("the engine is broken")
        };
        refused.move_by_thread();
        for _ in 0..3 {
            assert_eq!(receiver.recv().unwrap().unwrap(), 2);
        }
        assert_eq!(std::fs::read(&path).unwrap(), b"okokok");
    }
}
