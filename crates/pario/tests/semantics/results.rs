//! Rules 17 to 20: what a call reports, and what ranks must agree on.

use std::{
    fs, io,
    os::unix::fs::symlink,
    path::Path,
    sync::{Arc, Mutex},
};

use pario::{
    Atomicity, Basic, Datatype, ErrorKind, File, Info, Mode, Result, Seek, Target, View,
    set_warning_handler,
};
use pario_driver::Driver;
use pario_transport::{Rank, threads::World};
use pario_types::Client;

use crate::common::{
    NEW, alone, byte, directory, every, info, mismatch,
    probe::{Event, Probe},
    ranks, watchdog,
};

#[test]
fn rule_17_a_read_counts_the_prefix_before_the_end_and_touches_no_more() {
    let directory = directory();
    let path = directory.path().join("end");
    let content: Vec<u8> = (0..1003).map(|index| (index % 251) as u8).collect();
    fs::write(&path, &content).unwrap();
    for method in ["direct", "list", "sieve", "automatic"] {
        ranks(4, |comm| {
            let rank = u64::from(comm.rank().0);
            let hints = info(&[("pario_read_method", method), ("ind_rd_buffer_size", "100")]);
            let file = File::open(&comm, &path, Mode::READ_ONLY, &hints)?;
            file.set_view(&every(40, 10, 10 * rank))?;
            // Memory with holes too: three bytes, then a hole of two.
            let triples = Datatype::contiguous(3, &byte())?;
            let spaced = Datatype::resized(&triples, 0, 5)?;
            let mut memory = vec![0xEE; 2000];
            let status = file.read_at_all(0, Target::typed(&mut memory, 300, &spaced)?)?;
            let mine: Vec<u8> = (0..content.len())
                .filter(|index| index / 10 % 4 == rank as usize)
                .map(|index| content[index])
                .collect();
            assert_eq!(status.bytes(), mine.len() as u64, "{method}");
            let mut expected = vec![0xEE; 2000];
            for (index, byte) in mine.iter().enumerate() {
                expected[index / 3 * 5 + index % 3] = *byte;
            }
            assert_eq!(memory, expected, "{method}");
            file.close()
        });
    }
}

/// Nodes send small calls to one rank, which reads for all: a list of pieces that overlap.
#[test]
fn rule_17_ranks_that_read_the_same_end_all_get_it() {
    let directory = directory();
    let path = directory.path().join("same");
    let content: Vec<u8> = (0..1003).map(|index| (index % 251) as u8).collect();
    fs::write(&path, &content).unwrap();
    for (pieces, step) in [("1024", 0), ("1024", 3), ("1", 0), ("2", 5)] {
        let world = World::new(4).nodes(&[0, 0, 1, 1]);
        let results = world.run(|comm| {
            let rank = u64::from(comm.rank().0);
            let hints = info(&[("pario_list_pieces", pieces)]);
            // A client per process: one on the node would let every rank read for itself.
            let library = Probe::with_facts(|facts| facts.client = Client::Library);
            let file = File::open_with(&comm, library, &path, Mode::READ_ONLY, &hints)?;
            let at = 993 - step * rank;
            let mut memory = [0xEE; 100];
            let status = file.read_at_all(at, &mut memory[..])?;
            let mut expected = [0xEE; 100];
            let len = 1003 - at as usize;
            expected[..len].copy_from_slice(&content[at as usize..]);
            assert_eq!(status.bytes(), len as u64, "rank {rank}");
            assert_eq!(
                memory, expected,
                "rank {rank}, {pieces} pieces, step {step}"
            );
            file.close()
        });
        for result in results {
            result.expect("no rank panics").unwrap();
        }
    }
}

/// Rejects every write at or behind byte 600.
fn full_at_600() -> Arc<dyn Driver> {
    Probe::new(|event| match event {
        Event::Write(pieces) if pieces.iter().any(|(at, len)| at + *len as u64 > 600) => {
            Err(io::Error::from_raw_os_error(libc::ENOSPC))
        }
        _ => Ok(()),
    })
}

