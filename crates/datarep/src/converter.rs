//! A representation applied to the elements of a datatype.

use crate::columns::Columns;
use crate::error::DatarepError;
use crate::representation::Representation;
use crate::sizes::FileSizes;
use pario_layout::{Basic, Datatype};
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// With fewer instances, structures are converted run by run. With two or more, at
/// least one is complete wherever the range starts.
const INSTANCES_MIN: u64 = 8;

/// Converts elements between memory and a file, in pieces of any size.
///
/// Elements are those of the datatype's type map, which repeats forever: element `k`
/// is the `k`-th value of a buffer with sufficiently many instances. Both native and
/// file buffers are packed.
///
/// ```
/// use pario_datarep::{Converter, external32};
/// use pario_layout::{Basic, Datatype};
///
/// let converter = Converter::new(external32(), &Datatype::basic(Basic::Long))?;
/// let native: Vec<u8> = [1i64, -2].into_iter().flat_map(i64::to_ne_bytes).collect();
/// let mut file = [0; 8];
/// converter.to_file(0, &native, &mut file)?;
/// assert_eq!(file, [0, 0, 0, 1, 0xff, 0xff, 0xff, 0xfe]);
/// # Ok::<(), pario_datarep::DatarepError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Converter {
    pub(crate) representation: Arc<dyn Representation>,
    pub(crate) datatype: Datatype,
    sizes: FileSizes,
    /// Columns, if the datatype is a short structure; created when first needed.
    columns: OnceLock<Option<Columns>>,
}

/// A number of bytes, expressed in elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Elements {
    /// Complete elements.
    pub whole: u64,
    /// Bytes of the next element; not zero if the bytes end within an element.
    pub rest: u64,
}

impl Converter {
    /// A converter for buffers of `datatype`.
    pub fn new(
        representation: Arc<dyn Representation>,
        datatype: &Datatype,
    ) -> Result<Converter, DatarepError> {
        let sizes = FileSizes::of(&*representation, datatype.signature())?;
        Ok(Converter {
            representation,
            datatype: datatype.clone(),
            sizes,
            columns: OnceLock::new(),
        })
    }

    /// The representation.
    pub fn representation(&self) -> &Arc<dyn Representation> {
        &self.representation
    }

    /// Whether the file holds native bytes, so that conversion is a copy.
    pub fn is_identity(&self) -> bool {
        self.sizes
            .basics()
            .all(|basic| self.representation.keeps_bytes(basic))
    }

    /// Native size of the first `elements`, in bytes.
    pub fn native_bytes_of(&self, elements: u64) -> Result<u64, DatarepError> {
        self.bytes_of(elements, &Basic::size)
    }

    /// File size of the first `elements`, in bytes.
    pub fn file_bytes_of(&self, elements: u64) -> Result<u64, DatarepError> {
        self.bytes_of(elements, &|basic| self.sizes.get(basic))
    }

    /// The elements in the first `native_bytes` bytes of memory.
    pub fn elements_in_native(&self, native_bytes: u64) -> Elements {
        self.elements_in_bytes(native_bytes, &Basic::size)
    }

    /// The elements in the first `file_bytes` bytes of the file. An element cut off
    /// by the end of the file cannot be converted and does not count.
    pub fn elements_in(&self, file_bytes: u64) -> Elements {
        self.elements_in_bytes(file_bytes, &|basic| self.sizes.get(basic))
    }

    /// The longest prefix of `elements` that fits in buffers of `limit` bytes, but at
    /// least one element (unless the range is empty): the next step of a long
    /// transfer in bounded memory.
    pub fn piece(&self, elements: Range<u64>, limit: u64) -> Result<Range<u64>, DatarepError> {
        let Range { start, end } = elements;
        let fitting = |start_byte: u64, size_of: &dyn Fn(Basic) -> u64| {
            self.elements_in_bytes(start_byte.saturating_add(limit), size_of)
                .whole
        };
        let in_file = fitting(self.file_bytes_of(start)?, &|basic| self.sizes.get(basic));
        let in_memory = fitting(self.native_bytes_of(start)?, &Basic::size);
        let fits = in_file.min(in_memory).max(start.saturating_add(1));
        Ok(start..fits.min(end))
    }

    /// Converts the packed elements in `native`, starting with element `first`.
    ///
    /// An error reports its element counted from element 0 of the datatype, and
    /// leaves the contents of `file` unspecified.
    pub fn to_file(&self, first: u64, native: &[u8], file: &mut [u8]) -> Result<(), DatarepError> {
        let elements = self.check_buffers(first, native.len(), file.len())?;
        let (mut native, mut file) = (native, file);
        for segment in self.segments(elements)? {
            let (from, native_rest) = native.split_at(segment.native_len);
            let (to, file_rest) = file.split_at_mut(segment.file_len);
            let converted = match &segment.content {
                Content::Run(basic) => self.representation.to_file(*basic, from, to),
                Content::Instances(columns) => columns.to_file(&*self.representation, from, to),
            };
            converted.map_err(|error| error.after(segment.first))?;
            (native, file) = (native_rest, file_rest);
        }
        Ok(())
    }

