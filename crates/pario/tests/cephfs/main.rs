//! Files on a real CephFS, through its library: `cargo xtask ceph` starts one and
//! runs these tests, which the configuration in `CEPH_CONF` leads to.
#![allow(clippy::unwrap_used)] // helpers of tests, too

#[path = "../common/mod.rs"]
mod common;

use std::{
    process::Command,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use common::{NEW, every, info};
use pario::{Atomicity, File, Mode, Result};
use pario_transport::{Transport, threads::World};

const PIECE: usize = 8 << 10;
const PIECES: usize = 64;

/// A name that no other test uses.
fn name(of: &str) -> String {
    format!("cephfs:/pario-{}-{of}", std::process::id())
}

/// Ranks on two nodes.
fn four(work: impl Fn(&std::sync::Arc<dyn Transport>) -> Result<()> + Sync) {
    let world = World::new(4).nodes(&[0, 0, 1, 1]);
    for result in world.run(|comm| work(&comm)) {
        result.expect("no rank panics").unwrap();
    }
}

/// What a rank writes in a round.
fn data(rank: u32, round: u8) -> Vec<u8> {
    let byte = |at: usize| (at * 7) as u8 ^ round.wrapping_mul(31) ^ rank as u8;
    (0..PIECE * PIECES).map(byte).collect()
}

#[test]
#[ignore = "needs a CephFS: cargo xtask ceph"]
fn collective_calls_by_every_method() {
    let name = name("methods");
    let hints = [("striping_factor", "4"), ("striping_unit", "64k")];
    let methods = [
        "two-phase",
        "one-per-server",
        "resonant",
        "resonant-prefetch",
        "resonant-timed",
        "static-segmentation",
        "dynamic-segmentation",
        "individual",
    ];
    four(|comm| {
        let rank = comm.rank().0;
        for (round, method) in (1u8..).zip(methods) {
            let mut hints = hints.to_vec();
            hints.push(("pario_algorithm", method));
            let file = File::open(comm, &name, NEW, &info(&hints))?;
            let reported = file.info();
            assert_eq!(reported.get("striping_factor"), Some("4"));
            assert_eq!(reported.get("striping_unit"), Some("65536"));
            let view = every(
                4 * PIECE as i64,
                PIECE as u64,
                u64::from(rank) * PIECE as u64,
            );
            file.set_view(&view)?;
            file.write_at_all(0, &data(rank, round)[..])?;
            let mut back = vec![0; PIECE * PIECES];
            file.read_at_all(0, &mut back[..])?;
            assert!(back == data(rank, round), "{method}: rank {rank}");
            // Another rank's pieces, from wherever they were written.
            let other = (rank + 2) % 4;
            let view = every(
                4 * PIECE as i64,
                PIECE as u64,
                u64::from(other) * PIECE as u64,
            );
            file.set_view(&view)?;
            file.read_at(0, &mut back[..])?;
            assert!(
                back == data(other, round),
                "{method}: rank {rank} of {other}"
            );
            file.close()?;
        }
        Ok(())
    });
    File::delete(&name, &info(&[])).unwrap();
}

#[test]
#[ignore = "needs a CephFS: cargo xtask ceph"]
fn shared_pointers_and_atomic_mode_between_nodes() {
    const EACH: u8 = 20;
    let name = name("shared");
    four(|comm| {
        let file = File::open(comm, &name, NEW.union(Mode::DELETE_ON_CLOSE), &info(&[]))?;
        let rank = comm.rank().0 as u8;
        for record in 0..EACH {
            file.write_shared(&[rank, record][..])?;
        }
        comm.barrier().unwrap();
        let mut all = vec![0; 4 * usize::from(EACH) * 2];
        file.read_at(0, &mut all[..])?;
        let mut records: Vec<_> = all.chunks(2).map(|it| (it[0], it[1])).collect();
        records.sort_unstable();
        let expected: Vec<_> = (0..4)
            .flat_map(|rank| (0..EACH).map(move |it| (rank, it)))
            .collect();
        assert_eq!(records, expected);
        file.set_atomicity(Atomicity::Atomic)?;
        for _ in 0..10 {
            file.write_at(100, &[rank; 5000][..])?;
            let mut seen = [0u8; 5000];
            file.read_at(100, &mut seen[..])?;
            let torn = seen.iter().position(|byte| *byte != seen[0]);
            let torn = torn.map(|at| (at, seen[0], seen[at]));
            assert_eq!(torn, None, "rank {rank}: a write was torn");
        }
        file.close()
    });
}

#[test]
#[ignore = "needs a CephFS: cargo xtask ceph"]
fn missing_files_and_directories_are_named() {
    four(|comm| {
        for path in ["cephfs:/missing/file", "cephfs:/missing"] {
            let error = File::open(comm, path, Mode::READ_ONLY, &info(&[])).unwrap_err();
            assert_eq!(error.kind(), pario::ErrorKind::NoSuchFile, "{error}");
            assert!(error.to_string().contains("missing"), "{error}");
        }
        Ok(())
    });
}

/// The cluster refuses the client in the middle of collective writes: all ranks get
/// an error, no call hangs, and the file can be opened again.
#[test]
#[ignore = "needs a CephFS: cargo xtask ceph"]
fn eviction_is_an_error_on_all_ranks() {
    let _watchdog = common::watchdog();
    let name = name("evicted");
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(Duration::from_millis(300));
            let evict = ["tell", "mds.a", "client", "evict", "state=open"];
            let evicted = Command::new("ceph").args(evict).status().unwrap();
            assert!(evicted.success());
            is_over.store(true, Ordering::Relaxed);
        });
        four(|comm| {
            let rank = comm.rank().0;
            let file = File::open(comm, &name, NEW, &info(&[("striping_factor", "4")]))?;
            file.set_view(&every(
                4 * PIECE as i64,
                PIECE as u64,
                u64::from(rank) * PIECE as u64,
            ))?;
            let mut outcome = Ok(());
            while outcome.is_ok() {
                // The same number of calls on all ranks: errors are agreed on.
                outcome = file.write_at_all(0, &data(rank, 1)[..]).map(drop);
                outcome = outcome.and_then(|()| file.sync());
            }
            let error = outcome.unwrap_err().to_string();
            assert!(error.contains("evicted"), "{error}");
            let closed = file.close().unwrap_err().to_string();
            assert!(closed.contains("evicted"), "{closed}");
            Ok(())
        });
    });
    assert!(
        is_over.load(Ordering::Relaxed),
        "calls failed before the eviction"
    );
    four(|comm| {
        let file = File::open(comm, &name, Mode::READ_WRITE, &info(&[]))?;
        let rank = comm.rank().0;
        file.set_view(&every(
            4 * PIECE as i64,
            PIECE as u64,
            u64::from(rank) * PIECE as u64,
        ))?;
        file.write_at_all(0, &data(rank, 2)[..])?;
        let mut back = vec![0; PIECE * PIECES];
        file.read_at_all(0, &mut back[..])?;
        assert!(back == data(rank, 2));
        file.close()
    });
    File::delete(&name, &info(&[])).unwrap();
}
