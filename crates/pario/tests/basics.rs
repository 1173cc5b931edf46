//! The calls of a file, each once, as a program would use them.
#![allow(clippy::unwrap_used)] // helpers of tests, too

use std::path::Path;

use pario::{
    Atomicity, Basic, Datatype, Displacement, ErrorKind, File, Info, Mode, Seek, Source, Target,
    View,
};
use pario_transport::{Rank, threads};

const NEW: Mode = Mode::CREATE.union(Mode::READ_WRITE);

/// Runs four ranks that must all succeed.
fn four(work: impl Fn(std::sync::Arc<dyn pario_transport::Transport>) -> pario::Result<()> + Sync) {
    for result in threads::run(4, work) {
        result.expect("no rank panics").unwrap();
    }
}

fn directory() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

fn bytes_of(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap()
}

#[test]
fn ranks_write_columns_and_read_rows() {
    let directory = directory();
    let path = directory.path().join("table");
    four(|comm| {
        let file = File::open(&comm, &path, NEW, &Info::new())?;
        let rank = u64::from(comm.rank().0);
        let int = Datatype::basic(Basic::Int32);
        let column = Datatype::resized(&int, 0, 16)?;
        file.set_view(&View::new(4 * rank, &int, &column))?;
        let mine: Vec<i32> = (0..100).map(|row| row * 4 + rank as i32).collect();
        assert_eq!(file.write(&mine)?.count(&int), Some(100));
        assert_eq!(file.position()?, 100);
        file.sync()?;
        let mut back = vec![0i32; 100];
        file.seek(0, Seek::Set)?;
        file.read(&mut back)?;
        assert_eq!(back, mine);
        assert_eq!(file.byte_offset(3)?, 4 * rank + 48);
        file.close()
    });
    let ints: Vec<i32> = bytes_of(&path)
        .chunks_exact(4)
        .map(|bytes| i32::from_le_bytes(bytes.try_into().unwrap()))
        .collect();
    assert_eq!(ints, (0..400).collect::<Vec<_>>());
}

#[test]
fn a_read_at_the_end_tells_what_it_got_and_touches_nothing_else() {
    let directory = directory();
    let path = directory.path().join("short");
    std::fs::write(&path, [7u8; 1000]).unwrap();
    four(|comm| {
        let file = File::open(&comm, &path, Mode::READ_ONLY, &Info::new())?;
        let mut buffer = [9u8; 4096];
        assert_eq!(file.read_at(0, &mut buffer)?.bytes(), 1000);
        assert_eq!(buffer[999..1001], [7, 9]);
        assert_eq!(file.read_at_all(5000, &mut buffer)?.bytes(), 0);
        file.seek(-100, Seek::End)?;
        assert_eq!(file.read(&mut buffer)?.bytes(), 100);
        assert_eq!(
            file.position()?,
            900 + 4096,
            "pointers advance by what was asked"
        );
        file.close()
    });
}

#[test]
fn shared_and_ordered_accesses_never_overlap() {
    let directory = directory();
    let path = directory.path().join("log");
    four(|comm| {
        let file = File::open(&comm, &path, NEW, &Info::new())?;
        let line = [comm.rank().0 as u8 + 1; 10];
        for _ in 0..25 {
            file.write_shared(&line)?;
        }
        file.write_ordered(&vec![100 + comm.rank().0 as u8; 5 * comm.rank().index()])?;
        assert_eq!(file.position_shared()?, 1000 + 5 * (1 + 2 + 3));
        file.seek_shared(0, Seek::Set)?;
        let mut part = [0u8; 10];
        for _ in 0..25 {
            file.read_shared(&mut part)?;
            assert!(part.iter().all(|byte| *byte == part[0]));
        }
        let mut mine = vec![0; 5 * comm.rank().index()];
        file.read_ordered(&mut mine)?;
        assert!(mine.iter().all(|byte| *byte == 100 + comm.rank().0 as u8));
        file.close()
    });
    let bytes = bytes_of(&path);
    for rank in 1..=4 {
        assert_eq!(
            bytes[..1000].iter().filter(|byte| **byte == rank).count(),
            250
        );
    }
    assert_eq!(
        bytes[1000..],
        [[101; 5].as_slice(), &[102; 10], &[103; 15]].concat()
    );
}

#[test]
fn nonblocking_accesses_run_side_by_side() {
    let directory = directory();
    let path = directory.path().join("async");
    four(|comm| {
        let file = File::open(&comm, &path, NEW, &Info::new())?;
        let base = u64::from(comm.rank().0) << 20;
        let writes: Vec<_> = (0..64u64)
            .map(|index| file.iwrite_at(base + index * 1000, vec![index as u8; 1000]))
            .collect::<pario::Result<_>>()?;
        for write in writes.into_iter().rev() {
            assert_eq!(write.wait()?.0.bytes(), 1000);
        }
        let reads: Vec<_> = (0..64u64)
            .map(|index| file.iread_at(base + index * 1000, vec![0u8; 1000]))
            .collect::<pario::Result<_>>()?;
        for (index, read) in reads.into_iter().enumerate() {
            assert_eq!(read.wait()?.1, vec![index as u8; 1000]);
        }
        file.close()
    });
}

