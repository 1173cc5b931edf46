//! libcephfs, loaded when it is first needed: its functions, and types that own
//! what they return.
//!
//! The files of this directory may contain `unsafe`: they load a C library and call
//! it. All other files of this driver use the safe types of these. A function of the
//! library may be called from any thread; it may not be called in a process that was
//! forked from the one that mounted, whose threads do not exist there, so every
//! call checks that first.

mod client;
mod file;
mod functions;
mod inode;
mod placement;
mod user;

pub(super) use client::{Account, Client};
pub(super) use file::{FileLock, OpenFile};
pub(super) use functions::require;
pub(super) use inode::Inode;
pub(super) use user::User;
