//! Rule 27: file calls go through the symbols of libc, so that libraries that
//! are loaded in front of it (profilers, user-level file systems) see them.
//!
//! This program is such a library: it defines the symbols itself, the linker
//! binds the calls of pario to them, and they count and pass on. A raw system
//! call would not be counted.
#![allow(unsafe_code)] // functions that take the place of libc's
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::{
    ffi::{CStr, c_char, c_int, c_void},
    path::Path,
    sync::atomic::{AtomicUsize, Ordering},
};

use pario::{Atomicity, Basic, Datatype, File, Info, Mode, View};
use pario_transport::threads;

static OPENED: AtomicUsize = AtomicUsize::new(0);
static CLOSED: AtomicUsize = AtomicUsize::new(0);
static READ: AtomicUsize = AtomicUsize::new(0);
static WRITTEN: AtomicUsize = AtomicUsize::new(0);
static SIZED: AtomicUsize = AtomicUsize::new(0);
static ALLOCATED: AtomicUsize = AtomicUsize::new(0);
static SYNCED: AtomicUsize = AtomicUsize::new(0);
static REMOVED: AtomicUsize = AtomicUsize::new(0);

/// What libc does: the function of that name behind this program.
fn next<F: Copy>(name: &CStr) -> F {
    // SAFETY: the name is terminated; each caller names the function whose
    // type it asks for, and a function pointer is a pointer.
    unsafe {
        let function = libc::dlsym(libc::RTLD_NEXT, name.as_ptr());
        assert!(!function.is_null(), "libc has no {name:?}");
        std::mem::transmute_copy(&function)
    }
}

type Positioned = unsafe extern "C" fn(c_int, *mut c_void, usize, i64) -> isize;
type Vectored = unsafe extern "C" fn(c_int, *const libc::iovec, c_int, i64) -> isize;

/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
unsafe extern "C" fn open64(path: *const c_char, flags: c_int, mode: libc::mode_t) -> c_int {
    OPENED.fetch_add(1, Ordering::SeqCst);
    // On the machines that pario runs on, an argument that a variadic
    // function does not look at does no harm.
    let open = next::<unsafe extern "C" fn(*const c_char, c_int, ...) -> c_int>(c"open64");
    // SAFETY: the caller's arguments.
    unsafe { open(path, flags, mode) }
}

/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
unsafe extern "C" fn close(fd: c_int) -> c_int {
    CLOSED.fetch_add(1, Ordering::SeqCst);
    let close = next::<unsafe extern "C" fn(c_int) -> c_int>(c"close");
    // SAFETY: the caller's arguments.
    unsafe { close(fd) }
}

/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
unsafe extern "C" fn pread64(fd: c_int, to: *mut c_void, bytes: usize, at: i64) -> isize {
    // SAFETY: the caller's arguments.
    let moved = unsafe { next::<Positioned>(c"pread64")(fd, to, bytes, at) };
    READ.fetch_add(moved.unsigned_abs(), Ordering::SeqCst);
    moved
}

/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
unsafe extern "C" fn pwrite64(fd: c_int, from: *mut c_void, bytes: usize, at: i64) -> isize {
    // SAFETY: the caller's arguments.
    let moved = unsafe { next::<Positioned>(c"pwrite64")(fd, from, bytes, at) };
    WRITTEN.fetch_add(moved.unsigned_abs(), Ordering::SeqCst);
    moved
}

/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
unsafe extern "C" fn preadv64(
    fd: c_int,
    parts: *const libc::iovec,
    count: c_int,
    at: i64,
) -> isize {
    // SAFETY: the caller's arguments.
    let moved = unsafe { next::<Vectored>(c"preadv64")(fd, parts, count, at) };
    READ.fetch_add(moved.unsigned_abs(), Ordering::SeqCst);
    moved
}

/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
unsafe extern "C" fn pwritev64(
    fd: c_int,
    parts: *const libc::iovec,
    count: c_int,
    at: i64,
) -> isize {
    // SAFETY: the caller's arguments.
    let moved = unsafe { next::<Vectored>(c"pwritev64")(fd, parts, count, at) };
    WRITTEN.fetch_add(moved.unsigned_abs(), Ordering::SeqCst);
    moved
}

/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
unsafe extern "C" fn ftruncate64(fd: c_int, bytes: i64) -> c_int {
    SIZED.fetch_add(1, Ordering::SeqCst);
    let truncate = next::<unsafe extern "C" fn(c_int, i64) -> c_int>(c"ftruncate64");
    // SAFETY: the caller's arguments.
    unsafe { truncate(fd, bytes) }
}

