//! Where runs take place: a directory, a file full of canaries, and looks at it
//! past all faults.

use std::{
    fs::{self, DirEntry},
    io,
    path::Path,
    thread,
    time::{Duration, Instant},
};

use pario_driver::{Access, Batch, Create, Driver, OpenHow};

use crate::scenario::FILE_BYTES;

/// How long a thread of the library may keep what it no longer needs.
const LETTING_GO_MAX: Duration = Duration::from_secs(5);

pub(crate) fn canaries() -> Vec<u8> {
    (0..FILE_BYTES).map(|byte| (byte * 7 + 3) as u8).collect()
}

/// A directory in memory where there is one: thousands of files come and go.
pub(crate) fn directory() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").unwrap_or_else(|_| tempfile::tempdir().unwrap())
}

/// The file as it is, read without faults.
pub(crate) fn contents(driver: &dyn Driver, path: &Path) -> Vec<u8> {
    let file = driver.open(path, &OpenHow::new(Access::Read)).unwrap();
    let mut bytes = vec![0; file.size().unwrap() as usize];
    file.transfer(&Batch::read(0, &mut bytes))
        .into_result()
        .unwrap();
    bytes
}

/// No descriptor of this process leads to a file in the directory of this one,
/// deleted ones too. The thread that carried the last nonblocking operation
/// may take a moment to let go.
pub(crate) fn assert_no_descriptors(path: &Path, name: &str) {
    let directory = path.parent().unwrap();
    let leads_here = |entry: io::Result<DirEntry>| {
        let target = fs::read_link(entry.unwrap().path()).ok()?;
        target.starts_with(directory).then_some(target)
    };
    let give_up = Instant::now() + LETTING_GO_MAX;
    loop {
        let descriptors = fs::read_dir("/proc/self/fd").unwrap();
        let open: Vec<_> = descriptors.filter_map(leads_here).collect();
        if open.is_empty() {
            return;
        }
        assert!(Instant::now() < give_up, "{name}: {open:?} are still open");
        thread::yield_now();
    }
}

pub(crate) fn fill(driver: &dyn Driver, path: &Path) {
    let how = OpenHow::new(Access::Write).create(Create::IfMissing);
    let file = driver.open(path, &how).unwrap();
    file.set_size(0).unwrap();
    file.transfer(&Batch::write(0, &canaries()))
        .into_result()
        .unwrap();
}
