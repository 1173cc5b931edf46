//! Bulk conversion of structures: run by run, the calls would cost more than
//! the bytes.
//!
//! The k-th run of every instance of a structure forms a column. A block of
//! instances is converted column by column: the column's pieces are packed,
//! converted in one call and unpacked. Layouts pack small pieces quickly.

use crate::error::DatarepError;
use crate::representation::Representation;
use crate::sizes::FileSizes;
use pario_layout::{Basic, CopyError, Datatype, Layout, Signature, TypeError};
use std::ops::Range;

/// Longer structures have long runs, or too many columns to pay off.
const ELEMENTS_MAX: u64 = 256;
/// Approximate size of a block of instances, chosen to stay in the cache.
const BLOCK_BYTES: u64 = 32 << 10;

/// The columns of a structure.
#[derive(Clone, Debug)]
pub(crate) struct Columns {
    /// Elements per instance.
    pub(crate) period: u64,
    native_period: u64,
    file_period: u64,
    columns: Vec<Column>,
}

#[derive(Clone, Debug)]
struct Column {
    basic: Basic,
    /// The elements of an instance that the column holds.
    elements: Range<u64>,
    native: Pieces,
    file: Pieces,
}

/// The pieces of a column in a packed row of instances.
#[derive(Clone, Debug)]
struct Pieces {
    start: usize,
    layout: Layout,
}

impl Pieces {
    fn new(start: u64, len: u64, period: u64) -> Result<Pieces, TypeError> {
        let run = Datatype::contiguous(len, &Datatype::basic(Basic::Byte))?;
        let tiled = Datatype::resized(&run, 0, period.cast_signed())?;
        Ok(Pieces {
            start: start as usize,
            layout: tiled.layout().clone(),
        })
    }

    fn bytes(&self, instances: u64) -> usize {
        (self.layout.size() * instances) as usize
    }

    fn pack(&self, row: &[u8], column: &mut [u8]) {
        inside(
            self.layout
                .pack_slice(row, self.start, 0..column.len() as u64, column),
        );
    }

    fn unpack(&self, column: &[u8], row: &mut [u8]) {
        inside(
            self.layout
                .unpack_slice(column, row, self.start, 0..column.len() as u64),
        );
    }
}

fn inside(copied: Result<(), CopyError>) {
    copied.expect("the pieces of a column lie within the row");
}

impl Columns {
    /// The columns of the structure that `signature` describes; `None` where
    /// converting run by run is as fast.
    pub(crate) fn of(signature: &Signature, sizes: &FileSizes) -> Option<Columns> {
        let period = signature.elements();
        if signature.uniform().is_some() || !(2..=ELEMENTS_MAX).contains(&period) {
            return None;
        }
        let native_period = signature.size_in(&Basic::size)?;
        let file_period = signature.size_in(&|basic| sizes.get(basic))?;
        if native_period.max(file_period) > BLOCK_BYTES {
            return None;
        }
        let mut columns = Vec::new();
        let (mut element, mut native, mut file) = (0, 0, 0);
        for (basic, count) in signature.runs(0..period) {
            let (native_len, file_len) = (count * basic.size(), count * sizes.get(basic));
            columns.push(Column {
                basic,
                elements: element..element + count,
                native: Pieces::new(native, native_len, native_period).ok()?,
                file: Pieces::new(file, file_len, file_period).ok()?,
            });
            (element, native, file) = (element + count, native + native_len, file + file_len);
        }
        Some(Columns {
            period,
            native_period,
            file_period,
            columns,
        })
    }

    /// Converts whole instances for the file.
    pub(crate) fn to_file(
        &self,
        representation: &dyn Representation,
        native: &[u8],
        file: &mut [u8],
    ) -> Result<(), DatarepError> {
        let (native_block, file_block) = self.blocks();
        let mut staging = (Vec::new(), Vec::new());
        let blocks = native.chunks(native_block).zip(file.chunks_mut(file_block));
        for (block, (native, file)) in blocks.enumerate() {
            let instances = native.len() as u64 / self.native_period;
            for column in &self.columns {
                let (from, to) = column.staging(&mut staging, instances);
                column.native.pack(native, from);
                let converted = representation.to_file(column.basic, from, to);
                converted.map_err(|error| self.locate(error, column, block))?;
                column.file.unpack(to, file);
            }
        }
        Ok(())
    }

    /// Converts whole instances for memory.
    pub(crate) fn to_native(
        &self,
        representation: &dyn Representation,
        file: &[u8],
        native: &mut [u8],
    ) -> Result<(), DatarepError> {
        let (native_block, file_block) = self.blocks();
        let mut staging = (Vec::new(), Vec::new());
        let blocks = native.chunks_mut(native_block).zip(file.chunks(file_block));
        for (block, (native, file)) in blocks.enumerate() {
            let instances = native.len() as u64 / self.native_period;
            for column in &self.columns {
                let (to, from) = column.staging(&mut staging, instances);
                column.file.pack(file, from);
                let converted = representation.to_native(column.basic, from, to);
                converted.map_err(|error| self.locate(error, column, block))?;
                column.native.unpack(to, native);
            }
        }
        Ok(())
    }

    fn instances_in_block(&self) -> u64 {
        (BLOCK_BYTES / self.native_period.max(self.file_period)).max(1)
    }

    /// The length of a block, native and in the file.
    fn blocks(&self) -> (usize, usize) {
        let instances = self.instances_in_block();
        (
            (self.native_period * instances) as usize,
            (self.file_period * instances) as usize,
        )
    }

    /// Translates the element index of an error from a column of a block to the
    /// whole buffer.
    fn locate(&self, mut error: DatarepError, column: &Column, block: usize) -> DatarepError {
        if let DatarepError::OutOfRange { element, .. } = &mut error {
            let in_run = column.elements.end - column.elements.start;
            let instance = block as u64 * self.instances_in_block() + *element / in_run;
            *element = instance * self.period + column.elements.start + *element % in_run;
        }
        error
    }
}

impl Column {
    /// Buffers for the packed column of `instances`, native and in the file.
    fn staging<'a>(
        &self,
        buffers: &'a mut (Vec<u8>, Vec<u8>),
        instances: u64,
    ) -> (&'a mut [u8], &'a mut [u8]) {
        buffers.0.resize(self.native.bytes(instances), 0);
        buffers.1.resize(self.file.bytes(instances), 0);
        (&mut buffers.0, &mut buffers.1)
    }
}
