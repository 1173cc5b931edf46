//! The contenders.

use super::method::Method;
use super::method::calls::{Counted, direct, preallocated, pwrite, vectored};
use super::method::kernel_copy::scatter;
use super::method::mapped::{huge_page_stores, non_temporal_stores, stores};
use super::method::reads::{mapped, memcpy, pread, pread_untouched};
use super::method::ring::{Pace, submit};
use super::pattern::Pattern;

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

/// The whole file in large calls.
const LARGE: Pattern = Pattern::dense(8 * MIB);

/// Scattered pieces, as in the hardest access patterns.
const HOLES: Pattern = Pattern::holes(256);

/// Offset of malloc's large blocks from the start of a page.
const MALLOC_OFFSET: usize = 16;

/// Pieces that preadv takes at most (IOV_MAX).
const VECTOR_MAX: usize = 1024;

/// A named method with an access pattern.
pub(super) struct Contender {
    /// Unique within its kind.
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) pattern: Pattern,
    pub(super) method: Method,
}

/// What a contender does, and on which files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Writes a new file, then overwrites it.
    Write,
    /// Writes a new file only.
    WriteFresh,
    /// Reads a file that is in the cache.
    Read,
    Memory,
}

/// A file before it is written or read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// It is new and empty.
    Fresh,
    /// It has been written, and its pages are in the cache.
    Existing,
}

impl Kind {
    /// Its name in results.
    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::Write | Kind::WriteFresh => "write",
            Kind::Read => "read",
            Kind::Memory => "memory",
        }
    }

    /// The files it is measured with, in order.
    pub(super) fn states(self) -> &'static [State] {
        match self {
            Kind::Write => &[State::Fresh, State::Existing],
            Kind::WriteFresh => &[State::Fresh],
            Kind::Read | Kind::Memory => &[State::Existing],
        }
    }
}

const fn contender(name: &'static str, kind: Kind, pattern: Pattern, method: Method) -> Contender {
    Contender {
        name,
        kind,
        pattern,
        method,
    }
}

const fn write(name: &'static str, pattern: Pattern, method: Method) -> Contender {
    contender(name, Kind::Write, pattern, method)
}

const fn read(name: &'static str, pattern: Pattern, method: Method) -> Contender {
    contender(name, Kind::Read, pattern, method)
}

const EIGHT_IN_FLIGHT: Pace = Pace {
    in_flight: 8,
    awaited: 1,
};

const BATCHES: Pace = Pace {
    in_flight: 256,
    awaited: 256,
};

const DENSE_4K: Pattern = Pattern::dense(4 * KIB);
const DENSE_256K: Pattern = Pattern::dense(256 * KIB);

/// All contenders, in the order of tables. The others are compared with the first.
pub(super) const CONTENDERS: &[Contender] = &[
    write("pwrite, one writer", LARGE, |stage| pwrite(stage, 1)),
    write("pwrite, two writers", LARGE, |stage| pwrite(stage, 2)),
    write("pwrite, calls of 256 KiB", DENSE_256K, |it| pwrite(it, 1)),
    write("pwrite, calls of 4 KiB", DENSE_4K, |stage| pwrite(stage, 1)),
    write("pwrite, calls of 256 bytes", Pattern::small(256), |stage| {
        pwrite(stage, 1)
    }),
    write("pwrite, holes", HOLES, |stage| pwrite(stage, 1)),
    write("pwritev, 64 parts of 4 KiB", DENSE_256K, |stage| {
        vectored(stage, 4 * KIB)
    }),
    write("mapping, one writer", LARGE, |stage| stores(stage, 1)),
    write("mapping, two writers", LARGE, |stage| stores(stage, 2)),
    write("mapping, holes", HOLES, |stage| stores(stage, 1)),
    write("mapping, non-temporal stores", LARGE, non_temporal_stores),
    write("mapping, huge pages", LARGE, huge_page_stores),
    write("kernel into mapping", LARGE, |stage| scatter(stage, 1)),
    write("kernel into mapping, holes", HOLES, |stage| {
        scatter(stage, VECTOR_MAX)
    }),
    contender("fallocate and pwrite", Kind::WriteFresh, LARGE, |stage| {
        preallocated(stage, Counted::Both)
    }),
    contender("pwrite after fallocate", Kind::WriteFresh, LARGE, |it| {
        preallocated(it, Counted::Writes)
    }),
    write(
        "io_uring, 8 of 1 MiB in flight",
        Pattern::dense(MIB),
        |stage| submit(stage, EIGHT_IN_FLIGHT),
    ),
    write("io_uring, holes, batches of 256", HOLES, |stage| {
        submit(stage, BATCHES)
    }),
    write("pwrite, O_DIRECT", LARGE, direct),
    read("pread, one reader", LARGE, |stage| pread(stage, 1, 0)),
    read("pread, two readers", LARGE, |stage| pread(stage, 2, 0)),
    read("pread, calls of 4 KiB", DENSE_4K, |it| pread(it, 1, 0)),
    read("pread, 16 bytes after a page", LARGE, |stage| {
        pread(stage, 1, MALLOC_OFFSET)
    }),
    read("pread, untouched memory", LARGE, pread_untouched),
    read("mapping, copied", LARGE, mapped),
    contender("memcpy", Kind::Memory, LARGE, memcpy),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_the_first_is_one_writer() {
        let mut names: Vec<_> = CONTENDERS
            .iter()
            .map(|it| (it.kind.name(), it.name))
            .collect();
        assert_eq!(names[0], ("write", "pwrite, one writer"));
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), CONTENDERS.len());
    }
}
