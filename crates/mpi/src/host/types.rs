//! Datatypes: what the host says of them.

#![allow(unsafe_code)] // Calls the host.

use std::ffi::{c_int, c_void};

use super::abi::{Slot, Slots};
use super::combiner::Combiner;
use super::environment::TextBuffer;
use super::{Host, call, functions};
use crate::error::MpiError;
use crate::handles::{Comm, Datatype};

/// How many arguments a datatype was made from, and by which constructor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// Arguments that are C integers.
    pub integers: usize,
    /// Arguments that are addresses.
    pub addresses: usize,
    /// Arguments that are large counts; more than none if the constructor was of the
    /// large-count form.
    pub large_counts: usize,
    /// Arguments that are datatypes.
    pub datatypes: usize,
    /// The constructor; none if it is unknown.
    pub combiner: Option<Combiner>,
}

/// The arguments a datatype was made from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contents {
    /// Arguments that are C integers.
    pub integers: Vec<c_int>,
    /// Arguments that are addresses.
    pub addresses: Vec<i64>,
    /// Arguments that are large counts.
    pub large_counts: Vec<i64>,
    /// Arguments that are datatypes; derived ones are to be freed.
    pub datatypes: Vec<Datatype>,
}

/// The arguments of a duplicate or of a contiguous type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SimpleContents {
    /// How often the inner type is repeated, unless it is duplicated.
    pub(crate) count: Option<u64>,
    /// To be freed if it is derived.
    pub(crate) datatype: Datatype,
}

/// Arrays to which the host writes the arguments of a datatype.
struct ContentsPlaces {
    integers: *mut c_int,
    addresses: *mut i64,
    large_counts: *mut i64,
    datatypes: *mut c_void,
}

impl Host {
    /// The data bytes of a datatype.
    pub fn type_size(&self, datatype: Datatype) -> Result<u64, MpiError> {
        let mut size = 0;
        call!(self, type_size_x(datatype.0, &mut size))?;
        Ok(u64::try_from(size).unwrap_or(0))
    }

    /// The lower bound and the extent.
    pub fn type_extent(&self, datatype: Datatype) -> Result<(i64, i64), MpiError> {
        let (mut lower_bound, mut extent) = (0, 0);
        call!(
            self,
            type_get_extent_x(datatype.0, &mut lower_bound, &mut extent)
        )?;
        Ok((lower_bound, extent))
    }

    /// The true lower bound and the true extent.
    pub fn type_true_extent(&self, datatype: Datatype) -> Result<(i64, i64), MpiError> {
        let (mut lower_bound, mut extent) = (0, 0);
        call!(
            self,
            type_get_true_extent_x(datatype.0, &mut lower_bound, &mut extent)
        )?;
        Ok((lower_bound, extent))
    }

    /// The name; the standard's for predefined types unless the program changed it.
    pub fn type_name(&self, datatype: Datatype) -> Result<String, MpiError> {
        let mut text = TextBuffer::new(self.constants().max_object_name);
        let mut len = 0;
        call!(self, type_get_name(datatype.0, text.pointer(), &mut len))?;
        Ok(text.string())
    }

    /// `MPI_Type_dup`.
    pub fn type_dup(&self, datatype: Datatype) -> Result<Datatype, MpiError> {
        let mut slot = self.slot();
        call!(self, type_dup(datatype.0, slot.pointer()))?;
        Ok(Datatype(slot.handle()))
    }

    /// `MPI_Type_free`.
    pub fn type_free(&self, datatype: Datatype) -> Result<(), MpiError> {
        let mut slot = Slot::new(self.flavour(), datatype.0);
        call!(self, type_free(slot.pointer()))
    }

    /// `MPI_Type_commit`.
    pub fn type_commit(&self, datatype: Datatype) -> Result<(), MpiError> {
        let mut slot = Slot::new(self.flavour(), datatype.0);
        call!(self, type_commit(slot.pointer()))
    }

    /// `MPI_Pack` of no element.
    pub(crate) fn pack_nothing(&self, datatype: Datatype, comm: Comm) -> Result<(), MpiError> {
        let (mut from, mut to, mut position) = (0u64, 0u64, 0);
        call!(
            self,
            pack(
                (&raw mut from).cast(),
                0,
                datatype.0,
                (&raw mut to).cast(),
                size_of::<u64>() as c_int,
                &mut position,
                comm.0,
            )
        )
    }

    /// `MPI_Type_contiguous`.
    pub fn type_contiguous(&self, count: c_int, of: Datatype) -> Result<Datatype, MpiError> {
        let mut slot = self.slot();
        call!(self, type_contiguous(count, of.0, slot.pointer()))?;
        Ok(Datatype(slot.handle()))
    }

    /// `MPI_Type_create_hindexed` of bytes, committed: blocks at addresses.
    pub fn type_of_blocks(&self, blocks: &[(usize, usize)]) -> Result<Datatype, MpiError> {
        let lengths: Result<Vec<c_int>, _> = blocks.iter().map(|it| self.length(it.1)).collect();
        let mut lengths = lengths?;
        let mut places: Vec<i64> = blocks.iter().map(|it| it.0 as i64).collect();
        let (count, byte) = (self.length(blocks.len())?, self.predefined().byte.0);
        let (lengths_in_c, places_in_c) = (lengths.as_mut_ptr(), places.as_mut_ptr());
        let mut slot = self.slot();
        call!(
            self,
            type_create_hindexed(count, lengths_in_c, places_in_c, byte, slot.pointer())
        )?;
        let datatype = Datatype(slot.handle());
        self.type_commit(datatype)?;
        Ok(datatype)
    }

