//! New files on Lustre, with a double of its client.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::{
    collections::HashSet,
    io,
    num::NonZeroU32,
    path::PathBuf,
    sync::{Arc, Mutex},
    thread::{self, ThreadId},
};

use pario_driver::{
    Access, AsyncMethod, Batch, CallAction, Create, Creation, Direction, Driver, ExpectedUse,
    FileSystem, Handle, Interference, IoMode, OpenHow, Posix, ScatteredWrites, ServerCount,
    StripingRequest, SystemCall,
    doubles::lustre::{LustreDouble, PlainLayout},
};
use tempfile::TempDir;

const MIB: u64 = 1 << 20;

/// A file system with four servers.
struct Bed {
    double: Arc<LustreDouble>,
    directory: TempDir,
}

impl Bed {
    fn new() -> Bed {
        Bed {
            double: Arc::new(LustreDouble::new(4)),
            directory: tempfile::tempdir().unwrap(),
        }
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("file")
    }

    fn open(&self, how: &OpenHow) -> io::Result<Arc<dyn Handle>> {
        Posix::new()
            .assuming(FileSystem::Lustre)
            .with_control(self.double.clone())
            .open(&self.path(), how)
    }

    fn create(&self, striping: StripingRequest) -> Arc<dyn Handle> {
        self.open(&creating(striping)).unwrap()
    }
}

fn creating(striping: StripingRequest) -> OpenHow {
    OpenHow::new(Access::ReadWrite)
        .create(Create::IfMissing)
        .striping(striping)
}

fn stripes(servers: u32, unit: u64) -> StripingRequest {
    StripingRequest {
        servers: Some(ServerCount::Exactly(servers)),
        unit: Some(unit),
        ..StripingRequest::default()
    }
}

fn for_nodes(nodes: u32) -> StripingRequest {
    StripingRequest {
        expected: Some(ExpectedUse { nodes, bytes: None }),
        ..StripingRequest::default()
    }
}

fn striping(file: &Arc<dyn Handle>) -> (u64, u64) {
    let striping = file.facts().striping.unwrap();
    (striping.unit, striping.count)
}

#[test]
fn hints_decide_the_layout_of_a_new_file() {
    let bed = Bed::new();
    let file = bed.create(stripes(3, 2 * MIB));
    assert!(matches!(file.creation(), Some(Creation::Set { .. })));
    assert_eq!(striping(&file), (2 * MIB, 3));
    assert_eq!(file.facts().lock_granularity, Some(2 * MIB));
    // Other ranks see it, and it stays as it is.
    let other = bed.open(&OpenHow::new(Access::ReadWrite)).unwrap();
    assert_eq!(other.facts().placement, file.facts().placement);
    let again = bed.create(stripes(4, MIB));
    assert_eq!((again.creation(), striping(&again)), (None, (2 * MIB, 3)));
    assert_eq!(bed.double.answered(), [("set layout", Ok(()))]);
}

#[test]
fn the_first_server_the_pool_and_overstriping() {
    let bed = Bed::new();
    let request = StripingRequest {
        first_server: Some(2),
        pool: Some("flash".to_owned()),
        stripes_per_server: 2,
        ..stripes(4, MIB)
    };
    let file = bed.create(request);
    assert_eq!(striping(&file), (MIB, 8));
    let placement = file.facts().placement.clone().unwrap();
    let servers: Vec<_> = placement.parts(0..8 * MIB).map(|it| it.server).collect();
    let servers: Vec<_> = servers.iter().map(|server| format!("{server:?}")).collect();
    assert_eq!(servers[..3], ["Data(2)", "Data(3)", "Data(0)"]);
}

#[test]
fn too_many_servers_are_as_many_as_there_are() {
    for servers in [ServerCount::Exactly(64), ServerCount::All] {
        let bed = Bed::new();
        let file = bed.create(StripingRequest {
            servers: Some(servers),
            ..StripingRequest::default()
        });
        assert_eq!(striping(&file).1, 4);
    }
}

