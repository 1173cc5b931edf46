//! The calls of a file, by processes.

use std::{fs, io, sync::Arc};

use pario::{Atomicity, Basic, Datatype, ErrorKind, File, Info, Mode, Seek, View};
use pario_driver::Driver;
use pario_transport::{Rank, processes::World};

use crate::{
    common::{
        NEW, directory, every, info,
        probe::{Event, Probe},
    },
    harness::{Test, ranks, run},
};

pub(crate) const TESTS: &[Test] = &[
    (
        "tour::rule_07_views_pointers_and_sizes",
        views_pointers_and_sizes,
    ),
    ("tour::rule_07_every_way_and_driver", every_way_and_driver),
    ("tour::rule_07_nonblocking", nonblocking),
    (
        "tour::rule_07_atomic_writes_do_not_mix",
        atomic_writes_do_not_mix,
    ),
    (
        "tour::rule_07_locked_read_modify_write",
        locked_read_modify_write,
    ),
    (
        "tour::collective_errors_reach_all",
        collective_errors_reach_all,
    ),
    (
        "tour::files_of_one_process_are_rejected",
        files_of_one_process_are_rejected,
    ),
];

fn views_pointers_and_sizes() {
    let directory = directory();
    let path = directory.path().join("table");
    ranks(4, |comm| {
        let file = File::open(&comm, &path, NEW, &Info::new())?;
        let rank = u64::from(comm.rank().0);
        let int = Datatype::basic(Basic::Int32);
        let column = Datatype::resized(&int, 0, 16)?;
        let view = View::new(4 * rank, &int, &column).representation("external32");
        file.set_view(&view)?;
        let mine: Vec<i32> = (0..100).map(|row| row * 4 + rank as i32).collect();
        assert_eq!(file.write(&mine)?.count(&int), Some(100));
        assert_eq!(file.position()?, 100);
        file.sync()?;
        file.set_view(&View::new(0, &int, &int).representation("external32"))?;
        let mut all = vec![0i32; 400];
        file.read_at_all(0, &mut all)?;
        assert_eq!(all, (0..400).collect::<Vec<_>>());
        file.set_size(4000)?;
        file.preallocate(5000)?;
        assert_eq!(file.size()?, 5000);
        file.seek(0, Seek::End)?;
        assert_eq!(file.position()?, 1250);
        file.close()
    });
    let bytes = fs::read(&path).unwrap();
    assert_eq!(bytes.len(), 5000);
    assert_eq!(bytes[1596..1604], [0, 0, 1, 143, 0, 0, 0, 0]);
}

fn every_way_and_driver() {
    let directory = directory();
    for driver in ["ufs", "uring"] {
        for method in ["direct", "list", "sieve", "automatic"] {
            let path = directory.path().join(format!("{driver}-{method}"));
            ranks(3, |comm| {
                let hints = info(&[
                    ("pario_driver", driver),
                    ("pario_write_method", method),
                    ("pario_read_method", method),
                ]);
                let file = File::open(&comm, &path, NEW, &hints)?;
                file.set_view(&every(21, 7, 7 * u64::from(comm.rank().0)))?;
                let mine = vec![comm.rank().0 as u8 + 1; 7000];
                file.write_at_all(0, &mine)?;
                let mut back = vec![0u8; 7000];
                file.read_at(0, &mut back)?;
                assert_eq!(back, mine);
                file.close()
            });
            let bytes = fs::read(&path).unwrap();
            assert_eq!(bytes.len(), 21_000);
            for (index, byte) in bytes.iter().enumerate() {
                assert_eq!(
                    usize::from(*byte),
                    index / 7 % 3 + 1,
                    "{driver} {method}: {index}"
                );
            }
        }
    }
}

fn nonblocking() {
    let directory = directory();
    for method in ["pool", "automatic"] {
        let path = directory.path().join(method);
        ranks(3, |comm| {
            let hints = info(&[("pario_async", method)]);
            let file = File::open(&comm, &path, NEW, &hints)?;
            let base = 100_000 * u64::from(comm.rank().0);
            let writes: Vec<_> = (0..100)
                .map(|index| file.iwrite_at(base + 1000 * index, vec![index as u8; 1000]))
                .collect::<pario::Result<_>>()?;
            for write in writes.into_iter().rev() {
                assert_eq!(write.wait()?.0.bytes(), 1000);
            }
            file.close()
        });
        let bytes = fs::read(&path).unwrap();
        assert_eq!(bytes.len(), 300_000);
        for (index, byte) in bytes.iter().enumerate() {
            assert_eq!(
                usize::from(*byte),
                index / 1000 % 100,
                "{method}: byte {index}"
            );
        }
    }
}

