//! Files on a file system whose clients are coherent, mounted twice as on two nodes: `PARIO_COHERENT_MOUNTS` names the
//! two directories, separated by a colon. `cargo xtask vm` mounts CephFS by the kernel's client, with `noshare`.
#![allow(clippy::unwrap_used)] // helpers of tests, too

mod common;

use std::{env, path::PathBuf, sync::Arc};

use common::{NEW, every, info};
use pario::File;
use pario_driver::{
    Access, AsyncMethod, Batch, Create, Driver, IoMode, OpenHow, Posix, Uring, conformance::Suite,
};
use pario_transport::threads::World;

const PIECE: usize = 5000;
const PIECES: usize = 20;

fn mounts() -> [PathBuf; 2] {
    let both = env::var("PARIO_COHERENT_MOUNTS").expect("PARIO_COHERENT_MOUNTS is set");
    let (first, second) = both.split_once(':').expect("two directories");
    [first.into(), second.into()]
}

#[test]
#[ignore = "needs two mounts: cargo xtask vm"]
fn the_drivers_conform() {
    let plain = OpenHow::new(Access::ReadWrite);
    let pool = plain.clone().asynchronous(AsyncMethod::Pool);
    let direct = plain.clone().reads(IoMode::Direct).writes(IoMode::Direct);
    let run = |driver: Arc<dyn Driver>, how: &OpenHow| {
        Suite::new(driver, &mounts()[0]).opening(how.clone()).run();
    };
    for how in [&plain, &pool, &direct] {
        run(Arc::new(Posix::new()), how);
    }
    run(Arc::new(Uring), &plain);
}

/// A client that has read to the end of the file and does not know yet that another has extended it may return fewer
/// bytes than there are, once.
#[test]
#[ignore = "needs two mounts: cargo xtask vm"]
fn reads_across_an_old_end_are_complete() {
    const ROUNDS: usize = 60;
    const STEP: usize = 7001;
    let [first, second] = mounts();
    for driver in [&Posix::new() as &dyn Driver, &Uring] {
        let name = format!("pario-{}-end-{}", std::process::id(), driver.name());
        let how = OpenHow::new(Access::ReadWrite).create(Create::IfMissing);
        let writer = driver.open(&first.join(&name), &how).unwrap();
        let reader = driver.open(&second.join(&name), &how).unwrap();
        let mut end = 0usize;
        for round in 0..ROUNDS {
            let data = vec![round as u8 + 1; STEP];
            let batch = Batch::write(end as u64, &data);
            assert_eq!(writer.transfer(&batch).into_result().unwrap(), STEP as u64);
            writer.sync().unwrap();
            // Across the old end, at it, and beyond it.
            let from = match round % 3 {
                0 => end.saturating_sub(STEP),
                1 => end,
                _ => end + 1000,
            };
            end += STEP;
            let mut seen = vec![0; end - from + 100];
            let batch = Batch::read(from as u64, &mut seen);
            let bytes = reader.transfer(&batch).into_result().unwrap();
            assert_eq!(bytes as usize, end - from, "round {round}");
            let new = &data[..STEP.min(end - from)];
            assert!(seen[..end - from].ends_with(new), "round {round}");
            assert_eq!(reader.size().unwrap(), end as u64, "round {round}");
        }
        reader.close().unwrap();
        writer.close().unwrap();
        driver.delete(&first.join(&name)).unwrap();
    }
}

/// Ranks on two mounts see each other's bytes, without anything that is needed where caches are not coherent.
#[test]
#[ignore = "needs two mounts: cargo xtask vm"]
fn ranks_on_two_mounts_see_each_other() {
    let mounts = mounts();
    let data = |rank: u32, round: u8| vec![rank as u8 * 16 + round + 1; PIECE * PIECES];
    for algorithm in ["", "individual", "two-phase"] {
        let name = format!("pario-{}-two-{algorithm}", std::process::id());
        let hints = match algorithm {
            "" => info(&[]),
            named => info(&[("pario_algorithm", named)]),
        };
        let results = World::new(4).nodes(&[0, 0, 1, 1]).run(|comm| {
            let rank = comm.rank().0;
            let path = mounts[rank as usize / 2].join(&name);
            let file = File::open(&comm, path, NEW, &hints)?;
            let view = |rank: u32| {
                every(
                    4 * PIECE as i64,
                    PIECE as u64,
                    u64::from(rank) * PIECE as u64,
                )
            };
            for round in 0..4 {
                file.set_view(&view(rank))?;
                file.write_at_all(0, &data(rank, round)[..])?;
                let other = (rank + 2) % 4;
                file.set_view(&view(other))?;
                let mut back = vec![0; PIECE * PIECES];
                file.read_at(0, &mut back[..])?;
                let wrong = (0..back.len()).find(|at| back[*at] != data(other, round)[*at]);
                assert_eq!(wrong, None, "rank {rank}, round {round}, {algorithm}");
                file.sync()?;
            }
            file.set_view(&every(1, 1, 0))?;
            file.write_shared(&data(rank, 9)[..PIECE])?;
            file.close()
        });
        for result in results {
            result.expect("no rank panics").unwrap();
        }
        let seen = std::fs::read(mounts[1].join(&name)).unwrap();
        assert_eq!(seen.len(), 4 * PIECE * PIECES);
        let mut first: Vec<u8> = (0..4).map(|at| seen[at * PIECE]).collect();
        first.sort_unstable();
        assert_eq!(first, [10, 26, 42, 58], "every rank has a part of its own");
        std::fs::remove_file(mounts[0].join(&name)).unwrap();
    }
}
