//! Decoded datatypes, kept with the host's objects.

#![allow(unsafe_code)] // Values of attributes are boxes behind C's pointers.

use std::ffi::{c_int, c_void};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use pario_layout::{Datatype as Layout, TypeError};

use super::known_sizes::KnownSizes;
use super::observed::ObservedTypes;
use super::predefined::PredefinedTypes;
use crate::error::MpiError;
use crate::handles::Datatype;
use crate::host::abi::Flavour;
use crate::host::{Attribute, Host};

/// What is known about a datatype.
#[derive(Clone, Debug)]
pub(super) struct Known {
    pub(super) layout: Layout,
    /// Whether it is known to be committed, which never changes.
    pub(super) committed: bool,
}

/// Whether anything is kept with a datatype.
pub(super) enum Kept {
    Nothing,
    /// The size of a committed type that is contiguous.
    Contiguous(u64),
    /// Its layout.
    Layout,
}

/// What the attribute of a datatype holds.
enum Value {
    /// The size of a committed type that is contiguous: all that calls need to know of it, so
    /// there is no box to find.
    Contiguous(u64),
    /// A box.
    Known(*mut Known),
}

impl Value {
    /// Addresses of boxes are even.
    fn of(attribute: Attribute) -> Value {
        match attribute.addr() & 1 {
            0 => Value::Known(attribute.cast()),
            _ => Value::Contiguous((attribute.addr() >> 1) as u64),
        }
    }

    /// The attribute of a contiguous type, if its size can be represented.
    fn contiguous(bytes: u64) -> Option<Attribute> {
        let doubled = usize::try_from(bytes).ok()?.checked_mul(2)?;
        Some(std::ptr::without_provenance_mut(doubled | 1))
    }
}

/// The decoded datatypes.
///
/// Predefined types live as long as the host and are kept in a table. Derived ones have their
/// layout as an attribute, which the host deletes together with the type: its handle may stand
/// for another type later.
#[derive(Debug, Default)]
pub(crate) struct Decoded {
    predefined: PredefinedTypes,
    /// The attribute's key. Held while a value is read or set, so that no other thread replaces
    /// a value while it is being cloned.
    key: Mutex<Option<c_int>>,
    /// The same key, for those who only look at the attribute itself.
    made_key: OnceLock<c_int>,
    /// The attributes that are sizes. The callback that deletes attributes has a reference, too.
    sizes: Arc<KnownSizes>,
    /// Contiguous types that need no attribute.
    observed: ObservedTypes,
    /// The last repetition: programs often make the same type again.
    repeated: Mutex<Option<Repeated>>,
}

#[derive(Debug)]
struct Repeated {
    count: u64,
    of: Layout,
    made: Layout,
}

/// What the callbacks of the key get.
struct Extra {
    flavour: Flavour,
    sizes: Arc<KnownSizes>,
}

impl Decoded {
    /// What is known about a datatype, if anything.
    pub(super) fn get(&self, host: &Host, datatype: Datatype) -> Result<Option<Known>, MpiError> {
        if let Some(layout) = self.predefined(datatype) {
            return Ok(Some(Known {
                layout: layout.clone(),
                committed: true,
            }));
        }
        let key = self.key.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(key) = *key else {
            return Ok(None);
        };
        if datatype == host.predefined().datatype_null {
            return Ok(None);
        }
        let value = host.type_get_attr(datatype, key)?.map(Value::of);
        Ok(match value {
            // SAFETY: boxes under this key are made by `keep` or cloned by `copy`; the lock
            // keeps other threads from replacing this one.
            Some(Value::Known(known)) => Some(unsafe { (*known).clone() }),
            Some(Value::Contiguous(_)) | None => None,
        })
    }

    /// What is kept with a derived type that is used for data.
    #[inline]
    pub(super) fn kept(&self, host: &Host, datatype: Datatype) -> Result<Kept, MpiError> {
        if let Some(bytes) = self.sizes.get(datatype) {
            return Ok(Kept::Contiguous(bytes));
        }
        let Some(key) = self.made_key.get() else {
            return Ok(Kept::Nothing);
        };
        let value = host.type_get_attr(datatype, *key)?.map(Value::of);
        Ok(match value {
            Some(Value::Contiguous(bytes)) => {
                self.sizes.insert(datatype, bytes);
                Kept::Contiguous(bytes)
            }
            Some(Value::Known(_)) => Kept::Layout,
            None => Kept::Nothing,
        })
    }

