//! Random cases.

use super::case::{
    Access, Case, Communicator, Direction, Family, Fill, How, Mode, Open, Part, Scope, Step, View,
    Whence,
};
use super::datatype::{Datatype, Leaf, Order};
use super::draw_type::{self, Purpose, datatype};
use super::hints::{hints, some_hints};
use super::model::Model;
use super::random::Random;

/// Accesses of a rank are mostly not longer than this, in bytes.
const BYTES: i64 = 600;

/// Some are, to exceed the buffers of small hints and of libraries.
const BYTES_LONG: i64 = 60_000;

/// How often a step is drawn again that the standard leaves open, before the case ends.
const ATTEMPTS: usize = 12;

/// Methods of completing requests.
const COMPLETIONS: [&str; 7] = [
    "wait",
    "backwards",
    "test",
    "waitany",
    "waitsome",
    "waitall",
    "testall",
];

/// The case of a seed.
pub(super) fn case(seed: u64, ranks: usize) -> Case {
    let mut random = Random::new(seed ^ (ranks as u64) << 56);
    let communicator = if random.percent(50) {
        Communicator::World
    } else {
        *random.pick(&Communicator::ALL)
    };
    let fill = random.percent(60).then(|| Fill {
        bytes: if random.percent(10) {
            random.within(0, 20_000)
        } else {
            random.within(0, 900)
        },
        salt: random.salt(),
    });
    let mut case = Case {
        seed,
        ranks,
        communicator,
        asks_shared: random.percent(30),
        open: open(&mut random, fill.is_some()),
        fill,
        steps: Vec::new(),
    };
    let Ok(mut model) = Model::new(&case) else {
        return case;
    };
    let wanted = 1 + random.below(10) as usize;
    let mut rejected = 0;
    while case.steps.len() < wanted && rejected < ATTEMPTS && model.is_open() {
        let it = step(&mut random, &case, &model);
        let mut tried = model.clone();
        // Reads past the end are where the hosts go wrong most; with many of them little else is seen.
        if tried.take(&it).is_ok() && (!tried.is_short() || random.percent(15)) {
            model = tried;
            case.steps.push(it);
        } else {
            rejected += 1;
        }
    }
    if model.is_split() {
        case.steps.push(Step::SplitEnd);
    } else if model.is_busy() {
        let method: &str = random.pick::<&str>(&COMPLETIONS);
        case.steps.push(Step::Complete(method));
    }
    case
}

fn open(random: &mut Random, exists: bool) -> Open {
    let mut mode = match random.below(20) {
        0..=13 => "cb",
        14..=15 => "cw",
        16 => "b",
        17..=18 if exists => "r",
        19 if exists => "w",
        _ => "cb",
    }
    .to_owned();
    for (letter, chance) in [('a', 8), ('u', 15), ('d', 3), ('e', 3), ('s', 3)] {
        if random.percent(chance) {
            mode.push(letter);
        }
    }
    if mode.contains('s') {
        mode = mode.replace('b', "w");
    }
    Open {
        mode: Mode(mode),
        hints: hints(random),
    }
}

fn step(random: &mut Random, case: &Case, model: &Model) -> Step {
    if model.is_split() && random.percent(70) {
        return Step::SplitEnd;
    }
    if model.is_busy() && random.percent(40) {
        let method: &str = random.pick::<&str>(&COMPLETIONS);
        return Step::Complete(method);
    }
    match random.below(100) {
        0..=62 => Step::Access(access(random, case, model)),
        63..=76 => views(random, case),
        77..=84 => Step::Seek(seeks(random, case)),
        85..=86 => Step::SeekShared(random.within(-2, 60), whence(random)),
        87..=89 => Step::SetSize(size(random)),
        90..=91 => Step::Preallocate(size(random)),
        92 => Step::Sync,
        93..=94 => Step::Atomicity(random.percent(60)),
        95..=96 => Step::Info(some_hints(random)),
        97 => Step::Extent(draw_type::etype(random)),
        _ => Step::Reopen(open(random, true)),
    }
}

/// A size, now and then one that is an error.
fn size(random: &mut Random) -> i64 {
    if random.percent(4) {
        return -1;
    }
    random.within(0, 1500)
}

fn whence(random: &mut Random) -> Whence {
    *random.pick(&[Whence::Set, Whence::Set, Whence::Current, Whence::End])
}

fn seeks(random: &mut Random, case: &Case) -> Vec<(i64, Whence)> {
    let (base, apart) = (random.within(0, 40), random.within(0, 80));
    if random.percent(60) {
        let ranks = 0..case.ranks as i64;
        return ranks
            .map(|rank| (base + rank * apart, Whence::Set))
            .collect();
    }
    let ranks = 0..case.ranks;
    ranks
        .map(|_| (random.within(-5, 60), whence(random)))
        .collect()
}

