//! A whole access: pattern, choice, staging, and the count at the end.

use std::{io, ops::Range};

use pario_datarep::Converter;
use pario_driver::{Batch, Direction, Handle, LockMode, Outcome, RangeLock};
use pario_hints::Hints;
use pario_layout::{Layout, Monotonicity};

use super::{
    AccessMethod, Buffers, Job, Locking, ReadModifyWrite, Selection, method,
    page_aliasing::aliases,
    select::{self, Pattern},
    span::{FileSpan, MemorySpan, Pieces},
};
use crate::{Error, ErrorKind, Result, buffer::Memory, operation::file_range, view::FlattenedView};

/// Scattered memory is gathered into a staging buffer if its pieces are
/// smaller than this on average: copying them costs less than handing each to
/// the kernel.
const GATHER_BELOW_BYTES: u64 = 4096;
/// The most data that is staged at once: small enough to stay in the cache
/// between the copy and the transfer.
const STAGE_BYTES: u64 = 64 << 10;

/// The most bytes that one element may have in a file: room for it is kept
/// beyond what is staged at once.
const ELEMENT_BYTES_MAX: u64 = 4096;

/// An access of one rank, ready to run.
pub(crate) struct Transfer<'a> {
    pub(crate) handle: &'a dyn Handle,
    pub(crate) direction: Direction,
    pub(crate) view: &'a FlattenedView,
    /// First data byte of the view.
    pub(crate) first: u64,
    pub(crate) memory: &'a Memory,
    pub(crate) hints: &'a Hints,
    pub(crate) read_modify_write: ReadModifyWrite,
    pub(crate) locking: Locking,
    pub(crate) buffers: &'a Buffers,
}

/// What was moved: bytes of memory, and why no more.
#[derive(Debug)]
pub(crate) struct Moved {
    pub(crate) bytes: u64,
    pub(crate) error: Option<Error>,
}

/// How memory meets the file.
enum Staging {
    /// The file takes pieces of memory as they are.
    None,
    /// Memory is gathered and scattered.
    Packed,
    /// Elements are converted.
    Converted(Converter),
}

/// How a view stores a memory's elements, where that is not as they are.
fn converter(view: &FlattenedView, memory: &Memory) -> Result<Option<Converter>> {
    if view.representation().is_identity() {
        return Ok(None);
    }
    let converter = Converter::new(view.representation().clone(), memory.datatype())?;
    Ok(Some(converter).filter(|converter| !converter.is_identity()))
}

