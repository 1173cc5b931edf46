//! Facts about a file's file system, the same on all ranks (semantics rule 26a).
//!
//! Every rank plans collective calls for itself, so all of them must plan from
//! the same facts. What ranks see may differ: two mounts of one file, a server's
//! disk and a client's mount of it, or a query that failed on one rank. Ranks
//! exchange what they see when they open a file; where it differs, each field is
//! the value that is safe for all of them.

use std::{io, num::NonZeroU32, ops::Range, path::PathBuf, sync::Arc};

use pario_driver::{
    Advice, Batch, Client, Coherence, Completion, Creation, Direction, Facts, FileIdentity,
    FileSystem, Handle, Latency, Lease, LockMode, LockReach, MountView, Outcome, Placement,
    RangeLock, SharedDescription, Striping, Suspension, WriterFlag, WriterGroup,
};

/// The name of the file system if ranks see several kinds of it.
const MIXED: &str = "mixed";

/// One rank's facts in a message: numbers, then the name of the file system.
pub(super) fn to_wire(facts: &Facts) -> Vec<u8> {
    let striping = facts.striping.unwrap_or(NOT_STRIPED);
    let numbers = [
        facts.block_size,
        striping.unit,
        striping.count,
        facts.lock_granularity.unwrap_or(0),
        match facts.client {
            Client::Local => 0,
            Client::Kernel => 1,
            Client::Library => 2,
        },
        match facts.coherence {
            Coherence::Everywhere => 0,
            Coherence::WithinNode => 1,
            Coherence::Unknown => 2,
        },
        facts.placement.as_ref().map_or(0, Placement::fingerprint),
        facts.direct_alignment.unwrap_or(0),
        facts.locks as u64,
        facts
            .placement
            .as_ref()
            .map_or(0, Placement::sharing_fingerprint),
    ];
    let mut wire = numbers.map(u64::to_le_bytes).concat();
    wire.extend(facts.file_system.to_string().into_bytes());
    wire
}

/// The facts in a message, as far as it has them, with a placement that was sent apart.
pub(super) fn from_wire(wire: &[u8], placement: Option<Placement>) -> Facts {
    let Seen {
        numbers,
        file_system,
    } = Seen::from_wire(wire);
    let [
        block_size,
        unit,
        count,
        lock_granularity,
        client,
        coherence,
        _,
        direct_alignment,
        locks,
        _,
    ] = numbers;
    Facts {
        file_system: FileSystem::named(&String::from_utf8_lossy(file_system)),
        mount_point: None,
        block_size,
        direct_alignment: Some(direct_alignment).filter(|bytes| *bytes > 0),
        striping: (count > 0).then_some(Striping { unit, count }),
        lock_granularity: Some(lock_granularity).filter(|bytes| *bytes > 0),
        placement,
        client: match client {
            0 => Client::Local,
            1 => Client::Kernel,
            _ => Client::Library,
        },
        coherence: match coherence {
            0 => Coherence::Everywhere,
            1 => Coherence::WithinNode,
            _ => Coherence::Unknown,
        },
        source: String::new(),
        locks: lock_reach(locks),
    }
}

const NOT_STRIPED: Striping = Striping { unit: 0, count: 0 };
const NUMBERS: usize = 10;

/// A message taken apart.
#[derive(Clone, Copy)]
struct Seen<'w> {
    numbers: [u64; NUMBERS],
    file_system: &'w [u8],
}