#[test]
fn a_refused_layout_leaves_the_default() {
    let impossible = |request: StripingRequest| {
        let bed = Bed::new();
        let file = bed.create(request);
        let Some(Creation::Refused { reason }) = file.creation() else {
            panic!("{:?}", file.creation());
        };
        assert_eq!(striping(&file), (4 * MIB, 1), "{reason}");
        let other = bed.open(&OpenHow::new(Access::Read)).unwrap();
        assert_eq!(striping(&other), (4 * MIB, 1));
        reason.clone()
    };
    assert!(impossible(stripes(2, 100_000)).contains("100000"));
    assert!(impossible(stripes(2, 1 << 40)).contains("4 GiB"));
    let pool = |name: &str| StripingRequest {
        pool: Some(name.to_owned()),
        ..StripingRequest::default()
    };
    assert!(impossible(pool("tape")).contains("tape"));
    assert!(impossible(pool("a name of a pool that is too long")).contains("longer"));
    let overstriped = StripingRequest {
        stripes_per_server: 2,
        ..StripingRequest::default()
    };
    assert!(impossible(overstriped).contains("striping_factor"));
    let bed = Bed::new();
    bed.double.fail_layouts(libc::EDQUOT);
    let file = bed.create(stripes(2, MIB));
    assert!(matches!(file.creation(), Some(Creation::Refused { .. })));
}

#[test]
fn without_hints_the_number_of_nodes_decides() {
    let bed = Bed::new();
    let file = bed.create(for_nodes(3));
    let Some(Creation::Set { reason }) = file.creation() else {
        panic!("{:?}", file.creation());
    };
    assert!(reason.contains("3 nodes"), "{reason}");
    assert_eq!(striping(&file), (4 * MIB, 3));
    let bed = Bed::new();
    let file = bed.create(for_nodes(1));
    assert!(matches!(file.creation(), Some(Creation::Default { .. })));
    assert_eq!(striping(&file), (4 * MIB, 1));
    assert_eq!(bed.double.answered(), []);
    // A refusal of what nobody requested is no reason for a warning.
    let bed = Bed::new();
    bed.double.fail_layouts(libc::EPERM);
    let file = bed.create(for_nodes(3));
    assert!(matches!(file.creation(), Some(Creation::Default { .. })));
    assert_eq!(striping(&file), (4 * MIB, 1));
}

#[test]
fn the_default_of_a_directory_stays_unless_it_is_one_stripe() {
    let bed = Bed::new();
    let pair = PlainLayout::new(1, 1 << 20, 2).to_bytes();
    bed.double.set_directory(Some(pair));
    let file = bed.create(for_nodes(4));
    assert_eq!(striping(&file), (MIB, 2));
    assert_eq!(bed.double.answered(), []);
    let bed = Bed::new();
    bed.double.set_directory(Some(b"not a layout".to_vec()));
    bed.create(for_nodes(4));
    assert_eq!(bed.double.answered(), []);
}

#[test]
fn creation_keeps_the_meaning_of_open() {
    let bed = Bed::new();
    let exclusive = creating(stripes(2, MIB)).create(Create::Exclusive);
    let readable = exclusive.clone().permissions(0o400);
    bed.open(&readable).unwrap();
    let error = bed.open(&exclusive).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
    let bed = Bed::new();
    std::fs::create_dir(bed.path()).unwrap();
    assert!(bed.open(&creating(stripes(2, MIB))).is_err());
    let missing = Bed {
        directory: tempfile::tempdir().unwrap(),
        ..bed
    };
    std::fs::remove_dir(missing.directory.path()).unwrap();
    let error = missing.open(&creating(for_nodes(4))).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::NotFound);
}

#[test]
fn stripes_of_a_window_are_written_where_they_belong() {
    let bed = Bed::new();
    let file = bed.create(stripes(4, 64 << 10));
    // Every fourth stripe, as an aggregator of group-cyclic has them.
    let unit = 64 << 10;
    let mut memory: Vec<u8> = (0..8 * unit).map(|byte| (byte / unit + 1) as u8).collect();
    let places: Vec<_> = (0..8)
        .map(|index| ((4 * index + 1) * unit as u64, index as usize * unit, unit))
        .collect();
    let batch = Batch::gather(Direction::Write, &mut memory, &places);
    assert_eq!(
        file.transfer(&batch).into_result().unwrap(),
        8 * unit as u64
    );
    let written = std::fs::read(bed.path()).unwrap();
    assert_eq!(written.len(), 30 * unit);
    for (stripe, bytes) in written.chunks(unit).enumerate() {
        let expected = if stripe % 4 == 1 { stripe / 4 + 1 } else { 0 };
        assert!(bytes.iter().all(|byte| usize::from(*byte) == expected));
    }
    let mut read = vec![0; 8 * unit];
    let batch = Batch::gather(Direction::Read, &mut read, &places);
    assert_eq!(
        file.transfer(&batch).into_result().unwrap(),
        8 * unit as u64
    );
    assert_eq!(read, memory);
}

