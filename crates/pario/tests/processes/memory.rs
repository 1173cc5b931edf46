//! Rule 26 between nodes: the memory of a call depends on hints and on the
//! number of ranks of a node, not on the amount of data.

use std::{
    fs,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use pario::{File, Info, Mode, Result};
use pario_transport::{Transport, processes::World};

use crate::{
    common::{NEW, directory, every, info},
    harness::{Test, run},
};

pub(crate) const TESTS: &[Test] = &[
    (
        "memory::rule_26_memory_does_not_grow_with_data_between_nodes",
        memory_does_not_grow_with_data_between_nodes,
    ),
    (
        "memory::rule_26_many_ranks_of_a_node_share_little_memory",
        many_ranks_of_a_node_share_little_memory,
    ),
];

const MIB: u64 = 1 << 20;

/// The sum of some counters of this process, which are in kibibytes, in bytes.
fn counters(file: &str, names: &[&str]) -> u64 {
    let text = fs::read_to_string(file).unwrap();
    let number = |name: &&str| {
        let line = text.lines().find(|line| line.starts_with(*name));
        let line = line.unwrap_or_else(|| panic!("{file} has no {name}"));
        let number = line.split_whitespace().nth(1).unwrap();
        number.parse::<u64>().unwrap()
    };
    names.iter().map(number).sum::<u64>() << 10
}

fn resident() -> u64 {
    counters("/proc/self/status", &["RssAnon:", "RssShmem:"])
}

/// By how much resident memory grew at most during some work.
fn growth(work: impl FnOnce() -> Result<()>) -> Result<u64> {
    let baseline = resident();
    let (peak, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
    let worked = thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                peak.fetch_max(resident(), Ordering::Relaxed);
                thread::sleep(Duration::from_millis(1));
            }
        });
        let worked = work();
        is_over.store(true, Ordering::Relaxed);
        worked
    });
    worked?;
    Ok(peak.load(Ordering::Relaxed).saturating_sub(baseline))
}

/// The byte of a rank's data at an index.
fn byte_at(rank: u32, index: usize) -> u8 {
    (index / 4096 * 7 + index % 251 + rank as usize) as u8
}

/// Two ranks on two nodes move a gibibyte each through one aggregator: neither
/// it nor the other rank needs more than the windows in flight and a little.
fn memory_does_not_grow_with_data_between_nodes() {
    const BYTES: usize = 1 << 30;
    const RECORD: u64 = 64 << 10;
    const WINDOW: u64 = 4 * MIB;
    const WINDOWS_IN_FLIGHT: u64 = 2;
    const BOUND: u64 = WINDOW * WINDOWS_IN_FLIGHT + 8 * MIB;
    let directory = directory();
    run(&World::new(2).nodes(&[0, 1]), |comm| {
        let rank = comm.rank().0;
        let hints = info(&[
            ("pario_algorithm", "two-phase"),
            ("cb_nodes", "1"),
            ("cb_buffer_size", "4194304"),
        ]);
        let path = directory.path().join("data");
        let file = File::open(&comm, &path, NEW | Mode::DELETE_ON_CLOSE, &hints)?;
        file.set_view(&every(2 * RECORD as i64, RECORD, u64::from(rank) * RECORD))?;
        let mut data: Vec<u8> = (0..BYTES).map(|index| byte_at(rank, index)).collect();
        let written = growth(|| {
            let status = file.write_at_all(0, data.as_slice())?;
            assert_eq!(status.bytes(), BYTES as u64);
            Ok(())
        })?;
        assert!(
            written <= BOUND,
            "rank {rank} needs {written} bytes to write"
        );
        data.fill(0);
        let read = growth(|| {
            let status = file.read_at_all(0, data.as_mut_slice())?;
            assert_eq!(status.bytes(), BYTES as u64);
            Ok(())
        })?;
        assert!(read <= BOUND, "rank {rank} needs {read} bytes to read");
        let is_right = |(index, byte): (usize, &u8)| *byte == byte_at(rank, index);
        assert!(data.iter().enumerate().all(is_right));
        let plan = file.explain_last_all().unwrap_or_default();
        assert!(plan.contains("two-phase"), "{plan}");
        file.close()
    });
}

/// What all ranks of a node share, for messages, collectives and windows, has
/// a bound.
fn many_ranks_of_a_node_share_little_memory() {
    const RANKS: u32 = 256;
    const BOUND: u64 = 32 * MIB;
    const RECORD: usize = 512;
    let directory = directory();
    run(&World::new(RANKS), |comm| {
        let rank = u64::from(comm.rank().0);
        let path = directory.path().join("data");
        let mode = NEW | Mode::DELETE_ON_CLOSE;
        let file = File::open(&comm, &path, mode, &Info::new())?;
        let period = i64::from(RANKS) * RECORD as i64;
        file.set_view(&every(period, RECORD as u64, rank * RECORD as u64))?;
        let data = [rank as u8; 4 * RECORD];
        file.write_at_all(0, &data)?;
        let mut read = [0; 4 * RECORD];
        file.read_at_all(0, &mut read)?;
        assert_eq!(read, data);
        let shared = shared_by_all(&comm)?;
        assert!(shared <= BOUND, "{RANKS} ranks share {shared} bytes");
        file.close()
    });
}

/// Resident shared memory of all ranks, every page once. Collective.
fn shared_by_all(comm: &Arc<dyn Transport>) -> Result<u64> {
    comm.barrier()?;
    let own = counters("/proc/self/smaps_rollup", &["Pss_Shmem:"]);
    let all = comm.all_gather(&own.to_le_bytes())?;
    let bytes = all
        .iter()
        .map(|it| <[u8; 8]>::try_from(it.as_slice()).unwrap());
    Ok(bytes.map(u64::from_le_bytes).sum())
}
