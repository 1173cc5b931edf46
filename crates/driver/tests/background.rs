//! Background transfers that hit errors and limits of the kernel.

use std::{path::Path, sync::mpsc};

use pario_driver::{
    Access, AsyncMethod, Batch, Create, Direction, Driver, Handle, OpenHow, Outcome, Posix,
};

const METHODS: [AsyncMethod; 3] = [
    AsyncMethod::Automatic,
    AsyncMethod::Uring,
    AsyncMethod::Pool,
];

fn submit(file: &dyn Handle, batch: Batch<'static>) -> Outcome {
    let (sender, receiver) = mpsc::channel();
    file.submit(batch, Box::new(move |outcome| drop(sender.send(outcome))));
    receiver.recv().expect("a submission is called back")
}

/// A device that is always full.
#[test]
fn no_space_is_delivered_at_completion() {
    for method in METHODS {
        let how = OpenHow::new(Access::Write).asynchronous(method);
        let file = Posix::new()
            .open(Path::new("/dev/full"), &how)
            .expect("Linux has it");
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
fn close_waits_for_what_is_in_flight() {
    let folder = tempfile::tempdir().expect("there is a place for temporary files");
    for method in METHODS {
        let path = folder.path().join(format!("{method:?}"));
        let how = OpenHow::new(Access::ReadWrite)
            .create(Create::IfMissing)
            .asynchronous(method);
        let file = Posix::new()
            .open(&path, &how)
            .expect("the folder can be written");
        let block: &'static [u8] = Vec::leak(vec![7; 1 << 20]);
        let (sender, receiver) = mpsc::channel();
        for at in 0..20 {
            let sender = sender.clone();
            let done = move |outcome: Outcome| drop(sender.send(outcome.into_result()));
            file.submit(Batch::write(at << 20, block), Box::new(done));
        }
        drop(sender);
        file.close().expect("closing works");
        let size = path.metadata().expect("the file is there").len();
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
    let folder = tempfile::tempdir_in("/dev/shm").expect("Linux has it");
    for method in METHODS {
        let path = folder.path().join(format!("{method:?}"));
        let how = OpenHow::new(Access::ReadWrite)
            .create(Create::IfMissing)
            .asynchronous(method);
        let file = Posix::new()
            .open(&path, &how)
            .expect("the folder can be written");
        file.set_size(BYTES + 5).expect("extending works");
        let places: Vec<_> = (0..PIECES)
            .map(|at| ((at * PIECE) as u64, 0, PIECE))
            .collect();
        let target: &'static mut [u8] = Vec::leak(vec![7; PIECE]);
        let outcome = submit(&*file, Batch::gather(Direction::Read, target, &places));
        assert_eq!(outcome.into_result().expect("reading works"), BYTES);
    }
}
