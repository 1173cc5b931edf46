//! Raw messages between the ranks of a communicator: what the transport needs
//! of an MPI, and nothing else.

use std::fmt::Debug;

use pario_transport::{Rank, Result};

use crate::Host;

/// The longest message that a wire carries: an `int` counts it.
pub(super) const MESSAGE_BYTES_MAX: usize = 1 << 30;

/// A private communicator. Calls are made by one thread at a time, and only by
/// threads that [may](super::permission) call the MPI.
pub(super) trait PointToPoint: Send + Sync + Debug {
    /// The caller's rank.
    fn rank(&self) -> Rank;

    /// The number of ranks.
    fn size(&self) -> u32;

    /// The MPI that carries the messages, if one does.
    fn host(&self) -> Option<&'static Host> {
        None
    }

    /// Starts to send at most [`MESSAGE_BYTES_MAX`] bytes, which stay where
    /// they are until the departure is over.
    fn isend(&self, to: Rank, bytes: Vec<u8>) -> Result<Box<dyn PendingSend>>;

    /// The next message that has arrived, and who sent it. Messages of one
    /// sender arrive in order. Keeps the progress of the MPI moving.
    fn poll_receive(&self) -> Result<Option<(Rank, Vec<u8>)>>;
}

/// A message on its way out.
pub(super) trait PendingSend: Send + Debug {
    /// Whether it is gone, so that its memory can be.
    fn is_over(&mut self) -> Result<bool>;
}
