//! Locks of writes where servers manage them (Liao 2008, section II-B), counted
//! from plans.
//!
//! A server grants a client a lock on a range of an object. If no other client
//! holds a lock that conflicts, the range is extended to the nearest lock of
//! another client, so that later writes need no further request. Otherwise the
//! conflicting locks are revoked, which makes their holders write back their
//! caches, and only the requested range is granted. This is how Lustre does it;
//! its own counts also depend on timing and are higher.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
};

use crate::{
    Access, Case, Direction, GroupLocks, LockProtocol, Placement, Plan, Rounds, coverage, schedule,
};

/// The locks of one call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LockCount {
    /// Locks requested.
    pub requests: u64,
    /// Locks that were taken from their holders.
    pub revoked: u64,
    /// Pairs of a client and an object that it writes to: the fewest requests
    /// possible.
    pub pairs: u64,
    /// Stripes that several clients write to.
    pub shared_stripes: u64,
}

/// Plans with more writes are not counted.
const WRITES_MAX: usize = 1 << 20;

/// An object: its component and its number there.
type Object = (usize, u64);

/// A write of a client to an object.
type Write = (Object, Range<u64>);

/// Counts the locks that the writes of a plan need if all clients write in
/// lockstep. `None` for reads, if the striping is unknown, and for plans whose
/// writes are not known in advance or too many.
pub fn count(case: &Case<'_>, plan: &Plan) -> Option<LockCount> {
    if case.direction == Direction::Read {
        return None;
    }
    let placement = match &case.facts.placement {
        Some(placement) => placement.clone(),
        None => Placement::uniform(case.stripes()?.striping),
    };
    let mut writes = Writes {
        case,
        placement,
        by_client: BTreeMap::new(),
        count: 0,
    };
    match plan {
        Plan::Rounds(rounds) => writes.of_rounds(rounds)?,
        Plan::Individual if is_group_lockable(case) => {
            return Some(in_group(case, &writes.placement));
        }
        Plan::Individual | Plan::Timed(_) => {
            for (rank, access) in (0..).zip(case.accesses) {
                writes.of_access(rank, access)?;
            }
        }
        Plan::Segments(_) | Plan::PrivateSieve { .. } | Plan::Prefetch(_) => return None,
    }
    let is_exact = case.tuning.locks_ahead && matches!(plan, Plan::Individual);
    Some(writes.locks(match is_exact {
        true => Granted::Exactly,
        false => Granted::Extended,
    }))
}

/// On which range a lock is granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Granted {
    /// As long as possible.
    Extended,
    /// As requested: locks that are had in advance.
    Exactly,
}

/// The locks of writes under a group lock: one per client and object of the file.
fn in_group(case: &Case<'_>, placement: &Placement) -> LockCount {
    let with_data = (0..).zip(case.accesses).filter(|it| !it.1.is_empty());
    let clients: BTreeSet<u32> = with_data.map(|(rank, _)| client_of(case, rank)).collect();
    let objects = placement.components().iter().map(|it| it.striping.count);
    let objects = objects.fold(0, u64::saturating_add);
    let requests = objects.saturating_mul(clients.len() as u64);
    LockCount {
        requests,
        pairs: requests,
        ..LockCount::default()
    }
}

/// The client of a rank: its node, or itself.
fn client_of(case: &Case<'_>, rank: u32) -> u32 {
    match case.facts.client.is_shared() {
        true => case.facts.nodes[rank as usize],
        false => rank,
    }
}

/// The writes of each client, in order.
struct Writes<'a> {
    case: &'a Case<'a>,
    placement: Placement,
    by_client: BTreeMap<u32, Vec<Write>>,
    count: usize,
}

impl Writes<'_> {
    fn of_rounds(&mut self, rounds: &Rounds) -> Option<()> {
        let (accesses, ranks) = (self.case.accesses, self.case.ranks());
        for scheduled in rounds.schedule(accesses) {
            let rank = rounds.aggregators[scheduled.aggregator].rank;
            for extent in scheduled.window.extents() {
                let members = rounds.members(scheduled.aggregator, ranks);
                let members = members.map(|member| &accesses[member as usize]);
                self.add(rank, schedule::useful(members, extent.clone()))?;
            }
        }
        Some(())
    }

    fn of_access(&mut self, rank: u32, access: &Access) -> Option<()> {
        if access.stats().pieces > WRITES_MAX as u64 {
            return None;
        }
        let pieces = coverage::covered(std::iter::once(access), access.span());
        pieces
            .into_iter()
            .try_for_each(|piece| self.add(rank, piece))
    }

    fn add(&mut self, rank: u32, file: Range<u64>) -> Option<()> {
        let client = client_of(self.case, rank);
        let writes = self.by_client.entry(client).or_default();
        for part in self.placement.parts(file) {
            self.count += 1;
            if self.count > WRITES_MAX {
                return None;
            }
            let range = part.object_offset..part.object_offset + part.len;
            writes.push(((part.component, part.object), range));
        }
        Some(())
    }

    fn locks(&self, granted: Granted) -> LockCount {
        let mut locks: BTreeMap<Object, Held> = BTreeMap::new();
        let mut count = LockCount::default();
        let longest = self.by_client.values().map(Vec::len).max().unwrap_or(0);
        for step in 0..longest {
            for (client, writes) in &self.by_client {
                if let Some((object, range)) = writes.get(step) {
                    let held = locks.entry(*object).or_default();
                    held.write(*client, range.clone(), granted, &mut count);
                }
            }
        }
        count.pairs = self
            .by_client
            .values()
            .map(|writes| {
                let objects: BTreeSet<Object> = writes.iter().map(|write| write.0).collect();
                objects.len() as u64
            })
            .sum();
        count.shared_stripes = self.shared_stripes();
        count
    }

    fn shared_stripes(&self) -> u64 {
        let mut writers: BTreeMap<(Object, u64), (u32, bool)> = BTreeMap::new();
        for (client, writes) in &self.by_client {
            for (object, range) in writes {
                let unit = self.placement.components()[object.0].striping.unit;
                let stripe = (*object, range.start / unit);
                let (writer, is_shared) = writers.entry(stripe).or_insert((*client, false));
                *is_shared |= writer != client;
            }
        }
        writers.values().filter(|(_, shared)| *shared).count() as u64
    }
}

