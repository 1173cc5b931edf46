//! The input of a plan, on which all ranks agree.

use std::{cell::OnceCell, ops::Range};

use pario_hints::{ConfigList, Hints};

use crate::{Access, Direction, Facts, Fitness, LockProtocol, Pattern, Stripes, WindowWriter};

/// The size of a window between nodes if the aggregators' kernels cache the file
/// and there are no stripes to fill. A system call of this size costs next to
/// nothing per byte, and the memory of two windows is soon touched and fits the
/// processor's cache: with 16 MiB, the first call on a file took twice as long.
const CACHED_WINDOW_BYTES: u64 = 2 << 20;

/// Windows are larger if there are many ranks: each of them has to get to each
/// window, which costs as much as some calls.
const CALLS_PER_RANK: u64 = 4;

/// The same between nodes.
const BYTES_PER_RANK: u64 = 32 << 10;

/// But they are not larger than this part of the data: ranks copy to some while
/// others are transferred.
const SHARED_WINDOWS_MIN: u64 = 8;

/// The amount of data from which a lease pays off: it takes some 20 microseconds, in which a few
/// hundred small pieces could be written.
const LEASE_BYTES_MIN: u64 = 256 << 10;

/// The same per rank: each of them closes and opens the file, and cores may be scarce.
const LEASE_BYTES_PER_RANK: u64 = 64 << 10;

/// Whether holes between the ranks' pieces may be read and written back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rewriting {
    /// Holes may be written back.
    Allowed,
    /// Holes may be written back once a lease shows that nobody else has the file
    /// open, which takes longer than a small write.
    WithLease,
    /// Holes are left alone: windows are written piece by piece.
    Forbidden,
}

/// Whether ranks may share one lock on the whole file while each writes pages of
/// its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GroupLocks {
    /// They may.
    Allowed,
    /// Every range needs its own lock.
    Forbidden,
}

/// Settings from hints or a tuning profile. `None` leaves the choice to the
/// planner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tuning {
    /// Maximum number of bytes that an aggregator collects before it moves
    /// them.
    pub buffer_bytes: u64,
    /// Bytes of a window where ranks share memory.
    pub slice_bytes: Option<u64>,
    /// The same for few ranks, if it is not set: what stays in the processor's cache.
    pub cached_window_bytes: u64,
    /// Bytes that are copied in the time of a system call.
    pub call_bytes: u64,
    /// Number of aggregators (`cb_nodes`).
    pub aggregators: Option<u32>,
    /// Number of aggregators allowed per node (`cb_config_list`).
    pub config_list: Option<ConfigList>,
    /// Alignment of realms (`romio_cb_fr_alignment`).
    pub realm_alignment: Option<u64>,
    /// Bytes per request with which one process saturates its path to the file
    /// system.
    pub saturation_bytes: u64,
    /// Name of a partition.
    pub partition: Option<String>,
    /// Name of an algorithm.
    pub algorithm: Option<String>,
    /// Name of an exchange.
    pub exchange: Option<String>,
    /// Delay between timed groups (Zhang 2009), in microseconds.
    pub timed_delay_us: u64,
    /// Agents per server (Zhang 2009).
    pub agents_per_server: u32,
    /// Stripes per block in the partition `stripe-multiple` (Liao 2008).
    pub stripe_multiple: u64,
    /// Whether writes may rewrite holes.
    pub rewriting: Rewriting,
    /// Whether ranks that write different pages may share a lock on the file.
    pub group_locks: GroupLocks,
    /// Whether ranks that write their own data request locks on exactly its pages.
    pub locks_ahead: bool,
}

impl Default for Tuning {
    fn default() -> Tuning {
        Tuning {
            buffer_bytes: 16 << 20,
            slice_bytes: None,
            cached_window_bytes: Hints::default().cached_window_bytes(),
            call_bytes: Hints::default().call_bytes(),
            aggregators: None,
            config_list: None,
            realm_alignment: None,
            saturation_bytes: 1 << 20,
            partition: None,
            algorithm: None,
            exchange: None,
            timed_delay_us: 500,
            agents_per_server: 1,
            stripe_multiple: 2,
            rewriting: Rewriting::Forbidden,
            group_locks: GroupLocks::Forbidden,
            locks_ahead: false,
        }
    }
}

/// State kept from earlier calls on the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// Persistent realms, set by the first call that used them.
    pub persistent: Option<PersistentRealms>,
}

/// Persistent realms: blocks of the file, from byte 0 on, assigned round-robin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PersistentRealms {
    /// Block size in bytes; not zero.
    pub block: u64,
    /// The ranks that own blocks, round-robin.
    pub owners: Vec<u32>,
}

