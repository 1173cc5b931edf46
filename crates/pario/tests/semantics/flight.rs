//! Rules 12, 14 and 16: operations in flight.

use std::{fs, panic, sync::Arc, thread, time::Duration};

use pario::{Atomicity, Datatype, ErrorKind, File, Info, Mode, Owned, Seek, View};
use pario_datarep::{Conversion, UserRepresentation};
use pario_driver::Driver;
use pario_transport::Rank;

use crate::common::{
    Latch, NEW, alone, byte, directory, every, info,
    probe::{Event, Probe},
    ranks, watchdog,
};

/// Holds up every write until the latch opens.
fn stuck_writes(latch: &Arc<Latch>) -> Arc<dyn Driver> {
    let latch = latch.clone();
    Probe::new(move |event| {
        if matches!(event, Event::Write(_)) {
            latch.wait();
        }
        Ok(())
    })
}

/// One byte of memory, then a hole.
fn scattered() -> Datatype {
    Datatype::resized(&byte(), 0, 2).unwrap()
}

#[test]
fn rule_12_opposite_orders_on_two_files_with_one_buffer_all_end() {
    const OPERATIONS: u64 = 40;
    const BYTES: u64 = 300;
    let _watchdog = watchdog();
    let directory = directory();
    let hints = info(&[
        ("pario_inflight_bytes", "1"),
        ("pario_rmw", "locked"),
        ("pario_write_method", "sieve"),
    ]);
    for atomicity in [Atomicity::NonAtomic, Atomicity::Atomic] {
        let paths = ["a", "b"].map(|name| directory.path().join(format!("{name}-{atomicity:?}")));
        ranks(4, |comm| {
            let rank = u64::from(comm.rank().0);
            let files = [
                File::open(&comm, &paths[0], NEW, &hints)?,
                File::open(&comm, &paths[1], NEW, &hints)?,
            ];
            for file in &files {
                file.set_atomicity(atomicity)?;
                file.set_view(&every(8, 2, 2 * rank))?;
            }
            let mut requests = Vec::new();
            for number in 0..OPERATIONS {
                let order = if rank % 2 == 0 { [0, 1] } else { [1, 0] };
                for which in order {
                    let memory = vec![rank as u8 + 1; 2 * BYTES as usize];
                    let source = Owned::typed(memory, BYTES, &scattered())?;
                    requests.push(files[which].iwrite_at(number * BYTES, source)?);
                }
            }
            if rank % 2 == 0 {
                requests.reverse();
            }
            for request in requests {
                assert_eq!(request.wait()?.0.bytes(), BYTES);
            }
            files.iter().try_for_each(File::close)
        });
        for path in paths {
            let bytes = fs::read(&path).unwrap();
            assert_eq!(bytes.len() as u64, 4 * OPERATIONS * BYTES);
            for (index, byte) in bytes.iter().enumerate() {
                assert_eq!(usize::from(*byte), index % 8 / 2 + 1, "byte {index}");
            }
        }
    }
}

#[test]
fn rule_12_collectives_in_opposite_orders_on_two_files_all_end() {
    const OPERATIONS: u64 = 10;
    const BYTES: u64 = 3000;
    let _watchdog = watchdog();
    let directory = directory();
    let hints = info(&[("pario_inflight_bytes", "1"), ("cb_buffer_size", "4096")]);
    let paths = ["a", "b"].map(|name| directory.path().join(name));
    ranks(4, |comm| {
        let rank = u64::from(comm.rank().0);
        let files = [
            File::open(&comm, &paths[0], NEW, &hints)?,
            File::open(&comm, &paths[1], NEW, &hints)?,
        ];
        for file in &files {
            file.set_view(&every(8, 2, 2 * rank))?;
        }
        // All on one file, then all on the other: which first differs.
        let order = if rank % 2 == 0 { [0, 1] } else { [1, 0] };
        let mut requests = Vec::new();
        for which in order {
            for number in 0..OPERATIONS {
                let source = vec![rank as u8 + 1; BYTES as usize];
                requests.push(files[which].iwrite_at_all(number * BYTES, source)?);
            }
        }
        if rank == 3 {
            requests.reverse();
        }
        for request in requests {
            assert_eq!(request.wait()?.0.bytes(), BYTES);
        }
        files.iter().try_for_each(File::close)
    });
    for path in paths {
        let bytes = fs::read(&path).unwrap();
        assert_eq!(bytes.len() as u64, 4 * OPERATIONS * BYTES);
        for (index, byte) in bytes.iter().enumerate() {
            assert_eq!(usize::from(*byte), index % 8 / 2 + 1, "byte {index}");
        }
    }
}