impl<'w> Seen<'w> {
    fn from_wire(wire: &'w [u8]) -> Seen<'w> {
        let mut numbers = [0; NUMBERS];
        let (words, name) = wire
            .split_at_checked(size_of_val(&numbers))
            .unwrap_or((&[], wire));
        for (number, word) in numbers.iter_mut().zip(words.as_chunks::<8>().0) {
            *number = u64::from_le_bytes(*word);
        }
        Seen {
            numbers,
            file_system: name,
        }
    }
}

/// The handle with facts that all ranks share: `wires` are those of all ranks.
pub(super) fn share(handle: Arc<dyn Handle>, wires: &[&[u8]]) -> Arc<dyn Handle> {
    if wires.iter().all(|wire| *wire == wires[0]) {
        return handle;
    }
    let all: Vec<_> = wires.iter().map(|wire| Seen::from_wire(wire)).collect();
    let facts = common(handle.facts(), &all);
    Arc::new(WithFacts { handle, facts })
}

/// What holds for all ranks. Everything that plans depend on is a function of
/// `all`; the rest is this rank's own.
fn common(own: &Facts, all: &[Seen<'_>]) -> Facts {
    let first = all[0];
    let greatest = |index: usize| {
        all.iter()
            .map(|seen| seen.numbers[index])
            .max()
            .unwrap_or(0)
    };
    let is_equal = |index: usize| {
        all.iter()
            .all(|seen| seen.numbers[index] == first.numbers[index])
    };
    let is_one_kind = all.iter().all(|seen| seen.file_system == first.file_system);
    Facts {
        file_system: match is_one_kind {
            true => own.file_system.clone(),
            false => FileSystem::Other(MIXED.to_owned()),
        },
        mount_point: own.mount_point.clone(),
        block_size: greatest(0),
        direct_alignment: Some(greatest(7)).filter(|_| all.iter().all(|it| it.numbers[7] > 0)),
        striping: own.striping.filter(|_| is_equal(1) && is_equal(2)),
        placement: match (&own.placement, is_equal(6), is_equal(9)) {
            (placement, true, true) => placement.clone(),
            // Ranks see different objects: a component was allocated in between.
            (Some(placement), true, false) => Some(placement.undecided()),
            _ => None,
        },
        lock_granularity: Some(greatest(3)).filter(|bytes| *bytes > 0),
        client: match greatest(4) {
            0 => Client::Local,
            1 => Client::Kernel,
            _ => Client::Library,
        },
        // The kinds are in the order of what can be relied on.
        coherence: match (is_one_kind, greatest(5)) {
            (true, 0) => Coherence::Everywhere,
            (true, 1) => Coherence::WithinNode,
            _ => Coherence::Unknown,
        },
        source: own.source.clone(),
        locks: lock_reach(greatest(8)),
    }
}

fn lock_reach(number: u64) -> LockReach {
    match number {
        0 => LockReach::Everywhere,
        1 => LockReach::Node,
        _ => LockReach::Nowhere,
    }
}

/// A handle whose facts are not only its own.
#[derive(Debug)]
struct WithFacts {
    handle: Arc<dyn Handle>,
    facts: Facts,
}

impl Handle for WithFacts {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn transfer(&self, batch: &Batch<'_>) -> Outcome {
        self.handle.transfer(batch)
    }

    fn submit(&self, batch: Batch<'static>, done: Completion) {
        self.handle.submit(batch, done);
    }

    fn latency(&self, direction: Direction) -> Latency {
        self.handle.latency(direction)
    }

    fn transfer_cached(&self, batch: &Batch<'_>) -> Option<Outcome> {
        self.handle.transfer_cached(batch)
    }

    fn size(&self) -> io::Result<u64> {
        self.handle.size()
    }

    fn set_size(&self, bytes: u64) -> io::Result<()> {
        self.handle.set_size(bytes)
    }

    fn preallocate(&self, bytes: u64) -> io::Result<()> {
        self.handle.preallocate(bytes)
    }

    fn sync(&self) -> io::Result<()> {
        self.handle.sync()
    }

    fn advise(&self, advice: Advice) {
        self.handle.advise(advice);
    }

    fn lock(&self, range: Range<u64>, mode: LockMode) -> io::Result<RangeLock> {
        self.handle.lock(range, mode)
    }

    fn try_lock(&self, range: Range<u64>, mode: LockMode) -> io::Result<Option<RangeLock>> {
        self.handle.try_lock(range, mode)
    }

    fn stores_list(&self, pieces: u64, span: u64) -> bool {
        self.handle.stores_list(pieces, span)
    }

    fn lease(&self) -> Option<Box<dyn Lease>> {
        self.handle.lease()
    }

    fn suspend(&self) -> Option<Box<dyn Suspension + '_>> {
        self.handle.suspend()
    }

    fn offer_description(&self, ranks: usize) -> Option<SharedDescription> {
        self.handle.offer_description(ranks)
    }

    fn adopt_description(&self, offered: &SharedDescription) -> bool {
        self.handle.adopt_description(offered)
    }

    fn writer_group(&self) -> Option<Arc<WriterGroup>> {
        self.handle.writer_group()
    }

    fn lock_group(&self, group: NonZeroU32) -> io::Result<bool> {
        self.handle.lock_group(group)
    }

    fn unlock_group(&self) -> io::Result<()> {
        self.handle.unlock_group()
    }

    fn lock_ahead(&self, ranges: &[Range<u64>]) {
        self.handle.lock_ahead(ranges);
    }

    fn check(&self) -> io::Result<()> {
        self.handle.check()
    }

    fn creation(&self) -> Option<&Creation> {
        self.handle.creation()
    }

    fn current_placement(&self) -> Option<Placement> {
        self.handle.current_placement()
    }

    fn identity(&self) -> io::Result<Option<FileIdentity>> {
        self.handle.identity()
    }

    fn mount(&self) -> io::Result<Option<MountView>> {
        self.handle.mount()
    }

    fn bypasses_cache(&self) -> bool {
        self.handle.bypasses_cache()
    }

    fn reads_back(&self) -> bool {
        self.handle.reads_back()
    }

    fn writer_flag(&self) -> io::Result<Option<WriterFlag>> {
        self.handle.writer_flag()
    }

    fn node_path(&self) -> Option<PathBuf> {
        self.handle.node_path()
    }

    fn access_time(&self) -> io::Result<i64> {
        self.handle.access_time()
    }

    fn set_access_time(&self, seconds: i64) -> io::Result<()> {
        self.handle.set_access_time(seconds)
    }

    fn close(&self) -> io::Result<()> {
        self.handle.close()
    }
}

#[cfg(test)]
mod tests {
    use pario_driver::{Component, Storage};

