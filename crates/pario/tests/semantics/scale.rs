//! Rules 25 and 26a, and sizes past 32 bits, with little memory.
#![allow(unsafe_code)] // one piece of memory is mapped many times over

use std::{fs, os::fd::AsRawFd, ptr, sync::Arc};

use pario::{Basic, Datatype, File, Info, Mode, Source, Target, View};
use pario_driver::{Client, Driver, Facts, FileSystem, Memory, Striping};

use crate::common::{
    NEW, alone, byte, directory, every, info,
    probe::{Event, Probe},
    ranks, watchdog,
};

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// Many gigabytes of addresses that all lead to the same few megabytes.
struct Mirror {
    base: *mut u8,
    len: usize,
}

impl Mirror {
    const BACKING: usize = 16 << 20;

    /// At least `len` bytes, filled with one value.
    fn new(len: u64, fill: u8) -> Mirror {
        let copies = (len as usize).div_ceil(Self::BACKING);
        let len = copies * Self::BACKING;
        let file = tempfile::tempfile().unwrap();
        file.set_len(Self::BACKING as u64).unwrap();
        // SAFETY: asks for fresh addresses, backed by nothing.
        let base = unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
            libc::mmap(ptr::null_mut(), len, libc::PROT_NONE, flags, -1, 0)
        };
        assert_ne!(base, libc::MAP_FAILED);
        for copy in 0..copies {
            // SAFETY: replaces a part of the addresses just reserved.
            let mapped = unsafe {
                libc::mmap(
                    base.byte_add(copy * Self::BACKING),
                    Self::BACKING,
                    libc::PROT_READ | libc::PROT_WRITE,
                    libc::MAP_SHARED | libc::MAP_FIXED,
                    file.as_raw_fd(),
                    0,
                )
            };
            assert_ne!(mapped, libc::MAP_FAILED);
        }
        let base = base.cast();
        // SAFETY: the first copy is all of the backing.
        unsafe { ptr::write_bytes(base, fill, Self::BACKING) };
        Mirror { base, len }
    }

    fn source(&self, bytes: u64) -> Source<'_> {
        assert!(bytes <= self.len as u64);
        // SAFETY: the addresses are mapped for as long as `self` lives.
        unsafe { Source::from_raw(self.base, bytes, byte()) }.unwrap()
    }

    fn target(&mut self, bytes: u64) -> Target<'_> {
        assert!(bytes <= self.len as u64);
        // SAFETY: as above; several addresses of one byte only make it
        // undecided which of equal values it holds.
        unsafe { Target::from_raw(self.base, bytes, byte()) }.unwrap()
    }

    fn backing(&self) -> Vec<u8> {
        // SAFETY: the first copy is mapped, and no one writes any more.
        unsafe { std::slice::from_raw_parts(self.base, Self::BACKING) }.to_vec()
    }
}

impl Drop for Mirror {
    fn drop(&mut self) {
        // SAFETY: nothing uses the addresses any more.
        unsafe { libc::munmap(self.base.cast(), self.len) };
    }
}

/// A directory whose sparse files take no memory to read.
fn sparse_directory() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").unwrap_or_else(|_| directory())
}

#[test]
fn one_call_moves_more_than_a_system_call_can() {
    let directory = sparse_directory();
    let path = directory.path().join("sparse");
    let bytes = 2 * GIB + 200 * MIB + 5;
    alone(|comm| {
        let file = File::open(&comm, &path, NEW, &Info::new())?;
        file.set_size(5 * GIB)?;
        let mut memory = Mirror::new(bytes, 0xEE);
        assert_eq!(file.read_at(GIB, memory.target(bytes))?.bytes(), bytes);
        assert!(memory.backing().iter().all(|byte| *byte == 0));
        // As much again would reach past the end.
        let status = file.read_at(3 * GIB, memory.target(bytes))?;
        assert_eq!(status.bytes(), 2 * GIB);
        assert_eq!(status.count(&Basic::Double.into()), Some(GIB / 4));
        file.close()?;
        // A sink of the kernel takes no more at a time than a file.
        let file = File::open(&comm, "/dev/null", Mode::WRITE_ONLY, &Info::new())?;
        let memory = Mirror::new(bytes, 1);
        assert_eq!(file.write_at(0, memory.source(bytes))?.bytes(), bytes);
        let status = pario::scope(|scope| scope.iwrite_at(&file, 0, memory.source(bytes))?.wait());
        assert_eq!(status?.bytes(), bytes);
        file.close()
    });
}