/// Both an operation that waits for a lock with a buffer in hand and one that
/// waits for a buffer with a lock in hand can be made of one file, by setting
/// atomicity in between: they must not wait for each other.
#[test]
fn rule_12_atomicity_that_changes_under_operations_in_flight_stops_none() {
    let _watchdog = watchdog();
    let directory = directory();
    let path = directory.path().join("both");
    alone(|comm| {
        let hints = info(&[
            ("pario_inflight_bytes", "1"),
            ("pario_rmw", "locked"),
            ("pario_write_method", "sieve"),
            ("ind_wr_buffer_size", "100"),
        ]);
        let slow = Probe::new(|event| {
            if matches!(event, Event::Locked(_) | Event::Write(_)) {
                thread::sleep(Duration::from_millis(1));
            }
            Ok(())
        });
        let file = File::open_with(&comm, slow, &path, NEW, &hints)?;
        file.set_view(&every(4, 2, 0))?;
        for _ in 0..10 {
            let mut requests = Vec::new();
            for atomicity in [Atomicity::NonAtomic, Atomicity::Atomic] {
                file.set_atomicity(atomicity)?;
                for _ in 0..4 {
                    requests.push(file.iwrite_at(0, vec![1u8; 1000])?);
                }
            }
            for request in requests {
                request.wait()?;
            }
        }
        file.close()
    });
}

#[test]
fn rule_14_pointers_advance_at_the_start_by_what_was_asked() {
    let _watchdog = watchdog();
    let directory = directory();
    let path = directory.path().join("pointers");
    fs::write(&path, [1; 10]).unwrap();
    alone(|comm| {
        let latch = Arc::new(Latch::default());
        let driver = stuck_writes(&latch);
        let file = File::open_with(&comm, driver, &path, NEW, &Info::new())?;
        let write = file.iwrite(vec![2u8; 30])?;
        assert_eq!(file.position()?, 30);
        let shared = file.iwrite_shared(vec![3u8; 7])?;
        assert_eq!(file.position_shared()?, 7);
        assert!(!write.is_complete() && !shared.is_complete());
        latch.open();
        write.wait()?;
        shared.wait()?;
        // Short reads count in full too.
        file.seek(25, Seek::Set)?;
        assert_eq!(file.read(&mut [0u8; 100])?.bytes(), 5);
        assert_eq!(file.position()?, 125);
        file.seek_shared(1000, Seek::Set)?;
        assert_eq!(file.read_shared(&mut [0u8; 9])?.bytes(), 0);
        assert_eq!(file.position_shared()?, 1009);
        // What is rejected does not move them.
        file.seek(i64::MAX, Seek::Set)?;
        assert_eq!(
            file.read(&mut [0u8; 2]).unwrap_err().kind(),
            ErrorKind::Argument
        );
        assert_eq!(file.position()?, i64::MAX as u64);
        file.close()
    });
}

#[test]
fn rule_14_a_failed_access_has_moved_its_pointer() {
    let directory = directory();
    let path = directory.path().join("failed");
    alone(|comm| {
        let broken = Probe::new(|event| match event {
            Event::Write(_) => Err(std::io::Error::from_raw_os_error(libc::EIO)),
            _ => Ok(()),
        });
        let file = File::open_with(&comm, broken, &path, NEW, &Info::new())?;
        assert_eq!(file.write(&[1u8; 10]).unwrap_err().kind(), ErrorKind::Io);
        assert_eq!(file.position()?, 10);
        assert_eq!(
            file.write_shared(&[1u8; 4]).unwrap_err().kind(),
            ErrorKind::Io
        );
        assert_eq!(file.position_shared()?, 4);
        file.close()
    });
}

/// Small collective calls are left to whoever waits for them, but not for long:
/// they go on while the program computes, and while it only tests.
#[test]
fn rule_13_small_collective_calls_go_on_though_nobody_waits() {
    let _watchdog = watchdog();
    let directory = directory();
    let path = directory.path().join("unattended");
    let byte = byte();
    ranks(3, |comm| {
        let file = File::open(&comm, &path, NEW, &Info::new())?;
        // Ranks take turns byte by byte, so the call needs an exchange.
        let tile = Datatype::resized(&byte, 0, 3)?;
        let rank = u64::from(comm.rank().0);
        file.set_view(&View::new(rank, &byte, &tile))?;
        for round in 1..4u8 {
            let request = file.iwrite_at_all(0, vec![round; 100])?;
            let written = || fs::read(&path).is_ok_and(|bytes| bytes == [round; 300]);
            match round {
                1 => {
                    while !written() {
                        thread::yield_now()
                    }
                }
                _ => {
                    while !request.is_complete() {
                        thread::yield_now()
                    }
                }
            }
            request.wait()?;
            // No rank is a round ahead of one that still looks at the file.
            file.sync()?;
        }
        file.close()
    });
}

