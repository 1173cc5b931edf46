//! The host's own constructors of datatypes.

use std::ffi::{c_int, c_void};

use pario_mpi::host::abi::{Slot, Slots};
use pario_mpi::{Datatype, Host, MpiError};

/// Calls a function of the host by its name, with the types of its arguments.
macro_rules! host_call {
    ($host:expr, $name:literal ($($argument:expr => $type:ty),* $(,)?)) => {{
        let address = $host.function($name).expect(concat!("the host has MPI_", $name));
        type Function = unsafe extern "C" fn($($type),*) -> c_int;
        // SAFETY: the signature is the standard's, handles apart, which are 64-bit registers.
        let function = unsafe { std::mem::transmute::<*mut c_void, Function>(address) };
        // SAFETY: the arguments are valid for the call.
        let code = unsafe { function($($argument),*) };
        $host.check(concat!("MPI_", $name), code)
    }};
}
pub(crate) use host_call;

/// Makes datatypes with the host.
#[derive(Clone, Copy)]
pub(crate) struct Maker<'a>(pub(crate) &'a Host);

/// The arguments of a distributed array in the host's numbers.
pub(crate) struct DarrayArguments<'a> {
    pub(crate) ranks: c_int,
    pub(crate) rank: c_int,
    pub(crate) sizes: &'a [c_int],
    pub(crate) distributions: &'a [c_int],
    pub(crate) parameters: &'a [c_int],
    pub(crate) grid: &'a [c_int],
    pub(crate) order: c_int,
}

