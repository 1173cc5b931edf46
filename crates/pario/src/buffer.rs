//! The user's memory and its datatype.
//!
//! `unsafe` is needed because memory is identified by its address: a datatype may describe
//! bytes before it, C programs have no slices, and a nonblocking operation outlives the call
//! that started it.
#![allow(unsafe_code)]

use std::{borrow::Cow, marker::PhantomData, mem, ops::Range};

use pario_datarep::Converter;
use pario_layout::{Basic, Datatype, Element};

use crate::{Error, ErrorKind, Result};

/// Items of a datatype at an address, with `bytes` bytes of data in total. The memory is valid
/// by the promise of its creator: a slice, a vector that a request owns, or a caller of
/// `from_raw`.
#[derive(Clone, Debug)]
pub(crate) struct Memory {
    origin: *mut u8,
    /// Predefined types are borrowed: counting references takes as long as the rest of a short
    /// call's memory.
    datatype: Cow<'static, Datatype>,
    bytes: u64,
    /// Why there is no memory, if there is none.
    failure: Option<Error>,
}

// SAFETY: `Memory` is an address and a description; its creator promised that any thread may
// use the bytes until the operation is done.
unsafe impl Send for Memory {}
// SAFETY: as above; nothing is reachable through a shared reference.
unsafe impl Sync for Memory {}

impl Memory {
    #[inline]
    fn new(origin: *mut u8, count: u64, datatype: Cow<'static, Datatype>) -> Result<Memory> {
        #[cold]
        fn too_many(count: u64, size: u64) -> Error {
            Error::argument(format!(
                "{count} items of {size} bytes are more than 2^63 - 1 bytes"
            ))
        }
        let size = datatype.size();
        let bytes = size
            .checked_mul(count)
            .filter(|bytes| *bytes <= i64::MAX as u64);
        let bytes = bytes.ok_or_else(|| too_many(count, size))?;
        Ok(Memory {
            origin,
            datatype,
            bytes,
            failure: None,
        })
    }

    fn in_slice(
        base: *mut u8,
        len: usize,
        origin: usize,
        count: u64,
        datatype: &Datatype,
    ) -> Result<Memory> {
        let memory = Memory::new(base.wrapping_add(origin), count, datatype.into())?;
        if memory.bytes == 0 {
            return Ok(memory);
        }
        let bounds = datatype.layout().run_bounds(0..memory.bytes);
        let (low, high) = bounds.ok_or_else(|| {
            Error::argument(format!(
                "{count} items of the datatype reach past 2^63 - 1 bytes"
            ))
        })?;
        let (first, end) = (
            origin as i128 + i128::from(low),
            origin as i128 + i128::from(high),
        );
        if first < 0 || end > len as i128 {
            return Err(Error::new(
                ErrorKind::Buffer,
                format!(
                    "{count} items of the datatype cover bytes {first}..{end} of a buffer of {len} bytes"
                ),
            ));
        }
        Ok(memory)
    }

    fn of_elements<T: Element>(base: *mut T, len: usize) -> Memory {
        Memory {
            origin: base.cast(),
            datatype: Cow::Borrowed(Datatype::basic_ref(T::BASIC)),
            bytes: mem::size_of::<T>() as u64 * len as u64,
            failure: None,
        }
    }

    /// The bytes of a slice. They must not be used otherwise as long as this is.
    pub(crate) fn of_bytes(bytes: &mut [u8]) -> Memory {
        Memory::of_elements(bytes.as_mut_ptr(), bytes.len())
    }

    fn failed(error: Error) -> Memory {
        Memory {
            origin: std::ptr::null_mut(),
            datatype: Cow::Borrowed(Datatype::basic_ref(Basic::Byte)),
            bytes: 0,
            failure: Some(error),
        }
    }

    /// Fails with the reason why there is no memory, if there is none.
    pub(crate) fn check(&self) -> Result<()> {
        match &self.failure {
            None => Ok(()),
            Some(error) => Err(error.clone()),
        }
    }

    /// Converts elements of this memory for the file.
    pub(crate) fn gather(
        &self,
        converter: &Converter,
        elements: Range<u64>,
        file: &mut [u8],
    ) -> Result<()> {
        // SAFETY: the memory is valid by the promise of its creator.
        Ok(unsafe { converter.gather(self.origin, elements, file) }?)
    }

    /// Converts elements of the file into this memory.
    pub(crate) fn scatter(
        &self,
        converter: &Converter,
        elements: Range<u64>,
        file: &[u8],
    ) -> Result<()> {
        // SAFETY: the memory is valid by the promise of its creator.
        Ok(unsafe { converter.scatter(file, self.origin, elements) }?)
    }

    pub(crate) fn origin(&self) -> *mut u8 {
        self.origin
    }

    pub(crate) fn datatype(&self) -> &Datatype {
        &self.datatype
    }

