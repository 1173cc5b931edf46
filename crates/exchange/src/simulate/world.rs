//! The driver loop of all ranks, in virtual time.

use std::{collections::HashMap, ops::Range, sync::Arc};

use super::{Model, model::duration_ns, queue::Queue};
use crate::{
    Accesses, Action, Buffer, Contents, Counters, Direction, Entry, Event, Finished, Job, Kind,
    Machine, Outcome, Progress, Rank, Realm, Setting, Span, Tag,
};

/// The costs of a simulated call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// From the first rank's entry to the last one's return.
    pub makespan_ns: u64,
    /// All ranks together.
    pub total: Counters,
    /// The maximum of each count over all ranks.
    pub most: Counters,
    /// The maximum of each count over ranks that are not aggregators.
    pub most_member: Counters,
    /// Time in which file servers were busy, all together.
    pub file_busy_ns: u64,
    /// Bytes that arrived at aggregators (writes) or left them (reads) while a
    /// file transfer of theirs was under way: the overlap of exchange and
    /// file access.
    pub overlapped_bytes: u64,
}

/// Runs a call that all ranks enter at once and that meets no failure.
///
/// # Panics
/// When a rank does not finish.
pub fn run<A: Accesses>(
    setting: &Arc<Setting>,
    accesses: &Arc<A>,
    bytes: impl Fn(Rank) -> u64,
    model: &Model,
) -> Report {
    let ranks = setting.groups.ranks();
    let groups = setting.groups.count() as usize;
    let mut world = World {
        setting,
        accesses,
        model,
        machines: (0..ranks)
            .map(|rank| Machine::new(setting.clone(), Rank(rank)))
            .collect(),
        queue: Queue::new(),
        receives: HashMap::new(),
        copied: HashMap::new(),
        cpu_free: vec![0; ranks as usize],
        out_free: vec![0; groups],
        in_free: vec![0; groups],
        server_free: vec![0; model.servers.max(1) as usize],
        transfers: vec![0; ranks as usize],
        arrivals: 0,
        report: Report::default(),
    };
    for rank in (0..ranks).map(Rank) {
        let entry = Entry {
            len: bytes(rank),
            ..Entry::default()
        };
        world.queue.push(0, (rank, Event::Entered(entry)));
    }
    world.run();
    world.report()
}

struct World<'a, A> {
    setting: &'a Arc<Setting>,
    accesses: &'a Arc<A>,
    model: &'a Model,
    machines: Vec<Machine<A>>,
    queue: Queue<(Rank, Event<A>)>,
    receives: HashMap<(Rank, Rank, Tag), Job>,
    /// How many ranks have filled or emptied a buffer, and until when.
    copied: HashMap<Buffer, (u32, u64)>,
    /// When each rank, link and server becomes idle.
    cpu_free: Vec<u64>,
    out_free: Vec<u64>,
    in_free: Vec<u64>,
    server_free: Vec<u64>,
    /// File transfers under way, by rank.
    transfers: Vec<u32>,
    arrivals: u32,
    report: Report,
}

