//! Messages of bytes.

#![allow(unsafe_code)] // Calls the host, lends it memory.

use std::ffi::{c_int, c_void};
use std::ptr;

use super::abi::Slot;
use super::status::Status;
use super::{Host, call};
use crate::error::MpiError;
use crate::handles::{Comm, Message, Request};
use crate::host::classes::ErrorClass;

/// A message that waits to be received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probed {
    /// The sender's rank.
    pub source: usize,
    /// The message's tag.
    pub tag: c_int,
    /// The message's length in bytes.
    pub bytes: usize,
}

/// A message that was taken out of the queue; only [`Host::mrecv`] can receive it.
#[derive(Debug)]
#[must_use]
pub struct Matched {
    /// The host's handle.
    pub message: Message,
    /// What is known about it.
    pub probed: Probed,
}

/// The address of a buffer that the host writes. Empty buffers of Rust have the address 1,
/// which has a special meaning on some hosts.
pub(super) fn address_mut<T>(buffer: *mut [T]) -> *mut c_void {
    match buffer.is_empty() {
        true => ptr::null_mut(),
        false => buffer.cast(),
    }
}

/// The address of a buffer that the host reads.
pub(super) fn address<T>(buffer: *const [T]) -> *mut c_void {
    address_mut(buffer.cast_mut())
}

impl Host {
    /// Sends; returns when `data` may be changed.
    pub fn send(&self, data: &[u8], to: usize, tag: c_int, comm: Comm) -> Result<(), MpiError> {
        let (address, count) = (address(data), self.length(data.len())?);
        let byte = self.predefined().byte;
        call!(self, send(address, count, byte.0, to as c_int, tag, comm.0))
    }

    /// Starts to send.
    ///
    /// # Safety
    /// `data` must not change until the request is complete.
    pub unsafe fn isend(
        &self,
        data: *const [u8],
        to: usize,
        tag: c_int,
        comm: Comm,
    ) -> Result<Request, MpiError> {
        let (address, count) = (address(data), self.length(data.len())?);
        let (byte, mut slot) = (self.predefined().byte, self.slot());
        call!(
            self,
            isend(
                address,
                count,
                byte.0,
                to as c_int,
                tag,
                comm.0,
                slot.pointer()
            )
        )?;
        Ok(Request(slot.handle()))
    }

    /// Starts to send; completes once the receiver has begun to receive.
    ///
    /// # Safety
    /// `data` must not change until the request is complete.
    pub unsafe fn issend(
        &self,
        data: *const [u8],
        to: usize,
        tag: c_int,
        comm: Comm,
    ) -> Result<Request, MpiError> {
        let (address, count) = (address(data), self.length(data.len())?);
        let (byte, mut slot) = (self.predefined().byte, self.slot());
        call!(
            self,
            issend(
                address,
                count,
                byte.0,
                to as c_int,
                tag,
                comm.0,
                slot.pointer()
            )
        )?;
        Ok(Request(slot.handle()))
    }

    /// Receives; no source or tag means any.
    pub fn recv(
        &self,
        buffer: &mut [u8],
        from: Option<usize>,
        tag: Option<c_int>,
        comm: Comm,
    ) -> Result<Probed, MpiError> {
        let (address, count) = (address_mut(buffer), self.length(buffer.len())?);
        let (source, tag) = (self.source(from), self.tag(tag));
        let (byte, mut status) = (self.predefined().byte, Status::new());
        call!(
            self,
            recv(
                address,
                count,
                byte.0,
                source,
                tag,
                comm.0,
                status.pointer()
            )
        )?;
        self.probed(&mut status)
    }

    /// Starts to receive; no source or tag means any.
    ///
    /// # Safety
    /// Nothing else may access `buffer` until the request is complete.
    pub unsafe fn irecv(
        &self,
        buffer: *mut [u8],
        from: Option<usize>,
        tag: Option<c_int>,
        comm: Comm,
    ) -> Result<Request, MpiError> {
        let (address, count) = (address_mut(buffer), self.length(buffer.len())?);
        let (source, tag) = (self.source(from), self.tag(tag));
        let (byte, mut slot) = (self.predefined().byte, self.slot());
        call!(
            self,
            irecv(address, count, byte.0, source, tag, comm.0, slot.pointer())
        )?;
        Ok(Request(slot.handle()))
    }

