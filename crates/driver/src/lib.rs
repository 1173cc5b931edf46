//! File systems behind one small trait.
//!
//! A [`Driver`] opens files; a [`Handle`] is one rank's open file. Both are
//! small: contiguous and list transfers ([`Batch`]), also in the background,
//! size, preallocation, durability, range locks, and facts about the file system.
//! Collective I/O, views and datatypes are layered above; a driver never sees
//! other ranks.
//!
//! - [`Posix`]: any mounted file system, buffered or direct.
//! - [`Uring`]: the same, with lists of pieces through io_uring.
//! - [`Mapped`]: the same, with small pieces stored through a mapping of the
//!   file.
//! - [`CephFs`]: CephFS by its own library, without a mount.
//! - [`Nfs`]: NFS seen through several page caches: nothing is cached on the
//!   client.
//! - [`Memory`]: named files inside this process.
//! - [`WrappedDriver`]: a driver inside a wrapper that injects faults
//!   ([`Faults`]), slows down ([`Throttle`]) or records operations ([`Log`]).
//!
//! [`resolve`] selects the driver for a file name and explains why. A new driver
//! is a file that implements the two traits, a line in [`REGISTRY`], and a test
//! that runs the [`conformance`] suite on it.
//!
//! ```
//! use pario_driver::{Access, Batch, Create, Direction, OpenHow, resolve};
//!
//! let found = resolve("mem:matrix", None)?;
//! let how = OpenHow::new(Access::ReadWrite).create(Create::IfMissing);
//! let file = found.driver.open(&found.path, &how)?;
//! file.transfer(&Batch::write(0, b"a row of bytes")).into_result()?;
//!
//! // Two pieces in one call; the second reaches the end of the file.
//! let mut memory = [0; 20];
//! let places = [(2, 0, 3), (9, 3, 17)];
//! let list = Batch::gather(Direction::Read, &mut memory, &places);
//! assert_eq!(file.transfer(&list).into_result()?, 8);
//! assert_eq!(&memory[..8], b"rowbytes");
//! file.close()?;
//! # Ok::<(), std::io::Error>(())
//! ```

mod background;
mod batch;
mod beegfs;
mod by_server;
mod cephfs;
mod closing;
pub mod conformance;
mod control;
mod creation;
mod detect;
#[doc(hidden)]
pub mod doubles;
mod driver;
mod facts;
mod gpfs;
mod identity;
mod lease;
mod lock;
mod lustre;
mod mapped;
mod mem;
mod nfs;
mod open;
mod orangefs;
mod per_process;
mod posix;
mod resolve;
mod sharing;
mod uring;
mod vector;
mod wrap;
mod write_back;

pub use background::{THREADS_MAX, spawn};
pub use batch::{Batch, OnePiece, Piece};
pub use cephfs::CephFs;
pub use control::{FileControl, IoctlArgument};
pub use creation::{Creation, ExpectedUse, ServerCount, StripingRequest};
pub use driver::{Completion, Driver, Handle, Latency, Outcome};
pub use facts::{Background, Capabilities, Facts, FileSystem, LockReach, Writers};
pub use identity::{FileComparison, FileIdentity};
pub use lease::{Lease, Suspension};
pub use lock::{FlagState, LockMode, RangeLock, WriterFlag};
pub use mapped::{Mapped, PageCosts, page_costs, stored_pieces, time};
pub use mem::Memory;
pub use nfs::Nfs;
pub use open::{Access, Advice, AsyncMethod, Create, IoMode, OpenHow, ScatteredWrites};
pub use pario_types::{
    Client, Coherence, Component, Direction, LockProtocol, PlacedPart, Placement, Server, Storage,
    Stripes, Striping,
};
#[doc(hidden)]
pub use per_process::PerProcess;
pub use posix::{
    CallAction, Interference, Mailbox, Posix, SharedDescription, SystemCall, WriterGroup,
};
pub use resolve::{
    DriverEntry, REGISTRY, Resolved, file_system_of, known as known_driver, mount_of,
    mount_of_directory, resolve,
};
pub use sharing::{MountView, Sharing};
pub use uring::{Uring, require as require_uring};
pub use wrap::{
    Call, Event, Fault, Faults, Log, Operation, Throttle, Wrapped, WrappedDriver, Wrapper,
};
