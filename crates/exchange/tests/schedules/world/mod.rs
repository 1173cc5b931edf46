//! Ranks, their memory, the messages between them and the file, in one place:
//! every byte is a token that says whose it is. Events come in any order that
//! a transport allows, as late or as early as a schedule likes.

mod check;
mod messages;
mod order;
mod seen;
mod work;

use order::{Item, Order};
pub(crate) use seen::Seen;

use std::{
    cell::Cell,
    collections::{BTreeMap, VecDeque},
};

use fastrand::Rng;
use pario_exchange::{
    Action, Buffer, Counters, Direction, Entry, Event, Failure, Finished, Job, Kind, Machine,
    Message, Progress, Rank, Realm, Span, Tag,
};

use crate::case::{Bytes, Case, Fault, Start};

/// A byte of a rank's memory, or one of the file before the call.
pub(crate) type Token = u64;

const NOTHING: Token = 0;
const OF_FILE: Token = 1 << 63;

fn of_rank(rank: Rank, index: usize) -> Token {
    (u64::from(rank.0) + 1) << 32 | index as u64
}

/// A data message, from its receive on.
#[derive(Debug)]
struct Transit {
    from: Rank,
    to: Rank,
    tag: Tag,
    receive: (Job, Span),
    send: Option<(Job, Span)>,
    is_copied: bool,
    sent: bool,
    received: bool,
}

pub(crate) struct World<'a> {
    case: &'a Case,
    random: Rng,
    order: Order,
    /// Whether messages between two ranks do. The protocol does not need it.
    keeps_order: bool,
    machines: Vec<Machine<Bytes>>,
    items: Vec<Item>,
    /// By sender, then receiver.
    channels: Vec<VecDeque<(Message, Vec<Span>)>>,
    transits: Vec<Transit>,
    /// Those whose receive is not complete.
    posted: Vec<usize>,
    buffers: BTreeMap<Buffer, Vec<Token>>,
    /// How many ranks have filled or emptied a buffer.
    copied: BTreeMap<Buffer, u32>,
    memory: Vec<Vec<Token>>,
    file: Vec<Token>,
    finished: Vec<Option<Finished>>,
    gone: Option<Rank>,
    /// Buffers that each rank has beyond the reserved ones.
    extra: Vec<i64>,
    arrivals: u32,
    /// Payloads that each rank has not released.
    arrived: Vec<i64>,
    failed: Progress,
    /// Where the last granted slice of each realm and relay ended.
    granted: BTreeMap<(Realm, Rank), u64>,
    /// What each rank's machine should have counted.
    counted: Vec<Counters>,
    actions: Vec<Action>,
    /// Buffers that all calls may have beyond the reserved ones.
    pool: &'a Cell<u32>,
    pub(crate) seen: Seen,
}