    /// Whether a message waits; also makes the host progress.
    pub fn iprobe(
        &self,
        from: Option<usize>,
        tag: Option<c_int>,
        comm: Comm,
    ) -> Result<Option<Probed>, MpiError> {
        let (mut flag, mut status) = (0, Status::new());
        let (source, tag) = (self.source(from), self.tag(tag));
        call!(
            self,
            iprobe(source, tag, comm.0, &mut flag, status.pointer())
        )?;
        match flag {
            0 => Ok(None),
            _ => self.probed(&mut status).map(Some),
        }
    }

    /// Takes a message out of the queue if one waits; also makes the host progress.
    pub fn improbe(
        &self,
        from: Option<usize>,
        tag: Option<c_int>,
        comm: Comm,
    ) -> Result<Option<Matched>, MpiError> {
        let (mut flag, mut slot, mut status) = (0, self.slot(), Status::new());
        let (source, tag) = (self.source(from), self.tag(tag));
        call!(
            self,
            improbe(
                source,
                tag,
                comm.0,
                &mut flag,
                slot.pointer(),
                status.pointer()
            )
        )?;
        if flag == 0 {
            return Ok(None);
        }
        let (message, probed) = (Message(slot.handle()), self.probed(&mut status)?);
        Ok(Some(Matched { message, probed }))
    }

    /// Receives a matched message into a buffer at least as long as it.
    ///
    /// # Safety
    /// `buffer` must be memory that may be written, initialized or not.
    pub unsafe fn mrecv(&self, matched: Matched, buffer: *mut [u8]) -> Result<(), MpiError> {
        let (address, count) = (address_mut(buffer), self.length(buffer.len())?);
        let (byte, ignore) = (self.predefined().byte, self.status_ignore());
        let mut slot = Slot::new(self.flavour(), matched.message.0);
        call!(self, mrecv(address, count, byte.0, slot.pointer(), ignore))
    }

    /// Starts to receive a matched message into a buffer at least as long as it.
    ///
    /// # Safety
    /// Nothing else may access `buffer` until the request is complete.
    pub unsafe fn imrecv(&self, matched: Matched, buffer: *mut [u8]) -> Result<Request, MpiError> {
        let (address, count) = (address_mut(buffer), self.length(buffer.len())?);
        let (byte, mut request) = (self.predefined().byte, self.slot());
        let mut slot = Slot::new(self.flavour(), matched.message.0);
        call!(
            self,
            imrecv(address, count, byte.0, slot.pointer(), request.pointer())
        )?;
        Ok(Request(request.handle()))
    }

    /// A length as a C integer.
    pub(super) fn length(&self, bytes: usize) -> Result<c_int, MpiError> {
        c_int::try_from(bytes).map_err(|_| MpiError {
            function: "a message",
            code: ErrorClass::Count.number(self.flavour()),
            class: Some(ErrorClass::Count),
            text: format!(
                "{bytes} bytes do not fit one message of at most {} bytes",
                c_int::MAX
            ),
        })
    }

    fn source(&self, rank: Option<usize>) -> c_int {
        rank.map_or(self.constants().any_source, |rank| rank as c_int)
    }

    fn tag(&self, tag: Option<c_int>) -> c_int {
        tag.unwrap_or(self.constants().any_tag)
    }

    pub(super) fn probed(&self, status: &mut Status) -> Result<Probed, MpiError> {
        let (byte, mut bytes) = (self.predefined().byte, 0);
        call!(
            self,
            get_elements_x(status.pointer(), byte.0, ptr::from_mut(&mut bytes))
        )?;
        let fields = self.flavour().status();
        Ok(Probed {
            // Completed sends and empty requests have no source.
            source: usize::try_from(status.field(fields.source)).unwrap_or(usize::MAX),
            tag: status.field(fields.tag),
            bytes: usize::try_from(bytes).unwrap_or(0),
        })
    }
}
