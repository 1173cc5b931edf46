//! Opening, deleting and closing.

use std::{io::ErrorKind, sync::mpsc};

use super::{
    Check,
    subject::{Subject, read, write},
};
use crate::{Access, Batch, Create, Handle, LockMode};

pub(super) const CHECKS: &[Check] = &[
    ("missing files", missing),
    ("creation", creation),
    ("access", access),
    ("deletion while open", deletion),
    ("locks after close", locks_after_close),
    ("calls after close", calls_after_close),
];

fn missing(subject: &Subject) {
    subject.remove();
    for access in [Access::Read, Access::Write, Access::ReadWrite] {
        let how = subject.how(access, Create::Never);
        let error = subject.driver.open(&subject.path(), &how).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
    }
    let error = subject.driver.delete(&subject.path()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
}

fn creation(subject: &Subject) {
    let file = subject.create();
    assert_eq!(file.size().unwrap(), 0);
    write(&*file, 0, b"kept");
    let exclusive = subject.how(Access::ReadWrite, Create::Exclusive);
    let error = subject
        .driver
        .open(&subject.path(), &exclusive)
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AlreadyExists);
    // Creating a file that exists opens it unchanged.
    let again = subject.how(Access::ReadWrite, Create::IfMissing);
    let again = subject.driver.open(&subject.path(), &again).unwrap();
    assert_eq!(read(&*again, 0, 10), b"kept");
    again.close().unwrap();
    subject.finish(&*file);
}

fn access(subject: &Subject) {
    let file = subject.create();
    write(&*file, 0, b"0123456789");

    let reader = subject.open(Access::Read);
    assert_eq!(read(&*reader, 2, 3), b"234");
    forbidden(&*reader, &Batch::write(0, b"x"));
    assert!(reader.set_size(3).is_err());
    assert!(reader.preallocate(30).is_err());
    assert_eq!(reader.size().unwrap(), 10);

    let writer = subject.open(Access::Write);
    write(&*writer, 4, b"W");
    forbidden(&*writer, &Batch::read(0, &mut [0]));
    assert_eq!(read(&*reader, 0, 20), b"0123W56789");

    reader.close().unwrap();
    writer.close().unwrap();
    subject.finish(&*file);
}

fn forbidden(file: &dyn Handle, batch: &Batch<'_>) {
    let outcome = file.transfer(batch);
    assert_eq!(outcome.bytes, 0);
    assert_eq!(outcome.error.unwrap().kind(), ErrorKind::PermissionDenied);
}

fn deletion(subject: &Subject) {
    let file = subject.create();
    write(&*file, 0, b"old");
    subject.driver.delete(&subject.path()).unwrap();
    let how = subject.how(Access::Read, Create::Never);
    let error = subject.driver.open(&subject.path(), &how).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    write(&*file, 3, b"er");
    assert_eq!(read(&*file, 0, 9), b"older");
    let other = subject.create();
    assert_eq!(read(&*other, 0, 9), b"");
    file.close().unwrap();
    subject.finish(&*other);
}

fn locks_after_close(subject: &Subject) {
    let file = subject.create();
    let held = file.lock(0..10, LockMode::Exclusive).unwrap();
    file.close().unwrap();
    let other = subject.open(Access::ReadWrite);
    let free = other.try_lock(0..10, LockMode::Exclusive).unwrap();
    assert!(free.is_some(), "closing must release locks");
    drop(held);
    let third = subject.open(Access::ReadWrite);
    let busy = third.try_lock(0..10, LockMode::Exclusive).unwrap();
    assert!(
        busy.is_none(),
        "dropping a lock of a closed file must not release other locks"
    );
    drop(free);
    third.close().unwrap();
    subject.finish(&*other);
}

fn calls_after_close(subject: &Subject) {
    let file = subject.create();
    let other = subject.open(Access::ReadWrite);
    file.close().unwrap();
    assert!(file.transfer(&Batch::write(0, b"x")).error.is_some());
    assert!(file.size().is_err());
    assert!(file.set_size(1).is_err());
    assert!(file.preallocate(1).is_err());
    assert!(file.sync().is_err());
    assert!(file.lock(0..1, LockMode::Shared).is_err());
    assert!(file.try_lock(0..1, LockMode::Shared).is_err());
    assert!(file.close().is_err());
    let (sender, receiver) = mpsc::channel();
    let done = move |outcome| sender.send(outcome).unwrap();
    file.submit(Batch::write(0, b"x"), Box::new(done));
    let outcome = receiver.recv().unwrap();
    assert!(outcome.bytes == 0 && outcome.error.is_some());
    assert_eq!(other.size().unwrap(), 0);
    subject.finish(&*other);
}
