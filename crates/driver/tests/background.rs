//! Background transfers that hit errors and limits of the kernel.

use std::{
    path::Path,
    sync::{Arc, mpsc},
};

use pario_driver::{
    Access, AsyncMethod, Batch, Create, Direction, Driver, Handle, OpenHow, Outcome, Posix,
};

const METHODS: [AsyncMethod; 3] = [
    AsyncMethod::Automatic,
    AsyncMethod::Uring,
    AsyncMethod::Pool,
];

fn create(path: &Path, method: AsyncMethod) -> Arc<dyn Handle> {
    let how = OpenHow::new(Access::ReadWrite)
        .create(Create::IfMissing)
        .asynchronous(method);
    let opened = Posix::new().open(path, &how);
    opened.expect("the directory is writable")
}

fn submit(file: &dyn Handle, batch: Batch<'static>) -> Outcome {
    let (sender, receiver) = mpsc::channel();
    file.submit(batch, Box::new(move |outcome| drop(sender.send(outcome))));
    receiver.recv().expect("a submission must be called back")
}

/// A device that is always full.
#[test]
fn no_space_is_delivered_at_completion() {
    for method in METHODS {
        let how = OpenHow::new(Access::Write).asynchronous(method);
        let file = Posix::new()
            .open(Path::new("/dev/full"), &how)
            .expect("available on Linux");
        for _ in 0..200 {
            let outcome = submit(&*file, Batch::write(0, b"does not fit"));
            assert_eq!(outcome.bytes, 0);
            let error = outcome.error.expect("no space");
            assert_eq!(error.raw_os_error(), Some(libc::ENOSPC), "{method:?}");
        }
    }
}

/// Close waits for transfers in flight, which need the descriptor.
#[test]
fn close_waits_for_transfers_in_flight() {
    let directory = tempfile::tempdir().expect("a temporary directory can be created");
    for method in METHODS {
        let path = directory.path().join(format!("{method:?}"));
        let file = create(&path, method);
        let block: &'static [u8] = Vec::leak(vec![7; 1 << 20]);
        let (sender, receiver) = mpsc::channel();
        for at in 0..20 {
            let sender = sender.clone();
            let done = move |outcome: Outcome| drop(sender.send(outcome.into_result()));
            file.submit(Batch::write(at << 20, block), Box::new(done));
        }
        drop(sender);
        file.close().expect("closing works");
        let size = path.metadata().expect("the file exists").len();
        assert_eq!(size, 20 << 20, "all data is written when close returns");
        for result in receiver {
            assert_eq!(result.expect("writing works"), 1 << 20);
        }
    }
}

/// More than one system call can move, read from a hole into memory that all
/// pieces share.
#[test]
#[ignore = "moves 10 GiB"]
fn transfers_larger_than_a_call() {
    const PIECE: usize = 64 << 20;
    const PIECES: usize = 40;
    const BYTES: u64 = (PIECE * PIECES) as u64;
    let directory = tempfile::tempdir_in("/dev/shm").expect("available on Linux");
    for method in METHODS {
        let file = create(&directory.path().join(format!("{method:?}")), method);
        file.set_size(BYTES + 5).expect("extending works");
        let places: Vec<_> = (0..PIECES)
            .map(|at| ((at * PIECE) as u64, 0, PIECE))
            .collect();
        let target: &'static mut [u8] = Vec::leak(vec![7; PIECE]);
        let outcome = submit(&*file, Batch::gather(Direction::Read, target, &places));
        assert_eq!(outcome.into_result().expect("reading works"), BYTES);
    }
}
