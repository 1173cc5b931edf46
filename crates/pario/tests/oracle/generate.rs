//! Random scenarios whose outcome does not depend on timing.

use fastrand::Rng;
use pario::{Atomicity, Basic, Mode, Seek};

use crate::{
    drivers::DriverKind,
    hints::{assumptions, hints, hints_at_open, methods},
    model::Model,
    representation::Stored,
    scenario::{
        Access, Action, Direction, Filling, Hint, Manner, MemorySpec, Opening, Place, Plan,
        Scenario, Step, ViewSpec,
    },
    spec::Spec,
    types,
};

const RANKS_MAX: u32 = 4;
/// In most scenarios of collective calls.
pub(crate) const RANKS_MAX_TOGETHER: u32 = 16;
/// In few of them, on at most `NODES_MAX` nodes.
const RANKS_MAX_CLUSTER: u32 = 64;
const NODES_MAX: u32 = 16;
const STEPS_MAX: usize = 12;
const FILE_BYTES_BEFORE_MAX: usize = 6000;
/// How often a step is drawn before the scenario goes without it.
const DRAWS: usize = 6;
/// Accesses start within so many bytes of the view's start.
const REACH_BYTES: u64 = 6000;
/// The displacements of ranks that have a part of the file each.
const PART_BYTES: u64 = 3000;
/// One scenario in so many moves more than staging buffers hold.
const LARGE_EVERY: u32 = 40;
/// Bytes of a large access: from below to above two staging buffers.
const LARGE_BYTES: std::ops::Range<u64> = 100_000..600_000;

/// Bytes that all ranks together move at most in one of many collective calls.
const BYTES_TOGETHER_MAX: u64 = 6000;

/// What a scenario is mostly about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Theme {
    Everything,
    /// Collective calls by every method.
    Together,
}

impl Theme {
    fn ranks(self, rng: &mut Rng) -> u32 {
        match (self, rng.u32(..10)) {
            (Theme::Everything, _) | (Theme::Together, 0..6) => rng.u32(1..=RANKS_MAX),
            (Theme::Together, 6..9) => rng.u32(RANKS_MAX..=2 * RANKS_MAX),
            _ if rng.u32(..4) == 0 => rng.u32(RANKS_MAX_TOGETHER..=RANKS_MAX_CLUSTER),
            _ => rng.u32(2 * RANKS_MAX..=RANKS_MAX_TOGETHER),
        }
    }

    /// The node of each rank.
    fn nodes(self, rng: &mut Rng, ranks: u32) -> Vec<u32> {
        let apart = match self {
            Theme::Everything => rng.u32(..4) == 0,
            Theme::Together => rng.bool(),
        };
        let nodes = match apart {
            true => rng.u32(1..=ranks.min(NODES_MAX)),
            false => 1,
        };
        (0..ranks).map(|_| rng.u32(..nodes)).collect()
    }
}

/// The most that a step writes on CephFS. All of it may be pieces of one byte, which the client keeps apart:
/// syncing ten thousand of them takes a minute.
const WRITTEN_MAX: usize = 2000;

/// Draws a scenario.
pub(crate) fn scenario(rng: &mut Rng, drivers: &[DriverKind]) -> Scenario {
    let theme = one_of(rng, &[Theme::Everything, Theme::Together]);
    let ranks = theme.ranks(rng);
    let nodes = theme.nodes(rng, ranks);
    // A large access in tiny pieces takes for ever on a slow line.
    let is_fast = |kind: &DriverKind| !kind.is_slow();
    let large = rng.u32(..LARGE_EVERY) == 0 && drivers.iter().any(is_fast);
    let drivers = drivers.iter().copied();
    let drivers: Vec<DriverKind> = drivers.filter(|kind| !large || is_fast(kind)).collect();
    let kind = one_of(rng, &drivers);
    let before = rng.bool().then(|| Filling {
        len: rng.usize(..FILE_BYTES_BEFORE_MAX),
        seed: rng.u64(..),
    });
    let mut draw = Draw {
        theme,
        large,
        drivers,
        one_node: nodes.iter().all(|node| *node == nodes[0]),
        requests_methods: true,
        crowded: true,
        rng: rng.fork(),
    };
    let mut scenario = Scenario {
        nodes,
        opening: draw.opening(kind, before.is_some()),
        before,
        steps: Vec::new(),
    };
    let mut model = Model::new(&scenario);
    for index in 0..rng.usize(1..=STEPS_MAX) {
        for attempt in 0..DRAWS {
            // Ranks that all act at once often get in each other's way.
            draw.crowded = attempt < DRAWS / 2;
            let step = match index {
                0 if rng.u32(..3) > 0 => draw.set_view(&model),
                _ => draw.step(&model, kind),
            };
            let mut next = model.clone();
            let outcome = next.take(&step);
            if outcome
                .is_some_and(|it| kind != DriverKind::CephFs || it.bytes_written() <= WRITTEN_MAX)
            {
                model = next;
                scenario.steps.push(step);
                break;
            }
        }
    }
    scenario
}

