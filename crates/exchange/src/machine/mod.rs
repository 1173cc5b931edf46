//! One rank's part in one call.

mod completion;

use std::sync::Arc;

use crate::{
    Accesses, Action, Buffer, Counters, Event, Finished, Kind, Message, Progress, Rank, Setting,
    Span, Table,
    aggregator::Aggregator,
    agree::Agreement,
    core::Core,
    enter::{Entering, Step},
    jobs::{Doing, WindowId},
    member::Member,
    pool::Pool,
    relay::Relay,
    tree::Tree,
};

/// The phase of a call.
#[derive(Debug)]
enum Phase {
    /// Until the decision.
    Entering,
    /// Until the plan is made.
    Planning,
    /// Until the result.
    Exchanging,
    /// Over.
    Finished,
}

/// The state machine of one rank and call. See the crate's description.
#[derive(Debug)]
pub struct Machine<A> {
    core: Core<A>,
    phase: Phase,
    entering: Entering,
    agreement: Agreement,
    member: Member,
    relay: Relay,
    aggregators: Vec<Aggregator>,
    /// Messages that came before the plan was made. There are at most as many
    /// as the limits let aggregators send.
    early: Vec<(Rank, Message)>,
    lost: Option<Rank>,
}

impl<A: Accesses> Machine<A> {
    /// The machine of rank `me`.
    ///
    /// # Panics
    /// When the limits cannot be used; see [`Limits::check`](crate::Limits::check).
    pub fn new(setting: Arc<Setting>, me: Rank) -> Machine<A> {
        if let Err(reason) = setting.limits.check(&setting.groups) {
            panic!("{reason}");
        }
        let tree = Tree::new(&setting.groups, setting.root, me);
        Machine {
            core: Core::new(setting, me),
            phase: Phase::Entering,
            entering: Entering::new(tree.clone()),
            agreement: Agreement::new(tree),
            member: Member::new(0),
            relay: Relay::default(),
            aggregators: Vec::new(),
            early: Vec::new(),
            lost: None,
        }
    }

    /// Its costs so far.
    pub fn counters(&self) -> Counters {
        self.core.counters()
    }

    /// The maximum size of its buffers, as far as its roles are known.
    pub fn memory_max(&self) -> u64 {
        self.core.setting.limits.memory_max(
            self.aggregators.len() as u64,
            self.relay.realms(),
            self.entering.children() as u64,
        )
    }

    /// Handles an event, and appends the resulting actions.
    ///
    /// # Panics
    /// When the event does not fit what the machine asked for: that is an
    /// error in the driver loop or in another rank's plan.
    pub fn handle(&mut self, event: Event<A>, actions: &mut Vec<Action>) {
        std::mem::swap(&mut self.core.out, actions);
        self.core.counters.events += 1;
        self.take(event);
        if self.core.tags.is_relief() {
            self.advance();
        }
        while let Some(message) = self.core.to_self.pop_front() {
            self.core.counters.events += 1;
            let me = self.core.me;
            self.receive(me, message, Vec::new());
        }
        self.end();
        debug_assert!(
            self.core.counters.memory_bytes_max <= self.memory_max(),
            "more memory than the limits allow"
        );
        std::mem::swap(&mut self.core.out, actions);
    }

    fn take(&mut self, event: Event<A>) {
        match event {
            Event::Entered(entry) => {
                self.member = Member::new(entry.len);
                let step = self.entering.enter(&mut self.core, entry);
                self.step(step);
            }
            Event::Started { bytes, accesses } => {
                self.member = Member::new(bytes);
                self.planned(accesses);
            }
            Event::Planned(accesses) => self.planned(accesses),
            Event::MovedAlone(progress) => {
                self.phase = Phase::Exchanging;
                self.member = Member::new(0);
                self.core.progress.merge(progress);
            }
            Event::Message {
                from,
                message,
                payload,
            } => match self.lost {
                None => self.receive(from, message, payload),
                Some(_) => self.drop_payload(payload),
            },
            Event::Received { job, bytes } => self.received(job, bytes),
            Event::Sent(job) | Event::Copied(job) => self.completed(job),
            Event::CopiedOwn { job, is_last } => self.copied_own(job, is_last),
            Event::Transferred { job, outcome } => self.transferred(job, outcome),
            Event::Acquired(kind) => self.answered(kind, Pool::acquired),
            Event::Refused(kind) => self.answered(kind, Pool::refused),
            Event::SpaceFreed => {
                self.pools().for_each(Pool::space_freed);
                self.advance();
            }
            Event::PeerLost(rank) => {
                self.lost.get_or_insert(rank);
            }
        }
    }

