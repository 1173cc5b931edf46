//! Messages over a private duplicate of a communicator.
#![allow(unsafe_code)] // a message being sent stays where it is

use std::ffi::c_int;

use pario_transport::{Rank, Result, TransportError};

use super::point_to_point::{PendingSend, PointToPoint};
use super::retired;
use crate::{Comm, Host, MpiError, Request};

/// All messages have this tag: what they are about stands in them.
const TAG: c_int = 0;

/// The wire over a host's communicator.
#[derive(Debug)]
pub(super) struct MpiPointToPoint {
    host: &'static Host,
    comm: Comm,
    rank: Rank,
    size: u32,
}

/// An error of the host as one of the transport.
pub(super) fn host_error(error: MpiError) -> TransportError {
    TransportError::Host {
        message: error.to_string(),
    }
}

impl MpiPointToPoint {
    /// A communicator of its own between the ranks of another: split off, not
    /// duplicated, so that it does not get copies of the program's attributes,
    /// which it may outlive. Collective.
    pub(super) fn private(host: &'static Host, comm: Comm) -> Result<MpiPointToPoint> {
        let rank = host.comm_rank(comm).map_err(host_error)?;
        let private = host.comm_split(comm, Some(0), rank as c_int);
        let private = private.map_err(host_error)?;
        Self::over(
            host,
            private.expect("a rank that gave a colour gets a part"),
        )
    }

    /// Takes over a communicator that nobody else uses. Errors on it are
    /// returned, never fatal.
    pub(super) fn over(host: &'static Host, comm: Comm) -> Result<MpiPointToPoint> {
        let (mut point_to_point, ready) = (
            MpiPointToPoint {
                host,
                comm,
                rank: Rank(0),
                size: 0,
            },
            || {
                host.comm_return_errors(comm)?;
                Ok((host.comm_rank(comm)?, host.comm_size(comm)?))
            },
        );
        let (rank, size) = ready().map_err(host_error)?;
        point_to_point.rank = Rank(rank as u32);
        point_to_point.size = size as u32;
        Ok(point_to_point)
    }
}

impl MpiPointToPoint {
    pub(super) fn comm(&self) -> Comm {
        self.comm
    }
}

impl Drop for MpiPointToPoint {
    fn drop(&mut self) {
        retired::comm(self.comm);
    }
}

impl PointToPoint for MpiPointToPoint {
    fn rank(&self) -> Rank {
        self.rank
    }

    fn size(&self) -> u32 {
        self.size
    }

    fn host(&self) -> Option<&'static Host> {
        Some(self.host)
    }

    fn isend(&self, to: Rank, bytes: Vec<u8>) -> Result<Box<dyn PendingSend>> {
        // SAFETY: the bytes are on the heap and belong to the departure, which
        // is kept until it is over.
        let request = unsafe {
            self.host
                .isend(&raw const *bytes.as_slice(), to.index(), TAG, self.comm)
        };
        Ok(Box::new(MpiPendingSend {
            host: self.host,
            request: request.map_err(host_error)?,
            _bytes: bytes,
        }))
    }

    fn poll_receive(&self) -> Result<Option<(Rank, Vec<u8>)>> {
        let matched = self.host.improbe(None, Some(TAG), self.comm);
        let Some(matched) = matched.map_err(host_error)? else {
            return Ok(None);
        };
        let from = Rank(matched.probed.source as u32);
        let length = matched.probed.bytes;
        let mut message = Vec::new();
        let too_large = |_| TransportError::TooLarge {
            bytes: length as u64,
        };
        message.try_reserve_exact(length).map_err(too_large)?;
        let room = std::ptr::slice_from_raw_parts_mut(message.as_mut_ptr(), length);
        // SAFETY: the room is reserved, and the message has told its length: when it is received,
        // all of the room is written.
        unsafe {
            self.host.mrecv(matched, room).map_err(host_error)?;
            message.set_len(length);
        }
        Ok(Some((from, message)))
    }
}

#[derive(Debug)]
struct MpiPendingSend {
    host: &'static Host,
    request: Request,
    /// What is being sent.
    _bytes: Vec<u8>,
}

impl PendingSend for MpiPendingSend {
    fn is_over(&mut self) -> Result<bool> {
        self.host.is_complete(&mut self.request).map_err(host_error)
    }
}
