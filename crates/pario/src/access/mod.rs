//! Independent access: data moved between the memory of one rank and its view.
//!
//! A [`Transfer`] selects an access method from the access pattern and runs it.
//! If memory is scattered or the file has another data representation, the data
//! passes through a staging buffer in chunks.

mod batches;
mod direct;
mod list;
mod page_aliasing;
mod resolved;
mod select;
mod sieve;
mod span;
mod staging;
mod submitted;
mod transfer;

pub(crate) use page_aliasing::is_staged;
pub use pario_hints::AccessMethod;
pub(crate) use resolved::{MemoryData, ResolvedAccess};
pub use select::Selection;
pub(crate) use select::{ReadModifyWrite, asked, is_sieved, sieve_extent};
pub(crate) use staging::Buffers;
pub(crate) use submitted::submitted;
pub(crate) use transfer::{Moved, Transfer};

use pario_driver::{Direction, Handle, Lease, Outcome};
use pario_hints::Hints;
pub(crate) use span::{FileSpan, MemorySpan, Pieces, Shared, WindowBuffer};

/// The bytes that an access locks. Staging memory is waited for before the
/// lock, never under it: in mixed order, two accesses could deadlock, each
/// holding what the other waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Locking {
    /// None: this file is not subject to read-modify-write.
    None,
    /// The range of each write, because others may read-modify-write (semantics
    /// rule 1).
    EachWrite,
    /// All bytes from the first to the last, for the whole duration of the
    /// access: atomic mode.
    Whole,
}

/// The input of an access method. `file` and `memory` have the same length.
pub(crate) struct Job<'a> {
    handle: &'a dyn Handle,
    direction: Direction,
    file: FileSpan<'a>,
    memory: MemorySpan<'a>,
    hints: &'a Hints,
    /// What shows that there is no other writer, where that can be lost.
    lease: Option<&'a dyn Lease>,
    locking: Locking,
    /// Whether a sieve rewrites only gaps that are in the page cache.
    rewrites_cached: bool,
}

/// An access method for data that is not contiguous in the file.
trait Method {
    /// Moves as much as possible. `buffer` is the window of a sieve. The outcome
    /// counts data bytes from the first one on.
    fn run(&self, job: &Job<'_>, buffer: &mut [u8]) -> Outcome;
}

fn method(method: AccessMethod) -> &'static dyn Method {
    match method {
        AccessMethod::Direct => &direct::Direct,
        AccessMethod::List => &list::List,
        AccessMethod::Sieve => &sieve::Sieve,
    }
}
