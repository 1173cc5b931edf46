//! How many requests each OSD gets from each method of collective I/O, and in which
//! order: what Zhang 2009 is about.
//!
//! `cargo xtask ceph -- cargo test -p pario --test cephfs -- --ignored --nocapture
//! order_of_requests` prints the table.

use std::path::Path;

use pario::{File, Mode, Result};
use pario_driver::{
    Access, CephFs, Create, Direction, Driver, OpenHow, ServerCount, Storage, StripingRequest,
};
use pario_transport::threads::World;

use crate::{
    common::{every, info},
    osds,
};

const OSDS: u32 = 4;
const RANKS: u32 = 8;
const UNIT: u64 = 64 << 10;
const OBJECT: u64 = 4 << 20;
/// A quarter of a stripe.
const PIECE: usize = 16 << 10;
const PIECES: usize = 64;

/// Algorithms, and partitions of two-phase.
const METHODS: [(&str, &str); 13] = [
    ("individual", ""),
    ("two-phase", "even"),
    ("two-phase", "aligned"),
    ("two-phase", "static-cyclic"),
    ("two-phase", "group-cyclic"),
    ("two-phase", "by-server"),
    ("two-phase", "file-layout"),
    ("one-per-server", ""),
    ("static-segmentation", ""),
    ("dynamic-segmentation", ""),
    ("resonant", ""),
    ("resonant-prefetch", ""),
    ("resonant-timed", ""),
];

/// The requests of one direction.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    requests: usize,
    /// Those that start before the end of the one before, on the same OSD.
    backward: usize,
    bytes: u64,
    /// Those of the OSD that got most.
    most: usize,
}

#[test]
#[ignore = "needs a CephFS: cargo xtask ceph"]
fn order_of_requests() {
    println!(
        "| Nodes | Method | Writes | Backward | KiB per write | Reads | Backward | KiB per read |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- |");
    for nodes in [2, 4] {
        for (algorithm, partition) in METHODS {
            let [write, read] = counted(nodes, algorithm, partition);
            let total = PIECE as u64 * PIECES as u64 * u64::from(RANKS);
            assert_eq!(
                write.bytes, total,
                "{algorithm}: every byte is written once"
            );
            assert!(read.bytes >= total, "{algorithm}: every byte is read");
            let kib = |it: Count| it.bytes / 1024 / it.requests.max(1) as u64;
            println!(
                "| {nodes} | {algorithm} {partition} | {} ({}) | {} | {} | {} ({}) | {} | {} |",
                write.requests,
                write.most,
                write.backward,
                kib(write),
                read.requests,
                read.most,
                read.backward,
                kib(read),
            );
        }
    }
}

/// One collective write and one read of interleaved pieces, past the client's cache.
fn counted(nodes: u32, algorithm: &str, partition: &str) -> [Count; 2] {
    let (path, inode) = file_on_all_osds();
    let mut hints = vec![
        ("pario_algorithm", algorithm),
        ("direct_read", "true"),
        ("direct_write", "true"),
        ("cb_buffer_size", "512k"),
    ];
    if !partition.is_empty() {
        hints.push(("pario_partition", partition));
    }
    let of_node: Vec<u32> = (0..RANKS).map(|rank| rank * nodes / RANKS).collect();
    let name = format!("cephfs:{path}");
    let results = World::new(RANKS).nodes(&of_node).run(|comm| -> Result<()> {
        let file = File::open(&comm, &name, Mode::READ_WRITE, &info(&hints))?;
        let rank = comm.rank().0;
        let period = PIECE as i64 * i64::from(RANKS);
        file.set_view(&every(period, PIECE as u64, u64::from(rank) * PIECE as u64))?;
        let data = vec![rank as u8 + 1; PIECE * PIECES];
        file.write_at_all(0, &data[..])?;
        let mut back = vec![0u8; PIECE * PIECES];
        file.read_at_all(0, &mut back[..])?;
        assert!(back == data, "{algorithm} {partition}: rank {rank}");
        file.close()
    });
    for result in results {
        result.expect("no rank panics").unwrap();
    }
    let counts = [Direction::Write, Direction::Read].map(|direction| count(inode, direction));
    CephFs::new().delete(Path::new(&path)).unwrap();
    counts
}

fn count(inode: u64, direction: Direction) -> Count {
    let mut count = Count::default();
    for osd in 0..OSDS {
        let requests = osds::requests(osd, inode);
        let own = requests.iter().filter(|it| it.direction == direction);
        let (mut end, mut number) = (0, 0);
        for request in own {
            let start = request.object * OBJECT + request.offset;
            count.backward += usize::from(start < end);
            end = start + request.len;
            count.bytes += request.len;
            number += 1;
        }
        count.requests += number;
        count.most = count.most.max(number);
    }
    count
}

/// A new file whose first objects are on different OSDs, so that a stripe stands for
/// a server: most files have two of four objects on one. Its inode number, too.
fn file_on_all_osds() -> (String, u64) {
    let driver = CephFs::new();
    let request = StripingRequest {
        servers: Some(ServerCount::Exactly(OSDS)),
        unit: Some(UNIT),
        ..StripingRequest::default()
    };
    let how = OpenHow::new(Access::ReadWrite)
        .create(Create::Exclusive)
        .striping(request);
    for attempt in 0.. {
        let path = format!("/order-{}-{attempt}", std::process::id());
        let file = driver.open(Path::new(&path), &how).unwrap();
        let placement = file.facts().placement.clone().unwrap();
        let number = file.node_path().unwrap();
        file.close().unwrap();
        if let Storage::Servers(osds) = &placement.components()[0].storage {
            let mut osds = osds.clone();
            osds.sort_unstable();
            osds.dedup();
            if osds.len() == OSDS as usize {
                let number = number.file_name().unwrap().to_str().unwrap();
                return (path, number.parse().unwrap());
            }
        }
        driver.delete(Path::new(&path)).unwrap();
    }
    unreachable!("some file is on all OSDs")
}
