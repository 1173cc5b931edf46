//! Where everything stands in the shared memory of a world.

/// Words that different ranks write keep this far apart, so that they do not
/// pull each other's cache lines away (two lines: processors fetch pairs).
pub(super) const LINE: usize = 128;

/// The contexts that have a board for fast collectives. Further duplicates work
/// too, with collectives made of messages.
pub(super) const BOARDS: usize = 64;

/// The longest contribution to a collective that is written on the board.
pub(super) const INLINE_BYTES: usize = 248;

/// Memory that comes with a board, for whatever its users like: so much for all
/// of them, and so much for each rank.
const SCRATCH_BYTES: usize = 2 * LINE;
const SCRATCH_RANK_BYTES: usize = 64;

/// A contribution: its length, then its bytes.
const SLOT_BYTES: usize = size_of::<u64>() + INLINE_BYTES;
/// What a rank has on a board: its count of operations, and two slots.
const PLACE_BYTES: usize = LINE + 2 * SLOT_BYTES;

/// A line for bell and state, then the flags.
const RANK_BYTES: usize = LINE + (super::RANKS_MAX as usize / 8).next_multiple_of(LINE);

const LARGEST_RING_BYTES: usize = 256 << 10;
const SMALLEST_RING_BYTES: usize = 16 << 10;
/// What the rings of a world should take together, as far as their smallest
/// size lets them.
const RINGS_BYTES: usize = 64 << 20;

/// The arrangement of a world's memory:
///
/// - the world: first loss, next context;
/// - two lines a rank: its bell and its state, and the flags of its rings;
/// - boards: one header line, scratch memory, then one place a rank;
/// - rings, one for each sender and receiver.
#[derive(Clone, Copy, Debug)]
pub(super) struct Geometry {
    ranks: usize,
    pub(super) ring_bytes: usize,
}

impl Geometry {
    pub(super) fn new(ranks: u32) -> Self {
        let ranks = ranks as usize;
        let share = RINGS_BYTES / (ranks * ranks).max(1);
        let ring_bytes = share
            .clamp(SMALLEST_RING_BYTES, LARGEST_RING_BYTES)
            .next_power_of_two();
        Geometry { ranks, ring_bytes }
    }

    pub(super) fn first_loss(&self) -> usize {
        0
    }

    pub(super) fn next_context(&self) -> usize {
        LINE
    }

    pub(super) fn bell(&self, rank: usize) -> usize {
        2 * LINE + rank * RANK_BYTES
    }

    pub(super) fn state(&self, rank: usize) -> usize {
        self.bell(rank) + crate::Event::BYTES
    }

    /// The flags of the rings that lead to a rank, one bit a sender.
    pub(super) fn flags(&self, rank: usize) -> usize {
        self.bell(rank) + LINE
    }

    fn boards(&self) -> usize {
        self.bell(self.ranks)
    }

    fn board_bytes(&self) -> usize {
        LINE + self.scratch_bytes() + self.ranks * PLACE_BYTES
    }

    /// How much memory of a board is its users' own.
    pub(super) fn scratch_bytes(&self) -> usize {
        (SCRATCH_BYTES + self.ranks * SCRATCH_RANK_BYTES).next_multiple_of(LINE)
    }

    /// The memory of a board that is its users' own.
    pub(super) fn scratch(&self, board: usize) -> usize {
        self.board(board) + LINE
    }

    pub(super) fn board(&self, board: usize) -> usize {
        self.boards() + board * self.board_bytes()
    }

    pub(super) fn place(&self, board: usize, rank: usize) -> usize {
        self.scratch(board) + self.scratch_bytes() + rank * PLACE_BYTES
    }

    pub(super) fn slot(&self, board: usize, rank: usize, operation: u64) -> usize {
        let parity = (operation % 2) as usize;
        self.place(board, rank) + LINE + parity * SLOT_BYTES
    }

    pub(super) fn ring(&self, from: usize, to: usize) -> usize {
        let rings = self.board(BOARDS).next_multiple_of(LINE);
        let each = super::ring::HEADER_BYTES + self.ring_bytes;
        rings + (from * self.ranks + to) * each
    }

    pub(super) fn total_bytes(&self) -> usize {
        self.ring(self.ranks, 0)
    }
}
