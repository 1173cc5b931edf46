//! Other data representations in collective calls: they go through windows and messages, and
//! give the same files and the same data as independent calls.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use std::{fs, sync::Arc};

use pario::{
    Basic, Datatype, ErrorKind, File, Result, Source, Target, View,
    datarep::{Conversion, UserRepresentation, register},
};
use pario_transport::{Transport, threads::World};

use common::{NEW, directory, info, watchdog};

const PLACEMENTS: [&[u32]; 2] = [&[0, 0, 0], &[0, 0, 1, 1, 2]];

/// Windows that are shorter than the data and cut elements.
const WINDOWS: &[(&str, &str)] = &[
    ("romio_cb_write", "enable"),
    ("romio_cb_read", "enable"),
    ("cb_buffer_size", "1001"),
    ("pario_slice_bytes", "333"),
    ("cb_nodes", "2"),
    ("romio_cb_fr_alignment", "7"),
];

const INDIVIDUAL: &[(&str, &str)] = &[("romio_cb_write", "disable"), ("romio_cb_read", "disable")];

/// Blocks per rank, and elements per block.
const BLOCKS: u64 = 150;
const LENGTH: u64 = 3;
const COUNT: usize = (BLOCKS * LENGTH) as usize;

/// Elements whose value external32 can hold.
fn elements(basic: Basic, rank: u32) -> Vec<u8> {
    let numbers = (0..COUNT).map(|index| 1000 * rank as usize + index);
    let of = |number: usize| match basic {
        Basic::Long => (-(number as i64)).to_ne_bytes().to_vec(),
        Basic::Wchar => (number as u32).to_ne_bytes().to_vec(),
        Basic::Double => (number as f64 / 3.0).to_ne_bytes().to_vec(),
        Basic::Short => (number as i16).to_ne_bytes().to_vec(),
        other => panic!("{other:?} is not part of the test"),
    };
    numbers.flat_map(of).collect()
}

/// A file, and what each rank has read of it after it was cut off.
type Outcome = (Vec<u8>, Vec<(u64, Vec<u8>)>);

/// Ranks write blocks in turn and read them back, then once more after the file was cut off in
/// the middle of an element.
fn interleaved(nodes: &[u32], (basic, in_file): (Basic, u64), hints: &[(&str, &str)]) -> Outcome {
    let _watchdog = watchdog();
    let directory = directory();
    let path = directory.path().join("data");
    let ranks = nodes.len() as u64;
    let is_collective = hints == WINDOWS;
    let work = |comm: Arc<dyn Transport>| -> Result<(u64, Vec<u8>)> {
        let rank = comm.rank().0;
        let file = File::open(&comm, &path, NEW, &info(hints))?;
        let element = Datatype::basic(basic);
        let blocks = Datatype::vector(BLOCKS, LENGTH, (LENGTH * ranks) as i64, &element)?;
        let start = u64::from(rank) * LENGTH * in_file;
        file.set_view(&View::new(start, &element, &blocks).representation("external32"))?;
        let mine = elements(basic, rank);
        let written = file.write_at_all(0, Source::typed(&mine, COUNT as u64, &element)?)?;
        assert_eq!(written.bytes(), mine.len() as u64);
        let by_windows = |explained: Option<String>| {
            let explained = explained.unwrap_or_default();
            assert!(
                !is_collective || explained.contains("by two-phase"),
                "{explained}"
            );
        };
        by_windows(file.explain_last_all());
        let read =
            |back: &mut [u8]| file.read_at_all(0, Target::typed(back, COUNT as u64, &element)?);
        let mut back = vec![0; mine.len()];
        assert_eq!(read(&mut back)?.bytes(), mine.len() as u64);
        assert_eq!(back, mine);
        by_windows(file.explain_last_all());
        file.set_size(in_file * LENGTH * ranks * BLOCKS / 2 + in_file / 2 + 1)?;
        let mut cut = vec![0; mine.len()];
        let count = read(&mut cut)?.bytes();
        file.close()?;
        Ok((count, cut))
    };
    let results = World::new(nodes.len() as u32).nodes(nodes).run(work);
    let read = results.into_iter().map(|result| result.unwrap().unwrap());
    let read = read.collect();
    (fs::read(&path).unwrap(), read)
}