/// Short calls in which each rank moves its own data are agreed on without a
/// meeting: the error of one of many in flight reaches all ranks, and no other
/// call.
#[test]
fn rule_13_one_of_many_short_collective_calls_fails_on_all_ranks() {
    let _watchdog = watchdog();
    let directory = directory();
    let path = directory.path().join("one-of-many");
    ranks(3, |comm| {
        let file = File::open(&comm, &path, NEW, &Info::new())?;
        let rank = u64::from(comm.rank().0);
        let mut requests = Vec::new();
        for call in 0..40u64 {
            let offset = match (call, rank) {
                // Past the last possible byte of a file.
                (17, 1) | (23, 2) => u64::MAX / 2 - 3,
                _ => (call * 3 + rank) * 8,
            };
            requests.push(file.iwrite_at_all(offset, vec![call as u8; 8])?);
        }
        for (call, request) in requests.into_iter().enumerate().rev() {
            let blamed = match call {
                17 => Some(1),
                23 => Some(2),
                _ => None,
            };
            match (request.wait(), blamed) {
                (Ok((status, _)), None) => assert_eq!(status.bytes(), 8),
                (Err(error), Some(rank)) => {
                    assert_eq!(error.rank(), Some(rank), "{error}");
                    assert_eq!(error.operation(), "iwrite_at_all");
                }
                (result, _) => panic!("call {call}: {result:?}"),
            }
        }
        file.close()
    });
}

#[test]
fn rule_14_a_pending_request_of_one_rank_is_an_error_on_all_and_no_hang() {
    let _watchdog = watchdog();
    let directory = directory();
    let path = directory.path().join("pending");
    let latch = Arc::new(Latch::default());
    ranks(3, |comm| {
        let file = File::open_with(&comm, stuck_writes(&latch), &path, NEW, &Info::new())?;
        let request = match comm.rank() {
            Rank(1) => Some(file.iwrite_at(0, vec![1u8; 10])?),
            _ => None,
        };
        // Operations keep the view that they began with.
        let one_byte_of_two = Datatype::resized(&byte(), 0, 2)?;
        file.set_view(&View::new(0, &byte(), &one_byte_of_two))?;
        let rejected = [
            ("set_size", file.set_size(5)),
            ("preallocate", file.preallocate(5)),
            ("sync", file.sync()),
            ("close", file.close()),
        ];
        for (call, result) in rejected {
            let error = result.expect_err(call);
            assert_eq!(error.kind(), ErrorKind::FileInUse, "{call}");
            assert_eq!((error.rank(), error.operation()), (Some(1), call));
        }
        latch.open();
        if let Some(request) = request {
            request.wait()?;
        }
        file.set_view(&View::bytes())?;
        file.set_size(20)?;
        file.sync()?;
        file.close()
    });
    assert_eq!(
        fs::read(&path).unwrap(),
        [vec![1; 10], vec![0; 10]].concat()
    );
}

/// A scoped request once counted as pending until its scope ended.
#[test]
fn rule_14_a_request_that_was_waited_for_is_not_pending_even_in_its_scope() {
    let directory = directory();
    let path = directory.path().join("scoped");
    alone(|comm| {
        let file = File::open(&comm, &path, NEW, &Info::new())?;
        let data = [5u8; 100];
        pario::scope(|scope| {
            scope.iwrite_at(&file, 0, &data)?.wait()?;
            file.sync()?;
            file.set_size(50)
        })?;
        file.close()
    });
    assert_eq!(fs::read(&path).unwrap(), [5; 50]);
}

#[test]
fn rule_16_a_forgotten_request_still_owns_its_buffer() {
    let _watchdog = watchdog();
    let directory = directory();
    let path = directory.path().join("forgotten");
    alone(|comm| {
        let latch = Arc::new(Latch::default());
        let file = File::open_with(&comm, stuck_writes(&latch), &path, NEW, &Info::new())?;
        std::mem::forget(file.iwrite_at(0, vec![6u8; 5000])?);
        // Memory that was freed would be handed out again and overwritten.
        let reused: Vec<Vec<u8>> = (0..100).map(|_| vec![7u8; 5000]).collect();
        latch.open();
        while file.size()? < 5000 {
            thread::yield_now();
        }
        drop(reused);
        let error = file.close().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::FileInUse, "never waited for");
        drop(file);
        Ok(())
    });
    assert_eq!(fs::read(&path).unwrap(), [6; 5000]);
}