fn atomic_writes_do_not_mix() {
    let directory = directory();
    let path = directory.path().join("atomic");
    ranks(4, |comm| {
        let hints = info(&[
            ("pario_write_method", "direct"),
            ("pario_read_method", "direct"),
        ]);
        let file = File::open(&comm, &path, NEW, &hints)?;
        file.set_atomicity(Atomicity::Atomic)?;
        file.set_view(&every(50, 10, 0))?;
        let mut seen = vec![0u8; 300];
        for round in 0..100u8 {
            file.write_at(0, &vec![4 * (round % 50) + comm.rank().0 as u8; 300])?;
            file.read_at(0, &mut seen)?;
            assert!(seen.iter().all(|byte| *byte == seen[0]), "{seen:?}");
        }
        file.close()
    });
}

fn locked_read_modify_write() {
    let directory = directory();
    let path = directory.path().join("locked");
    ranks(4, |comm| {
        let rank = comm.rank().0;
        // Two ranks sieve, two write their pieces directly.
        let method = if rank % 2 == 0 { "sieve" } else { "direct" };
        let hints = info(&[
            ("pario_rmw", "locked"),
            ("pario_write_method", method),
            ("ind_wr_buffer_size", "100"),
        ]);
        let file = File::open(&comm, &path, NEW, &hints)?;
        file.set_view(&every(12, 3, 3 * u64::from(rank)))?;
        for round in 0..20u8 {
            file.write_at(0, &vec![10 * round + rank as u8; 600])?;
            comm.barrier()?;
            let mut mine = vec![0u8; 600];
            file.read_at(0, &mut mine)?;
            let lost = mine.iter().filter(|byte| **byte != 10 * round + rank as u8);
            assert_eq!(lost.count(), 0, "round {round}");
            comm.barrier()?;
        }
        file.close()
    });
}

fn collective_errors_reach_all() {
    let directory = directory();
    let path = directory.path().join("errors");
    ranks(3, |comm| {
        let last = comm.rank() == Rank(2);
        let missing = File::open(
            &comm,
            directory.path().join("none"),
            Mode::READ_ONLY,
            &Info::new(),
        );
        assert_eq!(missing.unwrap_err().kind(), ErrorKind::NoSuchFile);
        let mode = if last { NEW | Mode::APPEND } else { NEW };
        let modes = File::open(&comm, &path, mode, &Info::new());
        assert_eq!(modes.unwrap_err().kind(), ErrorKind::NotSame);
        // Whichever rank writes for the others.
        let driver: Arc<dyn Driver> = Probe::new(|event| match event {
            Event::Write(_) => Err(io::Error::from_raw_os_error(libc::ENOSPC)),
            _ => Ok(()),
        });
        let file = File::open_with(&comm, driver, &path, NEW, &Info::new())?;
        let results = [
            (ErrorKind::NoSpace, file.write_at_all(0, &[1u8]).map(drop)),
            (ErrorKind::NoSpace, file.write_ordered(&[1u8]).map(drop)),
            (ErrorKind::NotSame, file.set_size(u64::from(comm.rank().0))),
            (
                ErrorKind::UnsupportedRepresentation,
                file.set_view(&View::bytes().representation(if last { "odd" } else { "native" })),
            ),
        ];
        for (kind, result) in results {
            assert_eq!(result.unwrap_err().kind(), kind);
        }
        file.close()
    });
}

fn files_of_one_process_are_rejected() {
    ranks(2, |comm| {
        let error = File::open(&comm, "mem:x", NEW, &Info::new()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::UnsupportedOperation);
        assert!(error.to_string().contains("one process"), "{error}");
        Ok(())
    });
    // The ranks of two nodes share no memory, so the pointer goes to a file.
    let directory = directory();
    let path = directory.path().join("nodes");
    run(&World::new(4).nodes(&[0, 0, 1, 1]), |comm| {
        let file = File::open(&comm, &path, NEW, &Info::new())?;
        assert!(file.explain_open().contains("shared pointer: file"));
        file.write_ordered(&[comm.rank().0 as u8])?;
        file.close()
    });
    assert_eq!(fs::read(&path).unwrap(), [0, 1, 2, 3]);
}
