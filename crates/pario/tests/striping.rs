//! Striping hints of new files, with a double of Lustre's client: one rank sets
//! the layout, every rank reports the one in force.
#![allow(clippy::unwrap_used)] // helpers of tests, too

use std::{ffi::CStr, io, os::fd::BorrowedFd, sync::Arc, thread, time::Duration};

use pario::{Basic, Datatype, File, Info, Mode, View};
use pario_driver::{
    Fault, Faults, FileControl, FileSystem, IoctlArgument, Log, Operation, Posix, Throttle,
    WrappedDriver,
    doubles::lustre::{LustreDouble, PlainLayout},
};
use pario_transport::threads::World;

const NEW: Mode = Mode::CREATE.union(Mode::READ_WRITE);

/// The hints `striping_factor` and `striping_unit` that a rank reports.
type Reported = (Option<String>, Option<String>);

/// Creates a file as ranks on these nodes; the striping that each reports, and
/// the attempts to set a layout.
fn created(double: LustreDouble, nodes: &[u32], hints: &[(&str, &str)]) -> (Vec<Reported>, usize) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    let double = Arc::new(double);
    let driver: Arc<Posix> = Arc::new(
        Posix::new()
            .assuming(FileSystem::Lustre)
            .with_control(double.clone()),
    );
    let info = Info::from_pairs(hints.iter().copied()).unwrap();
    let world = World::new(nodes.len() as u32).nodes(nodes);
    let reported = world.run(|comm| {
        let file = File::open_with(&comm, driver.clone(), &path, NEW, &info)?;
        let info = file.info();
        let value = |key: &str| info.get(key).map(str::to_owned);
        let striping = (value("striping_factor"), value("striping_unit"));
        let data = [comm.rank().0; 2];
        file.write_at_all(8 * u64::from(comm.rank().0), &data[..])?;
        file.close()?;
        pario::Result::Ok(striping)
    });
    let reported = reported.into_iter().map(|it| it.unwrap().unwrap());
    (reported.collect(), double.answered().len())
}

fn striping(count: u64, unit: u64) -> (Option<String>, Option<String>) {
    (Some(count.to_string()), Some(unit.to_string()))
}

#[test]
fn one_rank_sets_the_striping_and_all_report_it() {
    let hints = [("striping_factor", "3"), ("striping_unit", "128k")];
    let (reported, attempts) = created(LustreDouble::new(4), &[0, 0, 1, 1], &hints);
    assert_eq!(reported, vec![striping(3, 128 << 10); 4]);
    assert_eq!(attempts, 1);
}

#[test]
fn what_is_in_force_is_reported_and_not_what_was_requested() {
    let hints = [("striping_factor", "64"), ("start_iodevice", "1")];
    let (reported, _) = created(LustreDouble::new(4), &[0, 1], &hints);
    assert_eq!(reported, vec![striping(4, 1 << 20); 2]);
    let refused = [("striping_unit", "100000")];
    let (reported, attempts) = created(LustreDouble::new(4), &[0, 1], &refused);
    assert_eq!((reported, attempts), (vec![striping(1, 4 << 20); 2], 1));
}

#[test]
fn a_single_stripe_becomes_one_per_node_unless_a_hint_forbids_it() {
    let nodes = [0, 0, 1, 2];
    let (reported, attempts) = created(LustreDouble::new(4), &nodes, &[]);
    assert_eq!((reported, attempts), (vec![striping(3, 4 << 20); 4], 1));
    let off = [("pario_choose_striping", "false")];
    let (reported, attempts) = created(LustreDouble::new(4), &nodes, &off);
    assert_eq!((reported, attempts), (vec![striping(1, 4 << 20); 4], 0));
    let (_, attempts) = created(LustreDouble::new(4), &[0, 0], &[]);
    assert_eq!(attempts, 0, "one node");
    let pair = LustreDouble::new(4);
    pair.set_directory(Some(PlainLayout::new(1, 1 << 20, 2).to_bytes()));
    let (reported, attempts) = created(pair, &nodes, &[]);
    assert_eq!((reported, attempts), (vec![striping(2, 1 << 20); 4], 0));
}