#[test]
fn rule_17_an_error_counts_the_prefix_before_it() {
    let directory = directory();
    for method in ["direct", "list"] {
        let path = directory.path().join(method);
        ranks(3, |comm| {
            let hints = info(&[("pario_write_method", method), ("pario_list_pieces", "4")]);
            let file = File::open_with(&comm, full_at_600(), &path, NEW, &hints)?;
            let rank = u64::from(comm.rank().0);
            file.set_view(&every(30, 10, 10 * rank))?;
            let error = file.write_at(0, &[7u8; 1000]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::NoSpace);
            assert_eq!(error.rank(), Some(comm.rank().0));
            // 20 pieces of every rank lie below byte 600.
            assert_eq!(error.transferred(), 200, "{method}");
            assert_eq!(error.offset(), Some(600 + 10 * rank), "{method}");
            file.close()
        });
        assert_eq!(fs::read(&path).unwrap(), [7; 600], "{method}");
    }
}

#[test]
fn rule_17_an_error_of_a_collective_write_is_the_same_on_all_and_counts_what_is_there() {
    let directory = directory();
    let path = directory.path().join("collective");
    ranks(3, |comm| {
        let file = File::open_with(&comm, full_at_600(), &path, NEW, &Info::new())?;
        let rank = u64::from(comm.rank().0);
        file.set_view(&every(30, 10, 10 * rank))?;
        let error = file.write_at_all(0, &[7u8; 1000]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NoSpace);
        assert_eq!(error.operation(), "write_at_all");
        assert!(error.transferred() <= 200, "{}", error.transferred());
        let mut back = vec![0u8; error.transferred() as usize];
        file.read_at(0, &mut back)?;
        assert!(back.iter().all(|byte| *byte == 7), "{back:?}");
        file.close()
    });
    let bytes = fs::read(&path).unwrap();
    assert!(bytes.len() <= 600, "{} bytes", bytes.len());
    assert!(bytes.iter().all(|byte| [0, 7].contains(byte)));
}

fn syncs(events: &[Event]) -> usize {
    events.iter().filter(|event| **event == Event::Sync).count()
}

#[test]
fn rule_18_sync_makes_every_rank_durable_and_agrees() {
    let directory = directory();
    let path = directory.path().join("durable");
    ranks(3, |comm| {
        let probe = Probe::listening();
        let driver = probe.clone() as Arc<dyn Driver>;
        let file = File::open_with(&comm, driver, &path, NEW, &Info::new())?;
        file.write_at(u64::from(comm.rank().0), &[1u8])?;
        probe.take();
        file.sync()?;
        assert_eq!(syncs(&probe.take()), 1);
        file.close()?;
        assert_eq!(syncs(&probe.take()), 0, "close is not sync");
        Ok(())
    });
    ranks(3, |comm| {
        let failing = comm.rank() == Rank(2);
        let driver = Probe::new(move |event| match event {
            Event::Sync if failing => Err(io::Error::from_raw_os_error(libc::EIO)),
            _ => Ok(()),
        });
        let hints = info(&[("pario_sync_on_close", "true")]);
        let file = File::open_with(&comm, driver, &path, NEW, &hints)?;
        for (call, result) in [("sync", file.sync()), ("close", file.close())] {
            let error = result.expect_err(call);
            assert_eq!((error.kind(), error.rank()), (ErrorKind::Io, Some(2)));
            assert_eq!(error.operation(), call);
        }
        Ok(())
    });
}

#[test]
fn rule_18_a_close_that_fails_on_one_rank_fails_on_all_and_has_closed() {
    let directory = directory();
    let path = directory.path().join("close");
    ranks(3, |comm| {
        let failing = comm.rank() == Rank(1);
        let driver = Probe::new(move |event| match event {
            Event::Close if failing => Err(io::Error::from_raw_os_error(libc::EDQUOT)),
            _ => Ok(()),
        });
        let file = File::open_with(&comm, driver, &path, NEW, &Info::new())?;
        assert_eq!(file.close().unwrap_err().kind(), ErrorKind::Quota);
        assert_eq!(file.close().unwrap_err().kind(), ErrorKind::Handle);
        Ok(())
    });
}