#[test]
fn collective_calls_convert_as_independent_ones_do() {
    // The element's size in the file differs from that in memory, or does not.
    let basics = [
        (Basic::Long, 4),
        (Basic::Wchar, 2),
        (Basic::Double, 8),
        (Basic::Short, 2),
    ];
    for nodes in PLACEMENTS {
        for basic in basics {
            let together = interleaved(nodes, basic, WINDOWS);
            let alone = interleaved(nodes, basic, INDIVIDUAL);
            assert!(together == alone, "{basic:?} on nodes {nodes:?}");
            // Big-endian, as the standard has it.
            if let (Basic::Short, _) = basic {
                assert_eq!(together.0[..6], [0, 0, 0, 1, 0, 2]);
            }
        }
    }
}

/// Little data travels with the first message of a call between nodes.
#[test]
fn small_and_nonblocking_calls_convert() {
    let _watchdog = watchdog();
    let directory = directory();
    let path = directory.path().join("data");
    for nodes in PLACEMENTS {
        let results = World::new(nodes.len() as u32)
            .nodes(nodes)
            .run(|comm| -> Result<()> {
                let file = File::open(&comm, &path, NEW, &info(&[]))?;
                let element = Datatype::of::<i32>();
                file.set_view(&View::new(0, &element, &element).representation("external32"))?;
                let rank = comm.rank().0 as i32;
                let at = 2 * rank as u64;
                file.write_at_all(at, &[rank, -rank])?;
                let mut back = [9, 9];
                file.read_at_all(at, &mut back)?;
                assert_eq!(back, [rank, -rank]);
                file.iwrite_at_all(at, vec![rank + 1, -rank])?.wait()?;
                let (status, back) = file.iread_at_all(at, vec![0, 0])?.wait()?;
                assert_eq!((status.bytes(), back), (8, vec![rank + 1, -rank]));
                file.write_ordered(&[rank])?;
                file.close()
            });
        for result in results {
            result.expect("no rank panics").unwrap();
        }
        let stored = fs::read(&path).unwrap();
        assert_eq!(stored[..8], [0, 0, 0, 0, 0, 0, 0, 1]);
    }
}

/// A conversion that fails on one rank is an error on all, in both directions.
#[test]
fn a_conversion_that_fails_on_one_rank_fails_the_call() {
    const POISON: i32 = 13;
    let convert = |from: &[u8], to: &mut [u8]| {
        if from.chunks(4).any(|bytes| bytes == POISON.to_ne_bytes()) {
            return Err("this number is not allowed".into());
        }
        to.copy_from_slice(from);
        Ok(())
    };
    let refusing = move || Conversion::runs(move |_, from, to| convert(from, to));
    let copying = || {
        Conversion::runs(|_, from, to| {
            to.copy_from_slice(from);
            Ok(())
        })
    };
    let size = |basic: Basic| Ok(basic.size());
    register(
        "refuses-writes",
        UserRepresentation::new(size, refusing(), copying()),
    )
    .unwrap();
    register(
        "refuses-reads",
        UserRepresentation::new(size, copying(), refusing()),
    )
    .unwrap();
    let _watchdog = watchdog();
    for nodes in PLACEMENTS {
        let directory = directory();
        let path = directory.path().join("data");
        let results = World::new(nodes.len() as u32)
            .nodes(nodes)
            .run(|comm| -> Result<()> {
                let file = File::open(&comm, &path, NEW, &info(WINDOWS))?;
                let element = Datatype::of::<i32>();
                let rank = comm.rank().0;
                let mut mine = vec![rank as i32 + 100; 5000];
                if rank == 1 {
                    mine[2500] = POISON;
                }
                let at = 5000 * u64::from(rank);
                let view = View::new(0, &element, &element);
                file.set_view(&view.clone().representation("refuses-writes"))?;
                let error = file.write_at_all(at, &mine).unwrap_err();
                assert_eq!(
                    (error.kind(), error.rank()),
                    (ErrorKind::Conversion, Some(1))
                );
                assert_eq!(file.size()?, 0);
                file.set_view(&view.representation("refuses-reads"))?;
                file.write_at_all(at, &mine)?;
                let error = file.read_at_all(at, &mut mine).unwrap_err();
                assert_eq!(
                    (error.kind(), error.rank()),
                    (ErrorKind::Conversion, Some(1))
                );
                file.close()
            });
        for result in results {
            result.expect("no rank panics").unwrap();
        }
    }
}
