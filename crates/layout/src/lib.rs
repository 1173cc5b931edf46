//! MPI datatypes as compact byte layouts.
//!
//! A [`Datatype`] is the tree of MPI constructors that made it. It is flattened once, when it is
//! built, into a [`Layout`]: the normalised answer to "where is the k-th data byte". Layouts of
//! regular types take a few hundred bytes regardless of their count, and answer both look-ups
//! (data byte to offset, offset to data byte) in time proportional to the nesting depth and the
//! logarithm of the number of irregular blocks.
//!
//! ```
//! use pario_layout::{Basic, Datatype};
//!
//! # fn main() -> Result<(), pario_layout::TypeError> {
//! // Every second double of a very long array.
//! let column = Datatype::vector(1_000_000_000, 1, 2, &Basic::Double.into())?;
//! assert_eq!(column.size(), 8_000_000_000);
//! assert_eq!(column.layout().offset_of(8 * 500_000_000), Some(16 * 500_000_000));
//! let first = column.layout().runs(0..24).next();
//! assert_eq!(first.map(|run| (run.len, run.stride, run.count)), Some((8, 16, 3)));
//! # Ok(())
//! # }
//! ```
//!
//! The modules follow the life of a type: `basic` and `datatype` are what a program builds,
//! `signature` is the sequence of basic types, `shape` and `layout` describe the bytes, `runs`
//! and `copy` walk them, `wire` serialises them.

mod basic;
mod copy;
mod datatype;
mod element;
mod error;
mod kernels;
mod layout;
mod runs;
mod shape;
mod signature;
mod sorted;
mod transfer;
mod varint;
mod wire;

pub use basic::Basic;
pub use copy::CopyError;
pub use datatype::{Contents, Darray, Datatype, Distribution, Order, Pair};
pub use element::Element;
pub use error::{TypeError, TypeErrorKind, WireError};
pub use layout::{Layout, Monotonicity, Overlap, PieceStats};
pub use runs::{Run, Runs};
pub use signature::{Signature, SignatureRuns};
pub use sorted::Piece;

/// Maximum nesting depth of constructors. Deeper types are rejected so that walking a type
/// cannot exhaust the stack.
pub const MAX_DEPTH: u16 = 512;
