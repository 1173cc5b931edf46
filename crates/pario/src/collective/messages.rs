//! Exchange by messages: ranks send their packed bytes to the owner of a
//! window, or get them from it. For ranks that share no memory.
//!
//! A round is one window of every aggregator that has any left. In each round
//! a rank first sends what it has to send, then passes on what goes through
//! it, then, as an owner, receives and moves its own window; so no rank waits
//! for one that waits for it.

use std::{borrow::Cow, iter::Peekable};

use pario_driver::Direction;
use pario_layout::Layout;
use pario_plan::{Access, MemberRanks, Schedule, ScheduledWindow, Window};
use pario_transport::{Rank, SEND_HEADROOM, Tag};

use super::{
    PlanResult, Work,
    planning::Exchange,
    route::{NodeMessages, Route, Routes},
    window_io::{self, WindowIo},
};
use crate::{
    Result,
    access::{MemorySpan, WindowBuffer},
};

/// Between a rank and an owner.
const DATA: Tag = Tag(1);
/// Between a rank and the leader of its node.
const NODE: Tag = Tag(2);
/// Between the leader of a node and an owner elsewhere.
const BUNDLE: Tag = Tag(3);

/// Moves all windows; says how far those that this rank owns got.
pub(super) fn run(work: &Work<'_>, exchange: Exchange) -> Result<PlanResult> {
    let mut ranks = Messages {
        work,
        me: work.comm.rank().0,
        routes: Routes::new(work.comm, exchange),
        dense: Layout::dense(1),
        io: WindowIo::new(work),
        window: Vec::new(),
        plan_result: PlanResult::default(),
    };
    let mut schedule = work.rounds.schedule(work.accesses).peekable();
    while schedule.peek().is_some() {
        let round = ranks.next_round(&mut schedule);
        match work.operation.direction() {
            Direction::Write => ranks.write_round(&round)?,
            Direction::Read => ranks.read_round(&round)?,
        }
    }
    Ok(ranks.plan_result)
}

/// A window and the ranks that have data in it, ascending.
struct Part {
    item: ScheduledWindow,
    owner: u32,
    ranks: Vec<u32>,
}

impl Part {
    /// Whether the window moves data of a rank. Aggregators with members of
    /// their own move nobody else's, whatever else lies in the window.
    fn serves(&self, rank: u32) -> bool {
        self.ranks.binary_search(&rank).is_ok()
    }
}

struct Messages<'a> {
    work: &'a Work<'a>,
    me: u32,
    routes: Routes,
    dense: Layout,
    io: WindowIo<'a>,
    window: Vec<u8>,
    plan_result: PlanResult,
}