/// Descriptors of this process that lead to a file.
fn descriptors_of(path: &Path) -> usize {
    fs::read_dir("/proc/self/fd")
        .unwrap()
        .filter_map(|entry| fs::read_link(entry.unwrap().path()).ok())
        .filter(|target| target == path)
        .count()
}

#[test]
fn rule_19_a_dropped_file_closes_alone_without_a_word() {
    let directory = directory();
    let path = directory.path().canonicalize().unwrap().join("dropped");
    ranks(3, |comm| {
        let file = File::open(&comm, &path, NEW, &Info::new())?;
        comm.barrier()?;
        if comm.rank() == Rank(0) {
            assert_eq!(descriptors_of(&path), 3);
            // The others are not asked, nor do they wait.
            drop(file);
            assert_eq!(descriptors_of(&path), 2);
            return Ok(comm.barrier()?);
        }
        comm.barrier()?;
        file.write_at(0, &[1u8])?;
        Ok(())
    });
    assert_eq!(descriptors_of(&path), 0);
    assert!(path.exists());
}

/// Runs a call on two ranks with arguments that differ, and again with equal
/// ones: the first is rejected on both, the second works.
fn must_match(what: &str, call: impl Fn(&File, u64) -> Result<()> + Sync) {
    let directory = directory();
    let path = directory.path().join("same");
    fs::write(&path, [0; 100]).unwrap();
    ranks(2, |comm| {
        let file = File::open(&comm, &path, NEW, &Info::new())?;
        let error = call(&file, u64::from(comm.rank().0)).expect_err(what);
        assert_eq!(error.kind(), ErrorKind::NotSame, "{what}");
        let message = error.to_string();
        assert!(message.contains(what), "{message}");
        assert!(message.contains("rank 1"), "{message}");
        call(&file, 1).unwrap_or_else(|error| panic!("{what}: {error}"));
        file.close()
    });
}

#[test]
fn rule_20_arguments_that_must_match() {
    must_match("the size", |file, rank| file.set_size(100 + rank));
    must_match("the size", |file, rank| file.preallocate(100 + rank));
    must_match("seek_shared", |file, rank| {
        file.seek_shared(rank as i64, Seek::Set)
    });
    must_match("seek_shared", |file, rank| {
        file.seek_shared(0, if rank == 0 { Seek::Set } else { Seek::End })
    });
    must_match("the atomicity", |file, rank| {
        file.set_atomicity(match rank {
            0 => Atomicity::Atomic,
            _ => Atomicity::NonAtomic,
        })
    });
    must_match("the extent of the etype", |file, rank| {
        let etype = Datatype::contiguous(1 + rank, &byte())?;
        file.set_view(&View::new(0, &etype, &etype))
    });
    must_match("the data representation", |file, rank| {
        let name = if rank == 0 { "native" } else { "external32" };
        file.set_view(&View::bytes().representation(name))
    });
}

#[test]
fn rule_20_a_rejected_resize_changes_nothing() {
    let directory = directory();
    let path = directory.path().join("kept");
    fs::write(&path, [3; 100]).unwrap();
    ranks(2, |comm| {
        let file = File::open(&comm, &path, NEW, &Info::new())?;
        assert!(file.set_size(u64::from(comm.rank().0)).is_err());
        assert!(file.preallocate(500 + u64::from(comm.rank().0)).is_err());
        file.close()
    });
    assert_eq!(fs::read(&path).unwrap(), [3; 100]);
}

#[test]
fn rule_20_access_modes_must_match_and_nothing_is_made_otherwise() {
    let directory = directory();
    let path = directory.path().join("modes");
    ranks(2, |comm| {
        let mode = match comm.rank() {
            Rank(0) => NEW,
            _ => NEW | Mode::APPEND,
        };
        let error = File::open(&comm, &path, mode, &Info::new()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotSame);
        assert!(error.to_string().contains("the access mode"), "{error}");
        Ok(())
    });
    assert!(!path.exists());
}

