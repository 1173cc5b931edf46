//! Logs of what ranks write at the shared pointer, merged in the order of time.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use std::{fs, io, sync::Arc, time::Duration};

use common::{
    NEW, directory, info,
    probe::{Event, Probe},
    watchdog,
};
use pario::{Atomicity, Datatype, ErrorKind, File, Info, Mode, Result, Seek, View};
use pario_driver::Driver;
use pario_transport::{Transport, threads::World};

const APPEND_ONLY: Mode = Mode::CREATE.union(Mode::WRITE_ONLY);
const LAYOUTS: [&[u32]; 3] = [&[0], &[0, 0, 0], &[0, 0, 1, 1, 2]];

fn logs() -> Info {
    info(&[("pario_shared_pointer", "logs")])
}

fn run(nodes: &[u32], rank: impl Fn(Arc<dyn Transport>) -> Result<()> + Sync) {
    let _watchdog = watchdog();
    let results = World::new(nodes.len() as u32).nodes(nodes).run(rank);
    results.into_iter().for_each(|it| it.unwrap().unwrap());
}

/// A line of a rank: eight bytes and a varying number of dots.
fn line(rank: u32, number: u32) -> Vec<u8> {
    let mut line = format!("{rank:03}{number:05}").into_bytes();
    line.resize(8 + (rank + number) as usize % 5, b'.');
    line.push(b'\n');
    line
}

/// The rank and number of each line in a text.
fn lines(text: &[u8]) -> Vec<(u32, u32)> {
    let lines = text.split_inclusive(|byte| *byte == b'\n');
    lines
        .map(|found| {
            let number = |part: &[u8]| std::str::from_utf8(part).unwrap().parse().unwrap();
            let (rank, count) = (number(&found[..3]), number(&found[3..8]));
            assert_eq!(found, line(rank, count), "a whole line");
            (rank, count)
        })
        .collect()
}

#[test]
fn close_merges_every_line_once_and_those_of_a_rank_in_order() {
    const LINES: u32 = 700;
    for nodes in LAYOUTS {
        let directory = directory();
        let path = directory.path().join("log");
        run(nodes, |comm| {
            let file = File::open(&comm, &path, APPEND_ONLY, &logs())?;
            assert!(file.explain_open().contains("a log per rank"));
            let me = comm.rank().0;
            for number in 0..LINES {
                let line = line(me, number);
                match number % 3 {
                    0 => drop(file.iwrite_shared(line)?.wait()?),
                    _ => drop(file.write_shared(&line)?),
                }
            }
            assert_eq!(file.size()?, 0, "in the logs only");
            file.close()
        });
        let found = lines(&fs::read(&path).unwrap());
        assert_eq!(found.len() as u32, LINES * nodes.len() as u32);
        for rank in 0..nodes.len() as u32 {
            let own = found.iter().filter(|it| it.0 == rank).map(|it| it.1);
            assert!(own.eq(0..LINES), "{nodes:?}");
        }
        let count = fs::read_dir(directory.path()).unwrap().count();
        assert_eq!(count, 1, "no log has a name");
    }
}

