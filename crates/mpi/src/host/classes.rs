//! MPI's error classes and their numbers on each host.

use std::ffi::c_int;

use super::abi::Flavour;

/// Defines the enum and its numbers: name, then MPICH, Open MPI, standard ABI.
macro_rules! classes {
    ($($variant:ident = $name:literal, $mpich:literal, $open_mpi:literal, $standard:literal;)*) => {
        /// An error class of MPI.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum ErrorClass {
            $(#[doc = concat!("`", $name, "`")] $variant,)*
        }

        impl ErrorClass {
            /// Every class.
            pub const ALL: &[ErrorClass] = &[$(Self::$variant),*];

            /// The standard's name, `"MPI_ERR_IO"` for instance.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// The class's number on hosts of that flavour.
            pub const fn number(self, flavour: Flavour) -> c_int {
                let row: [c_int; 3] = match self {
                    $(Self::$variant => [$mpich, $open_mpi, $standard],)*
                };
                row[flavour.column()]
            }
        }
    };
}

classes! {
    Success = "MPI_SUCCESS", 0, 0, 0;
    Buffer = "MPI_ERR_BUFFER", 1, 1, 1;
    Count = "MPI_ERR_COUNT", 2, 2, 2;
    Type = "MPI_ERR_TYPE", 3, 3, 3;
    Tag = "MPI_ERR_TAG", 4, 4, 4;
    Comm = "MPI_ERR_COMM", 5, 5, 5;
    Rank = "MPI_ERR_RANK", 6, 6, 6;
    Request = "MPI_ERR_REQUEST", 19, 7, 7;
    Root = "MPI_ERR_ROOT", 7, 8, 8;
    Group = "MPI_ERR_GROUP", 8, 9, 9;
    Op = "MPI_ERR_OP", 9, 10, 10;
    Topology = "MPI_ERR_TOPOLOGY", 10, 11, 11;
    Dims = "MPI_ERR_DIMS", 11, 12, 12;
    Arg = "MPI_ERR_ARG", 12, 13, 13;
    Unknown = "MPI_ERR_UNKNOWN", 13, 14, 14;
    Truncate = "MPI_ERR_TRUNCATE", 14, 15, 15;
    Other = "MPI_ERR_OTHER", 15, 16, 16;
    Intern = "MPI_ERR_INTERN", 16, 17, 17;
    InStatus = "MPI_ERR_IN_STATUS", 17, 18, 19;
    Pending = "MPI_ERR_PENDING", 18, 19, 18;
    Access = "MPI_ERR_ACCESS", 20, 20, 20;
    Amode = "MPI_ERR_AMODE", 21, 21, 21;
    Assert = "MPI_ERR_ASSERT", 53, 22, 22;
    BadFile = "MPI_ERR_BAD_FILE", 22, 23, 23;
    Base = "MPI_ERR_BASE", 46, 24, 24;
    Conversion = "MPI_ERR_CONVERSION", 23, 25, 25;
    Disp = "MPI_ERR_DISP", 52, 26, 26;
    DupDatarep = "MPI_ERR_DUP_DATAREP", 24, 27, 27;
    FileExists = "MPI_ERR_FILE_EXISTS", 25, 28, 28;
    FileInUse = "MPI_ERR_FILE_IN_USE", 26, 29, 29;
    File = "MPI_ERR_FILE", 27, 30, 30;
    InfoKey = "MPI_ERR_INFO_KEY", 29, 31, 31;
    InfoNokey = "MPI_ERR_INFO_NOKEY", 31, 32, 32;
    InfoValue = "MPI_ERR_INFO_VALUE", 30, 33, 33;
    Info = "MPI_ERR_INFO", 28, 34, 34;
    Io = "MPI_ERR_IO", 32, 35, 35;
    Keyval = "MPI_ERR_KEYVAL", 48, 36, 36;
    Locktype = "MPI_ERR_LOCKTYPE", 47, 37, 37;
    Name = "MPI_ERR_NAME", 33, 38, 38;
    NoMem = "MPI_ERR_NO_MEM", 34, 39, 39;
    NotSame = "MPI_ERR_NOT_SAME", 35, 40, 40;
    NoSpace = "MPI_ERR_NO_SPACE", 36, 41, 41;
    NoSuchFile = "MPI_ERR_NO_SUCH_FILE", 37, 42, 42;
    Port = "MPI_ERR_PORT", 38, 43, 43;
    Quota = "MPI_ERR_QUOTA", 39, 44, 44;
    ReadOnly = "MPI_ERR_READ_ONLY", 40, 45, 45;
    RmaAttach = "MPI_ERR_RMA_ATTACH", 56, 69, 46;
    RmaConflict = "MPI_ERR_RMA_CONFLICT", 49, 46, 47;
    RmaRange = "MPI_ERR_RMA_RANGE", 55, 68, 48;
    RmaShared = "MPI_ERR_RMA_SHARED", 57, 71, 49;
    RmaSync = "MPI_ERR_RMA_SYNC", 50, 47, 50;
    Service = "MPI_ERR_SERVICE", 41, 48, 51;
    Size = "MPI_ERR_SIZE", 51, 49, 52;
    Spawn = "MPI_ERR_SPAWN", 42, 50, 53;
    UnsupportedDatarep = "MPI_ERR_UNSUPPORTED_DATAREP", 43, 51, 54;
    UnsupportedOperation = "MPI_ERR_UNSUPPORTED_OPERATION", 44, 52, 55;
    Win = "MPI_ERR_WIN", 45, 53, 56;
    RmaFlavor = "MPI_ERR_RMA_FLAVOR", 58, 70, 57;
}

impl ErrorClass {
    /// The class with that number.
    pub fn from_number(flavour: Flavour, number: c_int) -> Option<ErrorClass> {
        let found = Self::ALL
            .iter()
            .find(|class| class.number(flavour) == number);
        found.copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_lead_back_to_their_class() {
        for flavour in Flavour::ALL {
            for &class in ErrorClass::ALL {
                let number = class.number(flavour);
                assert_eq!(ErrorClass::from_number(flavour, number), Some(class));
            }
            assert_eq!(ErrorClass::from_number(flavour, 4095), None);
        }
    }
}
