//! Ranks that see one file through two mounts. `cargo xtask nfs` names two mounts of an NFS server in `PARIO_TWO_MOUNTS`
//! (separated by a colon) and the exported directory in `PARIO_SERVER`; without them both ranks use one local directory.
#![allow(clippy::unwrap_used)]

use std::{
    env, fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use pario::{AccessMethod, Atomicity, Datatype, ErrorKind, File, Info, Mode, View, threads};
use pario_driver::{Access, Create, Driver, LockMode, Nfs, OpenHow, conformance};

const CREATE: Mode = Mode::CREATE;

/// Directories in which two ranks see the same files.
struct Mounts {
    of_rank: [PathBuf; 2],
    are_two: bool,
    _local: Option<tempfile::TempDir>,
}

fn mounts() -> Mounts {
    if let Ok(both) = env::var("PARIO_TWO_MOUNTS") {
        let (first, second) = both.split_once(':').expect("two directories");
        return Mounts {
            of_rank: [first.into(), second.into()],
            are_two: true,
            _local: None,
        };
    }
    let local = tempfile::tempdir().unwrap();
    Mounts {
        of_rank: [local.path().to_owned(), local.path().to_owned()],
        are_two: false,
        _local: Some(local),
    }
}

impl Mounts {
    /// The name of a new file on each rank.
    fn names(&self, name: &str) -> [PathBuf; 2] {
        let _ = fs::remove_file(self.of_rank[0].join(name));
        [0, 1].map(|rank| self.of_rank[rank].join(name))
    }
}

fn info(pairs: &[(&str, &str)]) -> Info {
    Info::from_pairs(pairs.iter().copied()).unwrap()
}

/// A small generator that is the same on both ranks.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) % bound
    }
}

/// Rounds in which each rank writes pieces of its own, at any byte, and reads them back at once. Naming a
/// driver changes nothing.
#[test]
fn disjoint_pieces_survive_and_are_seen_without_sync() {
    let mounts = mounts();
    let rounds = if mounts.are_two { 60 } else { 10 };
    for driver in ["posix", "uring", "nfs"] {
        let names = mounts.names(&format!("pieces.{driver}"));
        threads::run(2, |comm| {
            let rank = comm.rank() as usize;
            let mode = CREATE | Mode::READ_WRITE;
            let file = File::open(
                &comm,
                &names[rank],
                mode,
                &info(&[("pario_driver", driver)]),
            )?;
            if mounts.are_two {
                assert!(file.explain_open().starts_with("driver nfs"));
            }
            let mut random = Random(7);
            let mut expected = Vec::new();
            for round in 0..rounds {
                let mut at = random.below(1 + expected.len() as u64);
                for _ in 0..24 {
                    let longest = if random.below(4) > 0 { 300 } else { 9000 };
                    let len = 1 + random.below(longest);
                    let byte = 1 + random.below(255) as u8;
                    let owner = random.below(2) as usize;
                    let end = (at + len) as usize;
                    expected.resize(expected.len().max(end), 0);
                    expected[at as usize..end].fill(byte);
                    if owner == rank {
                        file.write_at(at, &vec![byte; len as usize])?;
                        let mut own = vec![0u8; len as usize];
                        file.read_at(at, &mut own)?;
                        assert_eq!(own, vec![byte; len as usize], "round {round}");
                    }
                    at = end as u64
                        + if random.below(3) > 0 {
                            0
                        } else {
                            random.below(5000)
                        };
                }
                file.sync()?;
                comm.barrier()?;
                file.sync()?;
                assert_eq!(file.size()?, expected.len() as u64);
                let mut found = vec![0u8; expected.len()];
                file.read_at(0, &mut found)?;
                let differs = (0..found.len()).find(|at| found[*at] != expected[*at]);
                assert_eq!(differs, None, "round {round} of {driver}");
                comm.barrier()?;
            }
            file.close()
        })
        .unwrap();
    }
}

/// What a rank writes collectively may be written by the other, and the reverse for reads.
#[test]
fn collective_and_independent_calls_see_each_other() {
    let mounts = mounts();
    let names = mounts.names("collective");
    threads::run(2, |comm| {
        let rank = u64::from(comm.rank());
        let file = File::open(
            &comm,
            &names[rank as usize],
            CREATE | Mode::READ_WRITE,
            &Info::new(),
        )?;
        for round in 0..20u64 {
            let (at, len) = (rank * 5000 + round * 7, 5000usize - 200);
            let bytes = vec![(round * 2 + rank) as u8; len];
            let mut back = vec![0u8; len];
            if round % 2 == 0 {
                file.write_at_all(at, &bytes)?;
                file.read_at(at, &mut back)?;
            } else {
                file.write_at(at, &bytes)?;
                file.read_at_all(at, &mut back)?;
            }
            assert_eq!(back, bytes, "round {round}");
        }
        file.set_atomicity(Atomicity::Atomic)?;
        for round in 0..10u8 {
            let bytes = [round * 2 + rank as u8; 6000];
            file.write_at(100, &bytes)?;
            let mut back = [0u8; 6000];
            file.read_at(100, &mut back)?;
            assert!(
                back.iter().all(|byte| *byte == back[0]),
                "torn in round {round}"
            );
        }
        file.set_atomicity(Atomicity::NonAtomic)?;
        file.write_shared(&[rank as u8; 100])?;
        file.close()
    })
    .unwrap();
}