/// Nobody can wait for a request that is gone, so what needs its end does.
#[test]
fn rule_14_operations_whose_requests_were_dropped_are_waited_for() {
    let _watchdog = watchdog();
    let directory = directory();
    let path = directory.path().join("dropped");
    alone(|comm| {
        let latch = Arc::new(Latch::default());
        let file = File::open_with(&comm, stuck_writes(&latch), &path, NEW, &Info::new())?;
        thread::scope(|scope| {
            let mut started = [0; 2].map(|_| None);
            for start in &mut started {
                *start = Some(file.iwrite_at(0, vec![6u8; 5000])?);
            }
            drop(started);
            let syncing = scope.spawn(|| file.sync());
            thread::sleep(Duration::from_millis(20));
            assert!(!syncing.is_finished());
            latch.open();
            syncing.join().unwrap()
        })?;
        drop(file.iwrite_at(0, vec![6u8; 5000])?);
        file.close()?;
        Ok(())
    });
    assert_eq!(fs::read(&path).unwrap(), [6; 5000]);
}

#[test]
fn rule_16_a_file_dropped_with_requests_in_flight_lets_them_end() {
    let _watchdog = watchdog();
    let directory = directory();
    let path = directory.path().join("early");
    alone(|comm| {
        let latch = Arc::new(Latch::default());
        let file = File::open_with(&comm, stuck_writes(&latch), &path, NEW, &Info::new())?;
        let request = file.iwrite_at(0, vec![6u8; 5000])?;
        let opener = latch.clone();
        let opens = thread::spawn(move || {
            thread::sleep(Duration::from_millis(20));
            opener.open();
        });
        drop(file);
        let (result, buffer) = request.wait_with_buffer();
        assert_eq!(buffer, [6; 5000]);
        // Done, or told that the file is closed: never a false success.
        if result.is_ok() {
            assert_eq!(fs::read(&path)?, [6; 5000]);
        }
        opens.join().unwrap();
        Ok(())
    });
}

#[test]
fn rule_16_a_scope_that_panics_waits_for_its_operations_first() {
    let _watchdog = watchdog();
    let directory = directory();
    let path = directory.path().join("panic");
    alone(|comm| {
        let latch = Arc::new(Latch::default());
        let file = File::open_with(&comm, stuck_writes(&latch), &path, NEW, &Info::new())?;
        let opener = latch.clone();
        let caught = panic::catch_unwind(panic::AssertUnwindSafe(|| {
            let data = vec![8u8; 5000];
            pario::scope(|scope| {
                let _request = scope.iwrite_at(&file, 0, &data).unwrap();
                thread::spawn(move || {
                    thread::sleep(Duration::from_millis(20));
                    opener.open();
                });
                panic!("this panic is part of a test");
            });
        }));
        assert!(caught.is_err());
        assert!(latch.is_open(), "the scope ended before its operation");
        assert_eq!(file.size()?, 5000);
        file.close()
    });
    assert_eq!(fs::read(&path).unwrap(), [8; 5000]);
}

#[test]
fn rule_16_a_conversion_function_that_panics_fails_its_operation_only() {
    let _watchdog = watchdog();
    let directory = directory();
    let path = directory.path().join("converted");
    let panics = || Conversion::runs(|_, _, _| panic!("this panic is part of a test"));
    let representation = UserRepresentation::new(|_| Ok(1), panics(), panics());
    pario_datarep::register("semantics-panics", representation).unwrap();
    alone(|comm| {
        let file = File::open(&comm, &path, NEW, &Info::new())?;
        file.set_view(&View::new(0, &byte(), &byte()).representation("semantics-panics"))?;
        let error = file.iwrite_at(0, vec![1u8; 10])?.wait().unwrap_err();
        assert_eq!(error.operation(), "iwrite_at");
        assert!(error.to_string().contains("panicked"), "{error}");
        file.set_view(&View::bytes())?;
        file.iwrite_at(0, vec![1u8; 10])?.wait()?;
        file.close()
    });
    assert_eq!(fs::read(&path).unwrap(), [1; 10]);
}

#[test]
fn rule_16_a_read_only_mode_rejects_before_it_starts() {
    let directory = directory();
    let path = directory.path().join("rejected");
    fs::write(&path, [0; 10]).unwrap();
    alone(|comm| {
        let file = File::open(&comm, &path, Mode::READ_ONLY, &Info::new())?;
        let error = file.iwrite_at(0, vec![1u8]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ReadOnly);
        file.close()
    });
}
