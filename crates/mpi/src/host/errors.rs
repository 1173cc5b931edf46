//! Error codes, classes, texts and handlers.

#![allow(unsafe_code)] // Calls the host.

use std::ffi::{CString, c_int, c_void};

use super::abi::Slot;
use super::classes::ErrorClass;
use super::environment::TextBuffer;
use super::{Host, call};
use crate::error::MpiError;
use crate::handles::Errhandler;

impl Host {
    /// The number of a class on this host.
    pub fn error_class(&self, class: ErrorClass) -> c_int {
        class.number(self.flavour())
    }

    /// The class of a code, if it is one of the standard's.
    pub fn class_of(&self, code: c_int) -> Option<ErrorClass> {
        ErrorClass::from_number(self.flavour(), self.class_number_of(code))
    }

    /// The number of a code's class, which may be one that the program added.
    pub fn class_number_of(&self, code: c_int) -> c_int {
        let mut class = code;
        // SAFETY: the pointer is valid for writes. Not `call!`, whose errors ask for their
        // class.
        match unsafe { (self.functions.error_class)(code, &mut class) } {
            0 => class,
            _ => code,
        }
    }

    /// The host's text for a code.
    pub fn error_string(&self, code: c_int) -> String {
        let mut text = TextBuffer::new(self.constants().max_error_string);
        let mut len = 0;
        // SAFETY: the buffer holds the host's longest text. Not `call!`, whose errors ask for
        // their text.
        match unsafe { (self.functions.error_string)(code, text.pointer(), &mut len) } {
            0 => text.string(),
            _ => format!("the MPI has no text for code {code}"),
        }
    }

    /// A new class.
    pub fn add_error_class(&self) -> Result<c_int, MpiError> {
        let mut class = 0;
        call!(self, add_error_class(&mut class))?;
        Ok(class)
    }

    /// A new code of a class.
    pub fn add_error_code(&self, class: c_int) -> Result<c_int, MpiError> {
        let mut code = 0;
        call!(self, add_error_code(class, &mut code))?;
        Ok(code)
    }

    /// Sets the text of a code that was added, truncated to the host's maximum.
    pub fn add_error_string(&self, code: c_int, text: &str) -> Result<(), MpiError> {
        let mut end = text.len().min(self.constants().max_error_string - 1);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let text: Vec<u8> = text[..end].bytes().filter(|&byte| byte != 0).collect();
        let text = CString::new(text).expect("NULs were left out");
        call!(self, add_error_string(code, text.as_ptr()))
    }

    /// An error handler for files that calls a function of C, to be freed.
    ///
    /// # Safety
    /// `function` must be a C function that takes a file's address, a code's address and more
    /// arguments.
    pub unsafe fn file_create_errhandler(
        &self,
        function: *mut c_void,
    ) -> Result<Errhandler, MpiError> {
        let mut slot = self.slot();
        call!(self, file_create_errhandler(function, slot.pointer()))?;
        Ok(Errhandler(slot.handle()))
    }

    /// `MPI_Errhandler_free`.
    pub fn errhandler_free(&self, handler: Errhandler) -> Result<(), MpiError> {
        let mut slot = Slot::new(self.flavour(), handler.0);
        call!(self, errhandler_free(slot.pointer()))
    }
}
