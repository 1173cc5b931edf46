//! A case: one file, opened on a communicator, and steps that all ranks take together.

use super::datatype::Datatype;

/// The communicator of the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Communicator {
    World,
    Own,
    Dup,
    Halves,
    Reversed,
}

impl Communicator {
    pub(super) const ALL: [Communicator; 5] = [
        Communicator::World,
        Communicator::Own,
        Communicator::Dup,
        Communicator::Halves,
        Communicator::Reversed,
    ];

    /// The ranks of the world that share a file, in the order of their communicator.
    pub(super) fn groups(self, ranks: usize) -> Vec<Vec<usize>> {
        match self {
            Communicator::World | Communicator::Dup => vec![(0..ranks).collect()],
            Communicator::Own => (0..ranks).map(|rank| vec![rank]).collect(),
            Communicator::Halves => {
                let middle = ranks.div_ceil(2);
                let halves = [(0..middle).collect(), (middle..ranks).collect()];
                halves
                    .into_iter()
                    .filter(|half: &Vec<_>| !half.is_empty())
                    .collect()
            }
            Communicator::Reversed => vec![(0..ranks).rev().collect()],
        }
    }
}

/// Keys and values of an info object.
pub(super) type Hints = Vec<(String, String)>;

/// Letters of an access mode, as in `cb` for `MPI_MODE_CREATE | MPI_MODE_RDWR`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Mode(pub(super) String);

/// The letters of modes and the names they stand for.
pub(super) const MODES: [(char, &str); 9] = [
    ('c', "MPI_MODE_CREATE"),
    ('r', "MPI_MODE_RDONLY"),
    ('w', "MPI_MODE_WRONLY"),
    ('b', "MPI_MODE_RDWR"),
    ('e', "MPI_MODE_EXCL"),
    ('d', "MPI_MODE_DELETE_ON_CLOSE"),
    ('u', "MPI_MODE_UNIQUE_OPEN"),
    ('a', "MPI_MODE_APPEND"),
    ('s', "MPI_MODE_SEQUENTIAL"),
];

impl Mode {
    pub(super) fn has(&self, letter: char) -> bool {
        self.0.contains(letter)
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Open {
    pub(super) mode: Mode,
    pub(super) hints: Hints,
}

/// What the file holds before it is opened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Fill {
    pub(super) bytes: i64,
    pub(super) salt: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Direction {
    Read,
    Write,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Family {
    Explicit,
    Individual,
    Shared,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum How {
    Blocking,
    Nonblocking,
    Split,
}

/// Whether all ranks of the communicator make a call together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Scope {
    Independent,
    Collective,
}

/// What one rank contributes to an access.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Part {
    pub(super) is_active: bool,
    pub(super) offset: i64,
    pub(super) count: i64,
    pub(super) memory: Datatype,
    /// Whether the buffer is `MPI_BOTTOM`.
    pub(super) is_absolute: bool,
    /// Whether the large-count form is called, where the host has it.
    pub(super) is_large: bool,
    pub(super) salt: u32,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Access {
    pub(super) direction: Direction,
    pub(super) family: Family,
    pub(super) scope: Scope,
    pub(super) how: How,
    /// One for each rank of the world.
    pub(super) parts: Vec<Part>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct View {
    pub(super) displacement: i64,
    pub(super) etype: Datatype,
    pub(super) filetype: Datatype,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Whence {
    Set,
    Current,
    End,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Step {
    /// One view for each rank, and hints.
    View(Vec<View>, Hints),
    Access(Access),
    /// Completes what is pending, by the given method.
    Complete(&'static str),
    SplitEnd,
    Seek(Vec<(i64, Whence)>),
    SeekShared(i64, Whence),
    SetSize(i64),
    Preallocate(i64),
    Sync,
    Atomicity(bool),
    Info(Hints),
    Extent(Datatype),
    Reopen(Open),
}

impl Step {
    /// What it is called in messages and in the list of known differences.
    pub(super) fn name(&self) -> String {
        match self {
            Step::View(..) => "set_view".into(),
            Step::Access(access) => access.name(),
            Step::Complete(method) => (*method).into(),
            Step::SplitEnd => "split_end".into(),
            Step::Seek(_) => "seek".into(),
            Step::SeekShared(..) => "seek_shared".into(),
            Step::SetSize(_) => "set_size".into(),
            Step::Preallocate(_) => "preallocate".into(),
            Step::Sync => "sync".into(),
            Step::Atomicity(_) => "set_atomicity".into(),
            Step::Info(_) => "set_info".into(),
            Step::Extent(_) => "get_type_extent".into(),
            Step::Reopen(_) => "reopen".into(),
        }
    }
}

impl Access {
    /// The function without `MPI_File_`.
    pub(super) fn name(&self) -> String {
        let verb = match self.direction {
            Direction::Read => "read",
            Direction::Write => "write",
        };
        let initial = match self.how {
            How::Nonblocking => "i",
            How::Blocking | How::Split => "",
        };
        let ending = match (self.family, self.scope) {
            (Family::Explicit, Scope::Independent) => "_at",
            (Family::Explicit, Scope::Collective) => "_at_all",
            (Family::Individual, Scope::Independent) => "",
            (Family::Individual, Scope::Collective) => "_all",
            (Family::Shared, Scope::Independent) => "_shared",
            (Family::Shared, Scope::Collective) => "_ordered",
        };
        let phase = match self.how {
            How::Split => "_begin",
            How::Blocking | How::Nonblocking => "",
        };
        format!("{initial}{verb}{ending}{phase}")
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Case {
    pub(super) seed: u64,
    pub(super) ranks: usize,
    pub(super) communicator: Communicator,
    pub(super) fill: Option<Fill>,
    /// Whether the shared pointer is asked for after every step.
    pub(super) asks_shared: bool,
    pub(super) open: Open,
    pub(super) steps: Vec<Step>,
}

/// Byte `at` of a pattern, as the C program makes it.
pub(super) fn pattern(salt: u32, at: i64) -> u8 {
    let mut mixed = salt
        .wrapping_mul(2_654_435_761)
        .wrapping_add((at as u32).wrapping_mul(40503))
        .wrapping_add(12345);
    mixed ^= mixed >> 13;
    mixed = mixed.wrapping_mul(0x5bd1_e995);
    (mixed >> 15) as u8
}

/// The memory of one rank's access: the bytes of its type with some on both sides.
pub(super) struct Memory {
    pub(super) bytes: i64,
    /// Where the type's address 0 is.
    pub(super) origin: i64,
    /// Where each byte of the data is.
    pub(super) places: Vec<i64>,
}

/// Bytes on both sides that must stay as they are.
const GUARD: i64 = 8;

impl Part {
    pub(super) fn memory(&self) -> Memory {
        let places = self.memory.layout().places(self.count);
        let low = places.iter().min().copied().unwrap_or(0).min(0);
        let high = places.iter().max().map_or(0, |last| last + 1).max(0);
        let origin = GUARD - low;
        Memory {
            bytes: high - low + 2 * GUARD,
            origin,
            places: places.into_iter().map(|place| place + origin).collect(),
        }
    }
}