/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
unsafe extern "C" fn fallocate64(fd: c_int, mode: c_int, at: i64, bytes: i64) -> c_int {
    ALLOCATED.fetch_add(1, Ordering::SeqCst);
    let allocate = next::<unsafe extern "C" fn(c_int, c_int, i64, i64) -> c_int>(c"fallocate64");
    // SAFETY: the caller's arguments.
    unsafe { allocate(fd, mode, at, bytes) }
}

/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
unsafe extern "C" fn fsync(fd: c_int) -> c_int {
    SYNCED.fetch_add(1, Ordering::SeqCst);
    let sync = next::<unsafe extern "C" fn(c_int) -> c_int>(c"fsync");
    // SAFETY: the caller's arguments.
    unsafe { sync(fd) }
}

/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
unsafe extern "C" fn unlink(path: *const c_char) -> c_int {
    REMOVED.fetch_add(1, Ordering::SeqCst);
    let unlink = next::<unsafe extern "C" fn(*const c_char) -> c_int>(c"unlink");
    // SAFETY: the caller's arguments.
    unsafe { unlink(path) }
}

/// Runs a step and returns how far it moved a counter.
fn counted<T>(counter: &AtomicUsize, step: impl FnOnce() -> T) -> (usize, T) {
    let before = counter.load(Ordering::SeqCst);
    let result = step();
    (counter.load(Ordering::SeqCst) - before, result)
}

/// All bytes of reads and writes pass the symbols, whatever the way.
fn assert_transfers_are_seen(file: &File) -> pario::Result<()> {
    let byte = Datatype::basic(Basic::Byte);
    let tile = Datatype::resized(&byte, 0, 3)?;
    let views = [View::bytes(), View::new(0, &byte, &tile)];
    for view in views {
        file.set_view(&view)?;
        for atomicity in [Atomicity::NonAtomic, Atomicity::Atomic] {
            file.set_atomicity(atomicity)?;
            let (seen, result) = counted(&WRITTEN, || file.write_at(0, &[1u8; 1000]));
            assert_eq!((seen, result?.bytes()), (1000, 1000));
            let (seen, result) = counted(&READ, || file.read_at(0, &mut [0u8; 1000]));
            assert!(seen >= 1000, "{seen} bytes seen");
            assert_eq!(result?.bytes(), 1000);
            let write = || file.iwrite_at(0, vec![1u8; 1000])?.wait();
            let (seen, result) = counted(&WRITTEN, write);
            assert_eq!((seen, result?.0.bytes()), (1000, 1000));
            let read = || file.iread_at(0, vec![1u8; 1000])?.wait();
            let (seen, result) = counted(&READ, read);
            assert!(seen >= 1000, "{seen} bytes seen");
            assert_eq!(result?.0.bytes(), 1000);
        }
    }
    Ok(())
}

fn assert_calls_are_seen(path: &Path) -> pario::Result<()> {
    let results = threads::run(1, |comm| {
        let mode = Mode::CREATE | Mode::READ_WRITE | Mode::DELETE_ON_CLOSE;
        // io_uring is no call of libc, and rewritten holes are not the program's data: these hints
        // are for those who listen.
        let listening = [("pario_async", "pool"), ("pario_rmw", "never")];
        let hints = Info::from_pairs(listening).unwrap();
        let (opened, file) = counted(&OPENED, || File::open(&comm, path, mode, &hints));
        let file = file?;
        assert!(opened >= 1);
        assert_transfers_are_seen(&file)?;
        assert_eq!(counted(&SIZED, || file.set_size(500)).0, 1);
        assert!(counted(&ALLOCATED, || file.preallocate(9000)).0 >= 1);
        assert_eq!(counted(&SYNCED, || file.sync()).0, 1);
        let (removed, (closed, result)) = counted(&REMOVED, || counted(&CLOSED, || file.close()));
        assert!(
            closed >= 1 && removed == 1,
            "{closed} closed, {removed} removed"
        );
        result
    });
    results
        .into_iter()
        .try_for_each(|result| result.expect("no rank panics"))
}

/// One test: the counters are the program's.
#[test]
fn rule_27_libraries_in_front_of_libc_see_every_call() {
    let directory = tempfile::tempdir().unwrap();
    assert_calls_are_seen(&directory.path().join("seen")).unwrap();
}