impl Transfer<'_> {
    /// The bytes that a memory's data takes in the file.
    pub(crate) fn file_bytes(view: &FlattenedView, memory: &Memory) -> Result<u64> {
        match converter(view, memory)? {
            None => Ok(memory.bytes()),
            Some(converter) => {
                let elements = converter.elements_in_native(memory.bytes()).whole;
                Ok(converter.file_bytes_of(elements)?)
            }
        }
    }

    /// Whether a view stores a memory's data as it is.
    pub(crate) fn is_unconverted(view: &FlattenedView, memory: &Memory) -> bool {
        matches!(converter(view, memory), Ok(None))
    }

    /// From the first byte of the file that it touches to the end of the
    /// last; nothing if it touches none.
    pub(crate) fn range(&self) -> Option<Range<u64>> {
        let bytes = Transfer::file_bytes(self.view, self.memory).ok()?;
        if bytes == 0 {
            None
        } else {
            file_range(self.view, self.first, bytes)
        }
    }

    pub(crate) fn method(&self) -> AccessMethod {
        match Transfer::file_bytes(self.view, self.memory) {
            Ok(bytes) => select::method(&self.pattern(bytes), self.hints),
            Err(_) => AccessMethod::Direct,
        }
    }

    pub(crate) fn explain(&self) -> Selection {
        let bytes = Transfer::file_bytes(self.view, self.memory).unwrap_or(0);
        select::explain(self.pattern(bytes), self.hints)
    }

    /// Moves the data.
    pub(crate) fn run(&self) -> Moved {
        match self.try_run() {
            Ok(moved) => moved,
            Err(error) => Moved {
                bytes: 0,
                error: Some(error),
            },
        }
    }

    fn try_run(&self) -> Result<Moved> {
        if self.memory.bytes() == 0 {
            return Ok(Moved {
                bytes: 0,
                error: None,
            });
        }
        if self.view.layout().size() == 0 {
            return self.run_without_file();
        }
        if let Some(batch) = self.straight() {
            return Ok(self.moved(self.handle.transfer(&batch)));
        }
        let converter = converter(self.view, self.memory)?;
        let bytes = match &converter {
            None => self.memory.bytes(),
            Some(_) => Transfer::file_bytes(self.view, self.memory)?,
        };
        let method = select::method(&self.pattern(bytes), self.hints);
        let staging = match converter {
            Some(converter) => Staging::Converted(converter),
            None if method != AccessMethod::Sieve && (self.gathers() || self.aliases(bytes)) => {
                Staging::Packed
            }
            None => Staging::None,
        };
        let window_bytes = match (method, self.direction) {
            (AccessMethod::Sieve, Direction::Read) => self.hints.ind_rd_buffer_size,
            (AccessMethod::Sieve, Direction::Write) => self.hints.ind_wr_buffer_size,
            _ => 0,
        };
        // No larger than what it is for.
        let window_bytes = match window_bytes {
            0 => 0,
            most => most.min(self.range().map_or(0, |range| range.end - range.start)),
        };
        let stage = Stage {
            transfer: self,
            method,
            window_bytes,
            file_bytes: bytes,
        };
        match staging {
            Staging::None => stage.run_in_place(),
            Staging::Packed => stage.run_packed(),
            Staging::Converted(converter) => stage.run_converted(&converter),
        }
    }

    /// The access as one piece, where neither side has gaps, nothing is to be
    /// done on the way and no hint asks for another one. Small accesses are mostly so, and are no longer than what
    /// it takes to choose.
    fn straight(&self) -> Option<Batch<'_>> {
        let plain = select::asked(self.direction, self.hints).is_none()
            && self.locking == Locking::None
            && self.view.layout().is_dense()
            && self.view.representation().is_identity();
        if !plain {
            return None;
        }
        let piece = MemorySpan::of(self.memory).at(self.view.displacement() + self.first)?;
        if aliases(self.direction, piece.offset, piece.address(), piece.len) {
            return None;
        }
        let mut batch = Batch::new(self.direction);
        piece.push(&mut batch);
        Some(batch)
    }

    /// A view without data: a read is at its end, a write has no place.
    fn run_without_file(&self) -> Result<Moved> {
        match self.direction {
            Direction::Read => Ok(Moved {
                bytes: 0,
                error: None,
            }),
            Direction::Write => Err(Error::argument(
                "the view shows no bytes of the file: there is no place to write",
            )),
        }
    }

    /// The access as one batch that the driver can carry in the background:
    /// if it needs neither staging, nor sieving, nor locks, nor many pieces.
    pub(crate) fn as_batch(&self) -> Option<Batch<'static>> {
        let plain = self.memory.bytes() > 0
            && self.view.layout().size() > 0
            && self.locking == Locking::None
            && Transfer::is_unconverted(self.view, self.memory)
            && !self.gathers();
        if !plain || self.method() == AccessMethod::Sieve {
            return None;
        }
        let (file, memory) = (self.file(self.memory.bytes()), MemorySpan::of(self.memory));
        Pieces::new(&file, &memory).detached(self.direction, self.hints.pario_list_pieces)
    }

    /// What the outcome of that batch means.
    pub(crate) fn moved(&self, outcome: Outcome) -> Moved {
        let error = outcome
            .error
            .map(|error| self.error_at(outcome.bytes, error));
        Moved {
            bytes: outcome.bytes,
            error,
        }
    }

    fn file(&self, bytes: u64) -> FileSpan<'_> {
        FileSpan {
            displacement: self.view.displacement(),
            layout: self.view.layout(),
            first: self.first,
            len: bytes,
        }
    }

    fn gathers(&self) -> bool {
        let layout = self.memory.datatype().layout();
        if layout.is_dense() {
            return false;
        }
        let stats = layout.piece_stats(0..self.memory.bytes());
        stats.pieces > 1 && stats.bytes / stats.pieces < GATHER_BELOW_BYTES
    }

    /// Whether a copy more is faster than the kernel's copy to or from memory
    /// as it lies. Pieces mostly lie alike, so the first one tells.
    fn aliases(&self, bytes: u64) -> bool {
        let mut pieces = Pieces::new(&self.file(bytes), &MemorySpan::of(self.memory));
        pieces
            .next()
            .is_some_and(|piece| aliases(self.direction, piece.offset, piece.address(), piece.len))
    }

    fn pattern(&self, bytes: u64) -> Pattern {
        let layout = self.view.layout();
        let data = self.first..self.first + bytes;
        let increasing = layout.order() == Monotonicity::Increasing;
        let (pieces, span) = if layout.is_dense() {
            (1, bytes)
        } else {
            let stats = layout.piece_stats(data.clone());
            (stats.pieces, stats.span)
        };
        let block = self.handle.facts().block_size.max(1);
        let block_aligned = pieces > 1
            && layout.runs(data).next().is_some_and(|run| {
                let start = self.view.displacement().wrapping_add_signed(run.offset);
                run.count == pieces
                    && [start, run.len, run.stride.unsigned_abs()]
                        .iter()
                        .all(|number| number.is_multiple_of(block))
            });
        Pattern {
            direction: self.direction,
            pieces,
            bytes,
            span,
            increasing,
            block_aligned,
            read_modify_write: self.read_modify_write,
        }
    }

    fn error_at(&self, file_bytes: u64, error: io::Error) -> Error {
        let error = Error::from(error);
        match file_range(self.view, self.first + file_bytes, 1) {
            Some(range) => error.at_offset(range.start),
            None => error,
        }
    }
}