    /// The contiguous types that the program was seen to make.
    pub(super) fn observed(&self) -> &ObservedTypes {
        &self.observed
    }

    /// A contiguous type.
    pub(super) fn contiguous(&self, count: u64, of: &Layout) -> Result<Layout, TypeError> {
        let mut last = self.repeated.lock().unwrap_or_else(PoisonError::into_inner);
        match &*last {
            Some(same) if same.count == count && same.of == *of => Ok(same.made.clone()),
            _ => {
                let made = Layout::contiguous(count, of)?;
                *last = Some(Repeated {
                    count,
                    of: of.clone(),
                    made: made.clone(),
                });
                Ok(made)
            }
        }
    }

    /// The layout of a predefined type, if it has been decoded.
    pub(super) fn predefined(&self, datatype: Datatype) -> Option<&Layout> {
        self.predefined.get(datatype)
    }

    /// Keeps the layout of a type that lives as long as the host.
    pub(super) fn keep_predefined(&self, datatype: Datatype, layout: &Layout) {
        self.predefined.insert(datatype, layout);
    }

    /// Keeps what is known about a derived type until the type is freed.
    pub(super) fn keep(
        &self,
        host: &Host,
        datatype: Datatype,
        known: Known,
    ) -> Result<(), MpiError> {
        let value = Box::into_raw(Box::new(known));
        self.set(host, datatype, value.cast()).inspect_err(|_| {
            // SAFETY: the host did not take the box made above.
            drop(unsafe { Box::from_raw(value) });
        })
    }

    /// Keeps that a committed derived type is contiguous, until the type is freed. Returns
    /// whether that was possible.
    pub(super) fn keep_contiguous(
        &self,
        host: &Host,
        datatype: Datatype,
        bytes: u64,
    ) -> Result<bool, MpiError> {
        let Some(value) = Value::contiguous(bytes) else {
            return Ok(false);
        };
        self.set(host, datatype, value)?;
        self.sizes.insert(datatype, bytes);
        Ok(true)
    }

    fn set(&self, host: &Host, datatype: Datatype, value: Attribute) -> Result<(), MpiError> {
        let mut key = self.key.lock().unwrap_or_else(PoisonError::into_inner);
        let key = match *key {
            Some(key) => key,
            None => {
                let extra = Box::into_raw(Box::new(Extra {
                    flavour: host.flavour(),
                    sizes: self.sizes.clone(),
                }));
                // SAFETY: the callbacks know both kinds of values that are set under this key, and
                // `extra` lives as long as the process, as the key does.
                let made = unsafe { host.type_create_keyval(Some(copy), delete, extra.cast())? };
                *key.insert(*self.made_key.get_or_init(|| made))
            }
        };
        host.type_set_attr(datatype, key, value)
    }
}

/// A duplicate has the same layout, and is committed if its original is.
unsafe extern "C" fn copy(
    _datatype: u64,
    _key: c_int,
    _extra: *mut c_void,
    value: Attribute,
    copy: *mut Attribute,
    flag: *mut c_int,
) -> c_int {
    // SAFETY: the host passes a value that was set under our key, and two writable places.
    unsafe {
        let copied = match Value::of(value) {
            Value::Contiguous(_) => value,
            Value::Known(known) => Box::into_raw(Box::new((*known).clone())).cast(),
        };
        copy.write(copied);
        flag.write(1);
    }
    0
}

/// The type is freed, or gets another value.
unsafe extern "C" fn delete(
    datatype: u64,
    _key: c_int,
    value: Attribute,
    extra: *mut c_void,
) -> c_int {
    match Value::of(value) {
        // SAFETY: the host passes a value that was set under our key, for the last time.
        Value::Known(known) => drop(unsafe { Box::from_raw(known) }),
        Value::Contiguous(_) => {
            // SAFETY: the host passes what the key was made with, which is never freed.
            let extra = unsafe { &*extra.cast::<Extra>() };
            let handle = extra.flavour.from_register(datatype);
            extra.sizes.forget(Datatype(handle));
        }
    }
    0
}
