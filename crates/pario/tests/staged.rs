//! Contiguous accesses that are copied through a staging buffer, because memory starts a few bytes
//! past the page boundaries of the file. A hint requests that here: it is faster on some processors only.
#![allow(clippy::unwrap_used)] // helpers of tests, too

use std::{path::Path, sync::Arc};

use pario::{ErrorKind, File, Info, Mode};
use pario_driver::{Fault, Faults, Operation, Posix, WrappedDriver};
use pario_transport::{Transport, threads};

const PAGE: usize = 4096;
/// The distance at which copies are staged.
const PAST: usize = 16;
/// Shorter than what is staged; one buffer; more than one.
const LENGTHS: [usize; 6] = [1000, 1024, 4096, 65_537, 256 << 10, 700_001];

const NEW: Mode = Mode::CREATE.union(Mode::READ_WRITE);

fn info(staged: &str) -> Info {
    let mut info = Info::new();
    info.set("pario_staged_copies", staged).unwrap();
    info
}

/// Memory whose first byte is `past` bytes after a page boundary.
struct Placed {
    memory: Vec<u8>,
    start: usize,
    len: usize,
}

impl Placed {
    fn new(len: usize, past: usize, byte: impl Fn(usize) -> u8) -> Placed {
        let mut memory = vec![0; len + 2 * PAGE];
        let start = memory.as_ptr().align_offset(PAGE) + past;
        for (at, place) in memory[start..start + len].iter_mut().enumerate() {
            *place = byte(at);
        }
        Placed { memory, start, len }
    }

    fn bytes(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..self.start + self.len]
    }
}

fn byte_of(file_byte: usize) -> u8 {
    (file_byte.wrapping_mul(0x9e37) >> 7) as u8
}

fn run(ranks: u32, work: impl Fn(Arc<dyn Transport>) -> pario::Result<()> + Sync) {
    for result in threads::run(ranks, work) {
        result.expect("no rank panics").unwrap();
    }
}

fn is_staged(selection: &pario::Selection) -> bool {
    selection.to_string().contains("pario_staged_copies")
}

/// Every rank writes, then reads, a contiguous share, independently or collectively.
fn check(path: &Path, ranks: u32, len: usize, staged: &str, is_collective: bool) {
    run(ranks, |comm| {
        let file = File::open(&comm, path, NEW, &info(staged))?;
        let share = comm.rank().index() * (len + PAGE) / PAGE * PAGE;
        // A write is slow if the file is past memory, a read if memory is past the file.
        let at = share + PAST;
        let mut source = Placed::new(len, 0, |byte| byte_of(at + byte));
        let explained = file.explain_write_at(at as u64, &*source.bytes())?;
        assert_eq!(is_staged(&explained), staged == "enable" && len >= 1024);
        let written = match is_collective {
            true => file.write_at_all(at as u64, &*source.bytes())?,
            false => file.write_at(at as u64, &*source.bytes())?,
        };
        assert_eq!(written.bytes(), len as u64);
        file.sync()?;
        let mut target = Placed::new(len, 2 * PAST, |_| 7);
        let read = match is_collective {
            true => file.read_at_all(at as u64, target.bytes())?,
            false => file.read_at(at as u64, target.bytes())?,
        };
        assert_eq!(read.bytes(), len as u64);
        assert!(target.bytes() == source.bytes(), "{len} bytes at {at}");
        file.close()
    });
}

#[test]
fn data_is_the_same_whichever_way_it_is_copied() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("data");
    for len in LENGTHS {
        for (ranks, is_collective) in [(1, false), (3, false), (1, true), (3, true)] {
            let files = ["enable", "disable"].map(|staged| {
                check(&path, ranks, len, staged, is_collective);
                let contents = std::fs::read(&path).unwrap();
                std::fs::remove_file(&path).unwrap();
                contents
            });
            assert!(files[0] == files[1], "{len} bytes, {ranks} ranks");
        }
    }
}

#[test]
fn a_read_across_the_end_leaves_the_rest_of_memory_as_it_was() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("short");
    let contents: Vec<u8> = (0..5000).map(byte_of).collect();
    std::fs::write(&path, &contents).unwrap();
    for ranks in [1, 2] {
        run(ranks, |comm| {
            let file = File::open(&comm, &path, Mode::READ_ONLY, &info("enable"))?;
            for (at, got) in [(4096, 904), (8192, 0)] {
                let mut target = Placed::new(4096, PAST, |_| 7);
                assert!(is_staged(&file.explain_read_at(at, target.bytes())?));
                for is_collective in [false, true] {
                    target.bytes().fill(7);
                    let read = match is_collective {
                        true => file.read_at_all(at, target.bytes())?,
                        false => file.read_at(at, target.bytes())?,
                    };
                    assert_eq!(read.bytes(), got as u64);
                    let at = (at as usize).min(contents.len());
                    assert_eq!(target.bytes()[..got], contents[at..]);
                    assert!(target.bytes()[got..].iter().all(|byte| *byte == 7));
                }
            }
            file.close()
        });
    }
}

#[test]
fn a_failed_call_is_an_error_on_all_ranks() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("full");
    run(2, |comm| {
        let faults = Faults::new();
        let driver = Arc::new(WrappedDriver::new(Arc::new(Posix::new()), faults.clone()));
        let file = File::open_with(&comm, driver, &path, NEW, &info("enable"))?;
        if comm.rank().0 == 1 {
            faults.fail_nth(1, &[Operation::Write], Fault::Partial(libc::ENOSPC));
        }
        let mut source = Placed::new(4096, 0, byte_of);
        let at = (comm.rank().index() * 2 * PAGE + PAST) as u64;
        let error = file.write_at_all(at, &*source.bytes()).unwrap_err();
        assert_eq!((error.kind(), error.rank()), (ErrorKind::NoSpace, Some(1)));
        let moved = [4096, 2048][comm.rank().index()];
        assert_eq!(error.transferred(), moved);
        assert_eq!(file.write_at_all(at, &*source.bytes())?.bytes(), 4096);
        file.close()
    });
}

/// The bound leaves room for one thread at a time; the others copy directly instead of waiting.
#[test]
fn threads_without_staging_memory_get_the_same_data() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("threads");
    let contents: Vec<u8> = (0..64 * PAGE).map(byte_of).collect();
    std::fs::write(&path, &contents).unwrap();
    let mut info = info("enable");
    info.set("pario_inflight_bytes", "4096").unwrap();
    run(1, |comm| {
        let file = File::open(&comm, &path, Mode::READ_ONLY, &info)?;
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let (file, contents) = (&file, &contents);
                scope.spawn(move || {
                    let mut target = Placed::new(PAGE, PAST, |_| 0);
                    for round in 0..500 {
                        let page = (thread * 31 + round * 7) % 64;
                        let read = file.read_at((page * PAGE) as u64, target.bytes());
                        assert_eq!(read.unwrap().bytes(), PAGE as u64);
                        let expected = &contents[page * PAGE..(page + 1) * PAGE];
                        assert!(target.bytes() == expected, "page {page}");
                    }
                });
            }
        });
        file.close()
    });
}