/// A transfer with its choices made.
struct Stage<'a> {
    transfer: &'a Transfer<'a>,
    method: AccessMethod,
    window_bytes: u64,
    file_bytes: u64,
}

impl Stage<'_> {
    /// Moves part of the file's data bytes to or from a memory span of the
    /// same length.
    fn move_part(&self, file: FileSpan<'_>, memory: MemorySpan<'_>, window: &mut [u8]) -> Outcome {
        let transfer = self.transfer;
        let job = Job {
            handle: transfer.handle,
            direction: transfer.direction,
            file,
            memory,
            hints: transfer.hints,
            locking: transfer.locking,
        };
        method(self.method).run(&job, window)
    }

    /// In atomic mode, the lock on all of the access. Only with the staging
    /// memory in hand.
    fn lock_whole(&self) -> Result<Option<RangeLock>> {
        let transfer = self.transfer;
        let mode = match transfer.direction {
            Direction::Read => LockMode::Shared,
            Direction::Write => LockMode::Exclusive,
        };
        Ok(match (transfer.locking, transfer.range()) {
            (Locking::Whole, Some(range)) => Some(transfer.handle.lock(range, mode)?),
            _ => None,
        })
    }

    fn run_in_place(&self) -> Result<Moved> {
        let transfer = self.transfer;
        let memory = MemorySpan::of(transfer.memory);
        let file = transfer.file(self.file_bytes);
        let outcome = if self.window_bytes == 0 {
            let _lock = self.lock_whole()?;
            self.move_part(file, memory, &mut [])
        } else {
            let mut window = transfer.buffers.take(self.window_bytes)?;
            let _lock = self.lock_whole()?;
            self.move_part(file, memory, &mut window[..self.window_bytes as usize])
        };
        Ok(transfer.moved(outcome))
    }

    fn run_packed(&self) -> Result<Moved> {
        let transfer = self.transfer;
        let dense = Layout::dense(1);
        let chunk = STAGE_BYTES.min(self.file_bytes);
        let mut buffer = transfer.buffers.take(chunk)?;
        let _lock = self.lock_whole()?;
        let (memory, file) = (
            MemorySpan::of(transfer.memory),
            transfer.file(self.file_bytes),
        );
        let mut moved = 0;
        while moved < self.file_bytes {
            let len = chunk.min(self.file_bytes - moved);
            let part = memory.slice(moved, len);
            let staged = &mut buffer[..len as usize];
            if transfer.direction == Direction::Write {
                part.pack_into(staged);
            }
            let dense_part = MemorySpan::dense(staged, &dense);
            let outcome = self.move_part(file.slice(moved, len), dense_part, &mut []);
            if transfer.direction == Direction::Read {
                part.unpack_from(&staged[..outcome.bytes as usize]);
            }
            moved += outcome.bytes;
            if outcome.error.is_some() || outcome.bytes < len {
                return Ok(transfer.moved(Outcome {
                    bytes: moved,
                    error: outcome.error,
                }));
            }
        }
        Ok(Moved {
            bytes: moved,
            error: None,
        })
    }

    /// Elements are converted in pieces that fit the staging buffer, which
    /// holds them as the file has them, and the window of a sieve.
    fn run_converted(&self, converter: &Converter) -> Result<Moved> {
        let transfer = self.transfer;
        let all = 0..converter.elements_in_native(transfer.memory.bytes()).whole;
        let staged = self.file_bytes.min(STAGE_BYTES + ELEMENT_BYTES_MAX);
        let mut buffer = transfer.buffers.take(staged + self.window_bytes)?;
        let _lock = self.lock_whole()?;
        let (staged, rest) = buffer.split_at_mut(staged as usize);
        let window = &mut rest[..self.window_bytes as usize];
        let mut next = all.start;
        while next < all.end {
            let piece = converter.piece(next..all.end, STAGE_BYTES)?;
            let (done, error) = match self.move_elements(converter, &piece, staged, window) {
                Ok(result) => result,
                Err(error) => (0, Some(error)),
            };
            next = piece.start + done;
            if error.is_some() || next < piece.end {
                let bytes = converter.native_bytes_of(next)?;
                return Ok(Moved { bytes, error });
            }
        }
        let bytes = transfer.memory.bytes();
        Ok(Moved { bytes, error: None })
    }

    /// Converts and moves some elements; says how many went through.
    fn move_elements(
        &self,
        converter: &Converter,
        elements: &Range<u64>,
        staged: &mut [u8],
        window: &mut [u8],
    ) -> Result<(u64, Option<Error>)> {
        let transfer = self.transfer;
        let start = converter.file_bytes_of(elements.start)?;
        let len = converter.file_bytes_of(elements.end)? - start;
        let staged = staged.get_mut(..len as usize).ok_or_else(|| {
            Error::new(
                ErrorKind::Conversion,
                format!("an element of {len} bytes in the file is too large: the most is {ELEMENT_BYTES_MAX}"),
            )
        })?;
        if transfer.direction == Direction::Write {
            transfer
                .memory
                .gather(converter, elements.clone(), staged)?;
        }
        let dense = Layout::dense(1);
        let span = transfer.file(self.file_bytes);
        let part = span.slice(start, len);
        let outcome = self.move_part(part, MemorySpan::dense(staged, &dense), window);
        let whole = converter.elements_in(start + outcome.bytes).whole;
        if transfer.direction == Direction::Read {
            let got = (converter.file_bytes_of(whole)? - start) as usize;
            transfer
                .memory
                .scatter(converter, elements.start..whole, &staged[..got])?;
        }
        let error = outcome
            .error
            .map(|error| transfer.error_at(start + outcome.bytes, error));
        Ok((whole - elements.start, error))
    }
}
