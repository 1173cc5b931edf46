//! Info objects.

#![allow(unsafe_code)] // Calls the host.

use std::ffi::{CStr, CString, c_int};

use super::abi::Slot;
use super::environment::TextBuffer;
use super::{Host, call, functions};
use crate::error::MpiError;
use crate::handles::Info;

impl Host {
    /// Every key with its value, in the host's order; nothing for `MPI_INFO_NULL`.
    pub fn info_pairs(&self, info: Info) -> Result<Vec<(String, String)>, MpiError> {
        if info == self.predefined().info_null {
            return Ok(Vec::new());
        }
        let mut count = 0;
        call!(self, info_get_nkeys(info.0, &mut count))?;
        let mut pairs = Vec::new();
        for index in 0..count {
            let mut key = TextBuffer::new(self.constants().max_info_key);
            call!(self, info_get_nthkey(info.0, index, key.pointer()))?;
            let key = key.string();
            if let Some(value) = self.info_get(info, &key)? {
                pairs.push((key, value));
            }
        }
        Ok(pairs)
    }

    /// The value of a key.
    pub fn info_get(&self, info: Info, key: &str) -> Result<Option<String>, MpiError> {
        let Ok(key) = CString::new(key) else {
            return Ok(None);
        };
        match (self.functions.info_get_string, self.functions.info_get) {
            (Some(get), _) => self.info_get_string(get, info, &key),
            (None, Some(get)) => {
                let (limit, mut flag) = (self.constants().max_info_val, 0);
                let mut value = TextBuffer::new(limit);
                let length = limit as c_int;
                // SAFETY: the buffer holds `length` bytes and the final NUL.
                let code = unsafe { get(info.0, key.as_ptr(), length, value.pointer(), &mut flag) };
                self.check(functions::name::info_get, code)?;
                Ok((flag != 0).then(|| value.string()))
            }
            (None, None) => Ok(None),
        }
    }

    fn info_get_string(
        &self,
        get: unsafe extern "C" fn(
            functions::Handle,
            functions::ConstText,
            functions::Ints,
            functions::Text,
            functions::Ints,
        ) -> c_int,
        info: Info,
        key: &CStr,
    ) -> Result<Option<String>, MpiError> {
        let limit = self.constants().max_info_val;
        let mut value = TextBuffer::new(limit);
        let (mut length, mut flag) = (limit as c_int + 1, 0);
        // SAFETY: the text has `length` bytes, the final NUL included.
        let code = unsafe {
            get(
                info.0,
                key.as_ptr(),
                &mut length,
                value.pointer(),
                &mut flag,
            )
        };
        self.check(functions::name::info_get_string, code)?;
        Ok((flag != 0).then(|| value.string()))
    }

    /// A new info object with these pairs, to be freed. Pairs whose key or value exceeds the
    /// host's limits are omitted.
    pub fn info_from_pairs<K, V>(
        &self,
        pairs: impl IntoIterator<Item = (K, V)>,
    ) -> Result<Info, MpiError>
    where
        K: AsRef<str>,
        V: AsRef<str>,
    {
        let mut slot = self.slot();
        call!(self, info_create(slot.pointer()))?;
        let info = Info(slot.handle());
        for (key, value) in pairs {
            if let Err(error) = self.info_set(info, key.as_ref(), value.as_ref()) {
                // The first error is the one to report.
                let _ = self.info_free(info);
                return Err(error);
            }
        }
        Ok(info)
    }

    /// Sets a key; does nothing if the key or the value exceeds the host's limits.
    pub fn info_set(&self, info: Info, key: &str, value: &str) -> Result<(), MpiError> {
        let constants = self.constants();
        let fits = (1..constants.max_info_key).contains(&key.len())
            && value.len() < constants.max_info_val;
        match (fits, CString::new(key), CString::new(value)) {
            (true, Ok(key), Ok(value)) => {
                call!(self, info_set(info.0, key.as_ptr(), value.as_ptr()))
            }
            _ => Ok(()),
        }
    }

    /// `MPI_Info_dup`.
    pub fn info_dup(&self, info: Info) -> Result<Info, MpiError> {
        let mut slot = self.slot();
        call!(self, info_dup(info.0, slot.pointer()))?;
        Ok(Info(slot.handle()))
    }

    /// `MPI_Info_free`.
    pub fn info_free(&self, info: Info) -> Result<(), MpiError> {
        let mut slot = Slot::new(self.flavour(), info.0);
        call!(self, info_free(slot.pointer()))
    }
}
