//! Fortran's integers for handles.
//!
//! Older hosts export `c2f` and `f2c`, those with the standard ABI `toint` and `fromint`. If a
//! host has neither as functions, its handles are C integers, the same as in Fortran.

#![allow(unsafe_code)] // Calls the host.

use std::ffi::c_int;

use super::Host;
use crate::handles::{Comm, Datatype, Errhandler, Group, Info, Op, Request};

/// Defines both directions for a handle type.
macro_rules! fortran {
    ($($type:ident: $to:ident, $from:ident = $c2f:ident, $toint:ident, $f2c:ident, $fromint:ident;)*) => {
        impl Host {
            $(
                #[doc = concat!("The Fortran integer of `MPI_", stringify!($type), "`.")]
                pub fn $to(&self, handle: $type) -> c_int {
                    match self.functions.$c2f.or(self.functions.$toint) {
                        // SAFETY: the functions take any handle by value.
                        Some(convert) => unsafe { convert(handle.0) },
                        None => handle.0 as c_int,
                    }
                }

                #[doc = concat!("The `MPI_", stringify!($type), "` of a Fortran integer.")]
                pub fn $from(&self, integer: c_int) -> $type {
                    let raw = match self.functions.$f2c.or(self.functions.$fromint) {
                        // SAFETY: the functions take any integer.
                        Some(convert) => unsafe { convert(integer) },
                        None => u64::from(integer.cast_unsigned()),
                    };
                    $type(self.flavour().from_register(raw))
                }
            )*
        }
    };
}

fortran! {
    Comm: comm_to_fortran, comm_from_fortran = comm_c2f, comm_toint, comm_f2c, comm_fromint;
    Datatype: type_to_fortran, type_from_fortran = type_c2f, type_toint, type_f2c, type_fromint;
    Info: info_to_fortran, info_from_fortran = info_c2f, info_toint, info_f2c, info_fromint;
    Request: request_to_fortran, request_from_fortran = request_c2f, request_toint, request_f2c, request_fromint;
    Errhandler: errhandler_to_fortran, errhandler_from_fortran = errhandler_c2f, errhandler_toint, errhandler_f2c, errhandler_fromint;
    Op: op_to_fortran, op_from_fortran = op_c2f, op_toint, op_f2c, op_fromint;
    Group: group_to_fortran, group_from_fortran = group_c2f, group_toint, group_f2c, group_fromint;
}