    /// After the loss of a rank nothing is sent any more, so payloads are
    /// released.
    fn drop_payload(&mut self, payload: Vec<Span>) {
        let own = payload.into_iter().map(|span| span.buffer);
        let own = own.filter(|it| it.kind == Kind::Arrival && it.owner == self.core.me);
        self.core.out.extend(own.map(Action::Release));
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Wait => {}
            Step::Plan(table) => self.plan(table),
            Step::Over(progress) => self.finish(Finished::Agreed(progress)),
        }
    }

    fn plan(&mut self, table: Arc<Table>) {
        self.phase = Phase::Planning;
        self.core.out.push(Action::Plan(table));
    }

    fn planned(&mut self, accesses: Arc<A>) {
        let realms = accesses.realms_of(self.core.me);
        self.core.plan(accesses);
        if self.lost.is_some() {
            return;
        }
        self.phase = Phase::Exchanging;
        for realm in realms {
            let aggregator = Aggregator::new(&self.core, realm);
            self.aggregators.push(aggregator);
        }
        for (from, message) in std::mem::take(&mut self.early) {
            self.receive(from, message, Vec::new());
        }
        self.advance();
    }

    fn receive(&mut self, from: Rank, message: Message, payload: Vec<Span>) {
        let core = &mut self.core;
        match message {
            Message::Up { table, is_eager } => {
                let step = self.entering.up(core, from, (table, is_eager), payload);
                self.step(step);
            }
            Message::Down(decision) => {
                let step = self.entering.down(core, decision, payload);
                self.step(step);
            }
            Message::Taken => {
                let step = self.entering.taken(core);
                self.step(step);
            }
            Message::Agree(progress) => self.agreement.up(core, progress),
            Message::Agreed(progress) => self.agreement.down(core, progress),
            message if !matches!(self.phase, Phase::Exchanging) => self.early.push((from, message)),
            message => self.exchange(from, message),
        }
    }

    fn exchange(&mut self, from: Rank, message: Message) {
        let core = &mut self.core;
        match message {
            Message::Grant { slice, tag } => self.relay.grant(core, slice, tag),
            Message::Offer { slice, key } => self.relay.offer(core, slice, key),
            Message::Discard { realm, file, ranks } => Relay::discard(core, realm, file, ranks),
            Message::Skip { realm, file } => self.member.skip(core, realm, file),
            Message::Move {
                key,
                realm,
                file,
                buffer,
                place,
                among,
            } => {
                let asker = (from, key);
                let place = (place, among);
                self.member.copy(core, asker, (realm, file), buffer, place);
            }
            Message::Moved { key } => self.moved(key),
            Message::Ready { key, tag } => match core.jobs.finish(key) {
                Doing::Offer { window, rest } => self.with(window, |aggregator, core| {
                    aggregator.ready(core, window, rest, tag);
                }),
                doing => panic!("{doing:?} is not an offer"),
            },
            Message::Up { .. }
            | Message::Down(_)
            | Message::Taken
            | Message::Agree(_)
            | Message::Agreed(_) => unreachable!("messages of the tree are handled before"),
        }
    }

    fn with(&mut self, window: WindowId, act: impl FnOnce(&mut Aggregator, &mut Core<A>)) {
        let mut aggregators = self.aggregators.iter_mut();
        let found = aggregators.find(|it| it.realm() == window.realm);
        act(found.expect("a window has an aggregator"), &mut self.core);
    }

    fn pools(&mut self) -> impl Iterator<Item = &mut Pool> {
        let own = self.aggregators.iter_mut().flat_map(Aggregator::pools);
        own.chain(self.relay.pools())
    }

    fn answered(&mut self, kind: Kind, answer: fn(&mut Pool)) {
        let pool = self.pools().find(|pool| pool.kind() == kind);
        answer(pool.expect("a pool that asked for a buffer"));
        self.advance();
    }

    /// Lets all roles use tags and buffers that have become free.
    fn advance(&mut self) {
        if self.lost.is_some() || !matches!(self.phase, Phase::Exchanging) {
            return;
        }
        for aggregator in &mut self.aggregators {
            aggregator.advance(&mut self.core);
        }
        self.relay.advance(&mut self.core);
    }

    /// Reports this rank's part, and ends the call when nothing is
    /// outstanding.
    fn end(&mut self) {
        if matches!(self.phase, Phase::Finished) {
            return;
        }
        if let Some(rank) = self.lost {
            if self.core.jobs.local() == 0 && !self.pools().any(|pool| pool.is_asking()) {
                let mut parked = self.close();
                if matches!(self.phase, Phase::Entering) {
                    parked.extend(self.entering.used(&self.core));
                }
                self.finish(Finished::Lost { rank, parked });
            }
            return;
        }
        if !matches!(self.phase, Phase::Exchanging) {
            return;
        }
        let is_done = self.member.is_done() && self.aggregators.iter().all(Aggregator::is_done);
        if is_done && !self.agreement.is_done() {
            self.agreement.done(&mut self.core);
        }
        let is_idle = self.core.jobs.outstanding() == 0;
        if is_idle
            && !self.pools().any(|pool| pool.is_asking())
            && let Some(progress) = self.agreement.result().cloned()
        {
            let used = self.close();
            assert!(used.is_empty(), "{used:?} are in use at the end of a call");
            self.finish(Finished::Agreed(progress));
        }
    }

    fn close(&mut self) -> Vec<Buffer> {
        let mut out = std::mem::take(&mut self.core.out);
        let used = self.pools().flat_map(|pool| pool.close(&mut out)).collect();
        self.core.out = out;
        used
    }

    fn finish(&mut self, finished: Finished) {
        self.phase = Phase::Finished;
        self.core.out.push(Action::Finish(finished));
    }

    /// Whether the call is over.
    pub fn is_finished(&self) -> bool {
        matches!(self.phase, Phase::Finished)
    }

    /// The result so far, of this rank and the subtrees that reported to it.
    pub fn progress(&self) -> &Progress {
        &self.core.progress
    }
}
