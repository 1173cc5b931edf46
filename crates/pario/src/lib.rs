//! Parallel file I/O: an MPI-IO implementation as a Rust library.
//!
//! The ranks of a communicator [open](File::open) a [`File`] together. Each sets a [`View`] of the
//! bytes that it wants to see, and reads and writes through it, on its own or together with the
//! others.
//!
//! ```
//! use pario::{Datatype, File, Info, Mode, View, threads};
//!
//! # let path = std::env::temp_dir().join(format!("pario-doc-{}", std::process::id()));
//! // Four ranks write the columns of a table; the file holds its rows.
//! threads::run(4, |comm| {
//!     let mode = Mode::CREATE | Mode::READ_WRITE | Mode::DELETE_ON_CLOSE;
//!     let file = File::open(&comm, &path, mode, &Info::new())?;
//!
//!     let number = Datatype::of::<f64>();
//!     let column = Datatype::resized(&number, 0, 4 * 8)?;
//!     let rank = u64::from(comm.rank());
//!     file.set_view(&View::new(8 * rank, &number, &column))?;
//!     file.write_at_all(0, &[rank as f64; 1000])?;
//!     file.sync()?;
//!
//!     file.set_view(&View::new(0, &number, &number))?;
//!     let mut row = [0.0; 4];
//!     file.read_at(4 * 7, &mut row)?;
//!     assert_eq!(row, [0.0, 1.0, 2.0, 3.0]);
//!     file.close()
//! })?;
//! # Ok::<(), pario::Error>(())
//! ```
//!
//! # Collective calls
//!
//! Calls that are marked *collective* must be made by all ranks that opened the file, in the same
//! order. What each rank reads or writes may differ, and may be nothing. In return, pario sees the
//! accesses of all ranks at once and can turn many small pieces into few large transfers: with
//! [`File::write_at_all`] the columns above reach the file as whole rows, with [`File::write_at`]
//! each number is a transfer of its own.
//!
//! If a collective call fails on one rank, it fails on all of them, with the same [`ErrorKind`].
//! Ranks that make different calls, say `write_all` and `close`, get an error that names both. All
//! other calls concern only the rank that makes them; no other rank has to take part.
//!
//! # Ranks
//!
//! Ranks are threads of this process ([`threads`]), processes forked from it ([`processes`]), or
//! those of an MPI (the crate `pario-mpi`). All of them are a [`Comm`].
//!
//! # Relation to MPI
//!
//! Names, semantics and error classes are those of chapter *I/O* of the MPI standard, without
//! `MPI_File_`. No MPI is needed to build or use the library.
//!
//! | MPI | here |
//! |---|---|
//! | `MPI_Comm`, `MPI_Info`, `MPI_Datatype`, `MPI_Status` | [`Comm`], [`Info`], [`Datatype`], [`Status`] |
//! | `MPI_File_open`, `MPI_File_close`, `MPI_File_delete` | [`File::open`], [`File::close`], [`File::delete`] |
//! | `MPI_MODE_CREATE \| MPI_MODE_RDWR` | [`Mode::CREATE`]` \| `[`Mode::READ_WRITE`] |
//! | `MPI_File_set_view` | [`File::set_view`] with a [`View`] |
//! | `MPI_File_write_at`, `_write_at_all`, `_iwrite_at`, … | [`File::write_at`], [`File::write_at_all`], [`File::iwrite_at`], … |
//! | `MPI_File_write_all_begin`, `MPI_File_write_all_end` | [`File::write_all_begin`], [`Split::end`] |
//! | a buffer, a count and a datatype | a slice, or [`Source::typed`] and [`Target::typed`] |
//! | `MPI_Request` | [`Request`], which owns its buffer, or a [`scope`], in which requests borrow |
//! | `MPI_File_set_atomicity`, `MPI_File_sync` | [`File::set_atomicity`], [`File::sync`] |
//! | an error class | [`ErrorKind`] |
//!
//! C and Fortran programs use the same code through `libpario.so`, which replaces the file
//! functions of their MPI.

mod access;
mod agree;
mod buffer;
mod collective;
mod collective_call;
mod comm;
mod condition;
mod error;
mod file;
mod job;
mod machine;
mod mode;
mod one_piece;
mod operation;
pub mod processes;
mod request;
mod shared_pointer;
mod status;
pub mod threads;
mod unreported;
mod view;
mod warning;
mod writer_lock;

pub use access::{AccessMethod, Selection};
pub use buffer::{Owned, Source, Target};
pub use collective::Overlap;
pub use comm::Comm;
pub use error::{Error, ErrorKind, Result};
pub use file::{Atomicity, File, Seek, Split};
pub use mode::Mode;
pub use request::{Request, Scope, ScopedRequest, scope};
pub use status::Status;
pub use view::{Displacement, View};
pub use warning::set_warning_handler;

/// Data representations of the program's own, by name.
pub mod datarep {
    pub use pario_datarep::{
        Conversion, DatarepError, Transfer, UserError, UserRepresentation, register,
    };
}

/// Where the bytes of a file are stored: see [`File::placement`].
pub mod placement {
    pub use pario_driver::{Component, PlacedPart, Placement, Server, Storage, Stripes, Striping};
}

pub use pario_hints::{Info, InfoError};
pub use pario_layout::{
    Basic, Darray, Datatype, Distribution, Element, Layout, Order, TypeError, TypeErrorKind,
};

/// Shared by the crates of this workspace. It is not part of the library's interface and changes
/// without notice.
#[doc(hidden)]
pub mod internal {
    pub use crate::{
        collective::{
            exchange::limits::{EAGER_BYTES, limits},
            plan_facts, rewriting,
        },
        job::{Environment, Job, Process},
        machine::{AliasedCopies, MachineProfile, stages_aliases},
        unreported::Unreported,
        warning::{is_first_of_job, print_line, warn, warn_of},
    };
}