/// The locks on an object.
#[derive(Debug, Default)]
struct Held {
    locks: Vec<(u32, Range<u64>)>,
}

impl Held {
    fn write(&mut self, client: u32, range: Range<u64>, granted: Granted, count: &mut LockCount) {
        let covers = |held: &Range<u64>| held.start <= range.start && range.end <= held.end;
        let is_held = |lock: &(u32, Range<u64>)| lock.0 == client && covers(&lock.1);
        if self.locks.iter().any(is_held) {
            return;
        }
        count.requests += 1;
        let before = self.locks.len();
        let overlaps = |held: &Range<u64>| held.start < range.end && range.start < held.end;
        self.locks
            .retain(|(holder, held)| *holder == client || !overlaps(held));
        let revoked = (before - self.locks.len()) as u64;
        count.revoked += revoked;
        let granted = match (revoked, granted) {
            (0, Granted::Extended) => self.extended(client, &range),
            _ => range,
        };
        self.locks.push((client, granted));
    }

    /// The range up to the nearest locks of other clients.
    fn extended(&self, client: u32, range: &Range<u64>) -> Range<u64> {
        let others = || self.locks.iter().filter(|lock| lock.0 != client);
        let ends = others().map(|(_, held)| held.end);
        let starts = others().map(|(_, held)| held.start);
        let start = ends.filter(|end| *end <= range.start).max();
        let end = starts.filter(|start| *start >= range.end).min();
        start.unwrap_or(0)..end.unwrap_or(u64::MAX)
    }
}

/// The size of a page in the caches of Lustre's clients.
const PAGE_BYTES: u64 = match cfg!(target_arch = "x86_64") {
    true => 4 << 10,
    false => 64 << 10,
};

/// Accesses with more pieces are not examined.
const PAGED_PIECES_MAX: u64 = 1 << 16;

/// Whether every piece of an access consists of whole pages.
pub fn is_paged(access: &Access) -> bool {
    let is_whole =
        |it: &Range<u64>| it.start.is_multiple_of(PAGE_BYTES) && it.end.is_multiple_of(PAGE_BYTES);
    let pieces = || coverage::covered(std::iter::once(access), access.span());
    access.is_empty() || access.stats().pieces <= PAGED_PIECES_MAX && pieces().iter().all(is_whole)
}

/// Whether a write can be made under a group lock: servers manage the locks,
/// several nodes take part, and every piece consists of whole pages, since the
/// caches of the lock's holders are not coherent with each other.
pub fn is_group_lockable(case: &Case<'_>) -> bool {
    case.tuning.group_locks == GroupLocks::Allowed
        && case.direction == Direction::Write
        && case.facts.lock_protocol == LockProtocol::Server
        && case.pattern().nodes > 1
        && case.is_increasing()
        && case.accesses.iter().all(is_paged)
}

