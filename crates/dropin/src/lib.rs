//! libpario.so: pario behind the C interface of MPI-IO, in front of any MPI.
//!
//! The library is preloaded or linked before the MPI library, and defines every
//! function of the standard's file chapter. A program's `MPI_File` is then
//! either one of pario's ([`files`]) or one of the host's own, which is passed
//! on ([`forward`]): files that pario leaves alone, by wish of the user or
//! because it could not serve them safely ([`policy`]).
//!
//! [`entry`] holds the functions, one file a group; each is a thin coat over
//! [`engine`]. Nothing runs when the library is loaded: it enters mpirun,
//! shells and other children too.

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
mod symbols;
mod verbose;
