//! Files on file systems whose clients are not coherent, mounted twice as on two nodes: `PARIO_FUSE_MOUNTS` names the two
//! directories, separated by a colon. `cargo xtask fuse` mounts GlusterFS and sshfs for these tests, `cargo xtask ceph`
//! ceph-fuse, `cargo xtask vm` 9p, SMB and virtiofs.
#![allow(clippy::unwrap_used)] // helpers of tests, too

mod common;

use std::{
    env, fs,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use common::{NEW, every, info};
use pario::{Atomicity, ErrorKind, File, Mode, View};
use pario_driver::{
    Access, AsyncMethod, Create, Driver, IoMode, LockMode, OpenHow, Posix, Uring,
    conformance::Suite,
};
use pario_transport::threads::World;

const PIECE: usize = 5000;
const PIECES: usize = 40;

/// The two directories in which the same files are seen.
fn mounts() -> [PathBuf; 2] {
    let both = env::var("PARIO_FUSE_MOUNTS").expect("PARIO_FUSE_MOUNTS names two directories");
    let (first, second) = both.split_once(':').expect("two directories");
    [first.into(), second.into()]
}

/// The pieces of a rank of four.
fn view(rank: u32) -> View {
    let piece = PIECE as u64;
    every(4 * PIECE as i64, piece, u64::from(rank) * piece)
}

#[test]
#[ignore = "needs two mounts: cargo xtask fuse, cargo xtask vm"]
fn the_drivers_conform() {
    let plain = OpenHow::new(Access::ReadWrite);
    let ring = plain.clone().asynchronous(AsyncMethod::Uring);
    let direct = plain.clone().reads(IoMode::Direct).writes(IoMode::Direct);
    let mount = &mounts()[0];
    let omitted = unmet_requirements(mount);
    let run = |driver: Arc<dyn Driver>, how: &OpenHow| {
        let suite = Suite::new(driver, mount).opening(how.clone());
        let suite = omitted
            .iter()
            .fold(suite, |suite, name| suite.without(name));
        suite.run();
    };
    for how in [&ring, &direct] {
        run(Arc::new(Posix::new()), how);
    }
    run(Arc::new(Uring), &plain);
}

/// The checks of the suite that the file system itself fails, in any program.
fn unmet_requirements(mount: &Path) -> Vec<&'static str> {
    let mut unmet = Vec::new();
    if !keeps_deleted_files(mount) {
        unmet.push("deletion while open");
    }
    if !locks_ranges(mount) {
        unmet.push("conflicts of locks");
    }
    if is_user_mode_linux() {
        unmet.push("drivers after fork");
    }
    if !unmet.is_empty() {
        println!("left out: {}", unmet.join(", "));
    }
    unmet
}

/// In user-mode Linux 6.1, a forked child's operations through io_uring hung or failed, on ext4 too. The cause is not
/// known.
fn is_user_mode_linux() -> bool {
    let processors = fs::read_to_string("/proc/cpuinfo");
    processors.is_ok_and(|text| text.contains("User Mode Linux"))
}

/// Whether a file can be written after it has been deleted, and its name used again. With the kernel's write-back cache,
/// GlusterFS fails to set the times of such a file, and the program gets an error; on SMB, the name is taken until the
/// file is closed.
fn keeps_deleted_files(mount: &Path) -> bool {
    let path = mount.join(format!("pario-{}-deleted", std::process::id()));
    let file = fs::File::create_new(&path).unwrap();
    fs::remove_file(&path).unwrap();
    let is_written = file.write_at(b"data", 0).is_ok() && file.sync_all().is_ok();
    let is_free = fs::File::create_new(&path).is_ok();
    drop(file);
    let removed = fs::remove_file(&path);
    assert_eq!(removed.is_ok(), is_free, "{removed:?}");
    is_written && is_free
}

/// Whether locks of disjoint ranges exclude each other. diod (9p) always locks the whole file.
fn locks_ranges(mount: &Path) -> bool {
    let path = mount.join(format!("pario-{}-locked", std::process::id()));
    let how = OpenHow::new(Access::ReadWrite).create(Create::IfMissing);
    let [one, other] = [(); 2].map(|()| Posix::new().open(&path, &how).unwrap());
    let lock = one.lock(10..20, LockMode::Exclusive).unwrap();
    let is_free = other.try_lock(20..30, LockMode::Exclusive).unwrap();
    let locks_ranges = is_free.is_some();
    drop((lock, is_free));
    other.close().unwrap();
    one.close().unwrap();
    fs::remove_file(&path).unwrap();
    locks_ranges
}