pub(crate) fn one_of<T: Clone>(rng: &mut Rng, choices: &[T]) -> T {
    choices[rng.usize(..choices.len())].clone()
}

fn mode(rng: &mut Rng, theme: Theme, exists: bool) -> Mode {
    // Most methods want a file that can be read and written.
    let modes = match theme {
        Theme::Everything => 20,
        Theme::Together => 60,
    };
    let mut mode = match rng.u32(..modes) {
        0..=1 if exists => Mode::READ_ONLY,
        2 if exists => Mode::READ_ONLY | Mode::SEQUENTIAL,
        3..=4 => Mode::WRITE_ONLY,
        5..=6 => Mode::WRITE_ONLY | Mode::SEQUENTIAL,
        _ => Mode::READ_WRITE,
    };
    let extras = [
        (Mode::UNIQUE_OPEN, 3),
        (Mode::APPEND, 12),
        (Mode::DELETE_ON_CLOSE, 25),
    ];
    for (extra, every) in extras {
        if rng.u32(..every) == 0 {
            mode |= extra;
        }
    }
    if !mode.contains(Mode::READ_ONLY) && (!exists || rng.bool()) {
        mode |= Mode::CREATE;
        if !exists && rng.u32(..10) == 0 {
            mode |= Mode::EXCLUSIVE;
        }
    }
    mode
}

struct Draw {
    rng: Rng,
    theme: Theme,
    large: bool,
    drivers: Vec<DriverKind>,
    one_node: bool,
    /// Whether hints select methods and describe the file system. If not, pario chooses all by itself,
    /// as in most programs: small calls between nodes go to one rank, for instance.
    requests_methods: bool,
    /// Whether all ranks may act at once.
    crowded: bool,
}

impl Draw {
    fn opening(&mut self, kind: DriverKind, exists: bool) -> Opening {
        let mut all_hints = hints_at_open(&mut self.rng, self.one_node);
        if kind == DriverKind::CephFs {
            // Past the client's cache, each piece of one byte is a request.
            all_hints.retain(|(name, _)| !name.starts_with("direct_"));
        }
        self.requests_methods = self.rng.u32(..6) > 0;
        if self.requests_methods && !kind.assumes() {
            all_hints.extend(assumptions(&mut self.rng));
        }
        all_hints.extend(self.hints());
        Opening {
            driver: kind,
            mode: mode(&mut self.rng, self.theme, exists),
            hints: all_hints,
        }
    }

    /// Hints that can change while the file is open.
    fn hints(&mut self) -> Vec<Hint> {
        let mut drawn = hints(&mut self.rng, self.large);
        if self.requests_methods {
            drawn.extend(methods(&mut self.rng, self.large));
        }
        drawn
    }

    fn step(&mut self, model: &Model, kind: DriverKind) -> Step {
        if self.theme == Theme::Together {
            match self.rng.u32(..10) {
                0..2 => return self.set_view(model),
                2..7 => return self.together(model),
                7 => return self.in_flight(model),
                8 => return Step::SetInfo(self.hints()),
                _ => {}
            }
        }
        let size = |rng: &mut Rng| rng.u64(..8000);
        match self.rng.u32(..100) {
            0..16 => self.set_view(model),
            16..66 => self.each(model),
            66..80 => self.together(model),
            80..84 => self.race(model),
            84..87 => Step::SetSize(size(&mut self.rng)),
            87..89 => Step::Preallocate(size(&mut self.rng)),
            89..90 => Step::Sync,
            90..93 => Step::SetAtomicity(match model.atomicity {
                Atomicity::Atomic => Atomicity::NonAtomic,
                Atomicity::NonAtomic => Atomicity::Atomic,
            }),
            93..96 => {
                let (offset, from) = self.seek();
                Step::SeekShared(offset, from)
            }
            96..98 => Step::SetInfo(self.hints()),
            _ => Step::Reopen(self.reopening(model, kind)),
        }
    }

    fn reopening(&mut self, model: &Model, kind: DriverKind) -> Opening {
        // A file in memory stays there.
        let drivers = self.drivers.iter().copied();
        let reaching: Vec<_> = drivers
            .filter(|other| other.in_memory() == kind.in_memory())
            .collect();
        let kind = one_of(&mut self.rng, &reaching);
        self.opening(kind, !model.is_deleted_at_close())
    }

    fn seek(&mut self) -> (i64, Seek) {
        let rng = &mut self.rng;
        match rng.u32(..3) {
            0 => (rng.i64(-1..200), Seek::Set),
            1 => (rng.i64(-100..100), Seek::Current),
            _ => (rng.i64(-100..20), Seek::End),
        }
    }