#[test]
fn more_than_two_gigabytes_through_a_strided_view() {
    let directory = sparse_directory();
    let path = directory.path().join("strided");
    // Pieces of 4 MiB, each followed by as long a gap.
    let piece = 4 * MIB;
    let bytes = 2 * GIB + 4 * MIB;
    alone(|comm| {
        let file = File::open(&comm, &path, NEW, &Info::new())?;
        file.write_at(2 * bytes - piece - 1, &[7u8])?;
        file.set_view(&every(2 * piece as i64, piece, 0))?;
        let mut memory = Mirror::new(bytes, 0xEE);
        assert_eq!(file.read_at(0, memory.target(bytes))?.bytes(), bytes);
        let last = *memory.backing().last().unwrap();
        assert!(last == 0 || last == 7, "{last}");
        file.close()
    });
}

#[test]
fn offsets_past_four_gigabytes() {
    let directory = directory();
    let path = directory.path().join("far");
    let drivers: [(&str, Arc<dyn Driver>); 2] = [
        ("posix", Probe::listening()),
        ("mem", Arc::new(Memory::separate())),
    ];
    for (name, driver) in drivers {
        alone(|comm| {
            let file = File::open_with(&comm, driver.clone(), &path, NEW, &Info::new())?;
            let places = [4 * GIB - 2, 5 * GIB + 1, 1 << 40, (1 << 43) + 3];
            for (number, place) in places.into_iter().enumerate() {
                file.write_at(place, &[number as u8 + 1; 4])?;
                file.iwrite_at(place + 4, vec![number as u8 + 11; 4])?
                    .wait()?;
            }
            assert_eq!(file.size()?, places[3] + 8, "{name}");
            for (number, place) in places.into_iter().enumerate() {
                let mut got = [0u8; 10];
                let status = file.read_at(place - 1, &mut got)?;
                let last = number == places.len() - 1;
                assert_eq!(status.bytes(), if last { 9 } else { 10 });
                let (low, high) = (number as u8 + 1, number as u8 + 11);
                assert_eq!(
                    got,
                    [0, low, low, low, low, high, high, high, high, 0],
                    "{name}"
                );
            }
            // Far apart pieces of one access.
            let tile = Datatype::resized(&byte(), 0, 3 * GIB as i64)?;
            file.set_view(&View::new(0, &byte(), &tile))?;
            file.write_at(0, b"abcd")?;
            file.set_view(&View::bytes())?;
            let mut got = [0u8];
            file.read_at(9 * GIB, &mut got)?;
            assert_eq!(&got, b"d", "{name}");
            file.close()?;
            driver.delete(&path)?;
            Ok(())
        });
    }
}

#[test]
fn counts_past_31_bits() {
    let directory = directory();
    let path = directory.path().join("many");
    alone(|comm| {
        let file = File::open(&comm, &path, NEW, &Info::new())?;
        let count = (1u64 << 31) + 3;
        // So many items without data, and a view of so many blocks.
        let nothing = Datatype::contiguous(0, &byte())?;
        assert_eq!(
            file.write_at(0, Source::typed(&[], count, &nothing)?)?
                .bytes(),
            0
        );
        let blocks = Datatype::vector(count, 1, 2, &byte())?;
        file.set_view(&View::new(0, &byte(), &blocks))?;
        assert_eq!(file.byte_offset(count - 1)?, 2 * (count - 1));
        assert_eq!(file.byte_offset(count)?, 2 * count - 1, "the next tile");
        file.write_at(count - 2, &[1u8, 2, 3])?;
        let mut got = [0u8; 3];
        file.read_at(count - 2, &mut got)?;
        assert_eq!(got, [1, 2, 3]);
        file.seek(-1, pario::Seek::End)?;
        assert_eq!(file.position()?, count);
        file.close()
    });
    let bytes = fs::metadata(&path).unwrap().len();
    assert_eq!(bytes, 2 * ((1 << 31) + 3));
}