/// A directory without a default has that of the file system, which may be the
/// administrator's choice.
#[test]
fn the_default_of_the_file_system_counts_where_a_directory_has_none() {
    let of = |root: Option<PlainLayout>| {
        let double = LustreDouble::new(4);
        double.set_directory(None);
        if let Some(root) = root {
            double.set_root(root.to_bytes());
        }
        created(double, &[0, 1], &[]).1
    };
    assert_eq!(of(Some(PlainLayout::new(1, 1 << 20, 1))), 1, "one stripe");
    assert_eq!(of(Some(PlainLayout::new(1, 1 << 20, 4))), 0, "several");
    assert_eq!(of(None), 0, "it cannot be known");
}

/// Programs open the next file with the hints of the last one: its number of stripes used to
/// double each time.
#[test]
fn a_file_opened_with_the_reported_hints_has_the_same_layout() {
    let directory = tempfile::tempdir().unwrap();
    let double = Arc::new(LustreDouble::new(6));
    let driver: Arc<Posix> = Arc::new(
        Posix::new()
            .assuming(FileSystem::Lustre)
            .with_control(double.clone()),
    );
    let hints = [
        ("striping_factor", "4"),
        ("overstriping_ratio", "2"),
        ("start_iodevice", "1"),
        ("pario_pool", "flash"),
    ];
    let first = Info::from_pairs(hints).unwrap();
    let open = |name: &str, info: &Info| {
        let path = directory.path().join(name);
        let files = World::new(2).nodes(&[0, 1]).run(|comm| {
            let file = File::open_with(&comm, driver.clone(), &path, NEW, info)?;
            let found = (file.placement().unwrap(), file.info());
            // The rank that created the file knows why it has its layout.
            let is_explained = file.explain_open().contains("\ncreated with ");
            assert_eq!(is_explained, comm.rank().0 == 0);
            file.close()?;
            pario::Result::Ok(found)
        });
        let mut files = files.into_iter().map(|it| it.unwrap().unwrap());
        let (found, other) = (files.next().unwrap(), files.next().unwrap());
        assert_eq!(found.0, other.0, "ranks agree");
        found
    };
    let (placement, mut info) = open("first", &first);
    assert_eq!(placement.striping().count, 8);
    for name in ["second", "third"] {
        for (key, value) in hints {
            assert_eq!(info.get(key), Some(value), "{name}");
        }
        let (again, reported) = open(name, &info);
        assert_eq!(again, placement, "{name}");
        info = reported;
    }
    // What was refused is not reported.
    let refused = Info::from_pairs([("pario_pool", "nowhere"), ("overstriping_ratio", "2")]);
    let (_, info) = open("refused", &refused.unwrap());
    assert_eq!(info.get("pario_pool"), None);
    assert_eq!(info.get("overstriping_ratio"), Some("1"));
}

/// The kind of a decision used to be kept for all calls with the same amounts.
#[test]
fn a_decision_for_whole_stripes_is_not_kept_for_data_that_cuts_them() {
    const PIECE: u64 = 2 << 20;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    let driver: Arc<Posix> = Arc::new(
        Posix::new()
            .assuming(FileSystem::Lustre)
            .with_control(Arc::new(LustreDouble::new(4))),
    );
    let hints = [("striping_factor", "4"), ("striping_unit", "1m")];
    let info = Info::from_pairs(hints).unwrap();
    let outcomes = World::new(2).nodes(&[0, 1]).run(|comm| {
        let file = File::open_with(&comm, driver.clone(), &path, NEW, &info)?;
        let data = vec![1_u8; PIECE as usize];
        let mut found = Vec::new();
        for start in [0, 2 * PIECE, 4 * PIECE + 1024, 6 * PIECE + 1024, 8 * PIECE] {
            let at = start + PIECE * u64::from(comm.rank().0);
            file.write_at_all(at, &data[..])?;
            let explained = file.explain_last_all().unwrap();
            found.push(explained.starts_with("writes by individual"));
        }
        file.close()?;
        pario::Result::Ok(found)
    });
    for outcome in outcomes {
        let found = outcome.unwrap().unwrap();
        assert_eq!(found, [true, true, false, false, true]);
    }
}

