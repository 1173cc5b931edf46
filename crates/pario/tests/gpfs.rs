//! What GPFS is told about the ranges that aggregators access, with a double of its library.
#![allow(clippy::unwrap_used)] // helpers of tests, too

use std::{
    ffi::CStr,
    fs, io,
    os::fd::BorrowedFd,
    path::Path,
    process::Command,
    sync::{Arc, Mutex},
};

use pario::{Basic, Datatype, File, Info, Mode, View};
use pario_driver::{FileControl, FileSystem, IoctlArgument, Posix};
use pario_transport::threads::World;

const ACCESS_RANGE: i32 = 1001;
const FREE_RANGE: i32 = 1002;

/// Keeps the arguments of `gpfs_fcntl`.
#[derive(Debug, Default)]
struct GpfsDouble(Mutex<Vec<Vec<u8>>>);

impl FileControl for GpfsDouble {
    fn attribute(&self, _file: BorrowedFd<'_>, _name: &CStr, _limit: usize) -> io::Result<Vec<u8>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn ioctl(&self, _: BorrowedFd<'_>, _: u64, _: IoctlArgument<'_>) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn gpfs_fcntl(&self, _file: BorrowedFd<'_>, argument: &mut [u8]) -> io::Result<()> {
        self.0.lock().unwrap().push(argument.to_vec());
        Ok(())
    }
}

/// A hint as GPFS gets it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Hint {
    kind: i32,
    start: u64,
    end: u64,
    is_write: Option<bool>,
}

fn parse(argument: &[u8]) -> Hint {
    let word = |at: usize| i32::from_ne_bytes(argument[at..at + 4].try_into().unwrap());
    let long = |at: usize| u64::from_ne_bytes(argument[at..at + 8].try_into().unwrap());
    assert_eq!(word(0) as usize, argument.len());
    assert_eq!(word(16) as usize, argument.len() - 16);
    Hint {
        kind: word(20),
        start: long(24),
        end: long(24) + long(32),
        is_write: (argument.len() > 40).then(|| word(40) == 1),
    }
}

const RANKS: u32 = 4;
const PIECE: u64 = 16 << 10;
const PIECES: u64 = 64;
const FILE_BYTES: u64 = RANKS as u64 * PIECE * PIECES;

/// Writes and reads interleaved pieces by ranks on two nodes.
fn write_and_read(driver: &Arc<Posix>, path: &Path, hints: &[(&str, &str)]) {
    let info = Info::from_pairs(hints.iter().copied()).unwrap();
    let results = World::new(RANKS).nodes(&[0, 0, 1, 1]).run(|comm| {
        let mode = Mode::CREATE | Mode::READ_WRITE;
        let file = File::open_with(&comm, driver.clone(), path, mode, &info)?;
        let me = u64::from(comm.rank().0);
        let byte = Datatype::basic(Basic::Byte);
        let piece = Datatype::contiguous(PIECE, &byte)?;
        let tile = Datatype::resized(&piece, 0, (u64::from(RANKS) * PIECE) as i64)?;
        file.set_view(&View::new(me * PIECE, &byte, &tile))?;
        let data = vec![me as u8 + 1; (PIECE * PIECES) as usize];
        file.write_at_all(0, &data[..])?;
        let mut found = vec![0; data.len()];
        file.read_at_all(0, &mut found[..])?;
        assert_eq!(found, data);
        file.close()
    });
    results.into_iter().for_each(|it| it.unwrap().unwrap());
}

fn told(hints: &[(&str, &str)]) -> Vec<Hint> {
    let directory = tempfile::tempdir().unwrap();
    let double = Arc::new(GpfsDouble::default());
    let driver = Posix::new()
        .assuming(FileSystem::Gpfs)
        .with_control(double.clone());
    write_and_read(&Arc::new(driver), &directory.path().join("file"), hints);
    let arguments = double.0.lock().unwrap();
    arguments.iter().map(|argument| parse(argument)).collect()
}

#[test]
fn aggregators_announce_their_ranges_and_free_them() {
    let told = told(&[("pario_gpfs_ranges", "true"), ("cb_nodes", "2")]);
    for is_write in [true, false] {
        let mut ranges: Vec<_> = told
            .iter()
            .filter(|hint| hint.kind == ACCESS_RANGE && hint.is_write == Some(is_write))
            .map(|hint| hint.start..hint.end)
            .collect();
        ranges.sort_unstable_by_key(|range| range.start);
        let [first, second] = ranges.as_slice() else {
            panic!("two aggregators: {told:?}");
        };
        assert_eq!((first.start, second.end), (0, FILE_BYTES), "{told:?}");
        assert_eq!(first.end, second.start, "{told:?}");
    }
    let ranges = |kind| {
        let of_kind = told.iter().filter(move |hint| hint.kind == kind);
        let mut ranges: Vec<_> = of_kind.map(|hint| (hint.start, hint.end)).collect();
        ranges.sort_unstable();
        ranges
    };
    assert_eq!(ranges(FREE_RANGE), ranges(ACCESS_RANGE));
}

#[test]
fn gpfs_is_told_nothing_without_the_hint() {
    assert_eq!(told(&[("cb_nodes", "2")]), []);
}

/// Stands for `libgpfs.so`: appends its arguments to a file.
const LIBRARY: &str = r#"
#include <stdio.h>
#include <stdlib.h>
int gpfs_fcntl(int fd, void *argument) {
    FILE *log = fopen(getenv("GPFS_LOG"), "a");
    fwrite(argument, *(int *)argument, 1, log);
    fclose(log);
    return fd < 0 ? -1 : 0;
}
"#;

#[test]
fn the_library_is_loaded_where_there_is_one() {
    if let Some(path) = std::env::var_os("GPFS_FILE") {
        let driver = Arc::new(Posix::new().assuming(FileSystem::Gpfs));
        let hints = [("pario_gpfs_ranges", "true"), ("cb_nodes", "1")];
        return write_and_read(&driver, path.as_ref(), &hints);
    }
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    fs::write(at("gpfs.c"), LIBRARY).unwrap();
    let compiled = Command::new("cc")
        .args(["-shared", "-fPIC", "-o"])
        .args([at("libgpfs.so"), at("gpfs.c")])
        .status();
    assert!(compiled.unwrap().success());
    let run = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "the_library_is_loaded_where_there_is_one"])
        .env("LD_LIBRARY_PATH", directory.path())
        .env("GPFS_FILE", at("data"))
        .env("GPFS_LOG", at("log"))
        .output()
        .unwrap();
    assert!(run.status.success(), "{run:?}");
    let log = fs::read(at("log")).unwrap();
    // One aggregator, for a write and a read: an access range and a free range each.
    assert_eq!(log.len(), 2 * (48 + 40));
    let first = parse(&log[..48]);
    assert_eq!((first.kind, first.end), (ACCESS_RANGE, FILE_BYTES));
    assert_eq!(parse(&log[48..88]).kind, FREE_RANGE);
}
