//! What the ranks do while something fails: calls in a row, as data.

use std::borrow::Cow;

use pario::Mode;

/// Bytes of the file that one call moves.
pub(crate) const NATIVE_COUNT: usize = 48;
/// The canary in front of the bytes that the ranks use.
pub(crate) const BASE: usize = 256;
/// What each rank has for itself where views don't interleave.
pub(crate) const REGION: usize = 1024;
/// Bytes of the file before the ranks come: canaries, all of them.
pub(crate) const FILE_BYTES: usize = 6000;

/// What a rank sees of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pattern {
    /// A region of its own.
    Region,
    /// The same bytes as the others.
    Common,
    /// Pieces between those of the others, with a gap behind.
    Strided,
    /// The same, as `long`s in external32: 8 bytes in memory, 4 in the file.
    External,
    /// A region of its own that begins near the end of the file.
    BeyondTheEnd,
    /// Whole blocks of the file system, with a bit before and after them.
    Blocks,
}

/// Which call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    At,
    Individual,
    Nonblocking,
    Shared,
    NonblockingShared,
    /// Collective from here on.
    AtAll,
    All,
    Ordered,
    /// Several, under way together.
    NonblockingAtAll,
    SplitAtAll,
    SplitAll,
    SplitOrdered,
}

impl How {
    pub(crate) fn is_collective(self) -> bool {
        !matches!(
            self,
            At | Individual | Nonblocking | Shared | NonblockingShared
        )
    }
}

/// How the data lies in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lie {
    Dense,
    Scattered,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    View(Pattern),
    Write(How, Lie),
    Read(How, Lie),
    RewindShared,
    Size,
    SetSize(usize),
    Preallocate(usize),
    Sync,
    Atomic,
}

/// A hint's name and value.
pub(crate) type Hint = (&'static str, &'static str);

#[derive(Clone, Debug)]
pub(crate) struct Scenario {
    pub(crate) name: Cow<'static, str>,
    pub(crate) ranks: &'static [u32],
    /// Ranks of a node in a row; those of different nodes share no memory.
    pub(crate) ranks_per_node: u32,
    pub(crate) mode: Mode,
    pub(crate) hints: Cow<'static, [Hint]>,
    pub(crate) steps: &'static [Step],
    pub(crate) telling: Telling,
}

/// Whether a fault must show in some result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Telling {
    Always,
    /// Requests that only bring data near may fail unnoticed: whoever needs
    /// the data asks again.
    Perhaps,
}

const ONE_OR_THREE: &[u32] = &[1, 3];
/// No scenario has more.
pub(crate) const ALL_RANKS: u32 = u32::MAX;

use How::*;
use Lie::*;
use Step::*;

const fn scenario(name: &'static str, hints: &'static [Hint], steps: &'static [Step]) -> Scenario {
    Scenario {
        name: Cow::Borrowed(name),
        ranks: ONE_OR_THREE,
        ranks_per_node: ALL_RANKS,
        mode: Mode::READ_WRITE,
        hints: Cow::Borrowed(hints),
        steps,
        telling: Telling::Always,
    }
}

/// Between nodes and without hints, so little data travels with the messages that start and end
/// collective calls.
const fn two_nodes(name: &'static str, steps: &'static [Step]) -> Scenario {
    Scenario {
        name: Cow::Borrowed(name),
        ranks: &[4],
        ranks_per_node: 2,
        mode: Mode::READ_WRITE,
        hints: Cow::Borrowed(&[]),
        steps,
        telling: Telling::Always,
    }
}

const STRIDED: &[Step] = &[
    View(Pattern::Strided),
    Write(At, Dense),
    Read(At, Dense),
    Write(Individual, Scattered),
    Write(Individual, Dense),
    Read(At, Scattered),
];

const EXTERNAL: &[Step] = &[
    View(Pattern::External),
    Write(At, Dense),
    Write(Individual, Dense),
    Read(At, Dense),
    Write(AtAll, Dense),
    Read(Nonblocking, Dense),
];

const SHARED: &[Step] = &[
    View(Pattern::Common),
    Write(Shared, Dense),
    Write(NonblockingShared, Dense),
    Write(Ordered, Scattered),
    RewindShared,
    Read(Shared, Dense),
    Read(Ordered, Dense),
    Read(NonblockingShared, Dense),
];

const COLLECTIVE: &[Step] = &[
    View(Pattern::Strided),
    Write(AtAll, Dense),
    Write(All, Scattered),
    Read(AtAll, Dense),
    Read(All, Scattered),
    Write(All, Dense),
    Sync,
];

