//! Collective calls on bytes and 64-bit numbers.

#![allow(unsafe_code)] // Calls the host.

use std::ffi::c_int;

use super::abi::Slots;
use super::message::{address, address_mut};
use super::{Host, call};
use crate::error::MpiError;
use crate::handles::{Comm, Datatype, Op, Request};

/// An `MPI_Ialltoallw` under way, with the arrays that it uses until it is complete.
#[derive(Debug)]
pub struct AllToAll {
    /// Its request.
    pub request: Request,
    _sides: [Side; 2],
}

/// The counts, displacements and datatypes of all ranks.
#[derive(Debug)]
struct Side {
    counts: Vec<c_int>,
    places: Vec<c_int>,
    types: Slots,
}

impl Host {
    /// `MPI_Barrier`.
    pub fn barrier(&self, comm: Comm) -> Result<(), MpiError> {
        call!(self, barrier(comm.0))
    }

    /// Gives every rank the root's bytes; all pass the same length.
    pub fn bcast(&self, data: &mut [u8], root: usize, comm: Comm) -> Result<(), MpiError> {
        let (address, count) = (address_mut(data), self.length(data.len())?);
        let byte = self.predefined().byte;
        call!(self, bcast(address, count, byte.0, root as c_int, comm.0))
    }

    /// The bytes of all ranks, in rank order; all pass the same length.
    pub fn allgather(&self, data: &[u8], comm: Comm) -> Result<Vec<u8>, MpiError> {
        let mut all = vec![0_u8; data.len() * self.comm_size(comm)?];
        let (given, count) = (address(data), self.length(data.len())?);
        let (byte, taken) = (self.predefined().byte.0, address_mut(&raw mut all[..]));
        call!(
            self,
            allgather(given, count, byte, taken, count, byte, comm.0)
        )?;
        Ok(all)
    }

    /// The bytes of all ranks; lengths may differ.
    pub fn allgatherv(&self, data: &[u8], comm: Comm) -> Result<Vec<Vec<u8>>, MpiError> {
        let lengths = self.allgather(&(data.len() as u64).to_ne_bytes(), comm)?;
        let lengths = lengths.chunks_exact(size_of::<u64>()).map(|bytes| {
            let bytes = bytes.try_into().expect("chunks have the size of a number");
            u64::from_ne_bytes(bytes) as usize
        });
        let mut total = 0;
        let (mut counts, mut places) = (Vec::new(), Vec::new());
        for length in lengths {
            counts.push(self.length(length)?);
            places.push(self.length(total)?);
            total += length;
        }
        let mut all = vec![0_u8; total];
        let (given, count) = (address(data), self.length(data.len())?);
        let (byte, taken) = (self.predefined().byte.0, address_mut(&raw mut all[..]));
        let (counts_in_c, places_in_c) = (counts.as_mut_ptr(), places.as_mut_ptr());
        call!(
            self,
            allgatherv(
                given,
                count,
                byte,
                taken,
                counts_in_c,
                places_in_c,
                byte,
                comm.0
            )
        )?;
        let part =
            |(&count, &place): (&c_int, &c_int)| all[place as usize..][..count as usize].to_vec();
        Ok(counts.iter().zip(&places).map(part).collect())
    }

    /// Starts `MPI_Ialltoallw`: one element of a datatype to and from each rank, none
    /// where there is none. The datatypes hold addresses.
    ///
    /// # Safety
    /// The memory that the datatypes describe may be read, or written, until the
    /// request is complete, and what is returned lives until then.
    pub unsafe fn ialltoallw(
        &self,
        send: &[Option<Datatype>],
        receive: &[Option<Datatype>],
        comm: Comm,
    ) -> Result<AllToAll, MpiError> {
        let (mut send, mut receive) = (self.side(send), self.side(receive));
        // The bottom of memory, from which addresses count, is null in all ABIs.
        let bottom = std::ptr::null_mut();
        let mut slot = self.slot();
        call!(
            self,
            ialltoallw(
                bottom,
                send.counts.as_mut_ptr(),
                send.places.as_mut_ptr(),
                send.types.pointer(),
                bottom,
                receive.counts.as_mut_ptr(),
                receive.places.as_mut_ptr(),
                receive.types.pointer(),
                comm.0,
                slot.pointer()
            )
        )?;
        Ok(AllToAll {
            request: Request(slot.handle()),
            _sides: [send, receive],
        })
    }

    fn side(&self, types: &[Option<Datatype>]) -> Side {
        let byte = self.predefined().byte;
        let handles: Vec<u64> = types.iter().map(|it| it.unwrap_or(byte).0).collect();
        Side {
            counts: types.iter().map(|it| c_int::from(it.is_some())).collect(),
            places: vec![0; types.len()],
            types: Slots::new(self.flavour(), handles.into_iter()),
        }
    }

    /// Combines the numbers of all ranks element by element.
    pub fn allreduce(&self, data: &[u64], op: Op, comm: Comm) -> Result<Vec<u64>, MpiError> {
        let mut all = vec![0_u64; data.len()];
        let (given, count) = (address(data), self.length(data.len())?);
        let (uint64, taken) = (self.predefined().uint64, address_mut(&raw mut all[..]));
        call!(self, allreduce(given, taken, count, uint64.0, op.0, comm.0))?;
        Ok(all)
    }
}
