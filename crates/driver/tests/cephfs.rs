//! The driver for CephFS on a real cluster: `cargo xtask ceph` starts one and runs
//! these tests, which the configuration in `CEPH_CONF` leads to.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use pario_driver::{
    Access, Batch, Capabilities, CephFs, Client, Create, Creation, Direction, Driver, Handle,
    OpenHow, Posix, ServerCount, Storage, StripingRequest, conformance,
};

/// A path that no other test uses.
fn path(name: &str) -> PathBuf {
    format!("/pario-{}-{name}", std::process::id()).into()
}

/// A driver keeps its client until it is dropped, which a forked child never does with its parent's. Its client would
/// stay in the cluster until that gives it up, and others would wait.
#[derive(Debug)]
struct OfEachProcess {
    driver: CephFs,
    process: u32,
}

impl OfEachProcess {
    fn with<T>(&self, call: impl FnOnce(&CephFs) -> T) -> T {
        match self.process == std::process::id() {
            true => call(&self.driver),
            false => call(&CephFs::new()),
        }
    }
}

impl Driver for OfEachProcess {
    fn name(&self) -> &'static str {
        self.driver.name()
    }

    fn capabilities(&self) -> Capabilities {
        self.driver.capabilities()
    }

    fn open(&self, path: &Path, how: &OpenHow) -> io::Result<Arc<dyn Handle>> {
        self.with(|driver| driver.open(path, how))
    }

    fn delete(&self, path: &Path) -> io::Result<()> {
        self.with(|driver| driver.delete(path))
    }
}

#[test]
#[ignore = "needs a CephFS: cargo xtask ceph"]
fn conforms() {
    let driver = OfEachProcess {
        driver: CephFs::new(),
        process: std::process::id(),
    };
    conformance::check(Arc::new(driver), Path::new("/"));
}

fn striped(count: u32, unit: u64) -> OpenHow {
    let request = StripingRequest {
        servers: Some(ServerCount::Exactly(count)),
        unit: Some(unit),
        ..StripingRequest::default()
    };
    OpenHow::new(Access::ReadWrite)
        .create(Create::Exclusive)
        .striping(request)
}

#[test]
#[ignore = "needs a CephFS: cargo xtask ceph"]
fn new_files_have_the_layout_that_hints_request() {
    let (driver, path) = (CephFs::new(), path("layout"));
    let file = driver.open(&path, &striped(4, 1 << 16)).unwrap();
    let is_set = matches!(file.creation(), Some(Creation::Set { .. }));
    assert!(is_set, "{:?}", file.creation());
    let facts = file.facts();
    assert_eq!(facts.client, Client::Library);
    let striping = facts.striping.unwrap();
    assert_eq!((striping.unit, striping.count), (1 << 16, 4));
    let placement = facts.placement.clone().unwrap();
    let Storage::Servers(osds) = &placement.components()[0].storage else {
        panic!("the servers are unknown: {placement:?}");
    };
    assert!(
        osds.len() == 4 && osds.iter().all(|osd| *osd < 4),
        "{osds:?}"
    );
    // Whoever opens the file sees the same.
    let again = driver.open(&path, &OpenHow::new(Access::Read)).unwrap();
    assert_eq!(again.facts(), facts);
    assert_eq!(again.creation(), None);
    again.close().unwrap();
    file.close().unwrap();
    driver.delete(&path).unwrap();
}

#[test]
#[ignore = "needs a CephFS: cargo xtask ceph"]
fn a_layout_that_is_refused_leaves_the_default() {
    let (driver, path) = (CephFs::new(), path("refused"));
    let file = driver.open(&path, &striped(4, 1000)).unwrap();
    let Some(Creation::Refused { reason }) = file.creation() else {
        panic!("{:?}", file.creation());
    };
    assert!(reason.contains("1000"), "{reason}");
    assert_eq!(file.facts().striping.unwrap().unit, 4 << 20);
    file.close().unwrap();
    driver.delete(&path).unwrap();
}