#[test]
fn lines_are_in_the_order_of_time() {
    let directory = directory();
    let path = directory.path().join("log");
    let nodes = [0, 0, 1];
    run(&nodes, |comm| {
        let file = File::open(&comm, &path, APPEND_ONLY, &logs())?;
        for number in 0..30 {
            // One rank after the other, round by round.
            for turn in 0..comm.size() {
                if comm.rank().0 == turn {
                    file.write_shared(&line(turn, number))?;
                    std::thread::sleep(Duration::from_micros(50));
                }
                comm.barrier()?;
            }
        }
        file.close()
    });
    let found = lines(&fs::read(&path).unwrap());
    let expected: Vec<_> = (0..30)
        .flat_map(|number| (0..3).map(move |rank| (rank, number)))
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn calls_that_need_the_data_or_the_position_merge_first() {
    let directory = directory();
    for nodes in LAYOUTS {
        let path = directory.path().join(format!("{}", nodes.len()));
        let ranks = nodes.len() as u64;
        run(nodes, |comm| {
            let file = File::open(&comm, &path, APPEND_ONLY, &logs())?;
            let me = u64::from(comm.rank().0);
            file.write_shared(&[1u8; 10])?;
            assert_eq!(file.position_shared()?, 10, "what this rank knows");
            file.sync()?;
            assert_eq!(
                (file.position_shared()?, file.size()?),
                (10 * ranks, 10 * ranks)
            );
            comm.barrier()?;
            file.write_shared(&[2u8; 10])?;
            file.write_ordered(&[me as u8 + 10])?;
            assert_eq!(file.position_shared()?, 21 * ranks);
            file.write_shared(&[3u8; 2])?;
            file.write_ordered_begin(vec![me as u8 + 20])?.end()?;
            comm.barrier()?;
            file.write_shared(&[4u8; 5])?;
            file.seek_shared(0, Seek::Current)?;
            assert_eq!(file.position_shared()?, 29 * ranks);
            comm.barrier()?;
            file.write_shared(&[5u8; 5])?;
            file.set_atomicity(Atomicity::Atomic)?;
            file.write_shared(&[6u8; 3])?;
            comm.barrier()?;
            assert_eq!(file.size()?, 37 * ranks, "atomic writes are not logged");
            file.set_atomicity(Atomicity::NonAtomic)?;
            file.write_shared(&[7u8; 3])?;
            file.preallocate(0)?;
            assert_eq!(file.size()?, 40 * ranks);
            file.close()
        });
        let mut expected = vec![1; 10 * ranks as usize];
        expected.extend(vec![2; 10 * ranks as usize]);
        expected.extend((0..ranks as u8).map(|rank| rank + 10));
        expected.extend(vec![3; 2 * ranks as usize]);
        expected.extend((0..ranks as u8).map(|rank| rank + 20));
        for (value, count) in [(4, 5), (5, 5), (6, 3), (7, 3)] {
            expected.extend(vec![value; count * ranks as usize]);
        }
        assert_eq!(fs::read(&path).unwrap(), expected);
    }
}

#[test]
fn records_go_through_the_view_and_its_representation() {
    let directory = directory();
    let path = directory.path().join("log");
    let nodes = [0, 0, 1];
    run(&nodes, |comm| {
        let file = File::open(&comm, &path, APPEND_ONLY, &logs())?;
        file.write_shared(&[9u8; 4])?;
        // Two of every three numbers, after what was there.
        let number = Datatype::of::<i32>();
        let pair = Datatype::contiguous(2, &number)?;
        let tile = Datatype::resized(&pair, 0, 12)?;
        let start = 4 * u64::from(comm.size());
        file.set_view(&View::new(start, &number, &tile).representation("external32"))?;
        for number in 0..100 {
            file.write_shared(&[1000 * comm.rank().0 as i32 + number][..])?;
        }
        let error = file.write_shared(&[1u8; 3]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Argument, "{error}");
        file.close()
    });
    let found = fs::read(&path).unwrap();
    assert_eq!(found[..12], [9; 12]);
    let numbers: Vec<i32> = found[12..]
        .chunks(4)
        .map(|bytes| i32::from_be_bytes(bytes.try_into().unwrap()))
        .collect();
    assert!(numbers.iter().skip(2).step_by(3).all(|hole| *hole == 0));
    for rank in 0..3 {
        let data = numbers.iter().enumerate().filter(|(at, _)| at % 3 != 2);
        let own = data.map(|(_, it)| *it).filter(|it| it / 1000 == rank);
        assert!(own.eq(1000 * rank..1000 * rank + 100));
    }
}

#[test]
fn files_that_can_be_read_have_no_logs() {
    let directory = directory();
    let path = directory.path().join("file");
    run(&[0, 0], |comm| {
        let file = File::open(&comm, &path, NEW, &logs())?;
        assert!(!file.explain_open().contains("a log per rank"));
        file.write_shared(&[1u8; 3])?;
        comm.barrier()?;
        assert_eq!(file.position_shared()?, 6);
        file.close()
    });
}

#[test]
fn ranks_without_records_and_empty_records_take_part() {
    let directory = directory();
    let path = directory.path().join("log");
    run(&[0, 0, 1, 1], |comm| {
        let file = File::open(&comm, &path, APPEND_ONLY, &logs())?;
        file.write_shared(&[0u8; 0])?;
        if comm.rank().0 == 2 {
            file.write_shared(&vec![3u8; 40 << 20])?;
        }
        file.sync()?;
        assert_eq!(file.size()?, 40 << 20);
        file.close()
    });
    assert!(fs::read(&path).unwrap().iter().all(|byte| *byte == 3));
}

#[test]
fn a_merge_that_fails_fails_on_all_ranks_and_the_file_is_closed() {
    let directory = directory();
    let path = directory.path().join("log");
    let full = |event: &Event| match event {
        Event::Write(_) => Err(io::ErrorKind::StorageFull.into()),
        _ => Ok(()),
    };
    let probe = Probe::new(full);
    run(&[0, 0, 1], |comm| {
        let driver = probe.clone() as Arc<dyn Driver>;
        let file = File::open_with(&comm, driver, &path, APPEND_ONLY, &logs())?;
        if comm.rank().0 == 1 {
            file.write_shared(&[1u8; 100])?;
        }
        let error = file.close().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
        let again = file.close().unwrap_err();
        assert_eq!(again.kind(), ErrorKind::Handle, "{again}");
        Ok(())
    });
}
