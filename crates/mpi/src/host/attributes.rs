//! Attributes of communicators and datatypes.

#![allow(unsafe_code)] // Calls the host.

use std::ffi::{c_int, c_void};
use std::ptr;

use super::{Host, call};
use crate::error::MpiError;
use crate::handles::{Comm, Datatype};

/// The value of an attribute: an address, or a number cast to one.
pub type Attribute = *mut c_void;

/// Called when an object is duplicated: the object, the key, the extra state, the value, where
/// to write the copy's value, where to write 1 if the copy gets one. Returns 0.
///
/// The object's handle is in a register: see
/// [`Flavour::from_register`](super::abi::Flavour::from_register).
pub type CopyAttribute =
    unsafe extern "C" fn(u64, c_int, *mut c_void, Attribute, *mut Attribute, *mut c_int) -> c_int;

/// Called when an object is freed or its value replaced: the object, the key, the value, the
/// extra state. Returns 0.
pub type DeleteAttribute = unsafe extern "C" fn(u64, c_int, Attribute, *mut c_void) -> c_int;

/// A copy callback that leaves the copy without the value.
unsafe extern "C" fn copy_nothing(
    _object: u64,
    _key: c_int,
    _extra: *mut c_void,
    _value: Attribute,
    _copy: *mut Attribute,
    flag: *mut c_int,
) -> c_int {
    // SAFETY: the host passes a writable place.
    unsafe { flag.write(0) };
    0
}

impl Host {
    /// A key for values of communicators. Without a copy callback, duplicates get no value.
    ///
    /// # Safety
    /// The callbacks must be sound for every value that is set under the key.
    pub unsafe fn comm_create_keyval(
        &self,
        copy: Option<CopyAttribute>,
        delete: DeleteAttribute,
        extra: *mut c_void,
    ) -> Result<c_int, MpiError> {
        let (mut key, copy) = (0, copy.unwrap_or(copy_nothing));
        call!(
            self,
            comm_create_keyval(copy as *mut c_void, delete as *mut c_void, &mut key, extra)
        )?;
        Ok(key)
    }

    /// Frees a key of communicators; values set under it stay until their object is freed.
    pub fn comm_free_keyval(&self, mut key: c_int) -> Result<(), MpiError> {
        call!(self, comm_free_keyval(&mut key))
    }

    /// Sets a value of a communicator. The creator of the key vouched for its callbacks and
    /// their values.
    #[allow(clippy::not_unsafe_ptr_arg_deref)] // a token that only the callbacks look into
    pub fn comm_set_attr(&self, comm: Comm, key: c_int, value: Attribute) -> Result<(), MpiError> {
        call!(self, comm_set_attr(comm.0, key, value))
    }

    /// A value of a communicator.
    pub fn comm_get_attr(&self, comm: Comm, key: c_int) -> Result<Option<Attribute>, MpiError> {
        let (mut value, mut flag): (Attribute, _) = (ptr::null_mut(), 0);
        call!(
            self,
            comm_get_attr(comm.0, key, (&raw mut value).cast(), &mut flag)
        )?;
        Ok((flag != 0).then_some(value))
    }

    /// Deletes a value of a communicator.
    pub fn comm_delete_attr(&self, comm: Comm, key: c_int) -> Result<(), MpiError> {
        call!(self, comm_delete_attr(comm.0, key))
    }

    /// A key for values of datatypes. Without a copy callback, duplicates get no value.
    ///
    /// # Safety
    /// The callbacks must be sound for every value that is set under the key.
    pub unsafe fn type_create_keyval(
        &self,
        copy: Option<CopyAttribute>,
        delete: DeleteAttribute,
        extra: *mut c_void,
    ) -> Result<c_int, MpiError> {
        let (mut key, copy) = (0, copy.unwrap_or(copy_nothing));
        call!(
            self,
            type_create_keyval(copy as *mut c_void, delete as *mut c_void, &mut key, extra)
        )?;
        Ok(key)
    }

    /// Frees a key of datatypes; values set under it stay until their object is freed.
    pub fn type_free_keyval(&self, mut key: c_int) -> Result<(), MpiError> {
        call!(self, type_free_keyval(&mut key))
    }

    /// Sets a value of a datatype. The creator of the key vouched for its callbacks and their
    /// values.
    #[allow(clippy::not_unsafe_ptr_arg_deref)] // a token that only the callbacks look into
    pub fn type_set_attr(
        &self,
        datatype: Datatype,
        key: c_int,
        value: Attribute,
    ) -> Result<(), MpiError> {
        call!(self, type_set_attr(datatype.0, key, value))
    }

    /// A value of a datatype.
    pub fn type_get_attr(
        &self,
        datatype: Datatype,
        key: c_int,
    ) -> Result<Option<Attribute>, MpiError> {
        let (mut value, mut flag): (Attribute, _) = (ptr::null_mut(), 0);
        call!(
            self,
            type_get_attr(datatype.0, key, (&raw mut value).cast(), &mut flag)
        )?;
        Ok((flag != 0).then_some(value))
    }

    /// Deletes a value of a datatype.
    pub fn type_delete_attr(&self, datatype: Datatype, key: c_int) -> Result<(), MpiError> {
        call!(self, type_delete_attr(datatype.0, key))
    }
}