/// The stripes of a progressive file's last component are decided when it is written to.
#[test]
fn a_layout_that_is_decided_later_is_read_again_when_a_view_is_set() {
    const FIRST: u64 = 1 << 20;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    let double = Arc::new(LustreDouble::new(4));
    double.set_progressive(vec![
        (0..FIRST, PlainLayout::new(1, 1 << 20, 1)),
        (FIRST..u64::MAX, PlainLayout::new(1, 1 << 20, 0xffff)),
    ]);
    let driver: Arc<Posix> = Arc::new(
        Posix::new()
            .assuming(FileSystem::Lustre)
            .with_control(double.clone()),
    );
    let outcomes = World::new(4).nodes(&[0, 0, 1, 1]).run(|comm| {
        let file = File::open_with(&comm, driver.clone(), &path, NEW, &Info::new())?;
        let components = || file.placement().unwrap().components().len();
        let mut known = vec![components()];
        let bytes = View::bytes();
        for start in [0, FIRST, 2 * FIRST] {
            file.set_view(&bytes)?;
            known.push(components());
            let at = start + 1000 * u64::from(comm.rank().0);
            file.write_at_all(at, &[5_u8; 1000][..])?;
        }
        file.set_view(&bytes)?;
        let last = file.placement().unwrap().components().last().cloned();
        assert_eq!(file.info().get("striping_factor"), Some("4"));
        file.close()?;
        pario::Result::Ok((known, last.unwrap().striping.count))
    });
    for outcome in outcomes {
        let (known, servers) = outcome.unwrap().unwrap();
        assert_eq!(known, [1, 1, 1, 2]);
        assert_eq!(servers, 4);
    }
}

/// Stripes that share a server are known once they have objects, to all ranks alike, and then
/// belong to one aggregator.
#[test]
fn overstriped_components_are_planned_by_their_servers() {
    const FIRST: u64 = 1 << 20;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    let double = LustreDouble::new(2);
    double.set_progressive(vec![
        (0..FIRST, PlainLayout::new(1, 1 << 20, 1)),
        (FIRST..u64::MAX, PlainLayout::new(0x201, 64 << 10, 4)),
    ]);
    let driver = Posix::new().assuming(FileSystem::Lustre);
    let driver = Arc::new(driver.with_control(Arc::new(double)));
    let info = Info::from_pairs([("cb_nodes", "2"), ("romio_cb_write", "enable")]).unwrap();
    let outcomes = World::new(4).nodes(&[0, 0, 1, 1]).run(|comm| {
        let file = File::open_with(&comm, driver.clone(), &path, NEW, &info)?;
        let mut found = Vec::new();
        for call in 0..2 {
            file.set_view(&View::bytes())?;
            let servers = file.placement().unwrap().stripes().servers();
            let at = FIRST + (u64::from(comm.rank().0) << 20);
            file.write_at_all(at, &vec![call + 1_u8; 1 << 20][..])?;
            found.push((servers, file.explain_last_all().unwrap()));
        }
        let facts = file.explain_open();
        file.close()?;
        pario::Result::Ok((found, facts))
    });
    let outcomes: Vec<_> = outcomes
        .into_iter()
        .map(|it| it.unwrap().unwrap())
        .collect();
    let (found, facts) = &outcomes[0];
    assert_eq!(found.iter().map(|it| it.0).collect::<Vec<_>>(), [4, 2]);
    assert!(found[1].1.contains("group-cyclic"), "{found:?}");
    assert!(facts.contains("on servers [0, 1, 0, 1]"), "{facts}");
    assert!(outcomes.iter().all(|it| it.0 == *found), "{outcomes:?}");
    let written = std::fs::read(&path).unwrap();
    assert_eq!(written.len() as u64, FIRST + (4 << 20));
    assert!(written[FIRST as usize..].iter().all(|byte| *byte == 2));
}

/// A client that answers no question about layouts.
#[derive(Debug)]
struct Silent;

impl FileControl for Silent {
    fn attribute(&self, _: BorrowedFd<'_>, _: &CStr, _: usize) -> io::Result<Vec<u8>> {
        Err(io::ErrorKind::TimedOut.into())
    }

    fn ioctl(&self, _: BorrowedFd<'_>, _: u64, _: IoctlArgument<'_>) -> io::Result<()> {
        Err(io::ErrorKind::TimedOut.into())
    }
}