/// Ranks of one mount share its page cache, whatever nodes they are on.
#[test]
#[ignore = "needs two mounts: cargo xtask fuse, cargo xtask vm"]
fn ranks_on_one_mount_see_each_other() {
    let [first, second] = mounts();
    let name = format!("pario-{}-one", std::process::id());
    let data = |rank: u32| vec![rank as u8 + 1; PIECE * PIECES];
    let results = World::new(4).nodes(&[0, 0, 1, 1]).run(|comm| {
        let rank = comm.rank().0;
        let path = first.join(&name);
        let file = File::open(&comm, path, NEW, &info(&[]))?;
        file.set_view(&view(rank))?;
        file.write_at_all(0, &data(rank)[..])?;
        let mut back = vec![0; PIECE * PIECES];
        file.set_view(&view((rank + 1) % 4))?;
        file.read_at(0, &mut back[..])?;
        assert!(back == data((rank + 1) % 4), "rank {rank}");
        file.set_atomicity(Atomicity::Atomic)?;
        file.set_view(&view(rank))?;
        file.write_at(0, &data(rank)[..])?;
        file.set_view(&every(1, 1, 0))?;
        file.write_shared(&data(rank)[..PIECE])?;
        file.close()
    });
    for result in results {
        result.expect("no rank panics").unwrap();
    }
    // Closed, and never read there before.
    let seen = fs::read(second.join(&name)).unwrap();
    assert_eq!(seen.len(), 4 * PIECE * PIECES);
    let expected = |at: usize| (at / PIECE % 4) as u8 + 1;
    let wrong = (4 * PIECE..seen.len()).find(|at| seen[*at] != expected(*at));
    assert_eq!(wrong, None, "a byte is wrong on the other mount");
    fs::remove_file(first.join(&name)).unwrap();
}

/// Two mounts are two caches that nothing keeps coherent: nobody may write, and naming a driver does not
/// change that.
#[test]
#[ignore = "needs two mounts: cargo xtask fuse, cargo xtask vm"]
fn writers_on_two_mounts_are_refused() {
    let mounts = mounts();
    for driver in ["", "posix", "uring"] {
        let name = format!("pario-{}-two", std::process::id());
        let hints = match driver {
            "" => info(&[]),
            driver => info(&[("pario_driver", driver)]),
        };
        let results = World::new(2).nodes(&[0, 1]).run(|comm| {
            let path = mounts[comm.rank().index()].join(&name);
            let opened = File::open(&comm, path, NEW, &hints);
            let error = opened.expect_err("the caches are not coherent");
            assert_eq!(error.kind(), ErrorKind::UnsupportedOperation, "{error}");
            assert!(error.to_string().contains("coherent"), "{error}");
        });
        for result in results {
            result.expect("no rank panics");
        }
        assert!(!exists(&mounts[0].join(&name)), "no file is created");
    }
}

#[test]
#[ignore = "needs two mounts: cargo xtask fuse, cargo xtask vm"]
fn readers_on_two_mounts_may_read() {
    let mounts = mounts();
    let name = format!("pario-{}-read", std::process::id());
    fs::write(mounts[0].join(&name), [7; 10_000]).unwrap();
    let results = World::new(2).nodes(&[0, 1]).run(|comm| {
        let path = mounts[comm.rank().index()].join(&name);
        let file = match File::open(&comm, path, Mode::READ_ONLY, &info(&[])) {
            // The names cannot be compared: sshfs has numbers of its own for files, and like 9p with `cache=loose` it
            // keeps access times; SMB shows none before the last change.
            Err(error) if error.to_string().contains("cannot be verified") => return Ok(()),
            opened => opened?,
        };
        let mut bytes = [0u8; 10_000];
        file.read_at_all(0, &mut bytes[..])?;
        assert!(bytes == [7; 10_000]);
        file.close()
    });
    for result in results {
        result.expect("no rank panics").unwrap();
    }
    fs::remove_file(mounts[0].join(&name)).unwrap();
}

fn exists(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok()
}