impl<'a> World<'a> {
    pub(crate) fn new(case: &'a Case, pool: &'a Cell<u32>, mut random: Rng) -> World<'a> {
        let ranks = case.accesses.offsets.len() as u32;
        let all = || (0..ranks).map(Rank);
        let order = Order::random(&mut random, &case.setting.groups);
        let memory = all().zip(&case.accesses.offsets).map(|(rank, offsets)| {
            let token = |index| match case.setting.direction {
                Direction::Write => of_rank(rank, index),
                Direction::Read => NOTHING,
            };
            (0..offsets.len()).map(token).collect()
        });
        World {
            machines: all()
                .map(|rank| Machine::new(case.setting.clone(), rank))
                .collect(),
            items: all().map(Item::Enter).collect(),
            channels: (0..ranks * ranks).map(|_| VecDeque::new()).collect(),
            transits: Vec::new(),
            posted: Vec::new(),
            buffers: BTreeMap::new(),
            copied: BTreeMap::new(),
            memory: memory.collect(),
            file: vec![NOTHING; case.accesses.end as usize],
            finished: all().map(|_| None).collect(),
            gone: None,
            extra: vec![0; ranks as usize],
            arrivals: 0,
            arrived: vec![0; ranks as usize],
            failed: Progress::ALL,
            granted: BTreeMap::new(),
            counted: all().map(|_| Counters::default()).collect(),
            actions: Vec::new(),
            pool,
            seen: Seen::default(),
            keeps_order: random.bool(),
            case,
            random,
            order,
        }
    }

    /// Kills a rank after some steps.
    pub(crate) fn run(&mut self, mut kill: Option<(u64, Rank)>) {
        while self.step() {
            if let Some((at, victim)) = kill
                && self.seen.events >= at
            {
                kill = None;
                self.kill(victim);
            }
        }
        self.check();
    }

    /// Lets one thing happen; false if there is nothing.
    pub(crate) fn step(&mut self) -> bool {
        let Some(at) = self.choose() else {
            return false;
        };
        self.seen.events += 1;
        let item = self.items.swap_remove(at);
        self.happen(item);
        true
    }

    fn happen(&mut self, item: Item) {
        let rank = item.rank(self);
        if self.gone == Some(rank) {
            return self.happen_to_nobody(item);
        }
        let is_over = self.finished[rank.index()].is_some();
        let event = match item {
            Item::Enter(rank) => self.enter(rank),
            Item::Plan(rank) => match self.case.fault {
                Fault::Alone => self.move_alone(rank),
                _ => Event::Planned(self.case.accesses.clone()),
            },
            Item::Deliver { from, to } => {
                let waiting = self.channel(from, to).len();
                let at = match self.keeps_order {
                    true => 0,
                    false => self.random.usize(0..waiting),
                };
                let (message, payload) = self.channel(from, to).remove(at).unwrap();
                Event::Message {
                    from,
                    message,
                    payload,
                }
            }
            Item::Complete(rank, action) => self.complete(rank, action),
            Item::Completed(_, event) => event,
            Item::Sent(at) => {
                self.carry(at);
                self.transits[at].sent = true;
                Event::Sent(self.transits[at].send.as_ref().unwrap().0)
            }
            Item::Received(at) => {
                self.carry(at);
                self.transits[at].received = true;
                self.posted.retain(|other| *other != at);
                let (job, span) = &self.transits[at].receive;
                Event::Received {
                    job: *job,
                    bytes: span.bytes(),
                }
            }
            Item::Answer(rank, kind) => self.answer(rank, kind),
            Item::SpaceFreed(_) => Event::SpaceFreed,
            Item::Lose(_, gone) => Event::PeerLost(gone),
        };
        if is_over {
            // Only what nobody waits for comes after the end.
            let late =
                matches!(event, Event::SpaceFreed | Event::PeerLost(_)) || self.gone.is_some();
            assert!(late, "{rank:?} gets {event:?} after the end");
            if let Event::Message { payload, .. } = event {
                let buffers = payload.iter().map(|span| span.buffer);
                let own = buffers.filter(|it| it.kind == Kind::Arrival && it.owner == rank);
                self.arrived[rank.index()] -= own.count() as i64;
            }
            return;
        }
        let mut actions = std::mem::take(&mut self.actions);
        self.machines[rank.index()].handle(event, &mut actions);
        for action in actions.drain(..) {
            self.act(rank, action);
        }
        self.actions = actions;
    }

    fn answer(&mut self, rank: Rank, kind: Kind) -> Event<Bytes> {
        let left = self.pool.get();
        if left > 0 && self.random.bool() {
            self.pool.set(left - 1);
            self.extra[rank.index()] += 1;
            self.seen.extra_buffers += 1;
            return Event::Acquired(kind);
        }
        self.seen.refusals += 1;
        if self.random.bool() {
            self.items.push(Item::SpaceFreed(rank));
        }
        Event::Refused(kind)
    }

    fn happen_to_nobody(&mut self, item: Item) {
        match item {
            Item::Deliver { from, to } => {
                self.channel(from, to).pop_front();
            }
            // A message that was sent whole may still arrive.
            Item::Sent(at) => self.carry(at),
            _ => {}
        }
    }

    fn enter(&self, rank: Rank) -> Event<Bytes> {
        match self.case.start {
            Start::Entry { flags } => Event::Entered(Entry {
                flags,
                ..self.entry(rank)
            }),
            Start::Planned => Event::Started {
                bytes: self.memory[rank.index()].len() as u64,
                accesses: self.case.accesses.clone(),
            },
        }
    }

    fn entry(&self, rank: Rank) -> Entry {
        let failure = (self.case.fault == Fault::Argument(rank)).then(|| Failure {
            rank,
            detail: [9].into(),
        });
        Entry {
            first: 0,
            len: self.memory[rank.index()].len() as u64,
            flags: 0,
            failure,
        }
    }

    fn buffer(&mut self, buffer: Buffer) -> &mut Vec<Token> {
        let limits = &self.case.setting.limits;
        let (bytes, count) = match buffer.kind {
            Kind::Window(_) => (limits.window_bytes, limits.depth),
            Kind::Staging(_) => (limits.slice_bytes, limits.staging),
            Kind::Node(_) => (limits.slice_bytes, limits.node_buffers),
            Kind::Eager | Kind::EagerWindow => (limits.eager_bytes, 1),
            Kind::Arrival => (limits.eager_bytes, u32::MAX),
        };
        assert!(buffer.index < count, "{buffer:?} exceeds the limits");
        let owner = buffer.owner.index();
        if let Some(Finished::Agreed(_)) = &self.finished[owner] {
            panic!("{buffer:?} is used after its owner has finished");
        }
        if let Some(Finished::Lost { parked, .. }) = &self.finished[owner] {
            assert!(
                parked.contains(&buffer),
                "{buffer:?} is in use and not parked"
            );
        }
        self.buffers
            .entry(buffer)
            .or_insert_with(|| vec![NOTHING; bytes as usize])
    }

    fn act(&mut self, rank: Rank, action: Action) {
        self.seen.note(&action);
        self.check_action(rank, &action);
        match action {
            Action::Plan(_) => self.items.push(Item::Plan(rank)),
            Action::Control {
                to,
                message,
                payload,
            } => {
                // The bytes are taken at once.
                let payload = self.land(to, payload);
                self.tell(rank, to, message, payload);
            }
            Action::Notify {
                to,
                message,
                payload,
            } => {
                assert!(self.case.setting.groups.share(rank, to));
                self.tell(rank, to, message, payload);
            }
            Action::Receive {
                job,
                from,
                tag,
                span,
            } => self.post(rank, from, tag, (job, span)),
            Action::Send { job, to, tag, span } => self.send(rank, to, tag, (job, span)),
            Action::TryAcquire(kind) => self.items.push(Item::Answer(rank, kind)),
            Action::Release(buffer) => {
                assert_eq!(buffer.owner, rank);
                match buffer.kind {
                    Kind::Arrival => self.arrived[rank.index()] -= 1,
                    _ => {
                        self.pool.set(self.pool.get() + 1);
                        self.extra[rank.index()] -= 1;
                    }
                }
            }
            Action::Finish(finished) => self.finish(rank, finished),
            Action::Copy { .. }
            | Action::Arrange { .. }
            | Action::Transfer { .. }
            | Action::Pack { .. }
            | Action::TransferEager { .. }
            | Action::Unpack { .. } => self.start(rank, action),
        }
    }

    /// Starts a copy or a transfer. Its bytes move now or when it completes,
    /// the two extremes of what a thread does.
    fn start(&mut self, rank: Rank, action: Action) {
        let item = match self.random.u8(0..4) {
            0 => Item::Completed(rank, self.complete(rank, action)),
            _ => Item::Complete(rank, action),
        };
        self.items.push(item);
    }

    pub(crate) fn kill(&mut self, victim: Rank) {
        self.gone = Some(victim);
        let others = (0..self.machines.len() as u32).map(Rank);
        let others = others.filter(|rank| *rank != victim);
        self.items
            .extend(others.map(|rank| Item::Lose(rank, victim)));
    }
}
