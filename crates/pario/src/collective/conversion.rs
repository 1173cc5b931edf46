//! Other data representations in collective calls: each rank converts its own data, so that
//! ranks, aggregators and windows have to do with bytes of the file only.

use std::ops::Range;

use pario_datarep::Converter;
use pario_driver::Direction;
use pario_transport::Transport;

use crate::{
    Error, ErrorKind, Result, Status, agree::GatherBuffers, buffer::Memory, operation::Operation,
};

/// The amount that is converted at once: it stays in the cache between the two copies.
const PIECE_BYTES: u64 = 64 << 10;

/// A rank's data as the file has it, and the memory that it comes from or goes to.
#[derive(Debug)]
pub(crate) struct Conversion {
    direction: Direction,
    converter: Converter,
    memory: Memory,
    converted: Vec<u8>,
}

impl Conversion {
    /// Converts the data of a write; makes room for that of a read.
    pub(crate) fn new(
        direction: Direction,
        converter: Converter,
        memory: Memory,
        file_bytes: u64,
    ) -> Result<Conversion> {
        let mut converted = Vec::new();
        converted
            .try_reserve_exact(file_bytes as usize)
            .map_err(|_| {
                let message = format!("there is no memory for {file_bytes} bytes to convert");
                Error::new(ErrorKind::NoMemory, message)
            })?;
        converted.resize(file_bytes as usize, 0);
        let mut conversion = Conversion {
            direction,
            converter,
            memory,
            converted,
        };
        if direction == Direction::Write {
            conversion.gather()?;
        }
        Ok(conversion)
    }

    /// The converted data, valid as long as this is.
    pub(crate) fn converted(&mut self) -> Memory {
        Memory::of_bytes(&mut self.converted)
    }

    fn elements(&self) -> u64 {
        self.converter.elements_in_native(self.memory.bytes()).whole
    }

    fn gather(&mut self) -> Result<()> {
        let all = self.elements();
        let Conversion {
            converter,
            memory,
            converted,
            ..
        } = self;
        for_each_piece(converter, all, |piece, file| {
            memory.gather(converter, piece, &mut converted[file])
        })
    }

    /// Converts the first elements of what was read.
    fn scatter(&self, elements: u64) -> Result<()> {
        let Conversion {
            converter,
            memory,
            converted,
            ..
        } = self;
        for_each_piece(converter, elements, |piece, file| {
            memory.scatter(converter, piece, &converted[file])
        })
    }

    /// The bytes of memory that correspond to the first bytes of the file. An element that was
    /// not moved as a whole does not count.
    fn finish(&self, file_bytes: u64) -> Result<u64> {
        let moved = self.converter.elements_in(file_bytes).whole;
        if self.direction == Direction::Read {
            self.scatter(moved)?;
        }
        match moved == self.elements() {
            true => Ok(self.memory.bytes()),
            false => Ok(self.converter.native_bytes_of(moved)?),
        }
    }
}

/// Converts the first elements piece by piece: `convert` gets the elements of each piece, and
/// its place in the data as the file has it.
fn for_each_piece(
    converter: &Converter,
    elements: u64,
    mut convert: impl FnMut(Range<u64>, Range<usize>) -> Result<()>,
) -> Result<()> {
    let mut next = 0;
    while next < elements {
        let piece = converter.piece(next..elements, PIECE_BYTES)?;
        let start = converter.file_bytes_of(piece.start)? as usize;
        let end = converter.file_bytes_of(piece.end)? as usize;
        next = piece.end;
        convert(piece, start..end)?;
    }
    Ok(())
}

impl Operation {
    /// Splits off the conversion, so that the data is bytes of the file. An access that would
    /// take more memory than the hint `pario_inflight_bytes` allows stays as it is.
    pub(super) fn split_conversion(mut self) -> Result<(Operation, Option<Conversion>)> {
        let limit = self.hints().pario_inflight_bytes;
        let conversion = match self.take_converter(limit) {
            None => None,
            Some(converter) => {
                let memory = self.memory().clone();
                let bytes = self.file_bytes();
                let mut made = Conversion::new(self.direction(), converter, memory, bytes)?;
                self.set_memory(made.converted());
                Some(made)
            }
        };
        Ok((self, conversion))
    }
}

/// Ends a call that all ranks have agreed on: counts become bytes of memory. The ranks of a read
/// agree once more, because converting what was read may fail on one of them. *Collective* if the
/// view `is_converted` to another representation.
pub(super) fn finish(
    comm: &dyn Transport,
    buffers: &mut GatherBuffers,
    is_converted: bool,
    (direction, conversion): (Direction, Option<Conversion>),
    result: Result<Status>,
) -> Result<Status> {
    let in_memory = |file_bytes| match &conversion {
        None => Ok(file_bytes),
        Some(conversion) => conversion.finish(file_bytes),
    };
    let status = match result {
        Ok(status) => status,
        Err(error) => {
            let moved = in_memory(error.transferred()).unwrap_or(0);
            return Err(error.after(moved));
        }
    };
    let moved = in_memory(status.bytes()).map(Status::new);
    match is_converted && direction == Direction::Read {
        true => buffers.agree(comm, moved),
        false => moved,
    }
}