/// One collective call, as seen by all ranks.
#[derive(Clone, Debug)]
pub struct Case<'a> {
    /// Direction of the transfer.
    pub direction: Direction,
    /// The access of each rank.
    pub accesses: &'a [Access],
    /// The machine and the file system.
    pub facts: &'a Facts,
    /// Settings from hints.
    pub tuning: &'a Tuning,
    /// State kept from earlier calls.
    pub history: &'a History,
    /// Computed on first use.
    pattern: OnceCell<Pattern>,
}

impl<'a> Case<'a> {
    /// A collective call.
    pub fn new(
        direction: Direction,
        accesses: &'a [Access],
        facts: &'a Facts,
        tuning: &'a Tuning,
        history: &'a History,
    ) -> Case<'a> {
        Case {
            direction,
            accesses,
            facts,
            tuning,
            history,
            pattern: OnceCell::new(),
        }
    }

    /// Summary of all accesses.
    pub fn pattern(&self) -> &Pattern {
        self.pattern.get_or_init(|| Pattern::of(self))
    }

    /// Number of ranks.
    pub fn ranks(&self) -> u32 {
        self.accesses.len() as u32
    }

    /// The aggregate access region: from the first byte of any rank to the end
    /// of the last.
    pub fn region(&self) -> Range<u64> {
        let spans = || {
            self.accesses
                .iter()
                .filter(|a| !a.is_empty())
                .map(Access::span)
        };
        let start = spans().map(|span| span.start).min();
        let end = spans().map(|span| span.end).max();
        start.unwrap_or(0)..end.unwrap_or(0)
    }

    /// Number of data bytes of all ranks.
    pub fn bytes(&self) -> u64 {
        self.accesses
            .iter()
            .fold(0, |sum, access| sum.saturating_add(access.len()))
    }

    /// Alignment of realms: the one requested, else the one that the facts
    /// suggest.
    pub fn boundary(&self) -> u64 {
        self.tuning
            .realm_alignment
            .unwrap_or_else(|| self.facts.boundary())
            .max(1)
    }

    /// Alignment of a boundary between realms near a byte: as [`Case::boundary`],
    /// by the stripes at that byte if they vary.
    pub(crate) fn boundary_at(&self, file_byte: u64) -> u64 {
        match (&self.facts.placement, self.tuning.realm_alignment) {
            (Some(placement), None) if self.facts.lock_protocol != LockProtocol::Token => {
                let here = placement.sections(file_byte..file_byte.saturating_add(1));
                let known = here.first().and_then(|(_, stripes)| stripes.as_ref());
                known.map_or(self.boundary(), |it| it.striping.unit)
            }
            _ => self.boundary(),
        }
    }

    /// The stripes of the largest part of the region, if known.
    pub fn stripes(&self) -> Option<Stripes> {
        let sections = self.facts.sections(self.region());
        let largest = sections
            .into_iter()
            .max_by_key(|(file, _)| file.end - file.start);
        largest.map_or_else(|| self.facts.striping.map(Stripes::from), |it| it.1)
    }

    /// The number of objects that the file has, if there would be more aggregators
    /// than that, nobody asked for so many, and the writers of one object would take
    /// locks from each other.
    pub(crate) fn one_writer_per_object(&self, aggregators: u64) -> Option<u64> {
        let objects = self.stripes()?.striping.count;
        (self.spares_locks() && aggregators > objects).then_some(objects)
    }

    /// Whether an object should have one writer: servers manage the locks, and the
    /// number of aggregators is left to the planner.
    pub(crate) fn spares_locks(&self) -> bool {
        self.direction == Direction::Write
            && self.facts.lock_protocol == LockProtocol::Server
            && self.tuning.aggregators.is_none()
    }

    /// The stripes of the whole region, for methods that assign servers to
    /// ranks; if there are none, the reason why they cannot be used.
    pub(crate) fn one_striping(&self) -> Result<Stripes, Fitness> {
        let mut sections = self.facts.sections(self.region());
        match (sections.pop(), sections.is_empty()) {
            (None, _) => self.facts.striping.map(Stripes::from),
            (Some((_, stripes)), true) => stripes,
            _ => {
                return Err(Fitness::unfit(
                    "the striping changes within the accessed part of the file",
                ));
            }
        }
        .ok_or_else(|| Fitness::unfit("the striping of the file is unknown"))
    }

    /// Who moves windows, and their size: cache-sized where ranks share memory,
    /// a few times that where messages fill the cache of a kernel, and as large
    /// as allowed where the size of requests matters to servers.
    pub(crate) fn windows(&self) -> (WindowWriter, u64) {
        let nodes = &self.facts.nodes;
        let one_node = nodes.windows(2).all(|pair| pair[0] == pair[1]);
        let (writer, bytes) = match (one_node, self.facts.client.is_shared()) {
            (true, true) => (WindowWriter::Anyone, self.shared_window_bytes()),
            (false, true) if self.facts.striping.is_none() => {
                let bytes = u64::from(self.ranks()) * BYTES_PER_RANK;
                let bytes = bytes.max(CACHED_WINDOW_BYTES);
                (
                    WindowWriter::Aggregator,
                    bytes.min(self.tuning.buffer_bytes),
                )
            }
            _ => (WindowWriter::Aggregator, self.tuning.buffer_bytes),
        };
        (writer, bytes.max(1))
    }

    /// The size of a window that ranks share: a power of two if it is chosen here, because
    /// windows are allocated again when they grow.
    fn shared_window_bytes(&self) -> u64 {
        let chosen = || {
            let per_rank = CALLS_PER_RANK.saturating_mul(self.tuning.call_bytes);
            let wanted = u64::from(self.ranks()).saturating_mul(per_rank);
            let wanted = wanted.checked_next_power_of_two().unwrap_or(u64::MAX);
            let share = (self.pattern().region_bytes / SHARED_WINDOWS_MIN).checked_ilog2();
            wanted
                .min(share.map_or(0, |power| 1 << power))
                .max(self.tuning.cached_window_bytes)
        };
        self.tuning
            .slice_bytes
            .unwrap_or_else(chosen)
            .min(self.tuning.buffer_bytes)
    }

    /// The size of a buffer through which one rank reads what it needs by itself.
    pub(crate) fn private_buffer_bytes(&self) -> u64 {
        let tuning = self.tuning;
        let bytes = tuning.slice_bytes.unwrap_or(tuning.cached_window_bytes);
        bytes.min(self.tuning.buffer_bytes).max(1)
    }

    /// Whether the holes of a write may be written back, and a lease is worth its time if
    /// that takes one.
    pub fn can_rewrite_holes(&self) -> bool {
        match self.tuning.rewriting {
            Rewriting::Allowed => true,
            Rewriting::WithLease => self.is_worth_lease(),
            Rewriting::Forbidden => false,
        }
    }

    /// Whether a write is large enough for a lease, and has holes.
    pub fn is_worth_lease(&self) -> bool {
        let pattern = self.pattern();
        let enough = LEASE_BYTES_MIN.max(u64::from(self.ranks()) * LEASE_BYTES_PER_RANK);
        pattern.nodes == 1 && pattern.bytes >= enough && pattern.bytes < pattern.region_bytes
    }

    /// Whether windows can be used at all, that is, whether every rank's bytes
    /// ascend.
    pub fn is_increasing(&self) -> bool {
        self.accesses.iter().all(Access::is_increasing)
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{Fixture, dense};

    /// The size of the windows of so many ranks on one node that move a mebibyte each.
    fn window_bytes(ranks: u64, slice_bytes: Option<u64>) -> u64 {
        let accesses = (0..ranks).map(|rank| dense(rank << 20, 1 << 20));
        let mut fixture = Fixture::new(accesses.collect());
        fixture.tuning.slice_bytes = slice_bytes;
        fixture.case().windows().1
    }

    #[test]
    fn windows_of_many_ranks_are_larger() {
        let sizes = [2, 8, 16, 64, 128].map(|ranks| window_bytes(ranks, None) >> 10);
        assert_eq!(sizes, [256, 256, 512, 2048, 4096]);
        assert_eq!(window_bytes(1000, None), 16 << 20, "cb_buffer_size");
        assert_eq!(window_bytes(64, Some(5000)), 5000, "a hint counts");
    }

    #[test]
    fn windows_depend_on_the_machine() {
        let accesses = (0..64).map(|rank| dense(rank << 20, 1 << 20));
        let mut fixture = Fixture::new(accesses.collect());
        fixture.tuning.call_bytes = 16 << 10;
        assert_eq!(fixture.case().windows().1, 4 << 20);
        let accesses = (0..2).map(|rank| dense(rank << 20, 1 << 20));
        let mut fixture = Fixture::new(accesses.collect());
        fixture.tuning.cached_window_bytes = 128 << 10;
        assert_eq!(fixture.case().windows().1, 128 << 10);
        assert_eq!(fixture.case().private_buffer_bytes(), 128 << 10);
    }

    #[test]
    fn little_data_of_many_ranks_has_several_windows() {
        let accesses = (0..64).map(|rank| dense(rank << 16, 1 << 16));
        let fixture = Fixture::new(accesses.collect());
        assert_eq!(fixture.case().windows().1, 512 << 10);
    }
}