#[test]
fn rule_20_names_may_differ_if_they_lead_to_one_file() {
    let directory = directory();
    let (path, other) = (
        directory.path().join("data"),
        directory.path().join("other"),
    );
    fs::write(&path, [0; 10]).unwrap();
    fs::write(&other, [0; 10]).unwrap();
    symlink(&path, directory.path().join("symbolic")).unwrap();
    fs::hard_link(&path, directory.path().join("hard")).unwrap();
    let dotted = directory.path().join(".").join("data");
    let names = [
        path.clone(),
        directory.path().join("symbolic"),
        directory.path().join("hard"),
        dotted,
    ];
    ranks(4, |comm| {
        let name = &names[comm.rank().index()];
        let file = File::open(&comm, name, Mode::READ_WRITE, &Info::new())?;
        assert_eq!(file.path(), name);
        file.write_ordered(&[comm.rank().0 as u8 + 1])?;
        file.close()
    });
    assert_eq!(fs::read(&path).unwrap()[..5], [1, 2, 3, 4, 0]);
    ranks(2, |comm| {
        let name = [&path, &other][comm.rank().index()];
        let error = File::open(&comm, name, Mode::READ_WRITE, &Info::new()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotSame);
        Ok(())
    });
    for path in [path, other] {
        assert_eq!(
            descriptors_of(&path.canonicalize().unwrap()),
            0,
            "left open"
        );
    }
}

#[test]
fn rule_20_of_differing_hints_rank_0_counts_with_a_warning() {
    let directory = directory();
    let path = directory.path().join("hints");
    let warnings = Arc::new(Mutex::new(Vec::new()));
    let seen = warnings.clone();
    set_warning_handler(move |warning| seen.lock().unwrap().push(warning.to_owned()));
    ranks(3, |comm| {
        let first = comm.rank() == Rank(0);
        let of_file = if first { "locked" } else { "never" };
        let of_rank = (1000 + comm.rank().0).to_string();
        let hints = info(&[("pario_rmw", of_file), ("ind_rd_buffer_size", &of_rank)]);
        let file = File::open(&comm, &path, NEW, &hints)?;
        assert_eq!(file.info().get("pario_rmw"), Some("locked"));
        assert_eq!(file.info().get("ind_rd_buffer_size"), Some(&*of_rank));
        // The same for a change while it is open.
        let sync = if first { "true" } else { "false" };
        file.set_info(&info(&[("pario_sync_on_close", sync)]))?;
        assert_eq!(file.info().get("pario_sync_on_close"), Some("true"));
        file.close()
    });
    let warnings = warnings.lock().unwrap();
    for hint in ["pario_rmw", "pario_sync_on_close"] {
        let about = |warning: &&String| warning.contains(hint) && warning.contains("rank 0");
        assert_eq!(
            warnings.iter().filter(about).count(),
            1,
            "{hint}: {warnings:?}"
        );
    }
    let of_rank = warnings
        .iter()
        .any(|warning| warning.contains("ind_rd_buffer_size"));
    assert!(!of_rank, "a hint of one rank may differ");
}

#[test]
fn rule_20_status_counts_items_of_any_datatype() {
    let directory = directory();
    let path = directory.path().join("count");
    fs::write(&path, [0; 22]).unwrap();
    alone(|comm| {
        let file = File::open(&comm, &path, Mode::READ_ONLY, &Info::new())?;
        let status = file.read_at(0, &mut [0u8; 100])?;
        assert_eq!(status.count(&byte()), Some(22));
        assert_eq!(status.count(&Basic::Int16.into()), Some(11));
        assert_eq!(status.count(&Basic::Int32.into()), None, "not whole items");
        let nothing = Datatype::contiguous(0, &byte())?;
        assert_eq!(status.count(&nothing), None);
        assert_eq!(file.read_at(50, &mut [0u8; 1])?.count(&nothing), Some(0));
        file.close()
    });
}

#[test]
fn rule_20_mismatched_calls_are_named() {
    let _watchdog = watchdog();
    let directory = directory();
    let path = directory.path().join("mismatched");
    for count in [2, 3] {
        ranks(count, |comm| mismatch::check(&comm, &path));
    }
}
