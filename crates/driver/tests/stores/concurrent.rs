//! Writers of the gaps lose nothing, whatever they write with.

use std::{
    path::Path,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
};

use pario_driver::{Access, Batch, Direction, Driver, Handle, Mapped, Posix, ScatteredWrites};

use super::{directories, how, open, process::Child};

const WRITERS: usize = 4;
const LEN: usize = 3;

/// Writes every fourth piece.
fn write_share(handle: &dyn Handle, writer: usize, pieces: usize) {
    let mut memory = vec![writer as u8 + 1; LEN];
    let place = |at: usize| ((at * WRITERS + writer) * LEN) as u64;
    let pieces: Vec<_> = (0..pieces).map(|at| (place(at), 0, LEN)).collect();
    for some in pieces.chunks(3000) {
        let batch = Batch::gather(Direction::Write, &mut memory, some);
        let moved = handle.transfer(&batch).into_result().unwrap();
        assert_eq!(moved, batch.bytes());
    }
}

fn check_shares(path: &Path, pieces: usize) {
    let found = std::fs::read(path).unwrap();
    assert_eq!(found.len(), pieces * WRITERS * LEN);
    for (at, byte) in found.iter().enumerate() {
        assert_eq!(*byte as usize, at / LEN % WRITERS + 1, "byte {at}");
    }
}

/// Opens the file for one of the writers: two have the kernel store, one stores,
/// one makes calls.
fn open_for(writer: usize, path: &Path) -> std::sync::Arc<dyn Handle> {
    let calls = how(Access::ReadWrite).scattered(ScatteredWrites::Calls);
    match writer {
        0 | 1 => open(&Posix::new(), path),
        2 => open(&Mapped, path),
        _ => Posix::new().open(path, &calls).unwrap(),
    }
}

#[test]
fn threads_lose_nothing() {
    const PIECES: usize = 100_000;
    for directory in directories() {
        let path = directory.path().join("file");
        std::thread::scope(|scope| {
            for writer in 0..WRITERS {
                let handle = open_for(writer, &path);
                scope.spawn(move || write_share(&*handle, writer, PIECES));
            }
        });
        check_shares(&path, PIECES);
    }
}

#[test]
fn threads_of_one_handle_lose_nothing() {
    const PIECES: usize = 50_000;
    for directory in directories() {
        let path = directory.path().join("file");
        let handle = open(&Posix::new(), &path);
        std::thread::scope(|scope| {
            for writer in 0..WRITERS {
                let handle = &handle;
                scope.spawn(move || write_share(&**handle, writer, PIECES));
            }
        });
        check_shares(&path, PIECES);
    }
}

#[test]
fn processes_lose_nothing() {
    const PIECES: usize = 100_000;
    for directory in directories() {
        let path = directory.path().join("file");
        let children = (0..WRITERS).map(|writer| {
            Child::run(|| {
                write_share(&*open_for(writer, &path), writer, PIECES);
                0
            })
        });
        for child in children.collect::<Vec<_>>() {
            assert_eq!(child.exit_code(), 0);
        }
        check_shares(&path, PIECES);
    }
}

/// What the parent has prepared (the staging file, the mapping) is inherited by
/// its children, which use the same handle at the same time.
#[test]
fn forked_children_do_not_share_the_staging_memory() {
    const PIECES: usize = 50_000;
    for directory in directories() {
        let path = directory.path().join("file");
        let handle = open(&Posix::new(), &path);
        write_share(&*handle, 0, PIECES);
        let children = (1..WRITERS).map(|writer| {
            Child::run(|| {
                write_share(&*handle, writer, PIECES);
                0
            })
        });
        let children: Vec<_> = children.collect();
        for _ in 0..4 {
            write_share(&*handle, 0, PIECES);
        }
        for child in children {
            assert_eq!(child.exit_code(), 0);
        }
        check_shares(&path, PIECES);
    }
}

/// Opening takes no lock that another thread of the parent may have held when the child was
/// forked: there is no thread in the child that would release it.
#[test]
fn children_forked_while_files_are_opened_open_files() {
    const CHILDREN: usize = 400;
    for directory in directories() {
        let path = directory.path().join("file");
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(Relaxed) {
                    write_share(&*open_for(0, &path), 0, 10);
                }
            });
            let _stop = StopAtEnd(&stop);
            for _ in 0..CHILDREN {
                let child = Child::run(|| {
                    write_share(&*open_for(1, &path), 1, 10);
                    0
                });
                assert_eq!(child.exit_code(), 0);
            }
        });
    }
}

/// Sets a flag when it is dropped, also by a panic.
struct StopAtEnd<'a>(&'a AtomicBool);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}