fn views(random: &mut Random, case: &Case) -> Step {
    let ranks = case.ranks as i64;
    let etype = draw_type::etype(random);
    let unit = etype.layout().extent();
    let base = random.within(0, 100);
    let drawn: Vec<View> = match random.below(6) {
        // The same view everywhere, as shared pointers need it.
        0 | 1 => {
            let filetype = datatype(random, &etype, Purpose::File);
            let view = View {
                displacement: base,
                filetype: if random.percent(50) {
                    etype.clone()
                } else {
                    filetype
                },
                etype,
            };
            vec![view; case.ranks]
        }
        // Tiles of one type that take turns.
        2 | 3 => {
            let tile = datatype(random, &etype, Purpose::File);
            let layout = tile.layout();
            let end = layout.runs.iter().map(|(at, many)| at + many).max();
            let end = (end.unwrap_or(0).max(layout.high) + unit - 1) / unit * unit;
            let filetype = Datatype::Resized {
                low: 0,
                extent: end * ranks,
                of: Box::new(tile),
            };
            let ranks = 0..ranks;
            ranks
                .map(|rank| View {
                    displacement: base + rank * end,
                    etype: etype.clone(),
                    filetype: filetype.clone(),
                })
                .collect()
        }
        4 => {
            let order = *random.pick(&[Order::C, Order::Fortran]);
            let whole = draw_type::distributed(random, ranks, order, etype.clone());
            let ranks = 0..ranks;
            ranks
                .map(|rank| View {
                    displacement: base,
                    etype: etype.clone(),
                    filetype: whole.with_rank(rank),
                })
                .collect()
        }
        // Each rank its own.
        _ => (0..ranks)
            .map(|_| View {
                displacement: random.within(0, 300),
                etype: etype.clone(),
                filetype: datatype(random, &etype, Purpose::File),
            })
            .collect(),
    };
    let info = if random.percent(80) {
        Vec::new()
    } else {
        hints(random)
    };
    Step::View(drawn, info)
}

fn access(random: &mut Random, case: &Case, model: &Model) -> Access {
    let direction = match random.below(100) {
        0..=2 => *random.pick(&[Direction::Read, Direction::Write]),
        _ if model.may('w') => Direction::Write,
        _ if model.may('r') => Direction::Read,
        3..=40 => Direction::Read,
        _ => Direction::Write,
    };
    let family = match random.below(10) {
        1..=9 if model.may('s') => Family::Shared,
        0..=3 => Family::Explicit,
        4..=7 => Family::Individual,
        _ => Family::Shared,
    };
    let scope = *random.pick(&[Scope::Independent, Scope::Collective]);
    let how = match (random.below(10), scope) {
        (0..=5, _) => How::Blocking,
        (6, Scope::Collective) => How::Split,
        _ => How::Nonblocking,
    };
    // Now and then before the start of the view, which is an error.
    let is_negative = random.percent(2);
    let (base, apart) = if is_negative {
        (random.within(-900, -500), 1)
    } else {
        (random.within(0, 60), random.within(0, 100))
    };
    let limit = if random.percent(4) { BYTES_LONG } else { BYTES };
    let is_sparse = scope == Scope::Independent && random.percent(60);
    let ranks = 0..case.ranks;
    let parts = ranks.map(|rank| {
        let (leaf, etype) = model.etype(rank);
        let mut it = part(random, leaf, etype, limit);
        it.offset = base + rank as i64 * apart;
        it.is_active = !is_sparse || random.percent(50);
        it
    });
    Access {
        direction,
        family,
        scope,
        how,
        parts: parts.collect(),
    }
}

fn part(random: &mut Random, leaf: Leaf, etype: i64, limit: i64) -> Part {
    // Bytes may be read and written as anything.
    let leaf = if leaf == Leaf::Byte {
        *random.pick(&Leaf::ALL)
    } else {
        leaf
    };
    let basic = Datatype::Basic(leaf);
    let memory = if random.percent(35) {
        basic
    } else {
        datatype(random, &basic, Purpose::Memory)
    };
    let size = memory.layout().size();
    // Whole etypes are moved.
    let unit = etype / divisor(size, etype);
    let most = (limit / (size * unit)).clamp(1, 40_000);
    let times = if random.percent(7) {
        0
    } else {
        random.within(1, most)
    };
    Part {
        is_active: true,
        offset: 0,
        count: unit * times,
        memory,
        is_absolute: random.percent(12),
        is_large: random.percent(20),
        salt: random.salt(),
    }
}

fn divisor(a: i64, b: i64) -> i64 {
    if b == 0 { a } else { divisor(b, a % b) }
}