    /// Which constructor made a datatype. Asks the large-count form where the host has it: the
    /// other one fails for types made with large counts.
    pub fn type_envelope(&self, datatype: Datatype) -> Result<Envelope, MpiError> {
        let mut combiner = 0;
        let (mut integers, mut addresses, mut large_counts, mut datatypes) = (0, 0, 0, 0);
        match self.functions.type_get_envelope_c {
            Some(get) => {
                // SAFETY: every place is writable.
                let code = unsafe {
                    get(
                        datatype.0,
                        &mut integers,
                        &mut addresses,
                        &mut large_counts,
                        &mut datatypes,
                        &mut combiner,
                    )
                };
                self.check(functions::name::type_get_envelope_c, code)?;
            }
            None => {
                let mut counts: [c_int; 3] = [0; 3];
                let [few_integers, few_addresses, few_datatypes] = &mut counts;
                call!(
                    self,
                    type_get_envelope(
                        datatype.0,
                        few_integers,
                        few_addresses,
                        few_datatypes,
                        &mut combiner,
                    )
                )?;
                [integers, addresses, datatypes] = counts.map(i64::from);
            }
        }
        let count = |number: i64| usize::try_from(number).unwrap_or(0);
        Ok(Envelope {
            integers: count(integers),
            addresses: count(addresses),
            large_counts: count(large_counts),
            datatypes: count(datatypes),
            combiner: Combiner::from_number(self.flavour(), combiner),
        })
    }

    /// The arguments of a derived datatype that has one inner type and at most one count, given
    /// its envelope; `None` if it has others.
    pub(crate) fn type_simple_contents(
        &self,
        datatype: Datatype,
        envelope: &Envelope,
    ) -> Result<Option<SimpleContents>, MpiError> {
        let counts = envelope.integers + envelope.large_counts;
        if envelope.datatypes != 1 || envelope.addresses != 0 || counts > 1 {
            return Ok(None);
        }
        let (mut integer, mut address, mut large_count) = (0, 0, 0);
        let mut slot = self.slot();
        let places = ContentsPlaces {
            integers: &raw mut integer,
            addresses: &raw mut address,
            large_counts: &raw mut large_count,
            datatypes: slot.pointer(),
        };
        // SAFETY: there is a place for each argument: at most one of each kind, no address.
        unsafe { self.get_contents(datatype, envelope, places) }?;
        let count = match (envelope.integers, envelope.large_counts) {
            (1, 0) => u64::try_from(integer).ok(),
            (0, 1) => u64::try_from(large_count).ok(),
            _ => None,
        };
        Ok(Some(SimpleContents {
            count,
            datatype: Datatype(slot.handle()),
        }))
    }

    /// The arguments of a derived datatype, given its envelope.
    pub fn type_contents(
        &self,
        datatype: Datatype,
        envelope: &Envelope,
    ) -> Result<Contents, MpiError> {
        let mut integers = vec![0; envelope.integers];
        let mut addresses = vec![0; envelope.addresses];
        let mut large_counts = vec![0; envelope.large_counts];
        let null = self.predefined().datatype_null.0;
        let mut slots = Slots::new(self.flavour(), (0..envelope.datatypes).map(|_| null));
        let places = ContentsPlaces {
            integers: integers.as_mut_ptr(),
            addresses: addresses.as_mut_ptr(),
            large_counts: large_counts.as_mut_ptr(),
            datatypes: slots.pointer(),
        };
        // SAFETY: the arrays have the lengths of the envelope.
        unsafe { self.get_contents(datatype, envelope, places) }?;
        Ok(Contents {
            integers,
            addresses,
            large_counts,
            datatypes: slots.handles().map(Datatype).collect(),
        })
    }

    /// Asks for the arguments of a derived datatype. Uses the large-count form where the host has
    /// it, as [`type_envelope`](Self::type_envelope) does.
    ///
    /// # Safety
    /// Each array must hold as many arguments of its kind as the envelope says.
    #[inline]
    unsafe fn get_contents(
        &self,
        datatype: Datatype,
        envelope: &Envelope,
        places: ContentsPlaces,
    ) -> Result<(), MpiError> {
        let ContentsPlaces {
            integers,
            addresses,
            large_counts,
            datatypes,
        } = places;
        let Some(get) = self.functions.type_get_contents_c else {
            return call!(
                self,
                type_get_contents(
                    datatype.0,
                    envelope.integers as c_int,
                    envelope.addresses as c_int,
                    envelope.datatypes as c_int,
                    integers,
                    addresses,
                    datatypes,
                )
            );
        };
        // SAFETY: the caller vouches for the arrays.
        let code = unsafe {
            get(
                datatype.0,
                envelope.integers as i64,
                envelope.addresses as i64,
                envelope.large_counts as i64,
                envelope.datatypes as i64,
                integers,
                addresses,
                large_counts,
                datatypes,
            )
        };
        self.check(functions::name::type_get_contents_c, code)
    }
}
