//! Reading: windows are read ahead as far as there are buffers, and handed
//! out in ascending order. A slice is offered when it has been read, and sent
//! when its receive is posted.

use super::{Aggregator, Stage, Waiting, slice::Landing};
use crate::{
    Accesses, Action, Buffer, Job, Message, Outcome, Rank, Span, Tag,
    core::Core,
    cut::Share,
    jobs::{Doing, WindowId},
};

impl Aggregator {
    pub(super) fn advance_read<A: Accesses>(&mut self, core: &mut Core<A>) {
        for number in self.first..self.first + self.windows.len() as u64 {
            match self.window(number).stage {
                Stage::Moving => break,
                Stage::Moved => self.hand_out(core, number),
                Stage::Exchanging | Stage::Done => {}
            }
        }
        while let Some(waiting) = self.waiting.pop_front() {
            if !self.send(core, waiting.window, waiting.rest, waiting.tag) {
                self.waiting.push_front(waiting);
                break;
            }
        }
        for number in self.first..self.first + self.windows.len() as u64 {
            let window = self.window(number);
            if window.stage == Stage::Exchanging && window.open == 0 {
                self.release(core, number);
            }
        }
    }

    /// Hands out a window. Whether a transfer stopped in it or before it is
    /// known by now, because windows are handed out in ascending order.
    fn hand_out<A: Accesses>(&mut self, core: &mut Core<A>, number: u64) {
        let stop = self.stop;
        if stop < self.window(number).file.end && !self.is_discarded {
            self.discard_from(core, number, stop);
        }
        if stop <= self.window(number).file.start {
            return self.release(core, number);
        }
        self.clip(core, number, stop);
        self.exchange(core, number);
        for rest in 0..self.window(number).rests.len() {
            self.window(number).open += 1;
            self.offer(core, number, rest);
        }
    }

    /// Reduces a window to the part that was read.
    fn clip<A: Accesses>(&mut self, core: &Core<A>, number: u64, stop: u64) {
        let realm = self.realm;
        let window = self.window(number);
        if stop >= window.file.end {
            return;
        }
        window.file.end = stop;
        let file = window.file.clone();
        window.shares.retain_mut(|share| {
            share.bytes = core.bytes(share.rank, realm, file.clone());
            share.bytes > 0
        });
    }

    /// Tells all ranks that have data at `stop` or past it.
    fn discard_from<A: Accesses>(&mut self, core: &mut Core<A>, number: u64, stop: u64) {
        self.is_discarded = true;
        let (left, mut ranks) = self.cutter.give_up();
        let windows = self.windows.iter().skip((number - self.first) as usize);
        let rank = |share: &Share| share.rank;
        ranks.extend(windows.flat_map(|window| window.shares.iter().map(rank)));
        let file = stop..left.end;
        ranks.retain(|rank: &Rank| core.next(*rank, self.realm, stop).is_some());
        self.discard(core, file, ranks);
    }

    /// Offers a group its next slice.
    fn offer<A: Accesses>(&mut self, core: &mut Core<A>, number: u64, rest: usize) {
        let (id, realm) = (self.id(number), self.realm);
        let window = self.window(number);
        let planned = Aggregator::next_slice(core, realm, window, &window.rests[rest]);
        let slice = planned.slice.clone();
        window.rests[rest].slice = Some(planned);
        let groups = &core.setting.groups;
        let to = groups.relay(slice.parts[0].rank, realm);
        let key = core.jobs.start(Doing::Offer { window: id, rest });
        core.tell(to, Message::Offer { slice, key });
    }

    /// The receive of an offered slice is posted.
    pub(crate) fn ready<A: Accesses>(
        &mut self,
        core: &mut Core<A>,
        window: WindowId,
        rest: usize,
        tag: Tag,
    ) {
        self.waiting.push_back(Waiting { window, rest, tag });
        self.advance(core);
    }

    /// Sends a slice, or packs it first; returns false if there is no buffer
    /// for that.
    fn send<A: Accesses>(
        &mut self,
        core: &mut Core<A>,
        id: WindowId,
        rest: usize,
        tag: Tag,
    ) -> bool {
        let window = &self.windows[(id.number - self.first) as usize];
        let planned = window.rests[rest].slice.as_ref();
        let planned = planned.expect("a slice is kept until it is sent");
        let bytes = planned.slice.bytes;
        match &planned.landing {
            Landing::Window(at) => {
                let span = Span {
                    buffer: window.buffer,
                    range: *at..at + bytes,
                };
                self.start_send(core, id, rest, tag, span);
            }
            Landing::Staging(parts) => {
                let Some(staging) = core.take(&mut self.staging) else {
                    return false;
                };
                let job = core.jobs.start(Doing::Gather {
                    window: id,
                    rest,
                    staging,
                    tag,
                    bytes,
                });
                core.counters.copies += 1;
                core.out.push(Action::Arrange {
                    job,
                    realm: self.realm,
                    file: planned.slice.file.clone(),
                    staging,
                    window: window.buffer,
                    parts: parts.clone(),
                });
            }
        }
        true
    }

    /// A slice is packed in a staging buffer.
    pub(crate) fn gathered<A: Accesses>(
        &mut self,
        core: &mut Core<A>,
        id: WindowId,
        rest: usize,
        tag: Tag,
        span: Span,
    ) {
        self.start_send(core, id, rest, tag, span);
    }

    fn start_send<A: Accesses>(
        &mut self,
        core: &mut Core<A>,
        id: WindowId,
        rest: usize,
        tag: Tag,
        span: Span,
    ) {
        let window = &self.windows[(id.number - self.first) as usize];
        let groups = &core.setting.groups;
        let share = &window.shares[window.rests[rest].shares.start];
        let to = groups.relay(share.rank, self.realm);
        let staging = (span.buffer != window.buffer).then_some(span.buffer);
        core.counters.data_messages += 1;
        core.counters.data_bytes += span.bytes();
        let job: Job = core.jobs.start(Doing::Send {
            window: id,
            rest,
            staging,
        });
        core.out.push(Action::Send { job, to, tag, span });
    }

    /// A slice is sent: offers the next one, if there is one.
    pub(crate) fn sent<A: Accesses>(
        &mut self,
        core: &mut Core<A>,
        id: WindowId,
        at: usize,
        staging: Option<Buffer>,
    ) {
        if let Some(staging) = staging {
            core.put(&mut self.staging, staging);
        }
        let rest = &mut self.window(id.number).rests[at];
        let planned = rest.slice.take().expect("a slice is kept until it is sent");
        rest.file.start = planned.slice.file.end;
        match planned.is_last {
            true => self.window(id.number).open -= 1,
            false => self.offer(core, id.number, at),
        }
        self.advance(core);
    }

    /// The transfer of a window is over.
    fn was_read<A: Accesses>(&mut self, core: &mut Core<A>, id: WindowId, outcome: Outcome) {
        self.note(core, outcome);
        self.window(id.number).stage = Stage::Moved;
        self.advance(core);
    }

    /// A window's transfer is over.
    pub(crate) fn transferred<A: Accesses>(
        &mut self,
        core: &mut Core<A>,
        id: WindowId,
        outcome: Outcome,
    ) {
        match core.setting.direction {
            crate::Direction::Write => self.written(core, id, outcome),
            crate::Direction::Read => self.was_read(core, id, outcome),
        }
    }
}