#[test]
fn scattered_memory_meets_a_scattered_view() {
    let directory = directory();
    let path = directory.path().join("both");
    four(|comm| {
        let file = File::open(&comm, &path, NEW, &Info::new())?;
        let rank = u64::from(comm.rank().0);
        let byte = Datatype::basic(Basic::Byte);
        let filetype = Datatype::resized(&Datatype::contiguous(3, &byte)?, 0, 12)?;
        file.set_view(&View::new(3 * rank, &byte, &filetype))?;
        let memory = Datatype::vector(500, 3, 5, &byte)?;
        let source: Vec<u8> = (0..2500u32).map(|n| n as u8).collect();
        file.write_at(0, Source::typed(&source, 1, &memory)?)?;
        let mut target = vec![0; 2500];
        file.read_at(0, Target::typed(&mut target, 1, &memory)?)?;
        for (index, byte) in target.iter().enumerate() {
            let expected = if index % 5 < 3 { source[index] } else { 0 };
            assert_eq!(*byte, expected, "{index}");
        }
        file.close()
    });
}

#[test]
fn external32_is_big_endian_on_disk() {
    let directory = directory();
    let path = directory.path().join("portable");
    four(|comm| {
        let file = File::open(&comm, &path, NEW, &Info::new())?;
        let rank = u64::from(comm.rank().0);
        let int = Datatype::basic(Basic::Int32);
        let view = View::new(400 * rank, &int, &int).representation("external32");
        file.set_view(&view)?;
        let mine: Vec<i32> = (0..100).collect();
        file.write_at(0, &mine)?;
        let mut back = vec![0; 100];
        file.read_at(0, &mut back)?;
        assert_eq!(back, mine);
        assert_eq!(file.type_extent(&Basic::Long.into())?, 4);
        assert_eq!(file.view().representation_name(), "external32");
        file.close()
    });
    let bytes = bytes_of(&path);
    assert_eq!(bytes.len(), 1600);
    assert_eq!(bytes[396..404], [0, 0, 0, 99, 0, 0, 0, 0]);
}

#[test]
fn sizes_are_set_together_and_preallocation_keeps_data() {
    let directory = directory();
    let path = directory.path().join("sized");
    std::fs::write(&path, [5u8; 3000]).unwrap();
    four(|comm| {
        let file = File::open(&comm, &path, Mode::READ_WRITE, &Info::new())?;
        file.preallocate(10_000)?;
        assert_eq!(file.size()?, 10_000);
        file.set_size(2000)?;
        assert_eq!(file.size()?, 2000);
        let other = 1000 + u64::from(comm.rank().0);
        assert_eq!(file.set_size(other).unwrap_err().kind(), ErrorKind::NotSame);
        assert_eq!(file.size()?, 2000);
        file.close()
    });
    assert_eq!(bytes_of(&path), [5; 2000]);
}

#[test]
fn a_sequential_file_knows_only_its_shared_pointer() {
    let directory = directory();
    let path = directory.path().join("tape");
    four(|comm| {
        let mode = Mode::CREATE | Mode::WRITE_ONLY | Mode::SEQUENTIAL;
        let file = File::open(&comm, &path, mode, &Info::new())?;
        let rejected = file.write_at(0, &[1u8]).unwrap_err();
        assert_eq!(rejected.kind(), ErrorKind::UnsupportedOperation);
        file.write_ordered(&[1u8; 8])?;
        assert!(file.set_view(&View::bytes()).is_err());
        let int = Datatype::basic(Basic::Int32);
        file.set_view(&View::new(0, &int, &int).at(Displacement::Current))?;
        assert_eq!(file.view().displacement(), Displacement::Bytes(32));
        file.write_ordered(&[comm.rank().0 as i32; 2])?;
        file.close()
    });
    let bytes = bytes_of(&path);
    assert_eq!(bytes[..32], [1; 32]);
    assert_eq!(
        bytes[32..],
        [0i32, 0, 1, 1, 2, 2, 3, 3].map(i32::to_le_bytes).concat()
    );
}

#[test]
fn appending_starts_at_the_end_and_delete_on_close_deletes() {
    let directory = directory();
    let path = directory.path().join("more");
    std::fs::write(&path, b"0123456789").unwrap();
    four(|comm| {
        let mode = Mode::READ_WRITE | Mode::APPEND | Mode::DELETE_ON_CLOSE;
        let file = File::open(&comm, &path, mode, &Info::new())?;
        assert_eq!((file.position()?, file.position_shared()?), (10, 10));
        // Not O_APPEND: an explicit offset is obeyed.
        if comm.rank() == Rank(0) {
            file.write_at(2, b"ab")?;
        }
        file.write_ordered(b"x")?;
        file.sync()?;
        let mut all = [0u8; 14];
        file.read_at(0, &mut all)?;
        assert_eq!(&all, b"01ab456789xxxx");
        file.close()
    });
    assert!(!path.exists());
}

