//! The aggregator of a realm: cuts windows, exchanges them with the groups
//! that have data in them, and moves them to or from the file.

mod read;
mod slice;
mod write;

use std::{collections::VecDeque, ops::Range};

use crate::{
    Accesses, Action, Buffer, Contents, Direction, Failure, Kind, Message, Outcome, Part, Place,
    Progress, Rank, Realm, Tag,
    core::Core,
    cut::{Cut, Cutter, Shape, Share},
    jobs::{Doing, WindowId},
    pool::Pool,
};

/// The state of a window. Writes go through Exchanging, Moving, Done; reads
/// through Moving, Moved, Exchanging, Done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Exchanging,
    /// Under its file transfer.
    Moving,
    /// Read, waiting for earlier windows to be handed out.
    Moved,
    Done,
}

/// The part of a window that remains to be exchanged with one group.
#[derive(Debug)]
struct Rest {
    /// Its shares of the window.
    shares: Range<usize>,
    /// The rest of the window's range.
    file: Range<u64>,
    /// The next slice, once it is cut.
    slice: Option<slice::Planned>,
}

#[derive(Debug)]
struct Window {
    file: Range<u64>,
    shape: Shape,
    shares: Vec<Share>,
    buffer: Buffer,
    stage: Stage,
    /// One entry for each other group.
    rests: Vec<Rest>,
    /// The first of them that is not granted to its end (writes).
    granted: usize,
    /// The number of outstanding copies and messages.
    open: usize,
}

/// The ranges that are read for a group and wait for a staging buffer.
#[derive(Debug)]
struct Waiting {
    window: WindowId,
    rest: usize,
    tag: Tag,
}

#[derive(Debug)]
pub(crate) struct Aggregator {
    realm: Realm,
    cutter: Cutter,
    windows: VecDeque<Window>,
    /// The number of the first of them.
    first: u64,
    buffers: Pool,
    staging: Pool,
    waiting: VecDeque<Waiting>,
    /// The first byte of the realm that could not be moved.
    stop: u64,
    /// Whether the ranks have been told.
    is_discarded: bool,
}

impl Aggregator {
    pub(crate) fn new<A: Accesses>(core: &Core<A>, realm: Realm) -> Aggregator {
        let limits = &core.setting.limits;
        let pool = |kind, bytes, max| Pool::new(core.me, kind, bytes, max);
        Aggregator {
            realm,
            cutter: Cutter::new(core, realm),
            windows: VecDeque::new(),
            first: 0,
            buffers: pool(Kind::Window(realm), core.window_bytes(), limits.depth),
            staging: pool(Kind::Staging(realm), limits.slice_bytes, limits.staging),
            waiting: VecDeque::new(),
            stop: u64::MAX,
            is_discarded: false,
        }
    }

    pub(crate) fn realm(&self) -> Realm {
        self.realm
    }

    pub(crate) fn pools(&mut self) -> [&mut Pool; 2] {
        [&mut self.buffers, &mut self.staging]
    }

    /// Whether every byte of the realm has been moved or discarded.
    pub(crate) fn is_done(&self) -> bool {
        self.windows.is_empty() && (self.cutter.is_done() || self.is_discarded)
    }

    /// Advances every window as far as possible.
    pub(crate) fn advance<A: Accesses>(&mut self, core: &mut Core<A>) {
        loop {
            self.open_windows(core);
            match core.setting.direction {
                Direction::Write => self.advance_write(core),
                Direction::Read => self.advance_read(core),
            }
            if !self.retire() {
                return;
            }
        }
    }

    /// Drops windows that are done; returns whether there were any.
    fn retire(&mut self) -> bool {
        let before = self.first;
        while self
            .windows
            .front()
            .is_some_and(|it| it.stage == Stage::Done)
        {
            self.windows.pop_front();
            self.first += 1;
        }
        self.first > before
    }

    fn open_windows<A: Accesses>(&mut self, core: &mut Core<A>) {
        while self.stop == u64::MAX && !self.cutter.is_done() {
            let Some(buffer) = core.take(&mut self.buffers) else {
                return;
            };
            let Some(cut) = self.cutter.cut(core) else {
                return core.put(&mut self.buffers, buffer);
            };
            self.open(core, cut, buffer);
        }
    }

