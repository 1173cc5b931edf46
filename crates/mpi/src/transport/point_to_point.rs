//! The part of an MPI that the transport needs, and nothing else.

use std::ffi::c_int;
use std::fmt::Debug;
use std::ops::Range;

use pario_transport::{Rank, Result, Segment};

use crate::Host;

/// The longest message: an `int` counts its bytes.
pub(super) const MESSAGE_BYTES_MAX: usize = 1 << 30;

/// Two private communicators between the same ranks, for control messages and
/// for data. Calls are made by one thread at a time, and only by threads that
/// [may](super::permission) call the MPI. No call waits.
pub(super) trait PointToPoint: Send + Sync + Debug {
    /// The caller's rank.
    fn rank(&self) -> Rank;

    /// The number of ranks.
    fn size(&self) -> u32;

    /// The MPI that carries the messages, if one does.
    fn host(&self) -> Option<&'static Host> {
        None
    }

    /// Starts to send a control message of at most [`MESSAGE_BYTES_MAX`] bytes.
    fn isend(&self, to: Rank, bytes: Vec<u8>) -> Result<Box<dyn Pending>>;

    /// Starts to receive the next control message that has arrived. Keeps the
    /// progress of the MPI moving.
    fn poll_receive(&self) -> Result<Option<Arriving>>;

    /// Starts to send a range of memory, at most [`MESSAGE_BYTES_MAX`] bytes, as
    /// data. Whoever asks for it has promised to leave the range alone.
    fn isend_data(&self, to: Rank, tag: c_int, data: Data) -> Result<Box<dyn Pending>>;

    /// Starts to receive data straight into a range of memory.
    fn irecv_data(&self, from: Rank, tag: c_int, data: Data) -> Result<Box<dyn Pending>>;
}

/// A range of memory, kept as long as the MPI may touch it.
#[derive(Clone, Debug)]
pub(super) struct Data {
    pub(super) memory: Segment,
    pub(super) range: Range<usize>,
}

/// A request of the MPI under way. It holds the memory that the request refers
/// to, and must not be dropped before it is over.
pub(super) trait Pending: Send + Debug {
    /// Whether it is over, so that the memory is the owner's again.
    fn is_over(&mut self) -> Result<bool>;
}

/// A control message that is being received.
#[derive(Debug)]
pub(super) struct Arriving {
    pub(super) from: Rank,
    pub(super) message: Box<dyn PendingMessage>,
}

/// The request and the memory of a control message that is being received.
pub(super) trait PendingMessage: Send + Debug {
    /// The message if it is there as a whole. Not to be called again then.
    fn try_finish(&mut self) -> Result<Option<Vec<u8>>>;
}