    /// Converts the packed elements in `file`, starting with element `first`; the
    /// inverse of [`Converter::to_file`].
    pub fn to_native(
        &self,
        first: u64,
        file: &[u8],
        native: &mut [u8],
    ) -> Result<(), DatarepError> {
        let elements = self.check_buffers(first, native.len(), file.len())?;
        let (mut native, mut file) = (native, file);
        for segment in self.segments(elements)? {
            let (to, native_rest) = native.split_at_mut(segment.native_len);
            let (from, file_rest) = file.split_at(segment.file_len);
            let converted = match &segment.content {
                Content::Run(basic) => self.representation.to_native(*basic, from, to),
                Content::Instances(columns) => columns.to_native(&*self.representation, from, to),
            };
            converted.map_err(|error| error.after(segment.first))?;
            (native, file) = (native_rest, file_rest);
        }
        Ok(())
    }

    /// Segments that are converted in one call: the complete instances of a short
    /// structure together, the elements before and after them in runs.
    fn segments(
        &self,
        elements: Range<u64>,
    ) -> Result<impl Iterator<Item = Segment<'_>>, DatarepError> {
        let Range { start, end } = elements;
        let (whole, instances) = match self.columns(end - start) {
            Some(columns) => {
                let whole =
                    start.next_multiple_of(columns.period)..end / columns.period * columns.period;
                let instances = Segment {
                    first: whole.start,
                    native_len: self.len_of(&whole, &Basic::size)?,
                    file_len: self.file_len(&whole)?,
                    content: Content::Instances(columns),
                };
                (whole, Some(instances))
            }
            None => (end..end, None),
        };
        let (before, after) = (self.runs(start..whole.start), self.runs(whole.end..end));
        Ok(before.chain(instances).chain(after))
    }

    /// The columns of the datatype, if there are enough elements to pay for them.
    fn columns(&self, elements: u64) -> Option<&Columns> {
        let signature = self.datatype.signature();
        let instances = elements.checked_div(signature.elements())?;
        if instances < INSTANCES_MIN {
            return None;
        }
        self.columns
            .get_or_init(|| Columns::of(signature, &self.sizes))
            .as_ref()
    }

    fn runs(&self, elements: Range<u64>) -> impl Iterator<Item = Segment<'_>> {
        let mut next = elements.start;
        self.datatype
            .signature()
            .runs(elements)
            .map(move |(basic, count)| {
                let first = next;
                next += count;
                Segment {
                    first,
                    native_len: (count * basic.size()) as usize,
                    file_len: (count * self.sizes.get(basic)) as usize,
                    content: Content::Run(basic),
                }
            })
    }

    /// Size in the file of a range of elements.
    pub(crate) fn file_len(&self, elements: &Range<u64>) -> Result<usize, DatarepError> {
        self.len_of(elements, &|basic| self.sizes.get(basic))
    }

    fn len_of(&self, elements: &Range<u64>, size_of: SizeOf<'_>) -> Result<usize, DatarepError> {
        let bytes =
            self.bytes_of(elements.end, size_of)? - self.bytes_of(elements.start, size_of)?;
        usize::try_from(bytes).map_err(|_| DatarepError::TooLarge)
    }

    /// The elements, starting with `first`, in buffers of these lengths; an error
    /// unless both hold the same complete elements.
    pub(crate) fn check_buffers(
        &self,
        first: u64,
        native: usize,
        file: usize,
    ) -> Result<Range<u64>, DatarepError> {
        let mismatch = || DatarepError::Lengths { native, file };
        let native_start = self.native_bytes_of(first)?;
        let native_end = native_start
            .checked_add(native as u64)
            .ok_or(DatarepError::TooLarge)?;
        let end = self.elements_in_native(native_end);
        let file_bytes = self.file_bytes_of(end.whole)? - self.file_bytes_of(first)?;
        let whole = end.rest == 0 && file_bytes == file as u64;
        // A datatype without elements has no bytes either.
        let empty = self.datatype.signature().elements() == 0 && (native, file) != (0, 0);
        if whole && !empty {
            Ok(first..end.whole)
        } else {
            Err(mismatch())
        }
    }

    fn bytes_of(&self, elements: u64, size_of: SizeOf<'_>) -> Result<u64, DatarepError> {
        let signature = self.datatype.signature();
        if signature.elements() == 0 {
            return Ok(0);
        }
        signature
            .bytes_of(elements, size_of)
            .ok_or(DatarepError::TooLarge)
    }

    fn elements_in_bytes(&self, bytes: u64, size_of: SizeOf<'_>) -> Elements {
        match self.datatype.signature().element_at(bytes, size_of) {
            Some((whole, rest)) => Elements { whole, rest },
            None => Elements { whole: 0, rest: 0 },
        }
    }
}

/// Elements that are converted in one call.
struct Segment<'a> {
    first: u64,
    native_len: usize,
    file_len: usize,
    content: Content<'a>,
}

enum Content<'a> {
    /// Elements of one type.
    Run(Basic),
    /// Whole instances of a structure.
    Instances(&'a Columns),
}

type SizeOf<'a> = &'a dyn Fn(Basic) -> u64;