/// Every scenario that the countdown goes through.
pub(crate) const SCENARIOS: &[Scenario] = &[
    scenario(
        "contiguous",
        &[],
        &[
            View(Pattern::Region),
            Write(At, Dense),
            Write(Individual, Scattered),
            Read(Individual, Dense),
            Read(At, Scattered),
            Sync,
        ],
    ),
    scenario(
        "the end of the file",
        &[],
        &[
            View(Pattern::BeyondTheEnd),
            Read(At, Dense),
            Write(At, Dense),
            Size,
            Read(At, Dense),
            Read(Individual, Dense),
            Write(AtAll, Scattered),
            Read(AtAll, Dense),
        ],
    ),
    scenario(
        "strided, direct",
        &[
            ("pario_write_method", "direct"),
            ("pario_read_method", "direct"),
        ],
        STRIDED,
    ),
    scenario(
        "strided, list of three",
        &[
            ("pario_write_method", "list"),
            ("pario_read_method", "list"),
            ("pario_list_pieces", "3"),
        ],
        STRIDED,
    ),
    scenario(
        "strided, list",
        &[
            ("pario_write_method", "list"),
            ("pario_read_method", "list"),
        ],
        STRIDED,
    ),
    scenario(
        "strided, sieve with locks",
        &[
            ("pario_write_method", "sieve"),
            ("pario_read_method", "sieve"),
            ("pario_rmw", "locked"),
            ("ind_wr_buffer_size", "50"),
            ("ind_rd_buffer_size", "60"),
        ],
        STRIDED,
    ),
    Scenario {
        name: Cow::Borrowed("strided, sieve alone"),
        ranks: &[1],
        ranks_per_node: ALL_RANKS,
        mode: Mode::READ_WRITE.union(Mode::UNIQUE_OPEN),
        hints: Cow::Borrowed(&[
            ("pario_write_method", "sieve"),
            ("pario_read_method", "sieve"),
            ("ind_wr_buffer_size", "50"),
        ]),
        steps: STRIDED,
        telling: Telling::Always,
    },
    scenario(
        "strided, locked but direct",
        &[("pario_rmw", "locked"), ("pario_write_method", "direct")],
        STRIDED,
    ),
    scenario("external32", &[("pario_write_method", "list")], EXTERNAL),
    scenario(
        "external32, sieve with locks",
        &[
            ("pario_write_method", "sieve"),
            ("pario_rmw", "locked"),
            ("ind_wr_buffer_size", "50"),
        ],
        EXTERNAL,
    ),
    scenario(
        "nonblocking, pool",
        &[("pario_async", "pool")],
        &[
            View(Pattern::Region),
            Write(Nonblocking, Dense),
            Read(Nonblocking, Dense),
            View(Pattern::Strided),
            Write(Nonblocking, Dense),
            Read(Nonblocking, Scattered),
        ],
    ),
    scenario(
        "nonblocking, automatic",
        &[("pario_rmw", "locked"), ("pario_inflight_bytes", "1")],
        &[
            View(Pattern::Strided),
            Write(Nonblocking, Scattered),
            Read(Nonblocking, Dense),
        ],
    ),
    scenario(
        "shared pointer in memory",
        &[("pario_shared_pointer", "memory")],
        SHARED,
    ),
    scenario(
        "shared pointer in a file",
        &[("pario_shared_pointer", "file")],
        SHARED,
    ),
    scenario(
        "shared pointer at rank 0",
        &[("pario_shared_pointer", "owner")],
        SHARED,
    ),
    scenario("collective", &[], COLLECTIVE),
    scenario(
        "collective, each for itself",
        &[("romio_cb_write", "disable"), ("romio_cb_read", "disable")],
        COLLECTIVE,
    ),
    scenario(
        "collective, two for all in small windows",
        &[
            ("romio_cb_write", "enable"),
            ("romio_cb_read", "enable"),
            ("cb_buffer_size", "64"),
            ("cb_nodes", "2"),
        ],
        COLLECTIVE,
    ),
    scenario(
        "collective, one for all by messages",
        &[
            ("romio_cb_write", "enable"),
            ("romio_cb_read", "enable"),
            ("pario_exchange", "messages"),
            ("cb_buffer_size", "200"),
            ("cb_nodes", "1"),
        ],
        COLLECTIVE,
    ),
    two_nodes("collective, two nodes", COLLECTIVE),
    two_nodes(
        "the end of the file, two nodes",
        &[
            View(Pattern::BeyondTheEnd),
            Read(AtAll, Dense),
            Write(AtAll, Dense),
            Size,
            Read(AtAll, Scattered),
            Read(All, Dense),
        ],
    ),
    scenario(
        "atomic",
        &[("pario_write_method", "direct")],
        &[
            Atomic,
            View(Pattern::Strided),
            Write(At, Dense),
            Read(At, Dense),
            Write(AtAll, Scattered),
            Read(Nonblocking, Dense),
        ],
    ),
    scenario(
        "sizes",
        &[("pario_sync_on_close", "true")],
        &[
            Size,
            Preallocate(7000),
            Size,
            SetSize(8000),
            View(Pattern::BeyondTheEnd),
            Write(At, Dense),
            Sync,
            SetSize(9500),
            Size,
            Read(At, Dense),
        ],
    ),
    Scenario {
        name: Cow::Borrowed("append"),
        ranks: ONE_OR_THREE,
        ranks_per_node: ALL_RANKS,
        mode: Mode::READ_WRITE.union(Mode::APPEND),
        hints: Cow::Borrowed(&[]),
        steps: &[View(Pattern::Common), Write(Ordered, Dense), Sync],
        telling: Telling::Always,
    },
    Scenario {
        name: Cow::Borrowed("writing only"),
        ranks: ONE_OR_THREE,
        ranks_per_node: ALL_RANKS,
        mode: Mode::WRITE_ONLY.union(Mode::CREATE),
        hints: Cow::Borrowed(&[("pario_write_method", "sieve"), ("pario_rmw", "locked")]),
        steps: &[
            View(Pattern::Strided),
            Write(At, Dense),
            Write(All, Scattered),
        ],
        telling: Telling::Always,
    },
    scenario(
        "direct I/O",
        &[("direct_write", "true"), ("direct_read", "true")],
        &[
            View(Pattern::Blocks),
            Write(At, Dense),
            Read(At, Dense),
            Write(Nonblocking, Dense),
            View(Pattern::Strided),
            Write(AtAll, Dense),
            Read(AtAll, Dense),
        ],
    ),
];
