//! Rules 8 and 9: the shared pointer, with and without common memory, and
//! what is left behind.

use std::{collections::BTreeSet, fs, path::Path};

use pario::{File, Info, View};
use pario_transport::{Rank, processes::SegmentMemory, processes::World};

use crate::{
    common::{NEW, directory, info},
    harness::{Test, ranks, run},
};

pub(crate) const TESTS: &[Test] = &[
    (
        "sharing::rule_08_the_pointer_gives_each_record_once",
        each_record_once,
    ),
    (
        "sharing::rule_08_ordered_accesses_keep_the_order_of_ranks",
        ordered,
    ),
    (
        "sharing::rule_08_without_common_memory_a_file_takes_over",
        without_memory,
    ),
    ("sharing::rule_09_nothing_is_left_behind", nothing_is_left),
    (
        "sharing::a_late_open_uses_the_descriptor_of_another_process",
        late_open,
    ),
];

const RECORD: usize = 8;

fn each_record_once() {
    const RECORDS: u64 = 200;
    let directory = directory();
    for method in ["memory", "file", "owner"] {
        let path = directory.path().join(method);
        ranks(4, |comm| {
            let hints = info(&[("pario_shared_pointer", method)]);
            let file = File::open(&comm, &path, NEW, &hints)?;
            assert!(
                file.explain_open()
                    .contains(&format!("shared pointer: {method}"))
            );
            for number in 0..RECORDS {
                let record = u64::from(comm.rank().0) * RECORDS + number;
                if number % 2 == 0 {
                    file.write_shared(&[record])?;
                } else {
                    file.iwrite_shared(vec![record])?.wait()?;
                }
            }
            comm.barrier()?;
            assert_eq!(file.position_shared()?, 4 * RECORDS * RECORD as u64);
            file.close()
        });
        let bytes = fs::read(&path).unwrap();
        let records: BTreeSet<u64> = bytes
            .chunks_exact(RECORD)
            .map(|bytes| u64::from_ne_bytes(bytes.try_into().unwrap()))
            .collect();
        assert_eq!(bytes.len(), 4 * RECORDS as usize * RECORD);
        assert_eq!(records, (0..4 * RECORDS).collect(), "{method}");
    }
}

fn ordered() {
    let directory = directory();
    for method in ["memory", "file", "owner"] {
        let path = directory.path().join(method);
        ranks(4, |comm| {
            let hints = info(&[("pario_shared_pointer", method)]);
            let file = File::open(&comm, &path, NEW, &hints)?;
            let mine = vec![comm.rank().0 as u8 + 1; comm.rank().index() + 1];
            for _ in 0..50 {
                file.write_ordered(&mine)?;
            }
            file.set_view(&View::bytes())?;
            let mut back = vec![0u8; mine.len()];
            for _ in 0..50 {
                assert_eq!(file.read_ordered(&mut back)?.bytes(), mine.len() as u64);
                assert_eq!(back, mine, "{method}");
            }
            file.close()
        });
        let expected = [1, 2, 2, 3, 3, 3, 4, 4, 4, 4].repeat(50);
        assert_eq!(fs::read(&path).unwrap(), expected, "{method}");
    }
}

fn without_memory() {
    let directory = directory();
    let path = directory.path().join("apart");
    let nowhere = SegmentMemory::Directory("/proc/no/such/directory".into());
    let world = World::new(3).nodes(&[0, 1, 1]).segment_memory(&[nowhere]);
    run(&world, |comm| {
        let file = File::open(&comm, &path, NEW, &Info::new())?;
        assert!(file.explain_open().contains("shared pointer: file"));
        for _ in 0..20 {
            file.write_shared(&[1u8; 5])?;
        }
        file.close()?;
        // A hint that cannot be followed is no error: the pointer is in a file.
        let hints = info(&[("pario_shared_pointer", "memory")]);
        let file = File::open(&comm, &path, NEW, &hints)?;
        assert!(file.explain_open().contains("shared pointer: file"));
        file.write_shared(&[1u8])?;
        file.close()
    });
    assert_eq!(fs::read(&path).unwrap().len(), 300);
    assert_eq!(names(directory.path()), ["apart"]);
}

/// What is in a directory.
pub(crate) fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// Names of this program's worlds in the directory of shared memory.
pub(crate) fn shared_names() -> Vec<String> {
    let own = format!("pario-{}-", std::process::id());
    let all = names(Path::new("/dev/shm")).into_iter();
    all.filter(|name| name.starts_with(&own)).collect()
}

fn nothing_is_left() {
    let directory = directory();
    let path = directory.path().join("data");
    let kinds = [
        SegmentMemory::Nameless,
        SegmentMemory::Directory("/dev/shm".into()),
    ];
    for kind in kinds {
        for method in ["memory", "file", "owner"] {
            let world = World::new(3).segment_memory(std::slice::from_ref(&kind));
            run(&world, |comm| {
                let hints = info(&[("pario_shared_pointer", method)]);
                let file = File::open(&comm, &path, NEW, &hints)?;
                // No names even while it is open.
                if comm.rank() == Rank(0) {
                    assert_eq!(names(directory.path()), ["data"], "{kind:?}");
                }
                comm.barrier()?;
                file.write_shared(&[1u8])?;
                file.close()
            });
            assert_eq!(names(directory.path()), ["data"], "{kind:?}");
            assert_eq!(shared_names(), [""; 0], "{kind:?}");
        }
    }
}

/// Ranks 1 and 3 open the data and the shared pointer after both names are gone.
fn late_open() {
    let directory = directory();
    let path = directory.path().join("data");
    let hints = [
        ("romio_no_indep_rw", "true"),
        ("pario_shared_pointer", "file"),
    ];
    for nodes in [[0, 0, 1, 1], [0, 0, 0, 0]] {
        run(&World::new(4).nodes(&nodes), |comm| {
            let file = File::open(&comm, &path, NEW, &info(&hints))?;
            assert!(file.explain_open().contains("ranks at once, by the others"));
            if comm.rank() == Rank(0) {
                fs::remove_file(&path).unwrap();
            }
            comm.barrier()?;
            file.write_shared(&[7u8; 5])?;
            comm.barrier()?;
            assert_eq!((file.size()?, file.position_shared()?), (20, 20));
            let mut all = [0u8; 20];
            file.read_at_all(0, &mut all)?;
            assert_eq!(all, [7; 20]);
            file.close()
        });
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    }
}