#[test]
fn atomic_mode_is_agreed_and_works_in_both_directions() {
    let directory = directory();
    let path = directory.path().join("atomic");
    four(|comm| {
        let file = File::open(&comm, &path, NEW, &Info::new())?;
        file.set_atomicity(Atomicity::Atomic)?;
        assert_eq!(file.atomicity(), Atomicity::Atomic);
        file.write_at(0, &vec![comm.rank().0 as u8; 100_000])?;
        let mut seen = vec![0u8; 100_000];
        file.read_at(0, &mut seen)?;
        assert!(seen.iter().all(|byte| *byte == seen[0]));
        file.close()
    });
}

#[test]
fn an_argument_rejected_on_one_rank_fails_on_all_of_them() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("rejected");
    let results = threads::run(3, |comm| {
        let mode = Mode::CREATE | Mode::READ_WRITE;
        let file = File::open(&comm, &path, mode, &Info::new())?;
        let odd = comm.rank().0 == 1;
        let error = || pario::Error::new(ErrorKind::Count, "the count is negative");
        let bytes = [7u8; 16];
        let source = || match odd {
            true => pario::Source::failed(error()),
            false => pario::Source::from(&bytes),
        };
        let owned = || match odd {
            true => pario::Owned::failed(error()),
            false => pario::Owned::from(bytes.to_vec()),
        };
        let failures = [
            file.write_all(source()).unwrap_err(),
            file.write_ordered(source()).unwrap_err(),
            file.iwrite_at_all(0, owned())?.wait().unwrap_err(),
            file.write_ordered_begin(owned())?.end().unwrap_err(),
            match odd {
                true => file.fail_collectively("set_size", error()),
                false => file.set_size(5).unwrap_err(),
            },
        ];
        for failure in failures {
            assert_eq!(failure.kind(), ErrorKind::Count, "{failure}");
        }
        // The others may have moved their own data, which their errors tell.
        assert!(file.size()? <= 48);
        file.close()
    });
    for result in results {
        result.unwrap().unwrap();
    }
}

/// Memory that starts so far behind a page.
fn past_a_page(buffer: &mut [u8], distance: usize, len: usize) -> &mut [u8] {
    const PAGE: usize = 4096;
    let start = buffer.as_ptr().align_offset(PAGE) + distance;
    &mut buffer[start..start + len]
}

/// The kernel's copies are slow there, so such memory is moved through a
/// buffer: in chunks, of whole and of scattered accesses, up to the file's end.
#[test]
fn memory_just_past_a_page_gets_and_gives_the_same_bytes() {
    const LEN: usize = 300_001;
    let directory = directory();
    let path = directory.path().join("trailing");
    let stored: Vec<u8> = (0..LEN).map(|at| (at * 31 / 7) as u8).collect();
    let results = threads::run(1, |comm| -> pario::Result<()> {
        let file = File::open(&comm, &path, NEW, &Info::new())?;
        let mut buffer = vec![0; LEN + (4 << 12)];
        for distance in [0, 1, 16, 31, 32, 4095, 4080] {
            let memory = past_a_page(&mut buffer, distance, LEN);
            memory.copy_from_slice(&stored);
            assert_eq!(file.write_at(0, &*memory)?.bytes(), LEN as u64);
            assert!(bytes_of(&path) == stored, "written from {distance}");
            let memory = past_a_page(&mut buffer, distance, LEN + 5000);
            memory.fill(9);
            assert_eq!(file.read_at(0, &mut *memory)?.bytes(), LEN as u64);
            assert!(memory[..LEN] == stored[..], "read to {distance}");
            assert_eq!(memory[LEN..], [9; 5000], "past the end, at {distance}");
        }
        let byte = Datatype::basic(Basic::Byte);
        let record = Datatype::contiguous(8192, &byte)?;
        let every_other = Datatype::resized(&record, 0, 2 * 8192)?;
        file.set_view(&View::new(0, &byte, &every_other))?;
        let memory = past_a_page(&mut buffer, 16, 10 * 8192);
        file.read_at(0, &mut *memory)?;
        for (index, record) in memory.chunks(8192).enumerate() {
            assert!(record == &stored[index * 2 * 8192..][..8192], "{index}");
        }
        file.close()
    });
    results
        .into_iter()
        .for_each(|result| result.unwrap().unwrap());
}

/// PnetCDF opens its second handle with the hints that the first one reports.
#[test]
fn a_file_opens_with_the_hints_that_another_reports() {
    let directory = directory();
    let path = directory.path().join("again");
    four(|comm| {
        let first = File::open(&comm, &path, NEW, &Info::new())?;
        let told = first.info();
        let driver = told.get("romio_filesystem_type");
        assert_eq!(driver, Some("UFS: pario's driver posix"));
        File::open(&comm, &path, NEW, &told)?.close()?;
        first.close()
    });
}