    fn set_view(&mut self, model: &Model) -> Step {
        let ranks = model.views.len() as u64;
        let rng = &mut self.rng;
        let base = one_of(rng, &[0, 0, 1, 100, 4096]) + rng.u64(..2) * rng.u64(..50);
        let mut stored = match rng.u32(..2) {
            0 => Stored::Native,
            _ => one_of(rng, &Stored::ALL),
        };
        let mut etype = types::etype(rng);
        let mut displacements = vec![base; ranks as usize];
        let arrangement = match model.is_sequential() {
            true => rng.u32(..5),
            false => rng.u32(..16),
        };
        let filetypes = match arrangement {
            0 => vec![etype.clone(); ranks as usize],
            1 => vec![types::filetype(rng, &etype); ranks as usize],
            2 => vec![types::interleaved(rng, &etype); ranks as usize],
            3 => {
                (etype, stored) = (Spec::Basic(Basic::Byte), Stored::Native);
                vec![types::filetype_of_bytes(rng); ranks as usize]
            }
            4 => match rng.u32(..4) {
                0 => vec![Spec::Contiguous(0, Box::new(etype.clone())); ranks as usize],
                _ => vec![Spec::Dup(Box::new(etype.clone())); ranks as usize],
            },
            5..11 => types::partition(rng, ranks, &etype),
            _ => {
                let parts = (0..ranks).map(|rank| base + rank * PART_BYTES);
                displacements = parts.collect();
                (0..ranks).map(|_| types::filetype(rng, &etype)).collect()
            }
        };
        let views = displacements.into_iter().zip(filetypes);
        Step::SetView(
            views
                .map(|(displacement, filetype)| ViewSpec {
                    displacement: (!model.is_sequential()).then_some(displacement),
                    etype: etype.clone(),
                    filetype,
                    stored,
                })
                .collect(),
        )
    }

    fn each(&mut self, model: &Model) -> Step {
        let ranks = model.views.len();
        let everybody = self.crowded && self.rng.u32(..4) > 0;
        let every = if model.same_views() { 3 } else { 40 };
        let shared_user = match model.is_sequential() || self.rng.u32(..every) == 0 {
            true => Some(self.rng.usize(..ranks)),
            false => None,
        };
        let chosen = shared_user.unwrap_or_else(|| self.rng.usize(..ranks));
        let plan = |rank: usize| {
            if !everybody && rank != chosen {
                return Plan::default();
            }
            self.plan(model, rank, shared_user == Some(rank))
        };
        Step::Each((0..ranks).map(plan).collect())
    }

    fn plan(&mut self, model: &Model, rank: usize, shared: bool) -> Plan {
        let manners: &[Manner] = match self.rng.bool() {
            true => &[Manner::Blocking],
            false => &[
                Manner::Owned,
                Manner::Scoped,
                Manner::Owned,
                Manner::Blocking,
            ],
        };
        let mut actions = Vec::new();
        for _ in 0..self.rng.usize(1..6) {
            actions.push(match self.rng.u32(..10) {
                0 => {
                    let (offset, from) = self.seek();
                    Action::Seek(offset, from)
                }
                1 => Action::ByteOffset(self.rng.u64(..500)),
                _ => {
                    let manner = one_of(&mut self.rng, manners);
                    let place = self.place(model, rank, shared);
                    Action::Access(self.access(model, rank, place, manner))
                }
            });
        }
        Plan {
            actions,
            wait_seed: self.rng.u64(..),
        }
    }

    fn place(&mut self, model: &Model, rank: usize, shared: bool) -> Place {
        if shared && (model.is_sequential() || self.rng.bool()) {
            return Place::Shared;
        }
        match self.rng.u32(..3) {
            0 => Place::Individual,
            _ => Place::At(self.offset(model, rank)),
        }
    }

    fn offset(&mut self, model: &Model, rank: usize) -> u64 {
        if self.rng.u32(..3) == 0 {
            return self.offset_near_the_end(model, rank);
        }
        let most = model.views[rank].etypes_within(REACH_BYTES);
        self.rng.u64(..=most) / one_of(&mut self.rng, &[1, 1, 4, 20])
    }

    /// Close to the end of the file, if the view shows it.
    fn offset_near_the_end(&mut self, model: &Model, rank: usize) -> u64 {
        let view = &model.views[rank];
        let bytes = (model.file.len() as u64).saturating_sub(view.displacement);
        let most = view.etypes_within(bytes);
        most.saturating_sub(self.rng.u64(..30))
    }