/// One rank's query fails: all ranks plan without the layout, and alike.
#[test]
fn a_layout_that_one_rank_cannot_read_is_used_by_none() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    let double: Arc<dyn FileControl> = Arc::new(LustreDouble::new(4));
    let hints = [
        ("striping_factor", "4"),
        ("striping_unit", "64k"),
        ("pario_deferred_open", "disable"),
    ];
    let info = Info::from_pairs(hints).unwrap();
    let outcomes = World::new(4).nodes(&[0, 0, 1, 1]).run(|comm| {
        let rank = comm.rank().0;
        let control = match rank {
            3 => Arc::new(Silent),
            _ => double.clone(),
        };
        let driver = Posix::new().assuming(FileSystem::Lustre);
        let driver = Arc::new(driver.with_control(control));
        let file = File::open_with(&comm, driver, &path, NEW, &info)?;
        let byte = Datatype::basic(Basic::Byte);
        let piece = Datatype::contiguous(1000, &byte)?;
        let tile = Datatype::resized(&piece, 0, 4 * 1000)?;
        file.set_view(&View::new(1000 * u64::from(rank), &byte, &tile))?;
        file.write_at_all(0, &vec![rank as u8 + 1; 300 * 1000][..])?;
        let found = (file.placement(), file.explain_last_all());
        file.close()?;
        pario::Result::Ok(found)
    });
    let found: Vec<_> = outcomes
        .into_iter()
        .map(|it| it.unwrap().unwrap())
        .collect();
    assert_eq!(found[0].0, None);
    assert!(
        found[0].1.as_ref().unwrap().contains("two-phase"),
        "{found:?}"
    );
    assert!(found.iter().all(|it| *it == found[0]), "{found:?}");
    let written = std::fs::read(&path).unwrap();
    assert_eq!(written.len(), 4 * 300 * 1000);
    for (index, piece) in written.chunks(1000).enumerate() {
        let expected = (index % 4) as u8 + 1;
        assert!(piece.iter().all(|byte| *byte == expected), "piece {index}");
    }
}

/// A write or a flush that fails on one rank fails on all, and leaves no lock.
#[test]
#[cfg(target_arch = "x86_64")]
fn a_failure_under_a_group_lock_releases_it() {
    for operation in [Operation::Write, Operation::Sync] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        let double = Arc::new(LustreDouble::new(4));
        let info = Info::from_pairs([("pario_group_lock", "true")]).unwrap();
        let outcomes = World::new(4).nodes(&[0, 0, 1, 1]).run(|comm| {
            let rank = comm.rank().0;
            let faults = Faults::new();
            if rank == 2 {
                faults.fail_nth(1, &[operation], Fault::Error(libc::ENOSPC));
            }
            let driver = Posix::new()
                .assuming(FileSystem::Lustre)
                .with_interference(Arc::new(faults))
                .with_control(double.clone());
            let file = File::open_with(&comm, Arc::new(driver), &path, NEW, &info)?;
            let byte = Datatype::basic(Basic::Byte);
            let page = Datatype::contiguous(4096, &byte)?;
            let tile = Datatype::resized(&page, 0, 4 * 4096)?;
            file.set_view(&View::new(4096 * u64::from(rank), &byte, &tile))?;
            let error = file
                .write_at_all(0, &vec![7_u8; 16 * 4096][..])
                .unwrap_err();
            let is_free = !double.has_group_locks();
            // The rank whose data is lost reports it again.
            let _ = file.close();
            pario::Result::Ok((error.kind(), is_free))
        });
        for outcome in outcomes {
            let (kind, is_free) = outcome.unwrap().unwrap();
            assert_eq!(kind, pario::ErrorKind::NoSpace, "{operation:?}");
            assert!(is_free, "{operation:?}");
        }
        let answered = double.answered();
        let taken = answered.iter().filter(|it| it.0 == "group lock").count();
        assert_eq!(taken, 4, "{operation:?}");
        assert!(!double.has_group_locks());
    }
}

/// Interleaved pages of ranks on two nodes, three times.
#[test]
#[cfg(target_arch = "x86_64")]
fn whole_pages_are_written_under_a_group_lock_if_a_hint_allows_it() {
    for (hint, locks) in [("true", true), ("false", false)] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        let double = Arc::new(LustreDouble::new(4));
        let driver: Arc<Posix> = Arc::new(
            Posix::new()
                .assuming(FileSystem::Lustre)
                .with_control(double.clone()),
        );
        let info = Info::from_pairs([("pario_group_lock", hint)]).unwrap();
        let world = World::new(4).nodes(&[0, 0, 1, 1]);
        let outcomes = world.run(|comm| {
            let file = File::open_with(&comm, driver.clone(), &path, NEW, &info)?;
            let rank = comm.rank().0;
            let byte = Datatype::basic(Basic::Byte);
            let page = Datatype::contiguous(4096, &byte)?;
            let tile = Datatype::resized(&page, 0, 4 * 4096)?;
            file.set_view(&View::new(4096 * u64::from(rank), &byte, &tile))?;
            for call in 0..3 {
                let data = vec![(10 * call + rank) as u8; 16 * 4096];
                file.write_at_all(u64::from(call) * 16 * 4096, &data[..])?;
            }
            file.close()
        });
        outcomes.into_iter().for_each(|it| it.unwrap().unwrap());
        let answered = double.answered();
        let taken = answered.iter().filter(|it| it.0 == "group lock").count();
        let released = answered.iter().filter(|it| it.0 == "group unlock").count();
        assert_eq!((taken, released), if locks { (12, 12) } else { (0, 0) });
        assert!(!double.has_group_locks());
        let written = std::fs::read(&path).unwrap();
        assert_eq!(written.len(), 3 * 64 * 4096);
        for (index, page) in written.chunks(4096).enumerate() {
            let expected = (10 * (index / 64) + index % 4) as u8;
            assert!(page.iter().all(|byte| *byte == expected), "page {index}");
        }
    }
}

