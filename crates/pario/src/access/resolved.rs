//! An access of one rank with everything derived from its arguments, once.

use std::{ops::Range, sync::Arc};

use pario_datarep::Converter;
use pario_driver::Direction;

use crate::{Error, Result, buffer::Memory, view::FlattenedView};

/// Which bytes of memory go where in the file. Everything that carries out a
/// call reads this value and derives nothing again.
#[derive(Debug)]
pub(crate) struct ResolvedAccess {
    pub(crate) direction: Direction,
    pub(crate) view: Arc<FlattenedView>,
    /// First data byte of the view.
    pub(crate) first: u64,
    pub(crate) memory: Memory,
    /// How the file stores the elements, if not as they are in memory.
    pub(crate) converter: Option<Converter>,
    /// Bytes that the data takes in the file.
    pub(crate) file_bytes: u64,
    /// From the first byte of the file to the end of the last; empty if the
    /// access touches none.
    pub(crate) range: Range<u64>,
}

impl ResolvedAccess {
    /// The access at an offset of the view, in etypes, all of which lies within reach.
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

    /// Its data bytes, counted in the view.
    pub(crate) fn data(&self) -> Range<u64> {
        self.first..self.first + self.file_bytes
    }
}

/// The memory of an access and how the file stores its elements.
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

    /// Bytes that the data takes in the file.
    pub(crate) fn file_bytes(&self) -> u64 {
        self.file_bytes
    }
}

/// How a view stores a memory's elements, where that is not as they are.
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
/// last; empty if it touches none, as in a view without data, and `None` past
/// the last byte that a file can have.
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