    /// The number of data bytes in memory.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// The data of a write: a slice of numbers, or bytes described by a datatype.
///
/// ```
/// use pario::{Datatype, Source};
///
/// // Every second number of a buffer.
/// let every_second = Datatype::vector(50, 1, 2, &Datatype::of::<u8>())?;
/// let source = Source::typed(&[7; 100], 1, &every_second)?;
/// # let _ = source;
/// # Ok::<(), pario::Error>(())
/// ```
#[derive(Debug)]
pub struct Source<'a> {
    pub(crate) memory: Memory,
    lifetime: PhantomData<&'a [u8]>,
}

/// The memory that a read fills: a slice of numbers, or bytes described by a datatype.
#[derive(Debug)]
pub struct Target<'a> {
    pub(crate) memory: Memory,
    lifetime: PhantomData<&'a mut [u8]>,
}

impl<'a> Source<'a> {
    /// No memory, because its description is invalid. The call that gets this fails with the
    /// error; a collective call does so on all ranks, so that none waits for this one.
    #[doc(hidden)]
    #[must_use]
    pub fn failed(error: Error) -> Self {
        Source {
            memory: Memory::failed(error),
            lifetime: PhantomData,
        }
    }

    /// `count` items of `datatype`, the first at the start of `bytes`.
    pub fn typed(bytes: &'a [u8], count: u64, datatype: &Datatype) -> Result<Source<'a>> {
        Source::typed_at(bytes, 0, count, datatype)
    }

    /// As [`Source::typed`], with byte 0 of the datatype at `bytes[origin]`: for datatypes with
    /// negative displacements.
    pub fn typed_at(
        bytes: &'a [u8],
        origin: usize,
        count: u64,
        datatype: &Datatype,
    ) -> Result<Source<'a>> {
        let memory = Memory::in_slice(
            bytes.as_ptr().cast_mut(),
            bytes.len(),
            origin,
            count,
            datatype,
        )?;
        Ok(Source {
            memory,
            lifetime: PhantomData,
        })
    }

    /// Memory at an address.
    ///
    /// # Safety
    /// Every byte that `count` items of `datatype` describe at `origin` must be valid for reads
    /// for `'a`.
    #[inline]
    pub unsafe fn from_raw(
        origin: *const u8,
        count: u64,
        datatype: impl Into<Cow<'static, Datatype>>,
    ) -> Result<Source<'a>> {
        let memory = Memory::new(origin.cast_mut(), count, datatype.into())?;
        Ok(Source {
            memory,
            lifetime: PhantomData,
        })
    }
}

impl<'a> Target<'a> {
    /// No memory, because its description is invalid. The call that gets this fails with the
    /// error; a collective call does so on all ranks, so that none waits for this one.
    #[doc(hidden)]
    #[must_use]
    pub fn failed(error: Error) -> Self {
        Target {
            memory: Memory::failed(error),
            lifetime: PhantomData,
        }
    }

    /// `count` items of `datatype`, the first at the start of `bytes`.
    pub fn typed(bytes: &'a mut [u8], count: u64, datatype: &Datatype) -> Result<Target<'a>> {
        Target::typed_at(bytes, 0, count, datatype)
    }

    /// As [`Target::typed`], with byte 0 of the datatype at `bytes[origin]`: for datatypes with
    /// negative displacements.
    pub fn typed_at(
        bytes: &'a mut [u8],
        origin: usize,
        count: u64,
        datatype: &Datatype,
    ) -> Result<Target<'a>> {
        let memory = Memory::in_slice(bytes.as_mut_ptr(), bytes.len(), origin, count, datatype)?;
        Ok(Target {
            memory,
            lifetime: PhantomData,
        })
    }

    /// Memory at an address.
    ///
    /// # Safety
    /// Every byte that `count` items of `datatype` describe at `origin` must be valid for
    /// writes for `'a`, and nothing else may access it.
    #[inline]
    pub unsafe fn from_raw(
        origin: *mut u8,
        count: u64,
        datatype: impl Into<Cow<'static, Datatype>>,
    ) -> Result<Target<'a>> {
        Ok(Target {
            memory: Memory::new(origin, count, datatype.into())?,
            lifetime: PhantomData,
        })
    }
}

impl<'a, T: Element> From<&'a [T]> for Source<'a> {
    fn from(slice: &'a [T]) -> Self {
        let memory = Memory::of_elements(slice.as_ptr().cast_mut(), slice.len());
        Source {
            memory,
            lifetime: PhantomData,
        }
    }
}

impl<'a, T: Element, const N: usize> From<&'a [T; N]> for Source<'a> {
    fn from(array: &'a [T; N]) -> Self {
        Source::from(array.as_slice())
    }
}

impl<'a, T: Element> From<&'a Vec<T>> for Source<'a> {
    fn from(vec: &'a Vec<T>) -> Self {
        Source::from(vec.as_slice())
    }
}

impl<'a, T: Element> From<&'a mut [T]> for Target<'a> {
    fn from(slice: &'a mut [T]) -> Self {
        let memory = Memory::of_elements(slice.as_mut_ptr(), slice.len());
        Target {
            memory,
            lifetime: PhantomData,
        }
    }
}

impl<'a, T: Element, const N: usize> From<&'a mut [T; N]> for Target<'a> {
    fn from(array: &'a mut [T; N]) -> Self {
        Target::from(array.as_mut_slice())
    }
}

