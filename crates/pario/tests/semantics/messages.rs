//! What errors say: the operation, the file, the value and what is allowed.

use std::{fs, path::Path};

use pario::{
    Atomicity, Basic, Datatype, Displacement, ErrorKind, File, Info, Mode, Result, Seek, Source,
    View,
};
use pario_transport::threads;

use crate::common::{NEW, byte, directory, info};

/// A call that must fail, and how.
struct Case {
    /// What is wrong.
    what: &'static str,
    mode: Mode,
    call: fn(&File) -> Result<()>,
    operation: &'static str,
    kind: ErrorKind,
    /// Words of the message: the value given and what would have been right.
    says: &'static [&'static str],
}

const READ: Mode = Mode::READ_ONLY;
const WRITE: Mode = Mode::WRITE_ONLY;
const BOTH: Mode = Mode::READ_WRITE;

fn int() -> Datatype {
    Datatype::basic(Basic::Int32)
}

fn set_int_view(file: &File) -> Result<()> {
    file.set_view(&View::new(0, &int(), &int()))
}

const CASES: &[Case] = &[
    Case {
        what: "a read of a file open for writing",
        mode: WRITE,
        call: |file| file.read_at(0, &mut [0u8]).map(drop),
        operation: "read_at",
        kind: ErrorKind::Access,
        says: &["WRITE_ONLY"],
    },
    Case {
        what: "a write to a file open for reading",
        mode: READ,
        call: |file| file.write_at_all(0, &[0u8]).map(drop),
        operation: "write_at_all",
        kind: ErrorKind::ReadOnly,
        says: &["READ_ONLY"],
    },
    Case {
        what: "an offset beyond the largest file",
        mode: BOTH,
        call: |file| file.write_at(u64::MAX, &[0u8]).map(drop),
        operation: "write_at",
        kind: ErrorKind::Argument,
        says: &["18446744073709551615", "2^63 - 1"],
    },
    Case {
        what: "an access across the last byte of any file",
        mode: BOTH,
        call: |file| file.write_at(i64::MAX as u64, &[0u8; 4]).map(drop),
        operation: "write_at",
        kind: ErrorKind::Argument,
        says: &["4 bytes", "9223372036854775807", "2^63 - 1"],
    },
    Case {
        what: "part of an etype",
        mode: BOTH,
        call: |file| {
            set_int_view(file)?;
            file.write(&[0u8; 7]).map(drop)
        },
        operation: "write",
        kind: ErrorKind::Argument,
        says: &["7 bytes", "etypes of 4 bytes"],
    },
    Case {
        what: "part of an etype at the shared pointer",
        mode: BOTH,
        call: |file| {
            set_int_view(file)?;
            file.write_ordered(&[0u8; 7]).map(drop)
        },
        operation: "write_ordered",
        kind: ErrorKind::Argument,
        says: &["7 bytes", "etypes of 4 bytes"],
    },
    Case {
        what: "a nonblocking write of part of an etype",
        mode: BOTH,
        call: |file| {
            set_int_view(file)?;
            file.iwrite_shared(vec![0u8; 7]).map(drop)
        },
        operation: "iwrite_shared",
        kind: ErrorKind::Argument,
        says: &["7 bytes", "etypes of 4 bytes"],
    },
    Case {
        what: "a representation that no one registered",
        mode: BOTH,
        call: |file| file.set_view(&View::bytes().representation("xdr")),
        operation: "set_view",
        kind: ErrorKind::UnsupportedRepresentation,
        says: &["xdr", "native", "external32", "internal"],
    },
    Case {
        what: "a filetype below the start of the view",
        mode: BOTH,
        call: |file| {
            let below = Datatype::hindexed(&[(1, -4)], &int())?;
            file.set_view(&View::new(0, &int(), &below))
        },
        operation: "set_view",
        kind: ErrorKind::Type,
        says: &["-4"],
    },
    Case {
        what: "a filetype that goes back",
        mode: BOTH,
        call: |file| {
            let back = Datatype::hindexed(&[(1, 8), (1, 0)], &int())?;
            file.set_view(&View::new(0, &int(), &back))
        },
        operation: "set_view",
        kind: ErrorKind::Type,
        says: &["8", "0"],
    },
    Case {
        what: "a filetype that is not made of etypes",
        mode: BOTH,
        call: |file| file.set_view(&View::new(0, &int(), &byte())),
        operation: "set_view",
        kind: ErrorKind::Type,
        says: &["etype"],
    },
    Case {
        what: "a filetype that shows bytes twice, to write through",
        mode: BOTH,
        call: |file| {
            let twice = Datatype::indexed(&[(1, 0), (1, 0)], &int())?;
            file.set_view(&View::new(0, &int(), &twice))
        },
        operation: "set_view",
        kind: ErrorKind::Type,
        says: &["overlaps itself", "READ_ONLY"],
    },
    Case {
        what: "a view behind the last byte",
        mode: BOTH,
        call: |file| file.set_view(&View::bytes().at(Displacement::Bytes(1 << 63))),
        operation: "set_view",
        kind: ErrorKind::Argument,
        says: &["9223372036854775808", "2^63 - 1"],
    },
    Case {
        what: "the current displacement where there is none",
        mode: BOTH,
        call: |file| file.set_view(&View::bytes().at(Displacement::Current)),
        operation: "set_view",
        kind: ErrorKind::Argument,
        says: &["Displacement::Current", "SEQUENTIAL"],
    },
    Case {
        what: "a view that starts anywhere in a sequential file",
        mode: WRITE.union(Mode::SEQUENTIAL),
        call: |file| file.set_view(&View::bytes()),
        operation: "set_view",
        kind: ErrorKind::UnsupportedOperation,
        says: &["SEQUENTIAL", "Displacement::Current"],
    },
    Case {
        what: "an explicit offset in a sequential file",
        mode: WRITE.union(Mode::SEQUENTIAL),
        call: |file| file.write_at(0, &[0u8]).map(drop),
        operation: "write_at",
        kind: ErrorKind::UnsupportedOperation,
        says: &["SEQUENTIAL", "shared-pointer"],
    },
    Case {
        what: "a write through a view without data",
        mode: BOTH,
        call: |file| {
            let nothing = Datatype::contiguous(0, &byte())?;
            file.set_view(&View::new(0, &byte(), &nothing))?;
            file.write_at(0, &[0u8]).map(drop)
        },
        operation: "write_at",
        kind: ErrorKind::Argument,
        says: &["no bytes"],
    },
    Case {
        what: "a seek before the start",
        mode: BOTH,
        call: |file| file.seek(-5, Seek::Set),
        operation: "seek",
        kind: ErrorKind::Argument,
        says: &["-5", "from 0"],
    },
    Case {
        what: "a shared seek before the start",
        mode: BOTH,
        call: |file| file.seek_shared(-101, Seek::End),
        operation: "seek_shared",
        kind: ErrorKind::Argument,
        says: &["-101", "100", "from 0"],
    },
    Case {
        what: "the byte of an etype past the last",
        mode: BOTH,
        call: |file| file.byte_offset(u64::MAX).map(drop),
        operation: "byte_offset",
        kind: ErrorKind::Argument,
        says: &["18446744073709551615", "2^63 - 1"],
    },
    Case {
        what: "a size that no file has",
        mode: BOTH,
        call: |file| file.set_size(u64::MAX),
        operation: "set_size",
        kind: ErrorKind::Argument,
        says: &["18446744073709551615", "2^63 - 1"],
    },
    Case {
        what: "a resize of a file open for reading",
        mode: READ,
        call: |file| file.preallocate(1000),
        operation: "preallocate",
        kind: ErrorKind::ReadOnly,
        says: &["READ_ONLY"],
    },
];

