//! Handles of the host's objects: 64-bit numbers, whatever their width in C.

/// Defines one handle type a line.
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
    /// `MPI_File` of the host itself
    FileHandle;
}