impl Maker<'_> {
    fn slot(&self) -> Slot {
        Slot::new(self.0.flavour(), 0)
    }

    pub(crate) fn vector(
        &self,
        count: c_int,
        length: c_int,
        stride: c_int,
        of: Datatype,
    ) -> Datatype {
        let mut slot = self.slot();
        host_call!(self.0, "Type_vector"(count => c_int, length => c_int, stride => c_int,
            of.0 => u64, slot.pointer() => *mut c_void))
        .expect("valid arguments");
        Datatype(slot.handle())
    }

    pub(crate) fn hvector(
        &self,
        count: c_int,
        length: c_int,
        stride: i64,
        of: Datatype,
    ) -> Datatype {
        let mut slot = self.slot();
        host_call!(self.0, "Type_create_hvector"(count => c_int, length => c_int, stride => i64,
            of.0 => u64, slot.pointer() => *mut c_void))
        .expect("valid arguments");
        Datatype(slot.handle())
    }

    pub(crate) fn indexed(&self, lengths: &[c_int], places: &[c_int], of: Datatype) -> Datatype {
        let mut slot = self.slot();
        host_call!(self.0, "Type_indexed"(lengths.len() as c_int => c_int,
            lengths.as_ptr() => *const c_int, places.as_ptr() => *const c_int,
            of.0 => u64, slot.pointer() => *mut c_void))
        .expect("valid arguments");
        Datatype(slot.handle())
    }

    pub(crate) fn hindexed(&self, lengths: &[c_int], places: &[i64], of: Datatype) -> Datatype {
        let mut slot = self.slot();
        host_call!(self.0, "Type_create_hindexed"(lengths.len() as c_int => c_int,
            lengths.as_ptr() => *const c_int, places.as_ptr() => *const i64,
            of.0 => u64, slot.pointer() => *mut c_void))
        .expect("valid arguments");
        Datatype(slot.handle())
    }

    pub(crate) fn indexed_block(&self, length: c_int, places: &[c_int], of: Datatype) -> Datatype {
        let mut slot = self.slot();
        host_call!(self.0, "Type_create_indexed_block"(places.len() as c_int => c_int,
            length => c_int, places.as_ptr() => *const c_int,
            of.0 => u64, slot.pointer() => *mut c_void))
        .expect("valid arguments");
        Datatype(slot.handle())
    }

    pub(crate) fn hindexed_block(&self, length: c_int, places: &[i64], of: Datatype) -> Datatype {
        let mut slot = self.slot();
        host_call!(self.0, "Type_create_hindexed_block"(places.len() as c_int => c_int,
            length => c_int, places.as_ptr() => *const i64,
            of.0 => u64, slot.pointer() => *mut c_void))
        .expect("valid arguments");
        Datatype(slot.handle())
    }

    pub(crate) fn structure(&self, lengths: &[c_int], places: &[i64], of: &[Datatype]) -> Datatype {
        let mut slot = self.slot();
        let mut types = Slots::new(self.0.flavour(), of.iter().map(|datatype| datatype.0));
        host_call!(self.0, "Type_create_struct"(lengths.len() as c_int => c_int,
            lengths.as_ptr() => *const c_int, places.as_ptr() => *const i64,
            types.pointer() => *mut c_void, slot.pointer() => *mut c_void))
        .expect("valid arguments");
        Datatype(slot.handle())
    }

    pub(crate) fn subarray(
        &self,
        sizes: &[c_int],
        subsizes: &[c_int],
        starts: &[c_int],
        order: c_int,
        of: Datatype,
    ) -> Datatype {
        let mut slot = self.slot();
        host_call!(self.0, "Type_create_subarray"(sizes.len() as c_int => c_int,
            sizes.as_ptr() => *const c_int, subsizes.as_ptr() => *const c_int,
            starts.as_ptr() => *const c_int, order => c_int,
            of.0 => u64, slot.pointer() => *mut c_void))
        .expect("valid arguments");
        Datatype(slot.handle())
    }

    /// A distributed array, or the reason why the host refuses it.
    pub(crate) fn darray(
        &self,
        array: &DarrayArguments<'_>,
        of: Datatype,
    ) -> Result<Datatype, MpiError> {
        let mut slot = self.slot();
        host_call!(self.0, "Type_create_darray"(array.ranks => c_int, array.rank => c_int,
            array.sizes.len() as c_int => c_int, array.sizes.as_ptr() => *const c_int,
            array.distributions.as_ptr() => *const c_int,
            array.parameters.as_ptr() => *const c_int, array.grid.as_ptr() => *const c_int,
            array.order => c_int, of.0 => u64, slot.pointer() => *mut c_void))?;
        Ok(Datatype(slot.handle()))
    }

    pub(crate) fn resized(&self, of: Datatype, lower_bound: i64, extent: i64) -> Datatype {
        let mut slot = self.slot();
        host_call!(self.0, "Type_create_resized"(of.0 => u64, lower_bound => i64, extent => i64,
            slot.pointer() => *mut c_void))
        .expect("valid arguments");
        Datatype(slot.handle())
    }

    pub(crate) fn f90_real(&self, precision: c_int, range: c_int) -> Datatype {
        let mut slot = self.slot();
        host_call!(self.0, "Type_create_f90_real"(precision => c_int, range => c_int,
            slot.pointer() => *mut c_void))
        .expect("valid arguments");
        Datatype(slot.handle())
    }

    pub(crate) fn f90_complex(&self, precision: c_int, range: c_int) -> Datatype {
        let mut slot = self.slot();
        host_call!(self.0, "Type_create_f90_complex"(precision => c_int, range => c_int,
            slot.pointer() => *mut c_void))
        .expect("valid arguments");
        Datatype(slot.handle())
    }

    pub(crate) fn f90_integer(&self, range: c_int) -> Datatype {
        let mut slot = self.slot();
        host_call!(self.0, "Type_create_f90_integer"(range => c_int,
            slot.pointer() => *mut c_void))
        .expect("valid arguments");
        Datatype(slot.handle())
    }

    pub(crate) fn value_index(&self, value: Datatype, index: Datatype) -> Datatype {
        let mut slot = self.slot();
        host_call!(self.0, "Type_get_value_index"(value.0 => u64, index.0 => u64,
            slot.pointer() => *mut c_void))
        .expect("valid arguments");
        Datatype(slot.handle())
    }

    pub(crate) fn vector_c(&self, count: i64, length: i64, stride: i64, of: Datatype) -> Datatype {
        let mut slot = self.slot();
        host_call!(self.0, "Type_vector_c"(count => i64, length => i64, stride => i64,
            of.0 => u64, slot.pointer() => *mut c_void))
        .expect("valid arguments");
        Datatype(slot.handle())
    }

    pub(crate) fn hindexed_c(&self, lengths: &[i64], places: &[i64], of: Datatype) -> Datatype {
        let mut slot = self.slot();
        host_call!(self.0, "Type_create_hindexed_c"(lengths.len() as i64 => i64,
            lengths.as_ptr() => *const i64, places.as_ptr() => *const i64,
            of.0 => u64, slot.pointer() => *mut c_void))
        .expect("valid arguments");
        Datatype(slot.handle())
    }

    pub(crate) fn struct_c(&self, lengths: &[i64], places: &[i64], of: &[Datatype]) -> Datatype {
        let mut slot = self.slot();
        let mut types = Slots::new(self.0.flavour(), of.iter().map(|datatype| datatype.0));
        host_call!(self.0, "Type_create_struct_c"(lengths.len() as i64 => i64,
            lengths.as_ptr() => *const i64, places.as_ptr() => *const i64,
            types.pointer() => *mut c_void, slot.pointer() => *mut c_void))
        .expect("valid arguments");
        Datatype(slot.handle())
    }

    pub(crate) fn subarray_c(
        &self,
        sizes: &[i64],
        subsizes: &[i64],
        starts: &[i64],
        order: c_int,
        of: Datatype,
    ) -> Datatype {
        let mut slot = self.slot();
        host_call!(self.0, "Type_create_subarray_c"(sizes.len() as c_int => c_int,
            sizes.as_ptr() => *const i64, subsizes.as_ptr() => *const i64,
            starts.as_ptr() => *const i64, order => c_int,
            of.0 => u64, slot.pointer() => *mut c_void))
        .expect("valid arguments");
        Datatype(slot.handle())
    }

    pub(crate) fn resized_c(&self, of: Datatype, lower_bound: i64, extent: i64) -> Datatype {
        let mut slot = self.slot();
        host_call!(self.0, "Type_create_resized_c"(of.0 => u64, lower_bound => i64,
            extent => i64, slot.pointer() => *mut c_void))
        .expect("valid arguments");
        Datatype(slot.handle())
    }
}