#[test]
fn every_error_names_operation_file_value_and_what_is_allowed() {
    let directory = directory();
    let path = directory.path().join("subject.dat");
    fs::write(&path, [0; 100]).unwrap();
    for case in CASES {
        let results = threads::run(1, |comm| {
            let file = File::open(&comm, &path, case.mode, &Info::new())?;
            let error = (case.call)(&file).expect_err(case.what);
            assert_eq!(error.kind(), case.kind, "{}: {error}", case.what);
            assert_eq!(error.operation(), case.operation, "{}: {error}", case.what);
            assert_eq!(error.path(), Some(&*path), "{}: {error}", case.what);
            let message = error.to_string();
            let opening = format!("{} {}", case.operation, path.display());
            assert!(message.starts_with(&opening), "{}: {message}", case.what);
            for word in case.says {
                assert!(
                    message.contains(word),
                    "{}: no {word} in: {message}",
                    case.what
                );
            }
            file.close()
        });
        results
            .into_iter()
            .for_each(|result| result.unwrap().unwrap());
    }
    assert_eq!(fs::read(&path).unwrap(), [0; 100], "nothing was changed");
}

fn open_error(path: &Path, mode: Mode, info: &Info) -> pario::Error {
    let opened = threads::run(1, |comm| {
        File::open(&comm, path, mode, info).map(drop).unwrap_err()
    });
    opened.into_iter().next().unwrap().unwrap()
}

/// Name, mode and hints of an open; the kind and words of its error.
type Opening<'a> = (
    &'a Path,
    Mode,
    &'a [(&'a str, &'a str)],
    ErrorKind,
    &'a [&'a str],
);