impl<A: Accesses> World<'_, A> {
    fn run(&mut self) {
        let mut actions = Vec::new();
        while let Some((at, (rank, event))) = self.queue.pop() {
            let free = &mut self.cpu_free[rank.index()];
            let start = at.max(*free);
            *free = start + self.model.event_ns;
            let now = *free;
            self.note(rank, &event);
            self.machines[rank.index()].handle(event, &mut actions);
            for action in actions.drain(..) {
                self.act(now, rank, action);
            }
        }
    }

    fn note(&mut self, rank: Rank, event: &Event<A>) {
        match event {
            Event::Transferred { .. } => self.transfers[rank.index()] -= 1,
            Event::Received { bytes, .. } => self.overlap(rank, Direction::Write, *bytes),
            _ => {}
        }
    }

    fn overlap(&mut self, rank: Rank, direction: Direction, bytes: u64) {
        if self.transfers[rank.index()] > 0 && self.setting.direction == direction {
            self.report.overlapped_bytes += bytes;
        }
    }

    fn act(&mut self, now: u64, rank: Rank, action: Action) {
        match action {
            Action::Plan(_) => {
                let planned = Event::Planned(self.accesses.clone());
                self.queue.push(now, (rank, planned));
            }
            Action::Control {
                to,
                message,
                payload,
            } => {
                let bytes = payload.iter().map(Span::bytes).sum::<u64>();
                let (_, arrival) = self.link(now, rank, to, message.wire_bytes() + bytes);
                let event = Event::Message {
                    from: rank,
                    message,
                    payload: self.land(to, bytes),
                };
                self.queue.push(arrival, (to, event));
            }
            Action::Notify {
                to,
                message,
                payload,
            } => {
                let event = Event::Message {
                    from: rank,
                    message,
                    payload,
                };
                let arrival = now + self.model.note_latency_ns;
                self.queue.push(arrival, (to, event));
            }
            Action::Receive { job, from, tag, .. } => {
                let before = self.receives.insert((from, rank, tag), job);
                assert!(before.is_none(), "a tag is used twice");
            }
            Action::Send { job, to, tag, span } => {
                let receive = self.receives.remove(&(rank, to, tag));
                let receive = receive.expect("a message is sent when its receive is posted");
                let bytes = span.bytes();
                self.overlap(rank, Direction::Read, bytes);
                let (sent, arrival) = self.link(now, rank, to, bytes);
                self.queue.push(sent, (rank, Event::Sent(job)));
                let received = Event::Received {
                    job: receive,
                    bytes,
                };
                self.queue.push(arrival, (to, received));
            }
            Action::Copy {
                job,
                realm,
                file,
                buffer,
                among,
                ..
            } => {
                let bytes = self.accesses.bytes(rank, realm, file);
                let end = self.copying(now, rank, bytes);
                let (copied, latest) = self.copied.entry(buffer).or_insert((0, 0));
                *copied += 1;
                *latest = end.max(*latest);
                let (end, is_last) = match *copied == among {
                    true => (*latest, true),
                    false => (end, false),
                };
                if is_last {
                    self.copied.remove(&buffer);
                }
                let copied = Event::CopiedOwn { job, is_last };
                self.queue.push(end, (rank, copied));
            }
            Action::Arrange { job, parts, .. } => {
                let bytes = parts.iter().map(|it| it.part.bytes).sum();
                self.copy(now, rank, job, bytes);
            }
            Action::Pack { job, .. } => {
                let bytes = self.own_bytes(rank);
                self.copy(now, rank, job, bytes);
            }
            Action::Unpack { job, spans, .. } => {
                let bytes = spans.iter().map(Span::bytes).sum();
                self.copy(now, rank, job, bytes);
            }
            Action::Transfer {
                job,
                realm,
                file,
                contents,
                parts,
                ..
            } => {
                let bytes = match contents {
                    Contents::Image => self.accesses.realm_bytes(realm, file.clone()),
                    Contents::Packed => parts.iter().map(|part| part.bytes).sum(),
                };
                self.transfer(now, rank, job, file, bytes);
            }
            Action::TransferEager { job, table, .. } => {
                let bytes = table.bytes();
                self.transfer(now, rank, job, 0..bytes, bytes);
            }
            Action::TryAcquire(kind) => self.queue.push(now, (rank, Event::Acquired(kind))),
            Action::Release(_) => {}
            Action::Finish(finished) => {
                assert_eq!(finished, Finished::Agreed(Progress::ALL));
                self.report.makespan_ns = self.report.makespan_ns.max(now);
            }
        }
    }

    fn own_bytes(&self, rank: Rank) -> u64 {
        let realms = (0..self.accesses.realms()).map(Realm);
        realms
            .map(|realm| self.accesses.bytes(rank, realm, 0..u64::MAX))
            .sum()
    }

    /// When a message has left its node, and when it has arrived.
    fn link(&mut self, now: u64, from: Rank, to: Rank, bytes: u64) -> (u64, u64) {
        let groups = &self.setting.groups;
        let takes = duration_ns(bytes, self.model.link_rate);
        let out = &mut self.out_free[groups.of(from) as usize];
        *out = (*out).max(now) + takes;
        let sent = *out;
        let input = &mut self.in_free[groups.of(to) as usize];
        *input = (*input + takes).max(sent + self.model.link_latency_ns);
        (sent, *input)
    }

    fn land(&mut self, owner: Rank, bytes: u64) -> Vec<Span> {
        if bytes == 0 {
            return Vec::new();
        }
        self.arrivals += 1;
        let buffer = Buffer {
            owner,
            kind: Kind::Arrival,
            index: self.arrivals,
        };
        let range = 0..bytes;
        vec![Span { buffer, range }]
    }

    fn copy(&mut self, now: u64, rank: Rank, job: Job, bytes: u64) {
        let end = self.copying(now, rank, bytes);
        self.queue.push(end, (rank, Event::Copied(job)));
    }

    /// When a copy is complete.
    fn copying(&mut self, now: u64, rank: Rank, bytes: u64) -> u64 {
        let free = &mut self.cpu_free[rank.index()];
        *free = (*free).max(now) + duration_ns(bytes, self.model.copy_rate);
        *free
    }

    /// Moves some bytes of a range, evenly divided among the servers of its
    /// stripes.
    fn transfer(&mut self, now: u64, rank: Rank, job: Job, file: Range<u64>, bytes: u64) {
        let servers = self.server_free.len() as u64;
        let stripe = self.model.stripe_bytes;
        let first = file.start / stripe;
        let count = (file.end.div_ceil(stripe) - first).clamp(1, servers);
        let busy = duration_ns(bytes.div_ceil(count), self.model.file_rate);
        let mut end = 0;
        for number in first..first + count {
            let free = &mut self.server_free[(number % servers) as usize];
            *free = (*free).max(now + self.model.file_latency_ns) + busy;
            self.report.file_busy_ns += busy;
            end = end.max(*free);
        }
        self.transfers[rank.index()] += 1;
        let outcome = Outcome::ALL;
        self.queue
            .push(end, (rank, Event::Transferred { job, outcome }));
    }

    fn report(mut self) -> Report {
        for (rank, machine) in (0..).map(Rank).zip(&self.machines) {
            assert!(machine.is_finished(), "{rank:?} did not finish");
            let counters = machine.counters();
            self.report.total.add(&counters);
            self.report.most.max(&counters);
            if self.accesses.realms_of(rank).is_empty() {
                self.report.most_member.max(&counters);
            }
        }
        self.report
    }
}