/// Whether two ranks on different nodes that are neighbours in the file have
/// data under one lock.
pub(crate) fn are_shared(case: &Case<'_>) -> bool {
    let access = |rank: u32| &case.accesses[rank as usize];
    let node = |rank: u32| case.facts.nodes[rank as usize];
    let mut ranks: Vec<u32> = (0..case.ranks())
        .filter(|rank| !access(*rank).is_empty())
        .collect();
    ranks.sort_unstable_by_key(|rank| access(*rank).span().start);
    let lock_at = |byte: u64| {
        let unit = case.boundary_at(byte);
        let start = byte - byte % unit;
        start..start.saturating_add(unit)
    };
    let shares = |rank: u32, byte: u64| !access(rank).data_in(lock_at(byte)).is_empty();
    ranks.windows(2).any(|pair| {
        let (first, second) = (pair[0], pair[1]);
        node(first) != node(second)
            && (shares(first, access(second).span().start)
                || shares(second, access(first).span().end - 1))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Client, Striping,
        partition::PARTITIONS,
        testing::{Fixture, dense, strided},
    };

    /// Interleaved pieces of four ranks on four nodes, and a Lustre file with
    /// stripes on four servers: the calls of the measurements in
    /// `docs/filesystems-parallel.md`.
    fn interleaved(bytes: u64, unit: u64) -> Fixture {
        let piece = 1 << 14;
        let accesses = (0..4)
            .map(|rank| strided(rank * piece, piece, 4 * piece as i64, bytes / 4))
            .collect();
        let mut fixture = Fixture::new(accesses);
        fixture.facts.nodes = vec![0, 1, 2, 3];
        fixture.facts.client = Client::Kernel;
        fixture.facts.striping = Some(Striping { unit, count: 4 });
        fixture.facts.lock_granularity = Some(unit);
        fixture.facts.lock_protocol = LockProtocol::Server;
        fixture.tuning.aggregators = Some(4);
        fixture.tuning.algorithm = Some("two-phase".to_owned());
        fixture
    }

    fn counted(fixture: &mut Fixture, name: &str) -> LockCount {
        fixture.tuning.partition = Some(name.to_owned());
        let case = fixture.case();
        count(&case, &crate::decide(&case).plan(&case)).unwrap()
    }

    #[test]
    fn cyclic_partitions_need_one_lock_per_aggregator_and_server() {
        for (bytes, unit, contended) in [(10 << 20, 64 << 10, 100), (51 << 20, 1 << 20, 45)] {
            let mut fixture = interleaved(bytes, unit);
            for name in ["group-cyclic", "static-cyclic", "file-layout"] {
                let locks = counted(&mut fixture, name);
                let expected = LockCount {
                    requests: 4,
                    pairs: 4,
                    ..LockCount::default()
                };
                assert_eq!(locks, expected, "{name}");
            }
            for name in ["even", "aligned"] {
                let locks = counted(&mut fixture, name);
                assert_eq!(locks.pairs, 16, "{name}");
                assert_eq!(locks.requests, contended, "{name}");
                assert!(locks.revoked > 0, "{name}");
            }
        }
    }

    #[test]
    fn writes_of_interleaved_pieces_take_locks_from_each_other() {
        let mut fixture = interleaved(4 << 20, 64 << 10);
        fixture.tuning.algorithm = Some("individual".to_owned());
        let case = fixture.case();
        let locks = count(&case, &Plan::Individual).unwrap();
        assert_eq!(locks.shared_stripes, 64);
        assert!(locks.requests > 200 && locks.revoked > 100, "{locks:?}");
        // As measured with locks in advance: none is taken from its holder.
        fixture.tuning.locks_ahead = true;
        let locks = count(&fixture.case(), &Plan::Individual).unwrap();
        assert_eq!((locks.requests, locks.revoked), (256, 0));
    }

    #[test]
    fn no_stripe_is_shared_by_partitions_that_respect_them() {
        let mut fixture = interleaved(10 << 20, 64 << 10);
        for it in PARTITIONS {
            let locks = counted(&mut fixture, it.name());
            let shares = ["even", "balanced", "persistent"].contains(&it.name());
            assert!(shares || locks.shared_stripes == 0, "{}", it.name());
        }
    }

    #[test]
    fn only_whole_pages_are_written_under_a_group_lock() {
        let mut fixture = interleaved(4 << 20, 64 << 10);
        assert!(!is_group_lockable(&fixture.case()));
        fixture.tuning.group_locks = GroupLocks::Allowed;
        fixture.tuning.algorithm = None;
        let case = fixture.case();
        assert_eq!(is_group_lockable(&case), cfg!(target_arch = "x86_64"));
        if is_group_lockable(&case) {
            // As measured: 256 interleaved writes of four clients to four servers.
            let locks = count(&case, &Plan::Individual).unwrap();
            assert_eq!((locks.requests, locks.revoked), (16, 0));
        }
        fixture.accesses[2] = dense(1 << 30, 100);
        assert!(!is_group_lockable(&fixture.case()));
        fixture.accesses[2] = dense(1 << 30, 1 << 16);
        let decision = crate::decide(&fixture.case());
        assert_eq!(
            decision.algorithm.name() == "individual",
            cfg!(target_arch = "x86_64"),
            "{decision}"
        );
        fixture.facts.lock_protocol = LockProtocol::None;
        assert!(!is_group_lockable(&fixture.case()));
    }

    #[test]
    fn appended_pieces_share_locks_unless_they_are_aligned() {
        let shared = |len: u64| {
            let mut fixture = Fixture::new((0..4).map(|rank| dense(rank * len, len)).collect());
            fixture.facts.nodes = vec![0, 0, 1, 1];
            fixture.facts.lock_granularity = Some(1 << 20);
            fixture.facts.lock_protocol = LockProtocol::Server;
            are_shared(&fixture.case())
        };
        assert!(!shared(4 << 20));
        assert!(shared((20 << 20) + (1 << 18)));
    }
}
