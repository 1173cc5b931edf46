//! An access of one rank, with everything that is derived from its arguments.

use std::{ops::Range, sync::Arc};

use pario_datarep::Converter;
use pario_driver::Direction;

use crate::{Error, Result, buffer::Memory, view::FlattenedView};

/// The memory of an access and its place in the file. It is derived once per
/// call; all later steps only read it.
#[derive(Debug)]
pub(crate) struct ResolvedAccess {
    pub(crate) direction: Direction,
    pub(crate) view: Arc<FlattenedView>,
    /// First data byte of the view.
    pub(crate) first: u64,
    pub(crate) memory: Memory,
    /// Converts the elements, if the file does not store them as they are in memory.
    pub(crate) converter: Option<Converter>,
    /// The size of the data in the file, in bytes.
    pub(crate) file_bytes: u64,
    /// From the first byte of the file to the end of the last; empty if the
    /// access touches no byte.
    pub(crate) range: Range<u64>,
}

impl ResolvedAccess {
    /// An access at an offset of the view, in etypes. Fails if it reaches past the
    /// largest possible file offset.
    pub(crate) fn new(
        direction: Direction,
        view: Arc<FlattenedView>,
        data: MemoryData,
        offset: u64,
    ) -> Result<ResolvedAccess> {
        let MemoryData {
            memory,
            converter,
            file_bytes,
        } = data;
        let first = view.data_byte(offset)?;
        let range = file_range(&view, first, file_bytes).ok_or_else(|| {
            Error::argument(format!(
                "an access of {file_bytes} bytes at offset {offset} of the view reaches past the last possible byte of a file, 2^63 - 1"
            ))
        })?;
        Ok(ResolvedAccess {
            direction,
            view,
            first,
            memory,
            converter,
            file_bytes,
            range,
        })
    }

    /// Its data bytes of the view.
    pub(crate) fn data(&self) -> Range<u64> {
        self.first..self.first + self.file_bytes
    }
}

/// The memory of an access and the converter of its elements.
#[derive(Debug)]
pub(crate) struct MemoryData {
    memory: Memory,
    converter: Option<Converter>,
    file_bytes: u64,
}

impl MemoryData {
    pub(crate) fn new(view: &FlattenedView, memory: Memory) -> Result<MemoryData> {
        memory.check()?;
        let converter = converter(view, &memory)?;
        let file_bytes = file_bytes(converter.as_ref(), &memory)?;
        Ok(MemoryData {
            memory,
            converter,
            file_bytes,
        })
    }

    /// The size of the data in the file, in bytes.
    pub(crate) fn file_bytes(&self) -> u64 {
        self.file_bytes
    }
}

/// The converter between memory and view; `None` if no conversion is needed.
fn converter(view: &FlattenedView, memory: &Memory) -> Result<Option<Converter>> {
    if view.representation().is_identity() {
        return Ok(None);
    }
    let converter = Converter::new(view.representation().clone(), memory.datatype())?;
    Ok(Some(converter).filter(|converter| !converter.is_identity()))
}

fn file_bytes(converter: Option<&Converter>, memory: &Memory) -> Result<u64> {
    match converter {
        None => Ok(memory.bytes()),
        Some(converter) => {
            let elements = converter.elements_in_native(memory.bytes()).whole;
            Ok(converter.file_bytes_of(elements)?)
        }
    }
}

/// From the first byte of the file that an access touches to the end of the
/// last. Empty if it touches no byte, as in a view without data; `None` if it
/// reaches past the largest possible file offset.
pub(crate) fn file_range(view: &FlattenedView, first: u64, bytes: u64) -> Option<Range<u64>> {
    let end = first
        .checked_add(bytes)
        .filter(|end| i64::try_from(*end).is_ok())?;
    if bytes == 0 || view.layout().size() == 0 {
        return Some(0..0);
    }
    let (low, high) = view.layout().run_bounds(first..end)?;
    let start = view.displacement().checked_add_signed(low)?;
    let end = view.displacement().checked_add_signed(high)?;
    i64::try_from(end).is_ok().then_some(start..end)
}