#[test]
fn group_locks_are_shared_by_a_group_and_released_after_errors() {
    let bed = Bed::new();
    let [one, other] = [(); 2].map(|()| bed.create(StripingRequest::default()));
    let group = |number| NonZeroU32::new(number).unwrap();
    assert!(one.lock_group(group(7)).unwrap());
    assert!(other.lock_group(group(7)).unwrap());
    // A second thread of the same rank joins; another group does not.
    assert!(one.lock_group(group(7)).unwrap());
    assert!(one.lock_group(group(8)).is_err());
    one.unlock_group().unwrap();
    other.unlock_group().unwrap();
    assert!(bed.double.has_group_locks());
    one.unlock_group().unwrap();
    assert!(!bed.double.has_group_locks());
    // Another group may follow, and releasing once too often does nothing.
    assert!(one.lock_group(group(8)).unwrap());
    one.unlock_group().unwrap();
    one.unlock_group().unwrap();
    assert!(!bed.double.has_group_locks());
    // Direct writes would wait for it, and other file systems have none.
    let direct = bed.open(&OpenHow::new(Access::ReadWrite).writes(IoMode::Direct));
    assert!(!direct.unwrap().lock_group(group(7)).unwrap());
    let local = Posix::new().assuming(FileSystem::Ext);
    let local = local.open(&bed.path(), &OpenHow::new(Access::ReadWrite));
    assert!(!local.unwrap().lock_group(group(7)).unwrap());
}

/// The threads that write.
#[derive(Debug, Default)]
struct Writers(Mutex<HashSet<ThreadId>>);

impl Interference for Writers {
    fn before(&self, call: SystemCall, _bytes: usize) -> CallAction {
        if call == SystemCall::Write {
            self.0.lock().unwrap().insert(thread::current().id());
        }
        CallAction::Proceed
    }
}

/// Without io_uring, or if interceptors are to see all calls, stripes used to be
/// written one after the other.
#[test]
fn stripes_of_several_servers_are_written_at_the_same_time_without_a_ring() {
    const UNIT: usize = 64 << 10;
    let bed = Bed::new();
    let writers = Arc::new(Writers::default());
    let driver = Posix::new()
        .assuming(FileSystem::Lustre)
        .with_control(bed.double.clone())
        .with_interference(writers.clone());
    let write = |how: &OpenHow| {
        writers.0.lock().unwrap().clear();
        let file = driver.open(&bed.path(), how).unwrap();
        // Every third stripe, which are on all servers.
        let place = |at: usize| (3 * (at * UNIT) as u64, at * UNIT, UNIT);
        let places: Vec<_> = (0..8).map(place).collect();
        let mut memory: Vec<u8> = (0..8 * UNIT).map(|at| (at / UNIT) as u8 + 1).collect();
        let batch = Batch::gather(Direction::Write, &mut memory, &places);
        let outcome = file.transfer(&batch);
        assert!(outcome.error.is_none(), "{outcome:?}");
        assert_eq!(outcome.bytes, 8 * UNIT as u64);
        let written = std::fs::read(bed.path()).unwrap();
        for (index, stripe) in written.chunks(UNIT).enumerate() {
            let expected = if index % 3 == 0 { index / 3 + 1 } else { 0 };
            assert!(
                stripe.iter().all(|it| usize::from(*it) == expected),
                "{index}"
            );
        }
        writers.0.lock().unwrap().len()
    };
    let how = creating(stripes(4, UNIT as u64)).asynchronous(AsyncMethod::Pool);
    assert_eq!(write(&how), 4);
    assert_eq!(write(&how.scattered(ScatteredWrites::Calls)), 1);
}