    fn open<A: Accesses>(&mut self, core: &mut Core<A>, cut: Cut, buffer: Buffer) {
        let number = self.first + self.windows.len() as u64;
        self.windows.push_back(Window {
            file: cut.file,
            shape: cut.shape,
            shares: cut.shares,
            buffer,
            stage: Stage::Moving,
            rests: Vec::new(),
            granted: 0,
            open: 0,
        });
        match core.setting.direction {
            Direction::Write => self.exchange(core, number),
            Direction::Read => self.transfer(core, number),
        }
    }

    fn window(&mut self, number: u64) -> &mut Window {
        &mut self.windows[(number - self.first) as usize]
    }

    fn id(&self, number: u64) -> WindowId {
        WindowId {
            realm: self.realm,
            number,
        }
    }

    /// Starts the exchange: asks the ranks of this group to copy, and lists
    /// what is to be exchanged with other groups.
    fn exchange<A: Accesses>(&mut self, core: &mut Core<A>, number: u64) {
        let (id, realm) = (self.id(number), self.realm);
        let window = self.window(number);
        window.stage = Stage::Exchanging;
        let mut at = 0;
        for shares in window.shares.chunk_by(|a, b| a.position == b.position) {
            let range = at..at + shares.len();
            at = range.end;
            if shares[0].position > 0 {
                window.rests.push(Rest {
                    shares: range,
                    file: window.file.clone(),
                    slice: None,
                });
                continue;
            }
            let key = core.jobs.start(Doing::Fill(id));
            window.open += 1;
            for share in shares {
                let message = Message::Move {
                    key,
                    realm,
                    file: window.file.clone(),
                    buffer: window.buffer,
                    place: window.place_of(share),
                    among: shares.len() as u32,
                };
                core.tell(share.rank, message);
            }
        }
    }

    /// Starts a window's transfer.
    fn transfer<A: Accesses>(&mut self, core: &mut Core<A>, number: u64) {
        let (id, realm) = (self.id(number), self.realm);
        let window = self.window(number);
        window.stage = Stage::Moving;
        let part = |share: &Share| Part {
            rank: share.rank,
            bytes: share.bytes,
        };
        let contents = match window.shape {
            Shape::Image => Contents::Image,
            Shape::Packed => Contents::Packed,
        };
        let parts = window.shares.iter().map(part).collect();
        core.counters.transfers += 1;
        let job = core.jobs.start(Doing::Transfer(id));
        core.out.push(Action::Transfer {
            job,
            realm,
            file: window.file.clone(),
            buffer: window.buffer,
            contents,
            parts,
        });
    }

    /// Records where the realm stopped.
    fn note<A: Accesses>(&mut self, core: &mut Core<A>, outcome: Outcome) {
        let Outcome { stop, error } = outcome;
        self.stop = self.stop.min(stop.unwrap_or(u64::MAX));
        core.progress.merge(Progress {
            stop: stop.unwrap_or(u64::MAX),
            failure: error.map(|detail| Failure {
                rank: core.me,
                detail,
            }),
        });
    }

    /// Tells ranks that their data in a range is not moved: those of other
    /// groups through their relay, in one message each.
    fn discard<A: Accesses>(&self, core: &mut Core<A>, file: Range<u64>, mut ranks: Vec<Rank>) {
        let groups = core.setting.groups.clone();
        let realm = self.realm;
        let mut discards = Vec::new();
        let relay = |rank: Rank| match groups.share(rank, core.me) {
            true => core.me,
            false => groups.relay(rank, realm),
        };
        ranks.sort_unstable_by_key(|rank| (relay(*rank), *rank));
        ranks.dedup();
        for ranks in ranks.chunk_by(|a, b| relay(*a) == relay(*b)) {
            let message = Message::Discard {
                realm,
                file: file.clone(),
                ranks: ranks.to_vec(),
            };
            discards.push((relay(ranks[0]), message));
        }
        for (to, message) in discards {
            core.tell(to, message);
        }
    }

    /// The ranks of this group have filled or emptied their parts of a window.
    pub(crate) fn filled<A: Accesses>(&mut self, core: &mut Core<A>, window: WindowId) {
        self.window(window.number).open -= 1;
        self.advance(core);
    }

    fn release<A: Accesses>(&mut self, core: &mut Core<A>, number: u64) {
        let buffer = self.window(number).buffer;
        self.window(number).stage = Stage::Done;
        core.put(&mut self.buffers, buffer);
    }
}

impl Window {
    /// Where a rank's bytes of the window's range lie in its buffer.
    fn place_of(&self, share: &Share) -> Place {
        match self.shape {
            Shape::Image => Place::Image {
                origin: self.file.start,
                at: 0,
            },
            Shape::Packed => Place::Packed { at: share.at },
        }
    }
}
