//! Moving data between memory and a view of the file, for one rank.
//!
//! A [`Transfer`] is the whole of it: it looks at the pattern, chooses a way
//! and runs it, in chunks through a staging buffer where memory is scattered
//! or data is stored in another representation.

mod batches;
mod direct;
mod list;
mod page_aliasing;
mod resolved;
mod select;
mod sieve;
mod span;
mod staging;
mod transfer;

pub use pario_hints::AccessMethod;
pub(crate) use resolved::{MemoryData, ResolvedAccess};
pub(crate) use select::ReadModifyWrite;
pub use select::Selection;
pub(crate) use staging::Buffers;
pub(crate) use transfer::{Moved, Transfer};

use pario_driver::{Direction, Handle, Outcome};
use pario_hints::Hints;
pub(crate) use span::{FileSpan, MemorySpan, Pieces, Shared, WindowBuffer};

/// What an access locks. Staging memory is always taken first: an access that
/// waited for memory with a lock in hand, and one that waited for a lock with
/// memory in hand, would wait for each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Locking {
    /// Nothing: no one read-modify-writes this file.
    None,
    /// The range of each write: someone may read-modify-write (semantics
    /// rule 1).
    EachWrite,
    /// All bytes from the first to the last, from its start to its end:
    /// atomic mode.
    Whole,
}

/// What a way is given: both sides, of the same length, and its means.
pub(crate) struct Job<'a> {
    handle: &'a dyn Handle,
    direction: Direction,
    file: FileSpan<'a>,
    memory: MemorySpan<'a>,
    hints: &'a Hints,
    locking: Locking,
}

/// A way to move data that is not contiguous in the file.
trait Method {
    /// Moves all it can, with the help of a buffer of the size it asked for;
    /// the outcome counts data bytes from the first on.
    fn run(&self, job: &Job<'_>, buffer: &mut [u8]) -> Outcome;
}

fn method(method: AccessMethod) -> &'static dyn Method {
    match method {
        AccessMethod::Direct => &direct::Direct,
        AccessMethod::List => &list::List,
        AccessMethod::Sieve => &sieve::Sieve,
    }
}