/// Independent writes of four ranks on four nodes: pieces of 16 KiB, interleaved, through a view. As
/// measured on a real Lustre, 256 of them take 16 requests under a group lock, one per client and
/// server.
#[test]
#[cfg(target_arch = "x86_64")]
fn independent_writes_of_many_pages_take_a_group_lock() {
    const PIECE: usize = 16 << 10;
    let write = |piece: usize, pieces: usize, calls: usize, hint: &str, is_blocking: bool| {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        let double = Arc::new(LustreDouble::new(4));
        let driver = Posix::new().assuming(FileSystem::Lustre);
        let driver = Arc::new(driver.with_control(double.clone()));
        let hints = [
            ("pario_group_lock", hint),
            ("striping_factor", "4"),
            ("striping_unit", "64k"),
        ];
        let info = Info::from_pairs(hints).unwrap();
        let outcomes = World::new(4).nodes(&[0, 1, 2, 3]).run(|comm| {
            let rank = comm.rank().0;
            let file = File::open_with(&comm, driver.clone(), &path, NEW, &info)?;
            let byte = Datatype::basic(Basic::Byte);
            let block = Datatype::contiguous(piece as u64, &byte)?;
            let tile = Datatype::resized(&block, 0, 4 * piece as i64)?;
            file.set_view(&View::new(piece as u64 * u64::from(rank), &byte, &tile))?;
            for call in 0..calls {
                let data = vec![(10 * call as u32 + rank) as u8; piece * pieces];
                let at = (call * data.len()) as u64;
                match is_blocking {
                    true => drop(file.write_at(at, &data[..])?),
                    false => drop(file.iwrite_at(at, data)?.wait()?),
                }
                let mut back = vec![0_u8; piece * pieces];
                file.read_at(at, &mut back[..])?;
                assert!(
                    back.iter()
                        .all(|byte| *byte == (10 * call as u32 + rank) as u8)
                );
            }
            file.close()
        });
        outcomes.into_iter().for_each(|it| it.unwrap().unwrap());
        assert!(!double.has_group_locks());
        let written = std::fs::read(&path).unwrap();
        assert_eq!(written.len(), 4 * piece * pieces * calls);
        for (index, page) in written.chunks(piece).enumerate() {
            let expected = (10 * (index / (4 * pieces)) + index % 4) as u8;
            assert!(page.iter().all(|byte| *byte == expected), "piece {index}");
        }
        let answered = double.answered();
        let count = |name| answered.iter().filter(|it| it.0 == name).count();
        assert_eq!(count("group lock"), count("group unlock"));
        count("group lock")
    };
    assert_eq!(write(PIECE, 64, 1, "true", true), 4);
    assert_eq!(
        write(PIECE, 64, 3, "true", true),
        12,
        "never kept for the next call"
    );
    assert_eq!(write(PIECE, 64, 1, "true", false), 4);
    assert_eq!(write(PIECE, 64, 1, "false", true), 0);
    assert_eq!(write(PIECE + 1, 64, 1, "true", true), 0, "not whole pages");
    assert_eq!(
        write(PIECE, 7, 2, "true", true),
        0,
        "as many requests without"
    );
}

