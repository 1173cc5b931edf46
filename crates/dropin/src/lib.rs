//! libpario.so: the C interface of MPI-IO for unmodified programs under any MPI.
//!
//! The library is preloaded or linked before the MPI library, and defines every function of the
//! standard's file chapter. A program's `MPI_File` is then either pario's ([`files`]) or the
//! host's, to which calls are passed on ([`forward`]): files that the user excludes, or that
//! pario could not handle safely ([`policy`]).
//!
//! [`entry`] contains the functions, one file per group; each is a thin layer over [`engine`].
//! Nothing runs when the library is loaded: mpirun, shells and other children load it, too.

mod call;
mod codes;
mod company;
mod conversion;
mod datatypes;
mod entry;
mod errhandler;
mod failure;
mod files;
mod finalize;
mod forward;
mod info;
mod memory;
mod notice;
mod pattern;
mod policy;
mod requests;
mod verbose;