/// Small pieces with gaps of a file that the program may only write are rewritten all the same.
#[test]
fn write_only_files_are_rewritten_under_locks() {
    let mounts = mounts();
    let names = mounts.names("write-only");
    threads::run(2, |comm| {
        let rank = u64::from(comm.rank());
        let name = &names[rank as usize];
        let file = File::open(&comm, name, CREATE | Mode::WRITE_ONLY, &Info::new())?;
        let piece = Datatype::contiguous(10, &Datatype::of::<u8>())?;
        let strided = Datatype::resized(&piece, 0, 20)?;
        file.set_view(&View::new(10 * rank, &Datatype::of::<u8>(), &strided))?;
        let selected = file.explain_write_at(0, &[0u8; 1000])?;
        assert_eq!(
            selected.method() == AccessMethod::Sieve,
            mounts.are_two,
            "{selected}"
        );
        for round in 0..20u64 {
            file.write_at(0, &[(2 * round + rank) as u8; 1000])?;
        }
        file.read_at(0, &mut [0u8]).expect_err("it is write-only");
        file.close()
    })
    .unwrap();
    let expected = [[38u8; 10], [39; 10]].concat().repeat(100);
    assert_eq!(fs::read(&names[0]).unwrap(), expected);
}

/// A name that a client has looked for before it was created.
#[test]
fn a_new_file_is_found_by_all_ranks() {
    let mounts = mounts();
    let names = mounts.names("new");
    assert!(names.iter().all(|name| !name.exists()));
    threads::run(2, |comm| {
        let rank = comm.rank() as usize;
        let mode = CREATE | Mode::READ_WRITE | Mode::DELETE_ON_CLOSE;
        File::open(&comm, &names[rank], mode, &Info::new())?.close()
    })
    .unwrap();
    // The client may have cached the name.
    let _ = fs::read_dir(&mounts.of_rank[1]).unwrap().count();
    assert!(!names[0].exists());
}

/// A rank on the server itself sees the file on another file system, so its page cache is a third one.
#[test]
fn a_rank_on_the_server_is_refused_before_a_file_is_created() {
    let Ok(server) = env::var("PARIO_SERVER") else {
        return refuses_nothing_locally();
    };
    let mounts = mounts();
    for server_first in [true, false] {
        let name = "on-the-server";
        let mut names = [Path::new(&server).join(name), mounts.of_rank[0].join(name)];
        if !server_first {
            names.reverse();
        }
        threads::run(2, |comm| {
            let rank = comm.rank() as usize;
            let mode = CREATE | Mode::READ_WRITE;
            let opened = File::open(
                &comm,
                &names[rank],
                mode,
                &info(&[("pario_driver", "posix")]),
            );
            let error = opened.expect_err("the caches are not coherent");
            assert_eq!(error.kind(), ErrorKind::UnsupportedOperation, "{error}");
            assert!(error.to_string().contains("nfs"), "{error}");
            Ok(())
        })
        .unwrap();
        assert!(!Path::new(&server).join(name).exists());
    }
}

fn refuses_nothing_locally() {
    let mounts = mounts();
    let names = mounts.names("local");
    threads::run(2, |comm| {
        let name = &names[comm.rank() as usize];
        File::open(&comm, name, CREATE | Mode::WRITE_ONLY, &Info::new())?.close()
    })
    .unwrap();
}

/// A lock on every byte neither waits for a handle that holds none nor outlives its release.
#[test]
fn a_lock_of_everything_excludes_the_other_mount() {
    let mounts = mounts();
    let names = mounts.names("locks");
    let how = OpenHow::new(Access::ReadWrite);
    let first = Nfs::new()
        .open(&names[0], &how.clone().create(Create::IfMissing))
        .unwrap();
    let second = Nfs::new().open(&names[1], &how).unwrap();
    for range in [0..u64::MAX, 5..6, (1 << 61)..(1 << 61) + 1] {
        let lock = first.lock(range.clone(), LockMode::Exclusive).unwrap();
        assert!(
            second
                .try_lock(range.clone(), LockMode::Exclusive)
                .unwrap()
                .is_none()
        );
        drop(lock);
        let lock = second.try_lock(range, LockMode::Exclusive).unwrap();
        assert!(lock.is_some());
    }
    second.close().unwrap();
    first.close().unwrap();
}

#[test]
fn the_driver_conforms() {
    let mounts = mounts();
    conformance::check(Arc::new(Nfs::new()), &mounts.of_rank[1]);
}