/// Under a group lock nothing is coherent, so that another thread's access through the same handle
/// waits until it is released.
#[test]
#[cfg(target_arch = "x86_64")]
fn nothing_else_on_the_handle_happens_under_a_group_lock() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    let double = Arc::new(LustreDouble::new(4));
    let posix = Posix::new().assuming(FileSystem::Lustre);
    let posix = Arc::new(posix.with_control(double.clone()));
    let slow = WrappedDriver::new(posix, Throttle::new(Duration::from_millis(30)));
    let log = Log::new();
    let driver = Arc::new(WrappedDriver::new(Arc::new(slow), log.clone()));
    let info = Info::from_pairs([("pario_group_lock", "true")]).unwrap();
    const FAR: u64 = 1 << 30;
    let outcomes = World::new(2).nodes(&[0, 1]).run(|comm| {
        let file = File::open_with(&comm, driver.clone(), &path, NEW, &info)?;
        let byte = Datatype::basic(Basic::Byte);
        let page = Datatype::contiguous(4096, &byte)?;
        let tile = Datatype::resized(&page, 0, 8192)?;
        file.set_view(&View::new(0, &byte, &tile))?;
        if comm.rank().0 == 0 {
            thread::scope(|scope| {
                let other = scope.spawn(|| {
                    while !double.has_group_locks() {
                        thread::yield_now();
                    }
                    file.write_at(FAR, &[1_u8; 100][..])?;
                    file.read_at(FAR, &mut [0_u8; 100][..])
                });
                file.write_at(0, &vec![2_u8; 64 * 4096][..])?;
                other.join().unwrap()
            })?;
        }
        file.close()
    });
    outcomes.into_iter().for_each(|it| it.unwrap().unwrap());
    let events = log.events();
    let is_far = |it: &&pario_driver::Event| it.places.first().is_some_and(|it| it.0 >= FAR);
    let moves =
        |it: &&pario_driver::Event| matches!(it.operation, Operation::Write | Operation::Read);
    let (far, paged): (Vec<_>, Vec<_>) = events.iter().filter(moves).partition(is_far);
    let released = paged.iter().map(|it| it.began + it.took).max().unwrap();
    assert_eq!(far.len(), 2);
    assert!(far.iter().all(|it| it.began >= released), "{events:?}");
    assert!(!double.has_group_locks());
}

/// One request for all pieces of a call, on exactly their pages; none for aggregated writes.
#[test]
fn independent_writes_request_locks_in_advance_if_a_hint_says_so() {
    let locks = |hint: &str, nodes: &[u32], is_aggregated: bool| {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        let double = Arc::new(LustreDouble::new(4));
        let driver = Posix::new().assuming(FileSystem::Lustre);
        let driver = Arc::new(driver.with_control(double.clone()));
        let info = Info::from_pairs([("pario_lock_ahead", hint), ("romio_cb_write", "enable")]);
        let info = info.unwrap();
        let outcomes = World::new(2).nodes(nodes).run(|comm| {
            let rank = u64::from(comm.rank().0);
            let file = File::open_with(&comm, driver.clone(), &path, NEW, &info)?;
            let byte = Datatype::basic(Basic::Byte);
            let block = Datatype::contiguous(5000, &byte)?;
            let tile = Datatype::resized(&block, 0, 32_768)?;
            file.set_view(&View::new(16_384 * rank, &byte, &tile))?;
            let data = vec![rank as u8 + 1; 3 * 5000];
            match is_aggregated {
                true => drop(file.write_at_all(0, &data[..])?),
                false if rank == 0 => drop(file.write_at(0, &data[..])?),
                false => drop(file.iwrite_at(0, data)?.wait()?),
            }
            // One piece, as most small calls are.
            file.set_view(&View::bytes())?;
            if !is_aggregated && rank == 1 {
                file.write_at(1 << 20, &[9_u8][..])?;
            }
            file.close()
        });
        outcomes.into_iter().for_each(|it| it.unwrap().unwrap());
        let written = std::fs::read(&path).unwrap();
        assert_eq!((written[0], written[16_384], written[6000]), (1, 2, 0));
        let calls = double
            .answered()
            .iter()
            .filter(|it| it.0 == "lock ahead")
            .count();
        let mut ahead = double.locked_ahead();
        ahead.sort_unstable();
        (calls, ahead)
    };
    let (calls, ahead) = locks("true", &[0, 1], false);
    assert_eq!(calls, 3);
    let mut expected: Vec<(u64, u64)> = (0..6).map(|it| (it << 14, (it << 14) + 8191)).collect();
    expected.push((1 << 20, (1 << 20) + 4095));
    assert_eq!(ahead, expected);
    assert_eq!(locks("false", &[0, 1], false).0, 0);
    assert_eq!(locks("true", &[0, 0], false).0, 0, "one client");
    assert_eq!(locks("true", &[0, 1], true).0, 0, "aggregated");
}