#[test]
fn memory_that_overlaps_itself_is_written_as_often_as_it_is_named() {
    let directory = directory();
    let path = directory.path().join("repeated");
    alone(|comm| {
        let file = File::open(&comm, &path, NEW, &Info::new())?;
        let same = Datatype::hvector(1000, 3, 0, &byte())?;
        assert_eq!(
            file.write_at(0, Source::typed(b"abc", 1, &same)?)?.bytes(),
            3000
        );
        let sliding = Datatype::hvector(4, 2, 1, &byte())?;
        file.write_at(3000, Source::typed(b"vwxyz", 1, &sliding)?)?;
        file.close()
    });
    let bytes = fs::read(&path).unwrap();
    assert_eq!(bytes[..3000], b"abc".repeat(1000));
    assert_eq!(bytes[3000..], *b"vwwxxyyz");
}

#[test]
fn rule_25_the_slice_that_is_copied_and_the_window_that_is_moved_are_two_sizes() {
    let directory = directory();
    let path = directory.path().join("sizes");
    alone(|comm| {
        let probe = Probe::listening();
        let hints = info(&[
            ("ind_rd_buffer_size", "1048576"),
            ("pario_read_method", "sieve"),
        ]);
        let driver = probe.clone() as Arc<dyn Driver>;
        let file = File::open_with(&comm, driver, &path, NEW, &hints)?;
        file.set_size(8 * MIB)?;
        file.set_view(&every(16, 8, 0))?;
        probe.take();
        let mut memory = vec![0u8; 4 << 20];
        file.read_at(0, &mut memory)?;
        let windows: Vec<usize> = probe
            .take()
            .into_iter()
            .filter_map(|event| match event {
                Event::Read(pieces) => Some(pieces.iter().map(|(_, len)| len).sum()),
                _ => None,
            })
            .collect();
        assert_eq!(windows.len(), 8, "{windows:?}");
        assert!(windows.iter().all(|bytes| *bytes > MIB as usize - 16));
        // Scattered memory is gathered in slices that stay in the cache.
        file.set_view(&View::bytes())?;
        let scattered = Datatype::resized(&byte(), 0, 2)?;
        file.write_at(0, Source::typed(&memory, 2 * MIB, &scattered)?)?;
        let slices: Vec<usize> = probe
            .take()
            .into_iter()
            .filter_map(|event| match event {
                Event::Write(pieces) => Some(pieces.iter().map(|(_, len)| len).sum()),
                _ => None,
            })
            .collect();
        assert!(slices.len() > 1, "{slices:?}");
        assert!(slices.iter().all(|bytes| *bytes <= MIB as usize));
        file.close()
    });
}

/// What a rank may see of a file that others see otherwise.
const MOUNTS: [fn(&mut Facts); 4] = [
    |_| (),
    |facts| {
        facts.file_system = FileSystem::Lustre;
        facts.lock_granularity = Some(4096);
        facts.striping = Some(Striping {
            unit: 4096,
            count: 3,
        });
    },
    |facts| facts.block_size = 1 << 16,
    |facts| facts.client = Client::Library,
];

#[test]
fn rule_26a_ranks_that_see_different_facts_plan_alike() {
    const PIECE: usize = 100;
    const PIECES: usize = 3000;
    let _watchdog = watchdog();
    let directory = directory();
    for (turn, partition) in ["even", "by-server"].into_iter().enumerate() {
        let path = directory.path().join(partition);
        ranks(4, |comm| {
            let rank = comm.rank().index();
            let probe = Probe::with_facts(MOUNTS[(rank + turn) % MOUNTS.len()]);
            let hints = info(&[
                ("pario_partition", partition),
                ("romio_cb_write", "enable"),
                ("romio_cb_read", "enable"),
                ("cb_buffer_size", "16384"),
            ]);
            let file = File::open_with(&comm, probe, &path, NEW, &hints)?;
            assert_eq!(file.facts().striping, None);
            file.set_view(&every(
                4 * PIECE as i64,
                PIECE as u64,
                (rank * PIECE) as u64,
            ))?;
            let written = vec![rank as u8 + 1; PIECE * PIECES];
            file.write_all(&written[..])?;
            let mut read = vec![0; written.len()];
            file.read_at_all(0, &mut read[..])?;
            assert!(read == written, "rank {rank} reads something else");
            file.close()
        });
        let bytes = fs::read(&path).unwrap();
        assert_eq!(bytes.len(), 4 * PIECE * PIECES);
        let is_right = |(at, byte): (usize, &u8)| usize::from(*byte) == at / PIECE % 4 + 1;
        assert!(bytes.iter().enumerate().all(is_right), "{partition}");
    }
}