impl<'a, T: Element> From<&'a mut Vec<T>> for Target<'a> {
    fn from(vec: &'a mut Vec<T>) -> Self {
        Target::from(vec.as_mut_slice())
    }
}

/// A vector that a nonblocking operation owns. It is kept as its raw parts, so that no Rust
/// reference to the elements exists while others use them.
#[derive(Debug)]
pub struct Owned<T: Element> {
    data: *mut T,
    len: usize,
    capacity: usize,
    pub(crate) memory: Memory,
}

// SAFETY: it owns its elements, as the vector did, and elements are `Send`.
unsafe impl<T: Element> Send for Owned<T> {}

impl<T: Element> Owned<T> {
    /// No memory, because its description is invalid. The call that gets this fails with the
    /// error; a collective call does so on all ranks, so that none waits for this one.
    #[doc(hidden)]
    #[must_use]
    pub fn failed(error: Error) -> Self {
        let mut owned = Owned::from(Vec::new());
        owned.memory = Memory::failed(error);
        owned
    }

    /// `count` items of `datatype`, with byte 0 of the datatype at byte `origin` of the vector.
    pub fn typed_at(
        vec: Vec<T>,
        origin: usize,
        count: u64,
        datatype: &Datatype,
    ) -> Result<Owned<T>> {
        let mut owned = Owned::from(vec);
        let len = mem::size_of::<T>() * owned.len;
        owned.memory = Memory::in_slice(owned.data.cast(), len, origin, count, datatype)?;
        Ok(owned)
    }

    /// `count` items of `datatype`, the first at the start of the vector.
    pub fn typed(vec: Vec<T>, count: u64, datatype: &Datatype) -> Result<Owned<T>> {
        Owned::typed_at(vec, 0, count, datatype)
    }

    /// Memory at an address, owned by the caller: the vector that is returned with the result
    /// is empty.
    ///
    /// # Safety
    /// Until the operation is done or its request has been waited for, every byte that `count`
    /// items of `datatype` describe at `origin` must be valid for reads and, if the operation
    /// reads the file, for writes. In the meantime, nothing else may write these bytes, or read
    /// them if the operation writes them.
    pub unsafe fn from_raw(origin: *mut u8, count: u64, datatype: &Datatype) -> Result<Owned<T>> {
        let mut owned = Owned::from(Vec::new());
        owned.memory = Memory::new(origin, count, datatype.into())?;
        Ok(owned)
    }

    /// Returns the vector. No operation may still use it.
    pub(crate) fn into_vec(self) -> Vec<T> {
        let this = mem::ManuallyDrop::new(self);
        // SAFETY: the parts come from a vector that `from` took apart, and are reassembled
        // once: `self` is not dropped.
        unsafe { Vec::from_raw_parts(this.data, this.len, this.capacity) }
    }
}

impl<T: Element> From<Vec<T>> for Owned<T> {
    fn from(vec: Vec<T>) -> Owned<T> {
        let mut vec = mem::ManuallyDrop::new(vec);
        let memory = Memory::of_elements(vec.as_mut_ptr(), vec.len());
        Owned {
            data: vec.as_mut_ptr(),
            len: vec.len(),
            capacity: vec.capacity(),
            memory,
        }
    }
}

impl<T: Element> Drop for Owned<T> {
    fn drop(&mut self) {
        // SAFETY: the parts come from a vector and are reassembled once.
        drop(unsafe { Vec::from_raw_parts(self.data, self.len, self.capacity) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_that_reaches_outside_the_buffer_is_an_error() {
        let strided = Datatype::vector(4, 1, 2, &Basic::Int32.into()).unwrap();
        let bytes = [0u8; 28];
        assert_eq!(
            Source::typed(&bytes, 1, &strided).unwrap().memory.bytes(),
            16
        );
        let error = Source::typed(&bytes[..27], 1, &strided).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Buffer);
        assert!(error.to_string().contains("0..28"), "{error}");
    }

    #[test]
    fn a_negative_displacement_needs_bytes_below_the_origin() {
        let below = Datatype::hindexed(&[(1, -4)], &Basic::Int32.into()).unwrap();
        assert!(Source::typed(&[0; 8], 1, &below).is_err());
        assert!(Source::typed_at(&[0; 8], 4, 1, &below).is_ok());
    }

    #[test]
    fn an_owned_vector_comes_back_whole() {
        let mut vec = Vec::with_capacity(10);
        vec.extend([1i64, 2, 3]);
        let address = vec.as_ptr();
        let back = Owned::from(vec).into_vec();
        assert_eq!(
            (back.as_ptr(), back.capacity(), &back[..]),
            (address, 10, &[1, 2, 3][..])
        );
    }

    #[test]
    fn a_size_past_the_range_of_offsets_is_an_error() {
        let huge = Datatype::contiguous(1 << 40, &Basic::Double.into()).unwrap();
        // SAFETY: nothing is read through the address.
        let error = unsafe { Source::from_raw(std::ptr::null(), 1 << 40, &huge) }.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Argument);
    }
}
