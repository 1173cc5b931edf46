//! Communicators and groups.

#![allow(unsafe_code)] // Calls the host.

use std::ffi::c_int;

use super::abi::{Flavour, Slot};
use super::{Host, call};
use crate::error::MpiError;
use crate::handles::{Comm, Errhandler, Group};

/// The result of comparing two communicators or groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// The same object.
    Identical,
    /// The same processes in the same order.
    Congruent,
    /// The same processes in another order.
    Similar,
    /// Different processes.
    Unequal,
}

impl Host {
    /// `MPI_Comm_dup`; collective.
    pub fn comm_dup(&self, comm: Comm) -> Result<Comm, MpiError> {
        let mut slot = self.slot();
        call!(self, comm_dup(comm.0, slot.pointer()))?;
        Ok(Comm(slot.handle()))
    }

    /// This process's rank.
    pub fn comm_rank(&self, comm: Comm) -> Result<usize, MpiError> {
        let mut rank = 0;
        call!(self, comm_rank(comm.0, &mut rank))?;
        Ok(usize::try_from(rank).expect("ranks of members are not negative"))
    }

    /// The number of processes.
    pub fn comm_size(&self, comm: Comm) -> Result<usize, MpiError> {
        let mut size = 0;
        call!(self, comm_size(comm.0, &mut size))?;
        Ok(usize::try_from(size).expect("sizes are not negative"))
    }

    /// `MPI_Comm_free`; collective.
    pub fn comm_free(&self, comm: Comm) -> Result<(), MpiError> {
        let mut slot = Slot::new(self.flavour(), comm.0);
        call!(self, comm_free(slot.pointer()))
    }

    /// The communicator of the processes that passed the same colour, ordered by `key`; `None`
    /// for those that passed no colour. Collective.
    pub fn comm_split(
        &self,
        comm: Comm,
        color: Option<c_int>,
        key: c_int,
    ) -> Result<Option<Comm>, MpiError> {
        let mut slot = self.slot();
        let color = color.unwrap_or(self.constants().undefined);
        call!(self, comm_split(comm.0, color, key, slot.pointer()))?;
        let part = Comm(slot.handle());
        Ok((part != self.predefined().comm_null).then_some(part))
    }

    /// The communicator of the processes that can share memory with this one, ordered by
    /// `key`. Collective.
    pub fn comm_split_shared(&self, comm: Comm, key: c_int) -> Result<Comm, MpiError> {
        let mut slot = self.slot();
        let (shared, info) = (
            self.constants().comm_type_shared,
            self.predefined().info_null,
        );
        call!(
            self,
            comm_split_type(comm.0, shared, key, info.0, slot.pointer())
        )?;
        Ok(Comm(slot.handle()))
    }

    /// `MPI_Comm_compare`.
    pub fn comm_compare(&self, one: Comm, other: Comm) -> Result<Comparison, MpiError> {
        let mut result = 0;
        call!(self, comm_compare(one.0, other.0, &mut result))?;
        Ok(self.comparison(result))
    }

    /// Whether it is an inter-communicator, which no file can be opened on.
    pub fn comm_is_inter(&self, comm: Comm) -> Result<bool, MpiError> {
        let mut flag = 0;
        call!(self, comm_test_inter(comm.0, &mut flag))?;
        Ok(flag != 0)
    }

    /// The group of a communicator, to be freed.
    pub fn comm_group(&self, comm: Comm) -> Result<Group, MpiError> {
        let mut slot = self.slot();
        call!(self, comm_group(comm.0, slot.pointer()))?;
        Ok(Group(slot.handle()))
    }

    /// `MPI_Comm_set_errhandler`.
    pub fn comm_set_errhandler(&self, comm: Comm, handler: Errhandler) -> Result<(), MpiError> {
        call!(self, comm_set_errhandler(comm.0, handler.0))
    }

    /// Makes calls on a communicator return their errors.
    pub fn comm_return_errors(&self, comm: Comm) -> Result<(), MpiError> {
        // Intel's library with the standard ABI has the numbers of two handlers swapped.
        let is_exchanged = self.flavour() == Flavour::Standard && self.version().contains("Intel");
        let standard = self.predefined().errors_return;
        let handler = match is_exchanged {
            true => self.errors_abort().unwrap_or(standard),
            false => standard,
        };
        self.comm_set_errhandler(comm, handler)
    }

    /// The error handler of a communicator, to be freed.
    pub fn comm_get_errhandler(&self, comm: Comm) -> Result<Errhandler, MpiError> {
        let mut slot = self.slot();
        call!(self, comm_get_errhandler(comm.0, slot.pointer()))?;
        Ok(Errhandler(slot.handle()))
    }

    /// Calls the error handler of a communicator.
    pub fn comm_call_errhandler(&self, comm: Comm, code: c_int) -> Result<(), MpiError> {
        call!(self, comm_call_errhandler(comm.0, code))
    }

    /// The number of processes of a group.
    pub fn group_size(&self, group: Group) -> Result<usize, MpiError> {
        let mut size = 0;
        call!(self, group_size(group.0, &mut size))?;
        Ok(usize::try_from(size).expect("sizes are not negative"))
    }

    /// `MPI_Group_compare`.
    pub fn group_compare(&self, one: Group, other: Group) -> Result<Comparison, MpiError> {
        let mut result = 0;
        call!(self, group_compare(one.0, other.0, &mut result))?;
        Ok(self.comparison(result))
    }

    /// The ranks in `to` of the processes that have `ranks` in `from`; `None` for those that
    /// are not in `to`.
    pub fn group_translate_ranks(
        &self,
        from: Group,
        ranks: &[usize],
        to: Group,
    ) -> Result<Vec<Option<usize>>, MpiError> {
        let mut given: Vec<c_int> = ranks.iter().map(|&rank| rank as c_int).collect();
        let mut found = vec![0; given.len()];
        let count = given.len() as c_int;
        let (input, output) = (given.as_mut_ptr(), found.as_mut_ptr());
        call!(
            self,
            group_translate_ranks(from.0, count, input, to.0, output)
        )?;
        // MPI_UNDEFINED is negative on every host.
        Ok(found
            .into_iter()
            .map(|rank| usize::try_from(rank).ok())
            .collect())
    }

    /// A group of the same processes in the same order, to be freed.
    pub fn group_copy(&self, group: Group) -> Result<Group, MpiError> {
        let mut slot = self.slot();
        call!(self, group_union(group.0, group.0, slot.pointer()))?;
        Ok(Group(slot.handle()))
    }

    /// `MPI_Group_free`.
    pub fn group_free(&self, group: Group) -> Result<(), MpiError> {
        let mut slot = Slot::new(self.flavour(), group.0);
        call!(self, group_free(slot.pointer()))
    }

    fn comparison(&self, result: c_int) -> Comparison {
        let constants = self.constants();
        match result {
            _ if result == constants.ident => Comparison::Identical,
            _ if result == constants.congruent => Comparison::Congruent,
            _ if result == constants.similar => Comparison::Similar,
            _ => Comparison::Unequal,
        }
    }
}
