//! Sizes, preallocation and large offsets.

use super::{
    Check,
    subject::{Subject, read, write},
};
use crate::{Access, Batch};

pub(super) const CHECKS: &[Check] = &[
    ("sizes", sizes),
    ("preallocation", preallocation),
    ("large offsets", large_offsets),
    ("impossible offsets", impossible_offsets),
    ("durability", durability),
    ("facts", facts),
];

const GIB: u64 = 1 << 30;

fn sizes(subject: &Subject) {
    let file = subject.create();
    write(&*file, 10, b"data");
    assert_eq!(file.size().unwrap(), 14);
    assert_eq!(
        read(&*file, 0, 100),
        b"\0\0\0\0\0\0\0\0\0\0data",
        "holes read as zeros"
    );
    assert_eq!(read(&*file, 12, 100), b"ta", "up to the end");
    assert_eq!(read(&*file, 14, 100), b"", "at the end");
    assert_eq!(read(&*file, 5000, 100), b"", "beyond the end");

    file.set_size(12).unwrap();
    assert_eq!(read(&*file, 10, 9), b"da");
    file.set_size(16).unwrap();
    assert_eq!(
        read(&*file, 10, 9),
        b"da\0\0\0\0",
        "truncated data must not reappear"
    );
    let other = subject.open(Access::ReadWrite);
    other.set_size(11).unwrap();
    assert_eq!(file.size().unwrap(), 11);
    other.set_size(0).unwrap();
    assert_eq!(read(&*file, 0, 9), b"");
    write(&*file, 5000, b"");
    assert_eq!(
        file.size().unwrap(),
        0,
        "an empty write must not extend the file"
    );
    other.close().unwrap();
    subject.finish(&*file);
}

fn preallocation(subject: &Subject) {
    let file = subject.create();
    file.preallocate(0).unwrap();
    assert_eq!(file.size().unwrap(), 0);
    let data: Vec<u8> = (0..100_000).map(|at| at as u8 | 1).collect();
    write(&*file, 0, &data);
    file.preallocate(300_001).unwrap();
    assert_eq!(file.size().unwrap(), 300_001);
    assert!(read(&*file, 0, data.len()) == data, "data is kept");
    assert!(read(&*file, 100_000, 300_000).iter().all(|&byte| byte == 0));
    file.preallocate(50_000).unwrap();
    assert_eq!(
        file.size().unwrap(),
        300_001,
        "a smaller preallocation must not truncate"
    );
    assert!(read(&*file, 0, data.len()) == data);
    subject.finish(&*file);
}

fn large_offsets(subject: &Subject) {
    let file = subject.create();
    for offset in [2 * GIB - 3, 4 * GIB - 3, 9 * GIB] {
        write(&*file, offset, b"across");
    }
    assert_eq!(file.size().unwrap(), 9 * GIB + 6);
    for offset in [2 * GIB - 3, 4 * GIB - 3, 9 * GIB] {
        assert_eq!(read(&*file, offset - 1, 8)[..7], *b"\0across");
    }
    assert_eq!(read(&*file, 0, 8), [0; 8]);
    // CephFS deletes each object that a file of this size could have: 250 of them per GiB.
    let gib = if file.facts().file_system.is_ceph() {
        20
    } else {
        1000
    };
    file.set_size(gib * GIB).unwrap();
    assert_eq!(file.size().unwrap(), gib * GIB);
    assert_eq!(read(&*file, gib * GIB - 2, 8), [0; 2]);
    subject.finish(&*file);
}

fn impossible_offsets(subject: &Subject) {
    let file = subject.create();
    let mut bytes = [0; 4];
    const LAST: u64 = i64::MAX as u64;
    for offset in [LAST - 1, LAST + 1, u64::MAX - 1, u64::MAX] {
        let outcome = file.transfer(&Batch::write(offset, b"data"));
        assert!(
            outcome.bytes == 0 && outcome.error.is_some(),
            "write at {offset}: {outcome:?}"
        );
        let outcome = file.transfer(&Batch::read(offset, &mut bytes));
        assert!(
            outcome.bytes == 0 && outcome.error.is_some(),
            "read at {offset}: {outcome:?}"
        );
        let nothing = file.transfer(&Batch::write(offset, b""));
        assert!(nothing.error.is_none(), "nothing at {offset}: {nothing:?}");
    }
    for size in [LAST + 1, u64::MAX] {
        assert!(file.set_size(size).is_err());
        assert!(file.preallocate(size).is_err());
    }
    assert_eq!(file.size().unwrap(), 0);
    subject.finish(&*file);
}

fn durability(subject: &Subject) {
    let file = subject.create();
    write(&*file, 0, b"safe");
    file.sync().unwrap();
    let reader = subject.open(Access::Read);
    reader.sync().unwrap();
    assert_eq!(read(&*reader, 0, 9), b"safe");
    reader.close().unwrap();
    subject.finish(&*file);
}

fn facts(subject: &Subject) {
    let file = subject.create();
    let facts = file.facts().clone();
    assert!(facts.block_size > 0);
    if let Some(alignment) = facts.direct_alignment {
        assert!(alignment.is_power_of_two());
    }
    subject.finish(&*file);
    assert_eq!(*file.facts(), facts, "facts are available after closing");
}
