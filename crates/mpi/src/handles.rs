//! Handles of the host's objects: 64-bit numbers, whatever their width in C.
//!
//! A handle of another binding, such as rsmpi, converts to one of these by `into`, whichever
//! MPI that binding was compiled for.

use std::ffi::c_int;

/// Defines one handle type per line.
macro_rules! handles {
    ($($(#[$doc:meta])* $name:ident;)*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
            #[repr(transparent)]
            pub struct $name(pub u64);

            impl From<u64> for $name {
                fn from(raw: u64) -> Self {
                    Self(raw)
                }
            }

            /// The handle in C if handles are integers: MPICH and its derivatives.
            impl From<c_int> for $name {
                fn from(raw: c_int) -> Self {
                    Self(u64::from(raw.cast_unsigned()))
                }
            }

            /// The handle in C if handles are pointers: Open MPI, the standard ABI.
            impl<T> From<*mut T> for $name {
                fn from(raw: *mut T) -> Self {
                    Self(raw.expose_provenance() as u64)
                }
            }

            impl From<$name> for u64 {
                fn from(handle: $name) -> u64 {
                    handle.0
                }
            }
        )*
    };
}

handles! {
    /// `MPI_Comm`
    Comm;
    /// `MPI_Datatype`
    Datatype;
    /// `MPI_Info`
    Info;
    /// `MPI_Request`
    Request;
    /// `MPI_Errhandler`
    Errhandler;
    /// `MPI_Group`
    Group;
    /// `MPI_Message`, a message matched and not yet received
    Message;
    /// `MPI_Op`
    Op;
    /// `MPI_File`, of the host's own files
    FileHandle;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_of_both_widths_are_taken() {
        // MPICH's predefined handles have the highest bit clear, its others may not.
        assert_eq!(Comm::from(0x4400_0000_i32), Comm(0x4400_0000));
        assert_eq!(Comm::from(-2_080_374_784_i32), Comm(0x8400_0000));
        let mut object = 0_u8;
        let address = &raw mut object;
        assert_eq!(Comm::from(address), Comm(address.addr() as u64));
    }
}
