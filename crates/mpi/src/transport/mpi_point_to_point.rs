//! Messages over private communicators of an MPI.
#![allow(unsafe_code)] // memory that is lent to the MPI until a request is over

use std::ffi::c_int;
use std::ptr::slice_from_raw_parts_mut;

use pario_transport::{Rank, Result, TransportError};

use super::point_to_point::{Arriving, Data, Pending, PendingMessage, PointToPoint};
use super::retired;
use crate::{Comm, Host, MpiError, Request};

/// The tag of all control messages: what they are about is in them.
const TAG: c_int = 0;

/// Two communicators of a host that nobody else uses.
#[derive(Debug)]
pub(super) struct MpiPointToPoint {
    host: &'static Host,
    control: Comm,
    /// None where no data is ever posted.
    data: Option<Comm>,
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
    /// Two new communicators between the ranks of another. Collective.
    ///
    /// The first is split off, not duplicated, so that it does not get copies of
    /// the program's attributes, which it may outlive.
    pub(super) fn private(host: &'static Host, comm: Comm) -> Result<MpiPointToPoint> {
        let rank = host.comm_rank(comm).map_err(host_error)?;
        let control = host.comm_split(comm, Some(0), rank as c_int);
        let control = control.map_err(host_error)?;
        let control = control.expect("a rank that gave a colour gets a part");
        let mut point_to_point = Self::over(host, control)?;
        let data = host.comm_dup(control).map_err(host_error)?;
        point_to_point.data = Some(data);
        host.comm_return_errors(data).map_err(host_error)?;
        Ok(point_to_point)
    }

    /// Takes over a communicator that nobody else uses, for control messages
    /// alone. Errors on it are returned, never fatal.
    pub(super) fn over(host: &'static Host, comm: Comm) -> Result<MpiPointToPoint> {
        let mut point_to_point = MpiPointToPoint {
            host,
            control: comm,
            data: None,
            rank: Rank(0),
            size: 0,
        };
        let ask = || {
            host.comm_return_errors(comm)?;
            Ok((host.comm_rank(comm)?, host.comm_size(comm)?))
        };
        let (rank, size) = ask().map_err(host_error)?;
        point_to_point.rank = Rank(rank as u32);
        point_to_point.size = size as u32;
        Ok(point_to_point)
    }

    /// The communicator of control messages.
    pub(super) fn comm(&self) -> Comm {
        self.control
    }

    fn data_comm(&self) -> Comm {
        let data = self.data;
        data.expect("data is posted only on communicators made for it")
    }
}

impl Drop for MpiPointToPoint {
    fn drop(&mut self) {
        self.data.into_iter().for_each(retired::comm);
        retired::comm(self.control);
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

    fn isend(&self, to: Rank, bytes: Vec<u8>) -> Result<Box<dyn Pending>> {
        let address = &raw const *bytes.as_slice();
        // SAFETY: the bytes are on the heap and belong to the request, which is
        // kept until it is over.
        let request = unsafe { self.host.isend(address, to.index(), TAG, self.control) };
        Ok(Box::new(MpiPending {
            host: self.host,
            request: request.map_err(host_error)?,
            _memory: bytes,
        }))
    }

    fn poll_receive(&self) -> Result<Option<Arriving>> {
        let matched = self.host.improbe(None, Some(TAG), self.control);
        let Some(matched) = matched.map_err(host_error)? else {
            return Ok(None);
        };
        let from = Rank(matched.probed.source as u32);
        let bytes = matched.probed.bytes;
        let mut message = Vec::new();
        let too_large = |_| TransportError::TooLarge {
            bytes: bytes as u64,
        };
        message.try_reserve_exact(bytes).map_err(too_large)?;
        let address = slice_from_raw_parts_mut(message.as_mut_ptr(), bytes);
        // SAFETY: the memory is reserved, on the heap, and belongs to the
        // request, which is kept until it is over.
        let request = unsafe { self.host.imrecv(matched, address) };
        let message = MpiPendingMessage {
            host: self.host,
            request: request.map_err(host_error)?,
            message,
            bytes,
        };
        Ok(Some(Arriving {
            from,
            message: Box::new(message),
        }))
    }

    fn isend_data(&self, to: Rank, tag: c_int, data: Data) -> Result<Box<dyn Pending>> {
        let address = data.address().cast_const();
        // SAFETY: the memory belongs to the request, which is kept until it is
        // over; nobody writes to the range, by the contract of `post_send`.
        let request = unsafe { self.host.isend(address, to.index(), tag, self.data_comm()) };
        self.pending_data(request, data)
    }

    fn irecv_data(&self, from: Rank, tag: c_int, data: Data) -> Result<Box<dyn Pending>> {
        let (source, tag) = (Some(from.index()), Some(tag));
        let address = data.address();
        // SAFETY: the memory belongs to the request, which is kept until it is
        // over; nobody touches the range, by the contract of `post_receive`.
        let request = unsafe { self.host.irecv(address, source, tag, self.data_comm()) };
        self.pending_data(request, data)
    }
}

impl MpiPointToPoint {
    fn pending_data(
        &self,
        request: std::result::Result<Request, MpiError>,
        data: Data,
    ) -> Result<Box<dyn Pending>> {
        Ok(Box::new(MpiPending {
            host: self.host,
            request: request.map_err(host_error)?,
            _memory: data,
        }))
    }
}

impl Data {
    fn address(&self) -> *mut [u8] {
        assert!(
            self.range.start <= self.range.end && self.range.end <= self.memory.bytes(),
            "{:?} is not within a segment of {} bytes",
            self.range,
            self.memory.bytes()
        );
        // SAFETY: the range is within the segment.
        let start = unsafe { self.memory.as_ptr().add(self.range.start) };
        slice_from_raw_parts_mut(start, self.range.len())
    }
}

/// A request, and the memory that it refers to.
#[derive(Debug)]
struct MpiPending<M> {
    host: &'static Host,
    request: Request,
    _memory: M,
}

impl<M: Send + std::fmt::Debug> Pending for MpiPending<M> {
    fn is_over(&mut self) -> Result<bool> {
        self.host.is_complete(&mut self.request).map_err(host_error)
    }
}

#[derive(Debug)]
struct MpiPendingMessage {
    host: &'static Host,
    request: Request,
    /// Has memory for the bytes, and none of them until the request is over.
    message: Vec<u8>,
    bytes: usize,
}

impl PendingMessage for MpiPendingMessage {
    fn try_finish(&mut self) -> Result<Option<Vec<u8>>> {
        let is_over = self.host.is_complete(&mut self.request);
        if !is_over.map_err(host_error)? {
            return Ok(None);
        }
        let mut message = std::mem::take(&mut self.message);
        // SAFETY: the probe returned the length, so all of the reserved bytes
        // are written when the receive is over.
        unsafe { message.set_len(self.bytes) };
        Ok(Some(message))
    }
}
