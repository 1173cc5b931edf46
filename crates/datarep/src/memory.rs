//! Conversion between user buffers, as laid out by their datatypes, and file
//! bytes.
#![allow(unsafe_code)] // User buffers are raw memory, described by a datatype.

use crate::converter::Converter;
use crate::error::DatarepError;
use crate::user::{CallbackFunction, Transfer};
use std::ops::Range;

/// Size of the packed buffer that elements pass through: it stays in the L1
/// cache together with its converted form.
const STAGING_BYTES: u64 = 16 << 10;

impl Converter {
    /// Converts elements of the buffer at `origin` to packed file bytes.
    ///
    /// MPI's conversion functions are called with the user's own buffer and
    /// datatype, as the standard requires.
    ///
    /// # Safety
    /// The bytes of these elements, with the datatype tiled from `origin`, must
    /// be valid for reads and must not be written concurrently.
    pub unsafe fn gather(
        &self,
        origin: *const u8,
        elements: Range<u64>,
        file: &mut [u8],
    ) -> Result<(), DatarepError> {
        self.check_file_length(&elements, file.len())?;
        if let Some(convert) = self.representation.callbacks().write {
            return self.call(convert, origin.cast_mut(), elements, file.as_mut_ptr());
        }
        let layout = self.datatype.layout();
        let mut file = file;
        let mut staging = Vec::new();
        let mut left = elements;
        while !left.is_empty() {
            let piece = self.piece(left.clone(), STAGING_BYTES)?;
            let data = self.native_range(&piece)?;
            staging.resize((data.end - data.start) as usize, 0);
            // SAFETY: the caller vouches for the elements; `staging` has
            // exactly the length of the range.
            unsafe { layout.pack(origin, data, staging.as_mut_ptr()) };
            let (target, rest) = file.split_at_mut(self.file_len(&piece)?);
            self.to_file(piece.start, &staging, target)?;
            (file, left.start) = (rest, piece.end);
        }
        Ok(())
    }

    /// Converts file bytes to elements in the buffer at `origin`; the inverse
    /// of [`Converter::gather`].
    ///
    /// # Safety
    /// The bytes of these elements, with the datatype tiled from `origin`, must
    /// be valid for writes and must not be accessed concurrently.
    pub unsafe fn scatter(
        &self,
        file: &[u8],
        origin: *mut u8,
        elements: Range<u64>,
    ) -> Result<(), DatarepError> {
        self.check_file_length(&elements, file.len())?;
        if let Some(convert) = self.representation.callbacks().read {
            return self.call(convert, origin, elements, file.as_ptr().cast_mut());
        }
        let layout = self.datatype.layout();
        let mut file = file;
        let mut staging = Vec::new();
        let mut left = elements;
        while !left.is_empty() {
            let piece = self.piece(left.clone(), STAGING_BYTES)?;
            let data = self.native_range(&piece)?;
            staging.resize((data.end - data.start) as usize, 0);
            let (source, rest) = file.split_at(self.file_len(&piece)?);
            self.to_native(piece.start, source, &mut staging)?;
            // SAFETY: the caller vouches for the elements; `staging` has
            // exactly the length of the range.
            unsafe { layout.unpack(staging.as_ptr(), origin, data) };
            (file, left.start) = (rest, piece.end);
        }
        Ok(())
    }

    fn call(
        &self,
        convert: &CallbackFunction,
        user_buffer: *mut u8,
        elements: Range<u64>,
        file_buffer: *mut u8,
    ) -> Result<(), DatarepError> {
        let transfer = Transfer {
            user_buffer,
            datatype: &self.datatype,
            count: elements.end - elements.start,
            file_buffer,
            position: elements.start,
        };
        convert(&transfer).map_err(|source| DatarepError::User {
            representation: self.representation.name().to_owned(),
            source,
        })
    }

    fn native_range(&self, elements: &Range<u64>) -> Result<Range<u64>, DatarepError> {
        Ok(self.native_bytes_of(elements.start)?..self.native_bytes_of(elements.end)?)
    }

    fn check_file_length(&self, elements: &Range<u64>, file: usize) -> Result<(), DatarepError> {
        let native = self.native_range(elements)?;
        let native = native.end.saturating_sub(native.start) as usize;
        let forwards = elements.start <= elements.end;
        // A datatype without elements has none to offer.
        let there = self.datatype.signature().elements() > 0 || elements.is_empty();
        if forwards && there && self.file_len(elements)? == file {
            Ok(())
        } else {
            Err(DatarepError::Lengths { native, file })
        }
    }
}