/// A list over all servers, whose runs move on several threads.
#[test]
#[ignore = "needs a CephFS: cargo xtask ceph"]
fn lists_over_several_servers() {
    const PIECE: usize = 4096;
    const PIECES: usize = 256;
    let (driver, path) = (CephFs::new(), path("list"));
    let file = driver.open(&path, &striped(4, 1 << 16)).unwrap();
    let places: Vec<_> = (0..PIECES)
        .map(|at| (at as u64 * 3 * PIECE as u64, at * PIECE, PIECE))
        .collect();
    let mut sent: Vec<u8> = (0..PIECE * PIECES).map(|at| (at / 7) as u8).collect();
    let expected = sent.clone();
    let batch = Batch::gather(Direction::Write, &mut sent, &places);
    assert_eq!(file.transfer(&batch).into_result().unwrap(), batch.bytes());
    let mut got = vec![0; expected.len()];
    // Another client of the cluster, as another node would be.
    let batch = Batch::gather(Direction::Read, &mut got, &places);
    let other = driver.open(&path, &OpenHow::new(Access::Read)).unwrap();
    assert_eq!(other.transfer(&batch).into_result().unwrap(), batch.bytes());
    assert!(got == expected, "the list reads back as it was written");
    other.close().unwrap();
    file.close().unwrap();
    driver.delete(&path).unwrap();
}

/// The first directory in which FUSE has mounted the file system, unless it cannot here.
fn mount() -> Option<PathBuf> {
    let both = std::env::var("PARIO_CEPHFS_MOUNTS").ok()?;
    Some(both.split_once(':').expect("two directories").0.into())
}

/// Striping hints also set the layout of files that are created through a mount, which is reported.
#[test]
#[ignore = "needs a CephFS: cargo xtask ceph"]
fn files_on_a_mount_have_the_layout_that_hints_request() {
    let Some(mount) = mount() else { return };
    let (driver, path) = (Posix::new(), mount.join("layout"));
    let file = driver.open(&path, &striped(4, 1 << 16)).unwrap();
    let is_set = matches!(file.creation(), Some(Creation::Set { .. }));
    assert!(is_set, "{:?}", file.creation());
    let striping = file.facts().striping.unwrap();
    assert_eq!((striping.unit, striping.count), (1 << 16, 4));
    assert_eq!(file.facts().client, Client::Kernel);
    // An existing file keeps its layout.
    let how = striped(2, 1 << 20).create(Create::IfMissing);
    let again = driver.open(&path, &how).unwrap();
    assert_eq!(again.creation(), None);
    assert_eq!(again.facts().striping, Some(striping));
    again.close().unwrap();
    file.close().unwrap();
    driver.delete(&path).unwrap();
    let refused = driver.open(&path, &striped(4, 1000)).unwrap();
    let Some(Creation::Refused { reason }) = refused.creation() else {
        panic!("{:?}", refused.creation());
    };
    assert!(reason.contains("1000"), "{reason}");
    refused.close().unwrap();
    driver.delete(&path).unwrap();
}

/// A name on a mount leads to the same file with the library as without.
#[test]
#[ignore = "needs a CephFS: cargo xtask ceph"]
fn names_on_a_mount_lead_to_the_same_file() {
    let Some(mount) = mount() else { return };
    let (library, path) = (CephFs::new(), mount.join("name"));
    let file = library.open(&path, &striped(2, 1 << 16)).unwrap();
    let batch = Batch::write(5, b"by the library");
    assert_eq!(file.transfer(&batch).into_result().unwrap(), 14);
    file.close().unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"\0\0\0\0\0by the library");
    let mounted = Posix::new().open(&path, &OpenHow::new(Access::Read));
    let mounted = mounted.unwrap();
    assert_eq!(mounted.facts().striping.unwrap().count, 2);
    mounted.close().unwrap();
    library.delete(&path).unwrap();
    assert!(!path.exists());
}
