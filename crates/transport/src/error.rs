//! What can go wrong between ranks.

use std::fmt;
use std::time::Duration;

use crate::Rank;

/// The result of a transport operation.
pub type Result<T> = std::result::Result<T, TransportError>;

/// Why a rank cannot answer any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Loss {
    /// It left the world in good order, but someone still waits for it.
    Returned,
    /// It panicked.
    Panicked,
    /// Its process was ended by this signal.
    Killed {
        /// The number of the signal.
        signal: i32,
    },
    /// Its process exited without leaving the world.
    Exited {
        /// The exit status.
        status: i32,
    },
    /// Its thread or process could not be started.
    NotStarted,
    /// Its process has ended, in a way that only its parent knows.
    Ended,
}

impl Loss {
    /// The bits of a code that hold the signal or the exit status.
    const DETAIL_BITS: u32 = 16;

    /// A number other than zero that stands for the loss in shared memory and
    /// in messages.
    #[must_use]
    pub fn code(self) -> u32 {
        let (kind, detail) = match self {
            Loss::Returned => (1, 0),
            Loss::Panicked => (2, 0),
            Loss::Killed { signal } => (3, signal),
            Loss::Exited { status } => (4, status),
            Loss::NotStarted => (5, 0),
            Loss::Ended => (6, 0),
        };
        let detail = detail as u32 & ((1 << Self::DETAIL_BITS) - 1);
        (kind << Self::DETAIL_BITS) | detail
    }

    /// The loss that a number stands for.
    #[must_use]
    pub fn from_code(code: u32) -> Option<Self> {
        let detail = (code & ((1 << Self::DETAIL_BITS) - 1)) as i32;
        match code >> Self::DETAIL_BITS {
            1 => Some(Loss::Returned),
            2 => Some(Loss::Panicked),
            3 => Some(Loss::Killed { signal: detail }),
            4 => Some(Loss::Exited { status: detail }),
            5 => Some(Loss::NotStarted),
            6 => Some(Loss::Ended),
            _ => None,
        }
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Loss::Returned => f.write_str("it has returned"),
            Loss::Panicked => f.write_str("it panicked"),
            Loss::Killed { signal } => write!(f, "signal {signal} ended its process"),
            Loss::Exited { status } => write!(f, "its process exited with status {status}"),
            Loss::NotStarted => f.write_str("it could not be started"),
            Loss::Ended => f.write_str("its process has ended"),
        }
    }
}

/// An error of a transport.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TransportError {
    /// A rank that is needed for the operation is gone. When a rank panicked or
    /// was killed, every wait in its world ends with this error and names it.
    PeerLost {
        /// The rank that is gone.
        rank: Rank,
        /// What became of it.
        reason: Loss,
    },
    /// A bounded wait came to its bound.
    Timeout {
        /// How long the rank waited.
        after: Duration,
    },
    /// A rank that does not exist was named.
    BadRank {
        /// The rank that was named.
        rank: Rank,
        /// The number of ranks there are.
        size: u32,
    },
    /// There is no memory for a message.
    TooLarge {
        /// The length of the message.
        bytes: u64,
    },
    /// Ranks gave different values where all must give the same.
    Mismatch {
        /// What differs.
        what: &'static str,
        /// The value of this rank.
        mine: u64,
        /// The value of another rank.
        other: u64,
    },
    /// A message of a collective does not have the expected form: ranks called
    /// different collectives, or used a reserved tag.
    Malformed {
        /// The rank that sent it.
        rank: Rank,
        /// The collective in which it arrived.
        operation: &'static str,
    },
    /// The MPI that carries the messages refused to.
    Host {
        /// Its message.
        message: String,
    },
}

impl fmt::Display for TransportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PeerLost { rank, reason } => write!(f, "rank {rank} is lost: {reason}"),
            Self::Timeout { after } => write!(f, "nothing arrived within {after:?}"),
            Self::BadRank { rank, size: 0 } => {
                write!(f, "rank {rank} does not exist: there are no ranks")
            }
            Self::BadRank { rank, size } => write!(
                f,
                "rank {rank} does not exist: ranks go from 0 to {}",
                size - 1
            ),
            Self::TooLarge { bytes } => {
                write!(f, "there is no memory for a message of {bytes} bytes")
            }
            Self::Mismatch { what, mine, other } => write!(
                f,
                "{what} must be the same on all ranks, but is {mine} here and {other} elsewhere"
            ),
            Self::Malformed { rank, operation } => write!(
                f,
                "rank {rank} sent a message that is not part of {operation}: \
                 all ranks must call the same collectives in the same order"
            ),
            Self::Host { message } => write!(f, "the MPI reported an error: {message}"),
        }
    }
}

impl std::error::Error for TransportError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_have_codes() {
        let losses = [
            Loss::Returned,
            Loss::Panicked,
            Loss::Killed { signal: 9 },
            Loss::Exited { status: 255 },
            Loss::NotStarted,
        ];
        for loss in losses {
            assert_ne!(loss.code(), 0);
            assert_eq!(Loss::from_code(loss.code()), Some(loss));
        }
        assert_eq!(Loss::from_code(0), None);
        assert_eq!(Loss::from_code(u32::MAX), None);
    }

    #[test]
    fn errors_are_sentences() {
        let rank = Rank(3);
        let reason = Loss::Killed { signal: 9 };
        let cases = [
            (
                TransportError::PeerLost { rank, reason },
                "rank 3 is lost: signal 9 ended its process",
            ),
            (
                TransportError::BadRank { rank, size: 2 },
                "rank 3 does not exist: ranks go from 0 to 1",
            ),
            (
                TransportError::TooLarge { bytes: 7 },
                "there is no memory for a message of 7 bytes",
            ),
        ];
        for (error, text) in cases {
            assert_eq!(error.to_string(), text);
        }
    }
}
