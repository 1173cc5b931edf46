//! IBM Storage Scale (GPFS): hints about accesses, through its library.
//!
//! Structures and numbers are those of the header `gpfs_fcntl.h` of Storage
//! Scale 5. Not tried on a real one.

pub(crate) mod library;