    use super::*;

    fn facts(file_system: FileSystem) -> Facts {
        Facts {
            coherence: file_system.coherence(),
            file_system,
            mount_point: None,
            block_size: 4096,
            direct_alignment: Some(512),
            striping: None,
            placement: None,
            lock_granularity: None,
            client: Client::Kernel,
            source: String::new(),
            locks: LockReach::Everywhere,
        }
    }

    fn lustre(unit: u64) -> Facts {
        Facts {
            striping: Some(Striping { unit, count: 4 }),
            placement: Some(Placement::uniform(Striping { unit, count: 4 })),
            lock_granularity: Some(unit),
            ..facts(FileSystem::Lustre)
        }
    }

    /// What each of the ranks ends up with.
    fn shared(all: &[Facts]) -> Vec<Facts> {
        let wires: Vec<_> = all.iter().map(to_wire).collect();
        let seen: Vec<_> = wires.iter().map(|wire| Seen::from_wire(wire)).collect();
        all.iter().map(|own| common(own, &seen)).collect()
    }

    #[test]
    fn a_rank_that_has_not_opened_the_file_knows_the_facts_that_plans_need() {
        for seen in [facts(FileSystem::Nfs), lustre(1 << 20)] {
            let placement = seen.placement.clone();
            assert_eq!(from_wire(&to_wire(&seen), placement), seen);
        }
    }

    #[test]
    fn equal_facts_stay_as_they_are() {
        for own in [facts(FileSystem::Ext), lustre(1 << 20)] {
            assert_eq!(shared(&[own.clone(), own.clone()]), [own.clone(), own]);
        }
    }

    #[test]
    fn striping_that_one_rank_could_not_read_is_unknown_to_all() {
        let all = shared(&[lustre(1 << 20), facts(FileSystem::Lustre)]);
        assert_eq!(all[0], all[1]);
        assert_eq!(all[0].striping, None);
        assert_eq!(all[0].lock_granularity, Some(1 << 20));
        let all = shared(&[lustre(1 << 20), lustre(1 << 16)]);
        assert_eq!((all[0].striping, &all[1]), (None, &all[0]));
        assert_eq!(all[0].placement, None);
    }

    #[test]
    fn servers_that_one_rank_could_not_see_count_for_none() {
        let on = |storage| Facts {
            placement: Placement::new(vec![Component {
                file: 0..u64::MAX,
                striping: lustre(1 << 20).striping.unwrap(),
                storage,
            }]),
            ..lustre(1 << 20)
        };
        let overstriped = || on(Storage::Servers(vec![2, 3, 2, 3]));
        let servers = |all: &[Facts]| -> Vec<u64> {
            let placements = shared(all).into_iter().map(|it| it.placement.unwrap());
            let placements: Vec<_> = placements.collect();
            let first = &placements[0];
            let queries_again = |it: &Placement| it.is_complete() == first.is_complete();
            assert!(
                placements.iter().all(queries_again),
                "one would wait for the others"
            );
            placements.iter().map(|it| it.stripes().servers()).collect()
        };
        assert_eq!(servers(&[overstriped(), overstriped()]), [2, 2]);
        assert_eq!(servers(&[overstriped(), on(Storage::Unallocated)]), [4, 4]);
        let apart = || on(Storage::Servers(vec![1, 2, 3, 4]));
        assert_eq!(servers(&[overstriped(), apart()]), [4, 4]);
        assert_eq!(servers(&[apart(), on(Storage::Unallocated)]), [4, 4]);
        // The same stripes share a server, so that plans are the same.
        assert_eq!(
            servers(&[overstriped(), on(Storage::Servers(vec![9, 8, 9, 8]))]),
            [2, 2]
        );
    }

    #[test]
    fn different_mounts_are_as_coherent_as_the_worst() {
        let large = Facts {
            block_size: 1 << 20,
            client: Client::Library,
            locks: LockReach::Node,
            direct_alignment: None,
            ..facts(FileSystem::Nfs)
        };
        let all = shared(&[facts(FileSystem::Ext), large]);
        assert_eq!(all[0], all[1]);
        assert_eq!(all[0].coherence, Coherence::Unknown);
        assert_eq!(all[0].block_size, 1 << 20);
        assert_eq!(all[0].client, Client::Library);
        assert_eq!(all[0].locks, LockReach::Node);
        assert_eq!(all[0].direct_alignment, None);
        assert_eq!(all[0].file_system.to_string(), MIXED);
    }
}