    fn access(&mut self, model: &Model, rank: usize, place: Place, manner: Manner) -> Access {
        let writes = match model.mode {
            mode if mode.contains(Mode::READ_ONLY) => self.rng.u32(..15) == 0,
            mode if mode.contains(Mode::WRITE_ONLY) => self.rng.u32(..15) > 0,
            _ => self.rng.u32(..9) < 4,
        };
        let memory = self.memory(model, rank);
        Access {
            direction: match writes {
                true => Direction::Write,
                false => Direction::Read,
            },
            place,
            manner,
            memory,
        }
    }

    fn memory(&mut self, model: &Model, rank: usize) -> MemorySpec {
        let view = &model.views[rank].spec;
        let rng = &mut self.rng;
        let untyped = view.etype == Spec::Basic(Basic::Byte) && view.stored == Stored::Native;
        let etype = match untyped || rng.u32(..30) == 0 {
            true => types::etype(rng),
            false => view.etype.clone(),
        };
        let mut spec = match rng.u32(..3) {
            0 => etype.clone(),
            _ => types::memory(rng, &etype),
        };
        let mut count = rng.u64(..7);
        if self.large && rng.u32(..4) == 0 {
            let bytes = spec.map(&Basic::size).bytes(&Basic::size).len() as u64;
            count = rng.u64(LARGE_BYTES) / bytes.max(1);
            if rng.bool() {
                // Blocks so long that they are not worth gathering.
                let blocks = Spec::Contiguous(count / 10, Box::new(etype.clone()));
                let stride = blocks.map(&Basic::size).extent() + 40;
                (spec, count) = (Spec::Resized(0, stride, Box::new(blocks)), 10);
            }
        }
        MemorySpec {
            spec,
            count,
            fill: rng.u64(..),
        }
    }

    fn together(&mut self, model: &Model) -> Step {
        // Without equal views there is no order, only a rejection.
        let ordered_every = match (self.theme, model.same_views()) {
            (Theme::Together, false) => 40,
            _ => 4,
        };
        let kind = match model.is_sequential() || self.rng.u32(..ordered_every) == 0 {
            true => 0,
            false => self.rng.u32(1..4),
        };
        let manner = match kind {
            // No nonblocking call goes in rank order.
            0 => one_of(&mut self.rng, &[Manner::Blocking, Manner::Split]),
            _ => one_of(
                &mut self.rng,
                &[Manner::Blocking, Manner::Owned, Manner::Split],
            ),
        };
        Step::Together(self.collective(model, kind, manner))
    }

    /// Collective calls of which some go on while others are made.
    fn in_flight(&mut self, model: &Model) -> Step {
        let calls = (0..self.rng.usize(2..5)).map(|_| {
            let manner = one_of(
                &mut self.rng,
                &[Manner::Owned, Manner::Owned, Manner::Blocking],
            );
            // By the pointer, calls follow each other without overlap.
            let kind = one_of(&mut self.rng, &[1, 1, 1, 2]);
            self.collective(model, kind, manner)
        });
        let calls = calls.collect();
        Step::InFlight {
            calls,
            wait_seed: self.rng.u64(..),
        }
    }

    /// What each rank does in a collective call.
    fn collective(&mut self, model: &Model, kind: u32, manner: Manner) -> Vec<Access> {
        let ranks = model.views.len();
        // Ordered and individual accesses all go in one direction.
        let direction = self
            .access(model, 0, Place::Ordered, Manner::Blocking)
            .direction;
        // Ranks with parts of one array mostly go through it side by side.
        let common = match self.rng.u32(..3) {
            0 => None,
            _ => Some(self.offset(model, 0)),
        };
        let access = |rank| {
            let place = match kind {
                0 => Place::Ordered,
                1 => Place::Individual,
                _ => Place::At(common.unwrap_or_else(|| self.offset(model, rank))),
            };
            let mut access = self.access(model, rank, place, manner);
            if self.theme == Theme::Together {
                self.lengthen(&mut access.memory, ranks);
            }
            Access {
                direction,
                ..access
            }
        };
        (0..ranks).map(access).collect()
    }

    /// So much data that tiny windows make many rounds.
    fn lengthen(&mut self, memory: &mut MemorySpec, ranks: usize) {
        let item = memory.spec.map(&Basic::size).bytes(&Basic::size).len() as u64;
        let most = BYTES_TOGETHER_MAX / ranks as u64 / item.max(1);
        if most > memory.count {
            let least = memory.count;
            memory.count = self.rng.u64(least..=most) / one_of(&mut self.rng, &[1, 1, 8]);
        }
    }

    fn race(&mut self, model: &Model) -> Step {
        let manner = one_of(&mut self.rng, &[Manner::Blocking, Manner::Owned]);
        let access = self.access(model, 0, Place::Shared, manner);
        Step::Race(Access {
            direction: Direction::Write,
            ..access
        })
    }
}
