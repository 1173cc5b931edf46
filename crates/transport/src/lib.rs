//! Communication between ranks.
//!
//! A [`Transport`] gives a rank its identity and placement, messages of bytes,
//! the few collectives that parallel I/O needs, and memory shared on a node.
//! There are two here, neither of which needs MPI:
//!
//! - [`threads`]: ranks are threads of one process;
//! - [`processes`]: ranks are forked processes of one machine.
//!
//! Both run on the same lock-free structures in shared memory, made of plain
//! data addressed by offsets, so that a rank can be killed at any moment
//! without leaving the others stuck. [`conformance`] is the suite that every
//! transport passes.
//!
//! ```
//! use pario_transport::threads;
//!
//! let sums = threads::run(4, |transport| {
//!     let mine = [transport.rank().0 as u8];
//!     let all = transport.all_gather(&mine).expect("all ranks take part");
//!     all.iter().map(|bytes| u32::from(bytes[0])).sum::<u32>()
//! });
//! assert!(sums.into_iter().all(|sum| sum == Ok(6)));
//! ```

mod collectives;
pub mod conformance;
mod error;
mod fabric;
mod gathered;
mod memory;
mod memory_runs;
pub mod node;
mod number_hash;
mod posted;
mod posted_by_messages;
pub mod processes;
mod rank;
mod sharing;
pub mod threads;
mod transport;
pub mod unexpected;

pub use error::{Loss, Result, TransportError};
pub use fabric::{ProgressHook, shared_bytes};
pub use gathered::Gathered;
pub use memory::{Backoff, BackoffState, Event, Segment, Waiter, look_time, request_looks};
pub use memory_runs::MemoryRuns;
pub use number_hash::{BuildNumberHasher, NumberHasher};
pub use pario_types::Process;
pub use posted::{DataTag, Posted, Sent, Traffic};
pub use rank::{Node, Rank, Tag};
pub use sharing::{OFFER_BYTES, OfferedSegment, attach_offered, available_memory};
pub use transport::{SEND_HEADROOM, Transport};

/// Collectives and segments made by means of messages, for transports that have
/// none of their own: the provided methods of [`Transport`] are these.
pub mod generic {
    pub use crate::collectives::{all_gather, barrier, broadcast};
    pub use crate::posted_by_messages::PostedByMessages;
    pub use crate::sharing::segment;
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
