//! Writing: grants go out when receives are posted; a window is written when
//! its slices and its own group's copies are in.

use std::ops::Range;

use super::{Aggregator, Stage, slice::Landing};
use crate::{
    Accesses, Action, Buffer, Message, Outcome, Placement, Rank, Span, Tag,
    core::Core,
    jobs::{Doing, WindowId},
};

impl Aggregator {
    pub(super) fn advance_write<A: Accesses>(&mut self, core: &mut Core<A>) {
        self.grant(core);
        for number in self.first..self.first + self.windows.len() as u64 {
            let stop = self.stop;
            let window = self.window(number);
            let is_full = window.stage == Stage::Exchanging
                && window.open == 0
                && window.granted == window.rests.len();
            if !is_full {
                continue;
            }
            match window.file.start < stop {
                true => self.transfer(core, number),
                false => self.release(core, number),
            }
        }
    }

    /// Grants slices in ascending order of windows while there are tags and
    /// staging buffers.
    fn grant<A: Accesses>(&mut self, core: &mut Core<A>) {
        for number in self.first..self.first + self.windows.len() as u64 {
            if self.window(number).stage != Stage::Exchanging {
                continue;
            }
            while self.window(number).granted < self.window(number).rests.len() {
                if self.window(number).file.start >= self.stop {
                    self.discard_rests(core, number);
                } else if !self.grant_next(core, number) {
                    return;
                }
            }
        }
    }

    /// Posts the receive of a window's next slice and grants it; returns
    /// false if it has to wait.
    fn grant_next<A: Accesses>(&mut self, core: &mut Core<A>, number: u64) -> bool {
        let (id, realm) = (self.id(number), self.realm);
        let window = &mut self.windows[(number - self.first) as usize];
        let at = window.granted;
        let planned = match window.rests[at].slice.take() {
            Some(planned) => planned,
            None => Aggregator::next_slice(core, realm, window, &window.rests[at]),
        };
        let Some(tag) = core.tags.take() else {
            window.rests[at].slice = Some(planned);
            return false;
        };
        let (buffer, start, staging, parts) = match planned.landing {
            Landing::Window(at) => (window.buffer, at, None, Vec::new()),
            Landing::Staging(parts) => match core.take(&mut self.staging) {
                Some(staging) => (staging, 0, Some(staging), parts),
                None => {
                    core.tags.put(tag);
                    let landing = Landing::Staging(parts);
                    window.rests[at].slice = Some(super::slice::Planned { landing, ..planned });
                    return false;
                }
            },
        };
        let slice = planned.slice;
        window.rests[at].file.start = slice.file.end;
        if window.rests[at].file.is_empty() {
            window.granted += 1;
        }
        window.open += 1;
        let groups = &core.setting.groups;
        let from = groups.relay(slice.parts[0].rank, realm);
        let job = core.jobs.start(Doing::Receive {
            window: id,
            file: slice.file.clone(),
            parts,
            staging,
            tag,
        });
        core.out.push(Action::Receive {
            job,
            from,
            tag,
            span: Span {
                buffer,
                range: start..start + slice.bytes,
            },
        });
        core.tell(from, Message::Grant { slice, tag });
        true
    }

    /// After a failure: discards the part of a window that is not granted.
    fn discard_rests<A: Accesses>(&mut self, core: &mut Core<A>, number: u64) {
        let window = self.window(number);
        let mut discarded = Vec::new();
        for rest in &mut window.rests[window.granted..] {
            let shares = &window.shares[rest.shares.clone()];
            discarded.push((rest.file.clone(), shares.iter().map(|it| it.rank).collect()));
            rest.file.start = rest.file.end;
        }
        window.granted = window.rests.len();
        for (file, ranks) in discarded {
            // Those whose data was in earlier slices may have finished.
            let mut ranks: Vec<Rank> = ranks;
            ranks.retain(|rank| core.bytes(*rank, self.realm, file.clone()) > 0);
            self.discard(core, file, ranks);
        }
    }

    /// A slice has arrived, in its place or in a staging buffer.
    pub(crate) fn received<A: Accesses>(
        &mut self,
        core: &mut Core<A>,
        id: WindowId,
        file: Range<u64>,
        staged: Option<(Buffer, Vec<Placement>)>,
        tag: Tag,
    ) {
        core.tags.put(tag);
        match staged {
            None => self.window(id.number).open -= 1,
            Some((staging, parts)) => {
                let window = self.window(id.number).buffer;
                let doing = Doing::Scatter {
                    window: id,
                    staging,
                };
                let job = core.jobs.start(doing);
                core.counters.copies += 1;
                core.out.push(Action::Arrange {
                    job,
                    realm: self.realm,
                    file,
                    staging,
                    window,
                    parts,
                });
            }
        }
        self.advance(core);
    }

    /// A slice that came through a staging buffer is in its places.
    pub(crate) fn scattered<A: Accesses>(
        &mut self,
        core: &mut Core<A>,
        id: WindowId,
        staging: Buffer,
    ) {
        core.put(&mut self.staging, staging);
        self.window(id.number).open -= 1;
        self.advance(core);
    }

    /// The transfer of a window is over.
    pub(super) fn written<A: Accesses>(
        &mut self,
        core: &mut Core<A>,
        id: WindowId,
        outcome: Outcome,
    ) {
        self.note(core, outcome);
        self.release(core, id.number);
        if self.stop < u64::MAX && !self.is_discarded {
            self.is_discarded = true;
            let (file, ranks) = self.cutter.give_up();
            self.discard(core, file, ranks);
        }
        self.advance(core);
    }
}
