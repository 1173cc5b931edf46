//! Where everything stands in the shared memory of a world.

use super::operations;

/// Words that different ranks write keep this far apart, so that they do not
/// pull each other's cache lines away (two lines: processors fetch pairs).
pub(super) const LINE: usize = 128;

/// The contexts that have slots for fast collectives. Further duplicates work,
/// too, with collectives made of messages.
pub(super) const SLOT_SETS: usize = 64;

/// The longest contribution to a collective that fits a slot.
pub(super) const INLINE_BYTES: usize = 248;

/// Memory that comes with the slots, for whatever their users like: for all of
/// them, and for each rank.
const SCRATCH_BYTES: usize = 2 * LINE;
const SCRATCH_RANK_BYTES: usize = 64;

/// A contribution: its length, then its bytes.
const SLOT_BYTES: usize = size_of::<u64>() + INLINE_BYTES;
/// What a rank has in a set of slots: its count of operations, and its slots.
const PLACE_BYTES: usize = LINE + operations::SLOTS * SLOT_BYTES;

/// A line for event and state, then the senders that wait for the rank.
const RANK_BYTES: usize = LINE + (super::RANKS_MAX as usize / 8).next_multiple_of(LINE);

/// A page of payload and a header. Not a power of two: the first lines of the
/// cells, which every look touches, would share the sets of a cache.
pub(super) const CELL_BYTES: usize = 4096 + LINE;

/// The packets that a queue holds. With few ranks enough to keep sender and
/// receiver of a long message busy; with many, a rank that waits empties its
/// queue anyway.
const CELLS_MAX: usize = 32;
const CELLS_MIN: usize = 16;
/// The memory that the queues of a world should take together, as far as
/// `CELLS_MIN` lets them.
const QUEUES_BYTES: usize = 16 << 20;

/// The arrangement of a world's memory:
///
/// - the world: first loss, whether a rank has left, next context;
/// - per rank: its event and its state, and who waits for space in its queue;
/// - sets of collective slots: a header line, scratch memory, a place per rank;
/// - one queue of packets per receiver.
#[derive(Clone, Copy, Debug)]
pub(super) struct Geometry {
    ranks: usize,
    /// The cells of a queue, a power of two.
    pub(super) cells: usize,
}

impl Geometry {
    pub(super) fn new(ranks: u32) -> Self {
        let ranks = ranks as usize;
        let share = QUEUES_BYTES / ranks.max(1) / CELL_BYTES;
        let cells = share.next_power_of_two().clamp(CELLS_MIN, CELLS_MAX);
        Geometry { ranks, cells }
    }

    pub(super) fn first_loss(&self) -> usize {
        0
    }

    pub(super) fn has_departures(&self) -> usize {
        size_of::<u64>()
    }

    pub(super) fn next_context(&self) -> usize {
        LINE
    }

    pub(super) fn event(&self, rank: usize) -> usize {
        2 * LINE + rank * RANK_BYTES
    }

    pub(super) fn state(&self, rank: usize) -> usize {
        self.event(rank) + crate::Event::BYTES
    }

    /// The senders that wait for space in a rank's queue.
    pub(super) fn waiting_senders(&self, rank: usize) -> usize {
        self.event(rank) + LINE
    }

    fn slot_sets(&self) -> usize {
        self.event(self.ranks)
    }

    fn slot_set_bytes(&self) -> usize {
        LINE + self.scratch_bytes() + self.ranks * PLACE_BYTES
    }

    /// How much memory of a set of slots is its users' own.
    pub(super) fn scratch_bytes(&self) -> usize {
        (SCRATCH_BYTES + self.ranks * SCRATCH_RANK_BYTES).next_multiple_of(LINE)
    }

    /// The memory of a set of slots that is its users' own.
    pub(super) fn scratch(&self, set: usize) -> usize {
        self.slot_set(set) + LINE
    }

    pub(super) fn slot_set(&self, set: usize) -> usize {
        self.slot_sets() + set * self.slot_set_bytes()
    }

    pub(super) fn place(&self, set: usize, rank: usize) -> usize {
        self.scratch(set) + self.scratch_bytes() + rank * PLACE_BYTES
    }

    pub(super) fn slot(&self, set: usize, rank: usize, operation: u64) -> usize {
        self.place(set, rank) + LINE + operations::slot(operation) * SLOT_BYTES
    }

    /// The queue that leads to a rank.
    pub(super) fn queue(&self, rank: usize) -> usize {
        let queues = self.slot_set(SLOT_SETS).next_multiple_of(LINE);
        let each = super::packet_queue::QUEUE_HEADER_BYTES + self.cells * CELL_BYTES;
        queues + rank * each
    }

    pub(super) fn total_bytes(&self) -> usize {
        self.queue(self.ranks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_grows_with_the_ranks_and_not_with_their_pairs() {
        let mib = |ranks| Geometry::new(ranks).total_bytes() >> 20;
        let sizes = [1, 4, 16, 32, 64, 128, 256, 512, 1024].map(mib);
        assert_eq!(sizes, [0, 0, 2, 5, 11, 22, 27, 55, 110]);
    }
}