#[test]
fn an_open_that_fails_says_why() {
    let directory = directory();
    let path = directory.path().join("present");
    fs::write(&path, [0; 10]).unwrap();
    let missing = directory.path().join("missing");
    let below_a_file = path.join("below");
    let long = directory.path().join("n".repeat(300));
    let odd = directory.path().join("a\0b");
    let cases: [Opening<'_>; 9] = [
        (
            &missing,
            READ,
            &[],
            ErrorKind::NoSuchFile,
            &["No such file"],
        ),
        (
            &missing,
            Mode::CREATE,
            &[],
            ErrorKind::Mode,
            &["CREATE", "exactly one of"],
        ),
        (
            &missing,
            READ | WRITE,
            &[],
            ErrorKind::Mode,
            &["WRITE_ONLY", "exactly one of"],
        ),
        (
            &missing,
            READ | Mode::CREATE,
            &[],
            ErrorKind::Mode,
            &["CREATE", "READ_ONLY"],
        ),
        (
            &path,
            NEW | Mode::EXCLUSIVE,
            &[],
            ErrorKind::FileExists,
            &["exists"],
        ),
        (
            directory.path(),
            READ,
            &[],
            ErrorKind::BadFile,
            &["directory"],
        ),
        (&below_a_file, NEW, &[], ErrorKind::BadFile, &["directory"]),
        (&long, NEW, &[], ErrorKind::BadFile, &["too long"]),
        (&odd, NEW, &[], ErrorKind::BadFile, &["NUL byte"]),
    ];
    for (path, mode, hints, kind, says) in cases {
        let error = open_error(path, mode, &info(hints));
        assert_eq!(error.kind(), kind, "{error}");
        assert_eq!(error.operation(), "open", "{error}");
        assert_eq!(error.path(), Some(path), "{error}");
        for word in says {
            assert!(error.to_string().contains(word), "no {word} in: {error}");
        }
    }
    let error = File::delete(&missing, &Info::new()).unwrap_err();
    assert_eq!(
        (error.operation(), error.kind()),
        ("delete", ErrorKind::NoSuchFile)
    );
    let opening = format!("delete {}", missing.display());
    assert!(error.to_string().starts_with(&opening), "{error}");
    let left = fs::read_dir(directory.path()).unwrap().count();
    assert_eq!(left, 1, "a failed open makes no file");
}

#[test]
fn every_call_on_a_closed_file_says_so() {
    let directory = directory();
    let path = directory.path().join("closed");
    let results = threads::run(1, |comm| {
        let file = File::open(&comm, &path, NEW, &Info::new())?;
        file.close()?;
        let calls = [
            ("read_at", file.read_at(0, &mut [0u8]).map(drop)),
            ("write_at", file.write_at(0, &[0u8]).map(drop)),
            ("write_at", file.write_at(0, &[0u8; 0]).map(drop)),
            ("read_at_all", file.read_at_all(0, &mut [0u8]).map(drop)),
            ("read", file.read(&mut [0u8]).map(drop)),
            ("write_all", file.write_all(&[0u8]).map(drop)),
            ("write_shared", file.write_shared(&[0u8]).map(drop)),
            ("write_ordered", file.write_ordered(&[0u8]).map(drop)),
            ("iread_at", file.iread_at(0, vec![0u8]).map(drop)),
            ("iwrite", file.iwrite(vec![0u8]).map(drop)),
            ("iread_shared", file.iread_shared(vec![0u8]).map(drop)),
            ("size", file.size().map(drop)),
            ("set_size", file.set_size(0)),
            ("preallocate", file.preallocate(0)),
            ("sync", file.sync()),
            ("set_view", file.set_view(&View::bytes())),
            ("seek", file.seek(0, Seek::Set)),
            ("position", file.position().map(drop)),
            ("byte_offset", file.byte_offset(0).map(drop)),
            ("seek_shared", file.seek_shared(0, Seek::Set)),
            ("position_shared", file.position_shared().map(drop)),
            ("set_atomicity", file.set_atomicity(Atomicity::Atomic)),
            ("set_info", file.set_info(&Info::new())),
            ("close", file.close()),
        ];
        for (call, result) in calls {
            let error = result.expect_err(call);
            assert_eq!((error.operation(), error.kind()), (call, ErrorKind::Handle));
            assert!(error.to_string().contains("closed"), "{error}");
        }
        Ok::<(), pario::Error>(())
    });
    results
        .into_iter()
        .for_each(|result| result.unwrap().unwrap());
}

#[test]
fn a_buffer_that_is_too_small_is_told_what_it_lacks() {
    let strided = Datatype::vector(4, 1, 2, &int()).unwrap();
    let error = Source::typed(&[0; 27], 1, &strided).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Buffer);
    for word in ["0..28", "27 bytes"] {
        assert!(error.to_string().contains(word), "no {word} in: {error}");
    }
    let error = Source::typed(&[0; 27], u64::MAX, &strided).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Argument);
    for word in ["18446744073709551615", "2^63 - 1"] {
        assert!(error.to_string().contains(word), "no {word} in: {error}");
    }
}
