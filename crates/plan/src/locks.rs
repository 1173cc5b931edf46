//! Locks of writes where servers manage them (Liao 2008, section II-B), counted
//! from plans by the rules of Lustre's servers (`ldlm_extent.c`,
//! `interval_tree.c`).
//!
//! A server grants a client a lock on a range of an object, extended upward to
//! the next lock that is held or waited for, so that later writes need no further
//! request. It is extended downward only if nobody holds a lock on the object. A
//! lock that conflicts with a request is called back as a whole, which makes its
//! holder write back its cache.
//!
//! What happens next is a matter of time: a holder that asks for its next range
//! before it has given up the lock limits what the other is granted, and the two
//! soon have locks of their own; one that comes back later finds the whole object
//! taken, and takes it back. Here, holders whose next write is to the same object
//! ask in time, and those that write to other objects first do not. Real counts
//! depend on the load of clients and servers as well.

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
            let members = rounds.members(scheduled.aggregator, ranks);
            let members: Vec<&Access> = members.map(|it| &accesses[it as usize]).collect();
            for extent in scheduled.window.extents() {
                let useful = |file| schedule::useful(members.iter().copied(), file);
                let parts: Vec<_> = self.placement.parts(useful(extent.clone())).collect();
                for part in parts {
                    // Stripes in holes are not written.
                    let end = part.file_offset + part.len;
                    self.add(rank, useful(part.file_offset..end))?;
                }
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
                let Some((object, range)) = writes.get(step) else {
                    continue;
                };
                let held = locks.entry(*object).or_default();
                let lock = Lock {
                    client: *client,
                    range: range.clone(),
                };
                match granted {
                    Granted::Exactly => held.write_exactly(lock, &mut count),
                    Granted::Extended => {
                        // Clients take turns in ascending order.
                        let next = |other: u32| {
                            let at = step + usize::from(other < *client);
                            self.write_to(*object, other, at)
                        };
                        held.write(lock, next, &mut count);
                    }
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

    /// The range of a client's write, if it is to this object.
    fn write_to(&self, object: Object, client: u32, step: usize) -> Option<Range<u64>> {
        let (to, range) = self.by_client.get(&client)?.get(step)?;
        (*to == object).then(|| range.clone())
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

/// A lock on a range of an object, held or requested.
#[derive(Clone, Debug)]
struct Lock {
    client: u32,
    range: Range<u64>,
}

impl Lock {
    fn conflicts_with(&self, other: &Lock) -> bool {
        self.client != other.client
            && self.range.start < other.range.end
            && other.range.start < self.range.end
    }

    fn covers(&self, other: &Lock) -> bool {
        self.client == other.client
            && self.range.start <= other.range.start
            && other.range.end <= self.range.end
    }
}

/// The locks on an object.
#[derive(Debug, Default)]
struct Held {
    locks: Vec<Lock>,
}

impl Held {
    /// A write by a client. `next` is the range of a client's next write, if it is
    /// to this object.
    fn write(
        &mut self,
        write: Lock,
        next: impl Fn(u32) -> Option<Range<u64>>,
        count: &mut LockCount,
    ) {
        if self.covers(&write) {
            return;
        }
        count.requests += 1;
        let mut losers = self.revoke(&write, count);
        losers.sort_unstable();
        losers.dedup();
        let waiting = losers.into_iter().filter_map(|client| {
            let range = next(client)?;
            Some(Lock { client, range })
        });
        let waiting: Vec<Lock> = waiting.filter(|it| !it.conflicts_with(&write)).collect();
        self.grant(write, &waiting);
        for (index, lock) in waiting.iter().enumerate() {
            // One that has to be waited for is requested when it is needed.
            if !self.covers(lock) && !self.locks.iter().any(|held| held.conflicts_with(lock)) {
                count.requests += 1;
                self.grant(lock.clone(), &waiting[index + 1..]);
            }
        }
    }

    /// A write whose lock has been requested in advance.
    fn write_exactly(&mut self, write: Lock, count: &mut LockCount) {
        if !self.covers(&write) {
            count.requests += 1;
            self.revoke(&write, count);
            self.locks.push(write);
        }
    }

    /// Whether the client has a lock for a write. The latest is the likeliest.
    fn covers(&self, write: &Lock) -> bool {
        self.locks.iter().rev().any(|held| held.covers(write))
    }

    /// Calls back the locks that conflict; returns whose they were.
    fn revoke(&mut self, write: &Lock, count: &mut LockCount) -> Vec<u32> {
        let revoked = self.locks.extract_if(.., |held| held.conflicts_with(write));
        let losers: Vec<u32> = revoked.map(|lock| lock.client).collect();
        count.revoked += losers.len() as u64;
        losers
    }

    /// Grants a lock on as long a range as possible.
    fn grant(&mut self, mut lock: Lock, waiting: &[Lock]) {
        let range = lock.range.clone();
        let others = self.locks.iter().chain(waiting).map(|it| &it.range);
        let above = others.map(|it| it.start).filter(|at| *at >= range.end);
        let end = above.min().unwrap_or(u64::MAX);
        let start = match self.locks.is_empty() {
            true => {
                let below = waiting.iter().map(|it| it.range.end);
                below.filter(|at| *at <= range.start).max().unwrap_or(0)
            }
            false => range.start,
        };
        lock.range = start..end;
        self.locks.push(lock);
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
        // Even and aligned realms contend: 92, 75 and 77, 40 requests were measured.
        let sizes = [
            (10 << 20, 64 << 10, [44, 44]),
            (51 << 20, 1 << 20, [54, 51]),
        ];
        for (bytes, unit, contended) in sizes {
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
            for (name, requests) in ["even", "aligned"].into_iter().zip(contended) {
                let locks = counted(&mut fixture, name);
                assert_eq!(locks.pairs, 16, "{name}");
                assert_eq!(locks.requests, requests, "{name}");
                assert!(locks.revoked > 0, "{name}");
            }
        }
    }

    /// Groups of aggregators have contiguous parts of each object, so that they
    /// contend at first and then have locks of their own, whatever the amount.
    #[test]
    fn groups_that_share_objects_soon_have_locks_of_their_own() {
        let counts = |nodes: u32, aggregators: u32, bytes: u64| {
            let piece = 2 << 20;
            let accesses = (0..16).map(|rank| strided(rank * piece, piece, 32 << 20, bytes / 16));
            let mut fixture = Fixture::new(accesses.collect());
            fixture.facts = interleaved(1 << 20, 1 << 20).facts;
            fixture.facts.nodes = (0..16).map(|rank| rank * nodes / 16).collect();
            fixture.tuning.aggregators = Some(aggregators);
            fixture.tuning.algorithm = Some("two-phase".to_owned());
            let locks = counted(&mut fixture, "group-cyclic");
            (locks.pairs, locks.requests, locks.revoked)
        };
        for (nodes, bytes) in [(4, 1 << 28), (4, 1 << 31), (16, 1 << 31)] {
            assert_eq!(counts(nodes, 4, bytes), (4, 4, 0));
            assert_eq!(counts(nodes, 8, bytes), (8, 20, 8));
            assert_eq!(counts(nodes, 16, bytes), (16, 32, 12));
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
