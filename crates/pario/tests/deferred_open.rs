//! Deferred open: which ranks open a file, when, and that nothing else changes.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use std::{
    fs,
    path::Path,
    sync::{Arc, OnceLock},
};

use pario::{Atomicity, ErrorKind, File, Info, Mode, Result, Seek, View};
use pario_driver::{Driver, Fault, Faults, FileSystem, Log, Operation, Posix, WrappedDriver};
use pario_transport::{Transport, threads::World};

use common::{NEW, directory, every, info, watchdog};

/// Six ranks on two nodes; ranks 0 and 3 open the file for their nodes.
const NODES: &[u32] = &[0, 0, 0, 1, 1, 1];
const ONE_NODE: &[u32] = &[0, 0, 0, 0];

const DEFERRED: &[(&str, &str)] = &[("romio_no_indep_rw", "true"), ("cb_config_list", "*:1")];

type Call = (&'static str, fn(&File) -> Result<()>);

/// A driver, hints, and how many ranks open the file at once.
type Case = (Posix, &'static [(&'static str, &'static str)], usize);

fn run(nodes: &[u32], work: impl Fn(Arc<dyn Transport>) -> Result<()> + Sync) {
    let _watchdog = watchdog();
    for result in World::new(nodes.len() as u32).nodes(nodes).run(work) {
        result.unwrap().unwrap();
    }
}

/// A log of the file operations of all ranks.
struct Traced {
    log: Log,
    driver: Arc<dyn Driver>,
}

impl Traced {
    fn new(driver: Posix) -> Traced {
        let log = Log::new();
        let driver = Arc::new(WrappedDriver::new(Arc::new(driver), log.clone()));
        Traced { log, driver }
    }

    fn open(&self, comm: &Arc<dyn Transport>, path: &Path, hints: &[(&str, &str)]) -> Result<File> {
        File::open_with(comm, self.driver.clone(), path, NEW, &info(hints))
    }

    /// Whether all ranks together have made so many calls.
    fn check(&self, comm: &Arc<dyn Transport>, operation: Operation, count: usize) -> Result<()> {
        comm.barrier()?;
        assert_eq!(self.log.count(operation), count, "{operation:?}");
        comm.barrier()?;
        Ok(())
    }
}

fn byte_of(comm: &Arc<dyn Transport>) -> u8 {
    comm.rank().0 as u8 + 1
}

/// The rank that reads for all may find the slot of the next window still in use by the others.
#[test]
fn one_rank_reads_many_windows_for_all() {
    const PIECE: u64 = 64;
    const PIECES: u64 = 1000;
    let directory = directory();
    let path = directory.path().join("data");
    let ranks = ONE_NODE.len() as u64;
    let hints = [DEFERRED, &[("pario_slice_bytes", "1024")]].concat();
    let traced = Traced::new(Posix::new());
    run(ONE_NODE, |comm| {
        let rank = u64::from(comm.rank().0);
        let file = traced.open(&comm, &path, &hints)?;
        file.set_view(&every((PIECE * ranks) as i64, PIECE, PIECE * rank))?;
        let mine = vec![byte_of(&comm); (PIECES * PIECE) as usize];
        file.write_at_all(0, &mine)?;
        for _ in 0..10 {
            let mut back = vec![0u8; mine.len()];
            file.read_at_all(0, &mut back)?;
            assert_eq!(back, mine);
        }
        traced.check(&comm, Operation::Open, 1)?;
        file.close()
    });
}

#[test]
fn collective_accesses_are_made_by_the_ranks_that_opened_the_file() {
    for (nodes, openers) in [(NODES, 2), (ONE_NODE, 1)] {
        let directory = directory();
        let path = directory.path().join("data");
        let traced = Traced::new(Posix::new());
        let ranks = nodes.len() as u64;
        run(nodes, |comm| {
            let file = traced.open(&comm, &path, DEFERRED)?;
            let opened = format!("opened: by {openers} of {ranks} ranks at once");
            assert!(
                file.explain_open().contains(&opened),
                "{}",
                file.explain_open()
            );
            // Little data travels with the messages of the call, more in windows.
            for bytes in [64, 100_000] {
                let rank = u64::from(comm.rank().0);
                file.set_view(&every((bytes * ranks) as i64, bytes, bytes * rank))?;
                let mine = vec![byte_of(&comm); 2 * bytes as usize];
                file.write_at_all(0, &mine)?;
                let mut back = vec![0u8; mine.len()];
                file.read_at_all(0, &mut back)?;
                assert_eq!(back, mine);
                file.iwrite_at_all(0, mine.clone())?.wait()?;
                file.write_at_all_begin(0, mine)?.end()?;
            }
            file.set_size(150_000 * ranks)?;
            file.preallocate(160_000 * ranks)?;
            traced.check(&comm, Operation::Open, openers)?;
            file.sync()?;
            traced.check(&comm, Operation::Sync, openers)?;
            file.close()?;
            traced.check(&comm, Operation::Close, openers)
        });
        let stored = fs::read(&path).unwrap();
        assert_eq!(stored.len() as u64, 160_000 * ranks);
        for (block, rank) in stored
            .chunks(100_000)
            .zip((0..ranks as usize).cycle())
            .take(nodes.len())
        {
            assert!(block.iter().all(|byte| usize::from(*byte) == rank + 1));
        }
    }
}

#[test]
fn a_rank_that_needs_the_file_opens_it_then() {
    let calls: [Call; 8] = [
        ("write_at", |file| file.write_at(0, &[1u8]).map(drop)),
        ("read_at", |file| file.read_at(0, &mut [0u8]).map(drop)),
        ("iwrite_at", |file| {
            file.iwrite_at(0, vec![1u8])?.wait().map(drop)
        }),
        ("size", |file| file.size().map(drop)),
        ("seek", |file| file.seek(0, Seek::End)),
        ("write_shared", |file| file.write_shared(&[1u8]).map(drop)),
        ("iread_shared", |file| {
            file.iread_shared(vec![0u8])?.wait().map(drop)
        }),
        ("write", |file| file.write(&[1u8]).map(drop)),
    ];
    for (name, call) in calls {
        let directory = directory();
        let path = directory.path().join("data");
        let traced = Traced::new(Posix::new());
        run(NODES, |comm| {
            let file = traced.open(&comm, &path, DEFERRED)?;
            traced.check(&comm, Operation::Open, 2)?;
            if comm.rank().0 == 4 {
                call(&file)?;
                call(&file)?;
            }
            comm.barrier()?;
            assert_eq!(traced.log.count(Operation::Open), 3, "{name}");
            comm.barrier()?;
            file.sync()?;
            let writes = traced.log.count(Operation::Write) > 0;
            traced.check(&comm, Operation::Sync, usize::from(writes))?;
            file.close()?;
            traced.check(&comm, Operation::Close, 3)
        });
    }
}

#[test]
fn plans_in_which_every_rank_moves_its_data_open_it_everywhere() {
    for hints in [
        [
            ("pario_deferred_open", "enable"),
            ("romio_cb_write", "disable"),
        ],
        [
            ("pario_deferred_open", "enable"),
            ("pario_algorithm", "private-sieve"),
        ],
    ] {
        let directory = directory();
        let path = directory.path().join("data");
        let traced = Traced::new(Posix::new());
        run(NODES, |comm| {
            let file = traced.open(&comm, &path, &hints)?;
            traced.check(&comm, Operation::Open, 2)?;
            file.set_view(&every(60_000, 10_000, 10_000 * u64::from(comm.rank().0)))?;
            let mine = vec![byte_of(&comm); 30_000];
            file.write_at_all(0, &mine)?;
            let mut back = vec![0u8; mine.len()];
            file.read_at_all(0, &mut back)?;
            assert_eq!(back, mine);
            traced.check(&comm, Operation::Open, NODES.len())?;
            file.close()
        });
    }
}

#[test]
fn atomic_and_ordered_accesses_work() {
    let directory = directory();
    let path = directory.path().join("data");
    run(NODES, |comm| {
        let file = File::open(&comm, &path, NEW, &info(DEFERRED))?;
        file.set_atomicity(Atomicity::Atomic)?;
        file.write_at_all(0, &[byte_of(&comm); 5000])?;
        let mut seen = vec![0u8; 5000];
        file.read_at_all(0, &mut seen)?;
        assert_eq!(seen, [NODES.len() as u8; 5000]);
        file.set_atomicity(Atomicity::NonAtomic)?;
        file.write_ordered(&[byte_of(&comm)])?;
        file.write_ordered_begin(vec![byte_of(&comm)])?.end()?;
        let mut seen = [0u8; 12];
        file.read_at_all(0, &mut seen)?;
        assert_eq!(seen, [1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6]);
        file.close()
    });
}

/// The file can be renamed or deleted, and another one can take its name.
#[test]
fn a_late_open_leads_to_the_file_that_was_opened() {
    let directory = directory();
    for case in ["renamed", "deleted", "replaced"] {
        let path = directory.path().join(case);
        let renamed = directory.path().join("elsewhere");
        run(NODES, |comm| {
            let file = File::open(&comm, &path, NEW, &info(DEFERRED))?;
            if comm.rank().0 == 0 {
                match case {
                    "deleted" => fs::remove_file(&path).unwrap(),
                    _ => fs::rename(&path, &renamed).unwrap(),
                }
                if case == "replaced" {
                    fs::write(&path, b"another file").unwrap();
                }
            }
            comm.barrier()?;
            file.write_at(u64::from(comm.rank().0), &[byte_of(&comm)])?;
            comm.barrier()?;
            let mut all = [0u8; 6];
            file.read_at(0, &mut all)?;
            assert_eq!(all, [1, 2, 3, 4, 5, 6]);
            file.close()
        });
        if case == "replaced" {
            assert_eq!(fs::read(&path).unwrap(), b"another file");
        }
    }
}

/// Relative names are those of the directory at the time of the open.
#[test]
fn a_late_open_does_not_depend_on_the_working_directory() {
    let directory = directory();
    std::env::set_current_dir(directory.path()).unwrap();
    let moved = OnceLock::new();
    run(NODES, |comm| {
        let file = File::open(&comm, "relative", NEW, &info(DEFERRED))?;
        comm.barrier()?;
        moved.get_or_init(|| std::env::set_current_dir("/").unwrap());
        file.write_at(u64::from(comm.rank().0), &[byte_of(&comm)])?;
        file.close()
    });
    let stored = fs::read(directory.path().join("relative")).unwrap();
    assert_eq!(stored, [1, 2, 3, 4, 5, 6]);
}

#[test]
fn a_file_to_be_deleted_on_close_is() {
    let directory = directory();
    let path = directory.path().join("data");
    run(NODES, |comm| {
        let mode = NEW | Mode::DELETE_ON_CLOSE | Mode::APPEND;
        let file = File::open(&comm, &path, mode, &info(DEFERRED))?;
        if comm.rank().0 == 5 {
            file.write(&[1u8; 10])?;
        }
        file.close()
    });
    assert!(!path.exists());
}

/// Every rank has its own faults.
fn faulty(comm: &Arc<dyn Transport>) -> (Faults, Arc<dyn Driver>) {
    let faults = Faults::new();
    let driver = Arc::new(WrappedDriver::new(Arc::new(Posix::new()), faults.clone()));
    if comm.rank().0 == 4 {
        // Through the node's descriptor, then by name.
        faults.fail_from_nth(1, &[Operation::Open], Fault::Error(libc::EMFILE));
    }
    (faults, driver)
}

#[test]
fn a_late_open_that_fails_is_an_error_of_the_call() {
    let directory = directory();
    let path = directory.path().join("data");
    run(NODES, |comm| {
        let (faults, driver) = faulty(&comm);
        let hints = info(&[
            ("pario_deferred_open", "enable"),
            ("romio_cb_write", "disable"),
        ]);
        let file = File::open_with(&comm, driver, &path, NEW, &hints)?;
        // All ranks of a collective call get it.
        let error = file.write_at_all(0, &[1u8; 100]).unwrap_err();
        assert_eq!((error.kind(), error.rank()), (ErrorKind::Io, Some(4)));
        assert!(error.to_string().contains("deferred open"), "{error}");
        if comm.rank().0 == 4 {
            let error = file.write_at(0, &[1u8]).unwrap_err();
            assert_eq!(error.operation(), "write_at");
            assert!(error.to_string().contains("cannot"), "{error}");
            let error = file.iwrite_at(0, vec![1u8]).unwrap().wait().unwrap_err();
            assert!(error.to_string().contains("deferred open"), "{error}");
            faults.clear();
        }
        // The next call tries again.
        file.write_at_all(100 * u64::from(comm.rank().0), &[byte_of(&comm); 100])?;
        file.close()
    });
    let stored = fs::read(&path).unwrap();
    let expected: Vec<u8> = (1..=6).flat_map(|byte| [byte; 100]).collect();
    assert_eq!(stored, expected);
}

#[test]
fn on_a_parallel_file_system_open_is_deferred_without_a_hint() {
    let directory = directory();
    let cases: [Case; 4] = [
        (Posix::new().assuming(FileSystem::Lustre), &[], 2),
        (
            Posix::new().assuming(FileSystem::Lustre),
            &[("pario_deferred_open", "disable")],
            6,
        ),
        (Posix::new(), &[], 6),
        // It is not coherent between nodes, so every rank has to open it.
        (Posix::new().assuming(FileSystem::Nfs), DEFERRED, 6),
    ];
    for (case, (driver, hints, opens)) in cases.into_iter().enumerate() {
        let path = directory.path().join(case.to_string());
        let traced = Traced::new(driver);
        run(NODES, |comm| {
            let file = traced.open(&comm, &path, hints)?;
            traced.check(&comm, Operation::Open, opens)?;
            file.write_at_all(u64::from(comm.rank().0), &[byte_of(&comm)])?;
            file.close()
        });
        assert_eq!(fs::read(&path).unwrap(), [1, 2, 3, 4, 5, 6]);
    }
}

/// Each name must lead to the file, which only opening it can show.
#[test]
fn ranks_with_different_names_all_open_the_file() {
    let directory = directory();
    let traced = Traced::new(Posix::new());
    run(NODES, |comm| {
        let name = match comm.rank().0 {
            5 => "./data",
            _ => "data",
        };
        let path = format!("{}/{name}", directory.path().display());
        let file = traced.open(&comm, Path::new(&path), DEFERRED)?;
        traced.check(&comm, Operation::Open, NODES.len())?;
        file.close()
    });
}

#[test]
fn files_of_one_process_are_opened_by_all_ranks() {
    run(NODES, |comm| {
        let file = File::open(&comm, "mem:deferred-open", NEW, &info(DEFERRED))?;
        file.write_at_all(u64::from(comm.rank().0), &[byte_of(&comm)])?;
        file.close()?;
        let file = File::open(&comm, "mem:deferred-open", Mode::READ_ONLY, &Info::new())?;
        file.set_view(&View::bytes())?;
        assert_eq!(file.size()?, 6);
        file.close()
    });
}
