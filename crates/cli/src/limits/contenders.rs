//! What is measured.

use super::pattern::Pattern;
use super::ring::Pace;
use super::way::Way;
use super::way::calls::Pwrite;
use super::way::copy::Copy;
use super::way::direct::Direct;
use super::way::kernel_copy::KernelCopy;
use super::way::mapped::{Mapped, Pages, Stores};
use super::way::preallocated::{Counted, Preallocated};
use super::way::reads::{Into, MappedRead, Pread};
use super::way::submitted::Submitted;
use super::way::vectored::Pwritev;

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

/// The file in large calls.
const LARGE: Pattern = Pattern::dense(8 * MIB);

/// Scattered pieces, as the hardest accesses have them.
const HOLES: Pattern = Pattern::holes(256);

/// Distance of malloc's large blocks from the start of a page.
const MALLOC_OFFSET: usize = 16;

/// Pieces that preadv takes at most (IOV_MAX).
const VECTOR_MAX: usize = 1024;

/// A way to move certain bytes, with a name.
pub(super) struct Contender {
    /// Its name, once in a kind.
    pub(super) name: &'static str,
    /// What it does.
    pub(super) kind: Kind,
    /// Which bytes it moves.
    pub(super) pattern: Pattern,
    /// How it moves them.
    pub(super) way: &'static dyn Way,
}

/// What a contender does, and with which files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Writes a fresh file, then once more where it has written.
    Write,
    /// Writes a fresh file: with an existing one it would be another contender.
    WriteFresh,
    /// Reads a file that is in the cache.
    Read,
    /// Copies memory.
    Memory,
}

/// A file before it is written or read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// It is new and empty.
    Fresh,
    /// It has its bytes, and the cache has its pages.
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

const fn contender(
    name: &'static str,
    kind: Kind,
    pattern: Pattern,
    way: &'static dyn Way,
) -> Contender {
    Contender {
        name,
        kind,
        pattern,
        way,
    }
}

const fn mapped(writers: usize, stores: Stores, pages: Pages) -> Mapped {
    Mapped {
        writers,
        stores,
        pages,
    }
}

const fn pread(readers: usize, offset: usize) -> Pread {
    let into = Into::Touched { offset };
    Pread { readers, into }
}

const ONE: Pwrite = Pwrite { writers: 1 };

const EIGHT_IN_FLIGHT: Pace = Pace {
    in_flight: 8,
    awaited: 1,
};

const BATCHES: Pace = Pace {
    in_flight: 256,
    awaited: 256,
};

/// All of them, in the order of tables. The first is what the others are compared with.
pub(super) const CONTENDERS: &[Contender] = &[
    contender("pwrite, one writer", Kind::Write, LARGE, &ONE),
    contender(
        "pwrite, two writers",
        Kind::Write,
        LARGE,
        &Pwrite { writers: 2 },
    ),
    contender(
        "pwrite, calls of 256 KiB",
        Kind::Write,
        Pattern::dense(256 * KIB),
        &ONE,
    ),
    contender(
        "pwrite, calls of 4 KiB",
        Kind::Write,
        Pattern::dense(4 * KIB),
        &ONE,
    ),
    contender(
        "pwrite, calls of 256 bytes",
        Kind::Write,
        Pattern::small(256),
        &ONE,
    ),
    contender("pwrite, holes", Kind::Write, HOLES, &ONE),
    contender(
        "pwritev, 64 parts of 4 KiB",
        Kind::Write,
        Pattern::dense(256 * KIB),
        &Pwritev { part: 4 * KIB },
    ),
    contender(
        "mapping, one writer",
        Kind::Write,
        LARGE,
        &mapped(1, Stores::Usual, Pages::Usual),
    ),
    contender(
        "mapping, two writers",
        Kind::Write,
        LARGE,
        &mapped(2, Stores::Usual, Pages::Usual),
    ),
    contender(
        "mapping, holes",
        Kind::Write,
        HOLES,
        &mapped(1, Stores::Usual, Pages::Usual),
    ),
    contender(
        "mapping, stores past the cache",
        Kind::Write,
        LARGE,
        &mapped(1, Stores::PastCache, Pages::Usual),
    ),
    contender(
        "mapping, huge pages",
        Kind::Write,
        LARGE,
        &mapped(1, Stores::Usual, Pages::Huge),
    ),
    contender(
        "kernel into mapping",
        Kind::Write,
        LARGE,
        &KernelCopy { pieces_a_call: 1 },
    ),
    contender(
        "kernel into mapping, holes",
        Kind::Write,
        HOLES,
        &KernelCopy {
            pieces_a_call: VECTOR_MAX,
        },
    ),
    contender(
        "fallocate and pwrite",
        Kind::WriteFresh,
        LARGE,
        &Preallocated {
            counted: Counted::All,
        },
    ),
    contender(
        "pwrite after fallocate",
        Kind::WriteFresh,
        LARGE,
        &Preallocated {
            counted: Counted::Writes,
        },
    ),
    contender(
        "io_uring, 8 of 1 MiB in flight",
        Kind::Write,
        Pattern::dense(MIB),
        &Submitted {
            pace: EIGHT_IN_FLIGHT,
        },
    ),
    contender(
        "io_uring, holes, batches of 256",
        Kind::Write,
        HOLES,
        &Submitted { pace: BATCHES },
    ),
    contender("pwrite, O_DIRECT", Kind::Write, LARGE, &Direct),
    contender("pread, one reader", Kind::Read, LARGE, &pread(1, 0)),
    contender("pread, two readers", Kind::Read, LARGE, &pread(2, 0)),
    contender(
        "pread, calls of 4 KiB",
        Kind::Read,
        Pattern::dense(4 * KIB),
        &pread(1, 0),
    ),
    contender(
        "pread, 16 bytes behind a page",
        Kind::Read,
        LARGE,
        &pread(1, MALLOC_OFFSET),
    ),
    contender(
        "pread, untouched memory",
        Kind::Read,
        LARGE,
        &Pread {
            readers: 1,
            into: Into::Untouched,
        },
    ),
    contender("mapping, copied", Kind::Read, LARGE, &MappedRead),
    contender("memcpy", Kind::Memory, LARGE, &Copy),
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
