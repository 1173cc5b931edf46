//! Atomicity and synchronisation.
#![allow(unsafe_code)] // C functions

use engine::Atomicity;

use super::{Logical, file_functions};
use crate::memory;

file_functions! {
    "File_set_atomicity" fn set_atomicity(fh, flag: Logical) |open| {
        Ok(open.file.set_atomicity(match flag {
            0 => Atomicity::NonAtomic,
            _ => Atomicity::Atomic,
        })?)
    }

    "File_get_atomicity" fn get_atomicity(fh, flag: *mut Logical) |open| {
        let atomic = open.file.atomicity() == Atomicity::Atomic;
        // SAFETY: the program's pointer is null or valid for an integer.
        unsafe { memory::put(flag, Logical::from(atomic), "the atomicity") }
    }

    "File_sync" fn sync(fh) |open| { Ok(open.file.sync()?) }
}
