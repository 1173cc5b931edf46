//! State that the parts of a machine share: look-ups, jobs, and the actions to
//! return.

use std::{cell::Cell, collections::VecDeque, ops::Range, sync::Arc};

use crate::{
    Accesses, Action, Buffer, Counters, Message, Progress, Rank, Realm, Setting, Span,
    jobs::{Jobs, Tags},
    pool::Pool,
};

pub(crate) struct Core<A> {
    pub(crate) me: Rank,
    pub(crate) setting: Arc<Setting>,
    pub(crate) jobs: Jobs,
    pub(crate) tags: Tags,
    pub(crate) out: Vec<Action>,
    /// Notes from one role of this rank to another.
    pub(crate) to_self: VecDeque<Message>,
    pub(crate) counters: Counters,
    /// The result so far, of this rank and the subtrees that reported.
    pub(crate) progress: Progress,
    accesses: Option<Arc<A>>,
    lookups: Cell<u64>,
    memory_bytes: u64,
}

impl<A: Accesses> Core<A> {
    pub(crate) fn new(setting: Arc<Setting>, me: Rank) -> Core<A> {
        Core {
            me,
            jobs: Jobs::default(),
            tags: Tags::new(setting.limits.tags.clone()),
            setting,
            out: Vec::new(),
            to_self: VecDeque::new(),
            counters: Counters::default(),
            progress: Progress::ALL,
            accesses: None,
            lookups: Cell::new(0),
            memory_bytes: 0,
        }
    }

    pub(crate) fn plan(&mut self, accesses: Arc<A>) {
        self.accesses = Some(accesses);
    }

    /// The plan; the parts that use it start when it is there.
    pub(crate) fn accesses(&self) -> &A {
        self.accesses.as_deref().expect("the call is planned")
    }

    /// The size of windows.
    pub(crate) fn window_bytes(&self) -> u64 {
        self.setting.limits.window_of(self.accesses())
    }

    /// As `accesses`, counted as a look-up.
    fn look(&self) -> &A {
        self.lookups.set(self.lookups.get() + 1);
        self.accesses()
    }

    pub(crate) fn bytes(&self, rank: Rank, realm: Realm, file: Range<u64>) -> u64 {
        self.look().bytes(rank, realm, file)
    }

    pub(crate) fn next(&self, rank: Rank, realm: Realm, at: u64) -> Option<u64> {
        self.look().next(rank, realm, at)
    }

    pub(crate) fn last(&self, rank: Rank, realm: Realm, at: u64) -> Option<u64> {
        self.look().last(rank, realm, at)
    }

    pub(crate) fn counters(&self) -> Counters {
        Counters {
            lookups: self.lookups.get(),
            ..self.counters
        }
    }

    /// Sends a message, as a note if the receiver shares memory.
    pub(crate) fn tell(&mut self, to: Rank, message: Message) {
        if to == self.me {
            self.to_self.push_back(message);
        } else {
            self.tell_with(to, message, Vec::new());
        }
    }

    pub(crate) fn tell_with(&mut self, to: Rank, message: Message, payload: Vec<Span>) {
        if self.setting.groups.share(self.me, to) {
            self.counters.notes += 1;
            self.out.push(Action::Notify {
                to,
                message,
                payload,
            });
        } else {
            self.counters.control_messages += 1;
            self.counters.control_bytes +=
                message.wire_bytes() + payload.iter().map(Span::bytes).sum::<u64>();
            self.out.push(Action::Control {
                to,
                message,
                payload,
            });
        }
    }

    pub(crate) fn take(&mut self, pool: &mut Pool) -> Option<Buffer> {
        let buffer = pool.take(&mut self.out)?;
        self.use_memory(pool.bytes());
        Some(buffer)
    }

    pub(crate) fn put(&mut self, pool: &mut Pool, buffer: Buffer) {
        pool.put(buffer);
        self.memory_bytes -= pool.bytes();
    }

    pub(crate) fn use_memory(&mut self, bytes: u64) {
        self.memory_bytes += bytes;
        let most = &mut self.counters.memory_bytes_max;
        *most = (*most).max(self.memory_bytes);
    }
}

impl<A> std::fmt::Debug for Core<A> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Core")
            .field("me", &self.me)
            .field("jobs", &self.jobs)
            .field("progress", &self.progress)
            .field("memory_bytes", &self.memory_bytes)
            .finish_non_exhaustive()
    }
}