impl Messages<'_> {
    /// The turns up to the first aggregator that would come twice.
    fn next_round(&self, schedule: &mut Peekable<Schedule<'_>>) -> Vec<Part> {
        let mut round: Vec<Part> = Vec::new();
        let mut after = 0;
        while let Some(item) = schedule.next_if(|item| item.aggregator >= after) {
            after = item.aggregator + 1;
            let has_data = |rank: &u32| {
                window_io::bytes_in(&self.work.accesses[*rank as usize], &item.window) > 0
            };
            round.push(Part {
                owner: self.work.rounds.aggregators[item.aggregator].rank,
                ranks: self
                    .work
                    .members(item.aggregator)
                    .filter(has_data)
                    .collect(),
                item,
            });
        }
        round
    }

    /// Whether this rank exchanges a message for a window.
    fn takes_part(&self, part: &Part) -> bool {
        part.owner != self.me && (self.routes.sends_empty() || part.serves(self.me))
    }

    /// The ranks that exchange messages with the owner.
    fn speakers<'p>(&self, part: &'p Part) -> Cow<'p, [u32]> {
        match self.routes.sends_empty() {
            true => Cow::Owned((0..self.work.comm.size()).collect()),
            false => Cow::Borrowed(&part.ranks),
        }
    }

    fn write_round(&mut self, round: &[Part]) -> Result<()> {
        for part in round.iter().filter(|part| self.takes_part(part)) {
            match self.routes.of(self.me, part.owner) {
                Route::Direct => self.send(part.owner, DATA, self.pack_mine(part))?,
                Route::Through(leader) if leader == self.me => {}
                Route::Through(leader) => self.send(leader, NODE, self.pack_mine(part))?,
            }
        }
        for part in round {
            self.gather_node(part)?;
        }
        for part in round.iter().filter(|part| part.owner == self.me) {
            let mut window = std::mem::take(&mut self.window);
            window.resize(part.item.window.bytes() as usize, 0);
            self.collect(part, &mut window)?;
            let buffer = WindowBuffer::new(&mut window);
            self.work.await_start(part.item.aggregator);
            self.io.write(
                &part.item.window,
                MemberRanks::Some(part.ranks.iter()),
                buffer,
                &mut self.plan_result,
            );
            self.window = window;
        }
        Ok(())
    }

    /// As the leader of a node: sends its ranks' parts on as one message.
    fn gather_node(&self, part: &Part) -> Result<()> {
        let led = self.routes.led_by(self.me, part.owner, &part.ranks);
        if led.is_empty() {
            return Ok(());
        }
        let bytes = |rank: &u32| window_io::bytes_in(self.access(*rank), &part.item.window);
        let bytes: u64 = led.iter().map(bytes).sum();
        let mut bundle = Vec::with_capacity(bytes as usize + SEND_HEADROOM);
        for rank in led {
            match rank == self.me {
                true => bundle.extend(self.pack_mine(part)),
                false => bundle.extend(self.receive(rank, NODE)?),
            }
        }
        self.send(part.owner, BUNDLE, bundle)
    }

    /// As the owner: puts every rank's bytes into the window, in rank order.
    fn collect(&self, part: &Part, window: &mut [u8]) -> Result<()> {
        let mut node_messages = NodeMessages::default();
        for rank in self.speakers(part).iter().copied() {
            if rank == self.me {
                self.exchange_mine(part, window, u64::MAX);
                continue;
            }
            let access = self.access(rank);
            let expected = window_io::bytes_in(access, &part.item.window) as usize;
            let mut packed = match self.routes.of(rank, self.me) {
                Route::Direct => self.receive(rank, DATA)?,
                Route::Through(leader) => {
                    node_messages.take(leader, expected, || self.receive(leader, BUNDLE))?
                }
            };
            if !part.serves(rank) {
                continue;
            }
            self.place(
                Direction::Write,
                access,
                &part.item.window,
                &mut packed,
                window,
                u64::MAX,
            );
        }
        Ok(())
    }

    fn read_round(&mut self, round: &[Part]) -> Result<()> {
        for part in round.iter().filter(|part| part.owner == self.me) {
            let mut window = std::mem::take(&mut self.window);
            window.resize(part.item.window.bytes() as usize, 0);
            let buffer = WindowBuffer::new(&mut window);
            self.work.await_start(part.item.aggregator);
            let end = self.io.read(
                &part.item.window,
                MemberRanks::Some(part.ranks.iter()),
                buffer,
                &mut self.plan_result,
            );
            self.distribute(part, &mut window, end)?;
            self.window = window;
        }
        for part in round {
            self.scatter_node(part)?;
        }
        for part in round.iter().filter(|part| self.takes_part(part)) {
            let packed = match self.routes.of(self.me, part.owner) {
                Route::Direct => self.receive(part.owner, DATA)?,
                Route::Through(leader) if leader == self.me => continue,
                Route::Through(leader) => self.receive(leader, NODE)?,
            };
            self.unpack_mine(part, &packed);
        }
        Ok(())
    }

    /// As the owner: sends every rank its bytes of the window, as far as the
    /// file had them. In a bundle each part is preceded by its length: only
    /// the owner knows where the file ended.
    fn distribute(&self, part: &Part, window: &mut [u8], end: u64) -> Result<()> {
        let mut node_messages: Vec<(u32, Vec<u8>)> = Vec::new();
        for rank in self.speakers(part).iter().copied() {
            if rank == self.me {
                self.exchange_mine(part, window, end);
                continue;
            }
            let access = self.access(rank);
            let mut packed = Vec::new();
            if part.serves(rank) {
                let available = window_io::bytes_below_in(access, &part.item.window, end) as usize;
                packed.reserve_exact(available + SEND_HEADROOM);
                packed.resize(available, 0);
                self.place(
                    Direction::Read,
                    access,
                    &part.item.window,
                    &mut packed,
                    window,
                    end,
                );
            }
            match self.routes.of(rank, self.me) {
                Route::Direct => self.send(rank, DATA, packed)?,
                Route::Through(leader) => {
                    let known = node_messages.iter().position(|(node, _)| *node == leader);
                    let place = known.unwrap_or(node_messages.len());
                    if known.is_none() {
                        node_messages.push((leader, Vec::new()));
                    }
                    node_messages[place]
                        .1
                        .extend((packed.len() as u64).to_le_bytes());
                    node_messages[place].1.extend(packed);
                }
            }
        }
        node_messages
            .into_iter()
            .try_for_each(|(leader, bundle)| self.send(leader, BUNDLE, bundle))
    }

    /// As the leader of a node: takes the owner's message apart.
    fn scatter_node(&self, part: &Part) -> Result<()> {
        let led = self.routes.led_by(self.me, part.owner, &part.ranks);
        if led.is_empty() {
            return Ok(());
        }
        let bundle = self.receive(part.owner, BUNDLE)?;
        let mut rest = bundle.as_slice();
        for rank in led {
            let (len, after) = rest.split_first_chunk().map_or((0, rest), |(len, after)| {
                (u64::from_le_bytes(*len) as usize, after)
            });
            let (packed, after) = after.split_at(len.min(after.len()));
            match rank == self.me {
                true => self.unpack_mine(part, packed),
                false => self.work.comm.send(Rank(rank), NODE, packed)?,
            }
            rest = after;
        }
        Ok(())
    }

    fn access(&self, rank: u32) -> &Access {
        &self.work.accesses[rank as usize]
    }

    /// As the owner: copies its own bytes below `end` between memory and the window.
    fn exchange_mine(&self, part: &Part, window: &mut [u8], end: u64) {
        if !part.serves(self.me) {
            return;
        }
        let memory = MemorySpan::of(self.work.operation.memory());
        let direction = self.work.operation.direction();
        let buffer = WindowBuffer::new(window);
        window_io::exchange(
            direction,
            self.work.mine(),
            &memory,
            &part.item.window,
            buffer,
            end,
        );
    }

    /// This rank's bytes of a window, packed.
    fn pack_mine(&self, part: &Part) -> Vec<u8> {
        if !part.serves(self.me) {
            return Vec::new();
        }
        let memory = MemorySpan::of(self.work.operation.memory());
        let bytes = window_io::bytes_in(self.work.mine(), &part.item.window) as usize;
        let mut packed = Vec::with_capacity(bytes + SEND_HEADROOM);
        packed.resize(bytes, 0);
        let mut rest = packed.as_mut_slice();
        for (_, data) in window_io::data_parts(self.work.mine(), &part.item.window, u64::MAX) {
            let (here, after) = rest.split_at_mut((data.end - data.start) as usize);
            memory
                .slice(data.start, data.end - data.start)
                .pack_into(here);
            rest = after;
        }
        packed
    }

    /// Puts this rank's bytes of a window, as many as came, where they belong.
    fn unpack_mine(&self, part: &Part, packed: &[u8]) {
        let memory = MemorySpan::of(self.work.operation.memory());
        let mut rest = packed;
        for (_, data) in window_io::data_parts(self.work.mine(), &part.item.window, u64::MAX) {
            let len = (data.end - data.start).min(rest.len() as u64);
            let (here, after) = rest.split_at(len as usize);
            memory.slice(data.start, len).unpack_from(here);
            rest = after;
        }
    }

    /// Copies a rank's packed bytes into or out of a window.
    fn place(
        &self,
        direction: Direction,
        access: &Access,
        window: &Window,
        packed: &mut [u8],
        bytes: &mut [u8],
        end: u64,
    ) {
        let len = packed.len() as u64;
        let memory = MemorySpan::dense(packed, &self.dense);
        let buffer = WindowBuffer::new(bytes);
        let mut at = 0;
        for (place, data) in window_io::data_parts(access, window, end) {
            let part = (data.end - data.start).min(len - at);
            let packed_part = memory.slice(at, part);
            window_io::exchange_part(direction, access, data.start, &packed_part, &place, buffer);
            at += part;
        }
    }

    fn send(&self, to: u32, tag: Tag, message: Vec<u8>) -> Result<()> {
        Ok(self.work.comm.send_owned(Rank(to), tag, message)?)
    }

    fn receive(&self, from: u32, tag: Tag) -> Result<Vec<u8>> {
        Ok(self.work.comm.receive(Rank(from), tag)?)
    }
}
