//! Data to and from all ranks in one operation of the MPI's.
//!
//! It is collective on a communicator that all files of a group share. Below
//! `MPI_THREAD_MULTIPLE` a rank is in one blocking call at a time, so that all ranks
//! start these operations in the same order; with it, two threads could start them in
//! different orders.
#![allow(unsafe_code)] // memory lent to the MPI

use std::thread;

use pario_transport::{MemoryRuns, Result};

use super::MpiTransport;
use super::mpi_point_to_point::host_error;
use super::permission::Callers;
use crate::error::MpiError;
use crate::handles::{Datatype, Request};
use crate::{Comm, Host};

/// The longest block of a datatype; longer runs are several.
const BLOCK_BYTES_MAX: usize = 1 << 30;

impl MpiTransport {
    /// The MPI and the communicator, if the calling thread may use them so.
    pub(super) fn all_to_all_over(&self) -> Option<(&'static Host, Comm)> {
        let link = self.group.link.as_ref()?;
        let may_call = link.callers() == Callers::Inside && link.callers().include_me();
        link.host().zip(self.group.comm).filter(|_| may_call)
    }

    /// See [`Transport::all_to_all`](pario_transport::Transport::all_to_all).
    pub(super) fn exchange_with_all(
        &self,
        send: &[MemoryRuns],
        receive: &[MemoryRuns],
    ) -> Result<()> {
        let (host, comm) = self.all_to_all_over().expect("the caller has asked");
        let send = Types::new(host, send).map_err(host_error)?;
        let receive = Types::new(host, receive).map_err(host_error)?;
        // SAFETY: whoever made the runs promised it; the arrays live until the request is
        // complete, or for ever.
        let started = unsafe { host.ialltoallw(&send.types, &receive.types, comm) };
        let mut started = started.map_err(host_error)?;
        let result = self.await_request(host, &mut started.request);
        if result.is_err() {
            // The MPI may still use them.
            std::mem::forget((started, send, receive));
        }
        result
    }

    fn await_request(&self, host: &Host, request: &mut Request) -> Result<()> {
        let link = self.link();
        while !host.is_complete(request).map_err(host_error)? {
            link.progress_once();
            link.check()?;
            thread::yield_now();
        }
        Ok(())
    }
}

/// Datatypes of runs of memory, one per rank.
struct Types {
    host: &'static Host,
    types: Vec<Option<Datatype>>,
}

impl Types {
    fn new(host: &'static Host, runs: &[MemoryRuns]) -> std::result::Result<Types, MpiError> {
        let types = Vec::with_capacity(runs.len());
        let mut made = Types { host, types };
        for runs in runs {
            let runs = runs.as_slice().iter();
            let blocks: Vec<_> = runs.flat_map(|run| blocks(*run)).collect();
            made.types.push(match blocks.is_empty() {
                true => None,
                false => Some(host.type_of_blocks(&blocks)?),
            });
        }
        Ok(made)
    }
}

impl Drop for Types {
    fn drop(&mut self) {
        for datatype in self.types.drain(..).flatten() {
            // An operation that uses it keeps it.
            let _ = self.host.type_free(datatype);
        }
    }
}

fn blocks((address, len): (usize, usize)) -> impl Iterator<Item = (usize, usize)> {
    let starts = (0..len).step_by(BLOCK_BYTES_MAX);
    starts.map(move |at| (address + at, (len - at).min(BLOCK_BYTES_MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_runs_are_several_blocks() {
        let long = BLOCK_BYTES_MAX + 5;
        let expected = [(64, BLOCK_BYTES_MAX), (64 + BLOCK_BYTES_MAX, 5)];
        assert_eq!(blocks((64, long)).collect::<Vec<_>>(), expected);
        assert_eq!(blocks((64, 5)).collect::<Vec<_>>(), [(64, 5)]);
        assert_eq!(blocks((64, 0)).count(), 0);
    }
}
