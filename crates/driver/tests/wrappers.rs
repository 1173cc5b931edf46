//! What the wrapping drivers do to the drivers inside them.

use std::{
    num::NonZeroU64,
    path::Path,
    sync::{Arc, mpsc},
    time::{Duration, Instant},
};

use pario_driver::{
    Access, Batch, Create, Driver, Fault, Faults, Handle, LockMode, Log, Memory, OpenHow,
    Operation, Outcome, Posix, Throttle, Uring, WrappedDriver, conformance::Suite,
};

fn create(driver: &dyn Driver) -> Arc<dyn Handle> {
    let how = OpenHow::new(Access::ReadWrite).create(Create::IfMissing);
    driver
        .open(Path::new("file"), &how)
        .expect("the file can be opened")
}

fn background(file: &dyn Handle, batch: Batch<'static>) -> Outcome {
    let (sender, receiver) = mpsc::channel();
    file.submit(batch, Box::new(move |outcome| drop(sender.send(outcome))));
    receiver.recv().expect("a submission must be called back")
}

fn conform(driver: impl Driver + 'static) {
    let directory = tempfile::tempdir().expect("a temporary directory can be created");
    Suite::new(Arc::new(driver), directory.path()).run();
}

#[test]
fn wrapped_drivers_conform() {
    conform(WrappedDriver::new(Arc::new(Posix::new()), Log::new()));
    conform(WrappedDriver::new(
        Arc::new(Uring),
        Throttle::new(Duration::from_micros(10)),
    ));
    conform(WrappedDriver::new(
        Arc::new(Memory::separate()),
        Faults::new(),
    ));
}

/// Short and interrupted operations are not visible above a driver.
#[test]
fn short_transfers_conform() {
    for inner in [
        Arc::new(Posix::new()) as Arc<dyn Driver>,
        Arc::new(Memory::separate()),
    ] {
        let faults = Faults::new();
        for nth in 1..1000 {
            faults.fail_nth(nth * 2, Operation::TRANSFERS, Fault::Short);
            faults.fail_nth(nth * 5, Operation::ALL, Fault::Interruption);
        }
        conform(WrappedDriver::new(inner, faults.clone()));
        assert!(faults.fired() > 500, "only {} faults", faults.fired());
    }
}

#[test]
fn faults_are_injected_as_planned() {
    let faults = Faults::new();
    let driver = WrappedDriver::new(Arc::new(Memory::separate()), faults.clone());
    let file = create(&driver);
    faults.fail_nth(2, &[Operation::Write], Fault::Error(libc::EIO));
    faults.fail_nth(3, &[Operation::Write], Fault::Partial(libc::ENOSPC));
    assert_eq!(file.transfer(&Batch::write(0, b"one")).bytes, 3);
    let outcome = file.transfer(&Batch::write(0, b"two"));
    assert_eq!(outcome.bytes, 0);
    assert_eq!(
        outcome.error.expect("planned").raw_os_error(),
        Some(libc::EIO)
    );
    let outcome = background(&*file, Batch::write(0, b"three!"));
    assert_eq!(outcome.bytes, 3);
    assert_eq!(
        outcome.error.expect("planned").raw_os_error(),
        Some(libc::ENOSPC)
    );
    let mut bytes = [0; 9];
    assert_eq!(file.transfer(&Batch::read(0, &mut bytes)).bytes, 3);
    assert_eq!(&bytes[..3], b"thr");
    assert_eq!((faults.fired(), faults.operations()), (2, 5));

    faults.fail_from_nth(
        1,
        &[Operation::Sync, Operation::Lock],
        Fault::Error(libc::EIO),
    );
    for _ in 0..3 {
        assert!(file.sync().is_err());
        assert!(file.lock(0..1, LockMode::Shared).is_err());
    }
    faults.clear();
    assert!(file.sync().is_ok());
}

/// `close` fails and closes, like `close(2)`.
#[test]
fn a_failed_close_closes() {
    let faults = Faults::new();
    let driver = WrappedDriver::new(Arc::new(Memory::separate()), faults.clone());
    let file = create(&driver);
    let lock = file
        .lock(0..1, LockMode::Exclusive)
        .expect("the lock is free");
    faults.fail_nth(1, &[Operation::Close], Fault::Error(libc::EIO));
    assert_eq!(
        file.close().expect_err("planned").raw_os_error(),
        Some(libc::EIO)
    );
    assert!(file.size().is_err());
    let other = create(&driver);
    assert!(
        other
            .try_lock(0..1, LockMode::Exclusive)
            .expect("the operation succeeds")
            .is_some()
    );
    drop(lock);
}

#[test]
fn throttled_operations_are_delayed() {
    let bandwidth = NonZeroU64::new(10 << 20).expect("not zero");
    let throttle = Throttle::new(Duration::from_millis(5)).bandwidth(bandwidth);
    let driver = WrappedDriver::new(Arc::new(Memory::separate()), throttle);
    let file = create(&driver);
    let began = Instant::now();
    let block = vec![0; 1 << 20];
    assert_eq!(file.transfer(&Batch::write(0, &block)).bytes, 1 << 20);
    assert!(began.elapsed() >= Duration::from_millis(105));
    let began = Instant::now();
    let (sender, receiver) = mpsc::channel();
    for _ in 0..4 {
        let sender = sender.clone();
        let batch = Batch::write(0, Vec::leak(vec![0; 1 << 18]));
        file.submit(
            batch,
            Box::new(move |outcome| sender.send(outcome.bytes).expect("heard")),
        );
    }
    assert!(
        began.elapsed() < Duration::from_millis(50),
        "submitting must not wait"
    );
    drop(sender);
    assert_eq!(receiver.iter().sum::<u64>(), 1 << 20);
    assert!(
        began.elapsed() >= Duration::from_millis(105),
        "the bandwidth is shared"
    );
}

#[test]
fn a_trace_records_all_operations() {
    let log = Log::new();
    let driver = WrappedDriver::new(Arc::new(Memory::separate()), log.clone());
    let file = create(&driver);
    file.transfer(&Batch::write(5, b"data"));
    background(&*file, Batch::write(u64::MAX, b"no"));
    file.set_size(7).expect("the operation succeeds");
    file.transfer(&Batch::read(0, &mut [0; 20]));
    file.close().expect("the operation succeeds");
    let events = log.take();
    let recorded: Vec<_> = events
        .iter()
        .map(|event| {
            (
                event.operation,
                event.places.clone(),
                event.bytes,
                event.error.is_some(),
            )
        })
        .collect();
    let expected = [
        (Operation::Open, vec![], 0, false),
        (Operation::Write, vec![(5, 4)], 4, false),
        (Operation::Write, vec![(u64::MAX, 2)], 0, true),
        (Operation::SetSize, vec![(0, 7)], 0, false),
        (Operation::Read, vec![(0, 20)], 7, false),
        (Operation::Close, vec![], 0, false),
    ];
    assert_eq!(recorded, expected);
    assert!(events.iter().all(|event| &*event.path == Path::new("file")));
    assert!(log.events().is_empty());
}
