//! An access from start to end: pattern, selection, staging and the amount moved.

use std::{io, ops::Range};

use pario_datarep::Converter;
use pario_driver::{Batch, Direction, Handle, Latency, Lease, LockMode, Outcome, RangeLock};
use pario_hints::Hints;
use pario_layout::{Layout, Monotonicity};

use super::{
    AccessMethod, Buffers, Job, Locking, ReadModifyWrite, Selection, method,
    page_aliasing::is_staged,
    resolved::{ResolvedAccess, file_range},
    select::{self, Pattern},
    span::{FileSpan, MemorySpan, Pieces},
};
use crate::{Error, ErrorKind, Result};

/// Scattered memory is gathered into a staging buffer if its pieces are smaller on
/// average than this part of the bytes that are copied in the time of a call: copying
/// them costs less than passing each to the kernel.
const GATHERED_PART: u64 = 2;
/// A lease takes as long as writing a few pieces, and longer if ranks share it.
const LEASE_PIECES_MIN: u64 = 16;
const SHARED_LEASE_PIECES_MIN: u64 = 64;

/// The maximum size of an element in a file; staging buffers have space for one
/// more.
const ELEMENT_BYTES_MAX: u64 = 4096;

/// An access of one rank, ready to run.
pub(crate) struct Transfer<'a> {
    pub(crate) handle: &'a dyn Handle,
    pub(crate) access: &'a ResolvedAccess,
    pub(crate) hints: &'a Hints,
    pub(crate) read_modify_write: ReadModifyWrite,
    /// What shows that there is no other writer, where that can be lost.
    pub(crate) lease: Option<&'a dyn Lease>,
    pub(crate) locking: Locking,
    pub(crate) buffers: &'a Buffers,
}

/// The number of bytes of memory that were moved, and the error that ended the
/// transfer, if any.
#[derive(Debug)]
pub(crate) struct Moved {
    pub(crate) bytes: u64,
    pub(crate) error: Option<Error>,
}

/// What happens to the data between memory and file.
enum Staging<'a> {
    /// Nothing: pieces of memory are passed to the driver.
    None,
    /// It is packed or unpacked.
    Packed,
    /// Its elements are converted.
    Converted(&'a Converter),
}

impl Transfer<'_> {
    pub(crate) fn method(&self) -> AccessMethod {
        select::method(&self.pattern(), self.hints)
    }

    /// Whether writing the pieces otherwise would take longer than a lease.
    pub(crate) fn is_worth_lease(&self, is_shared: bool) -> bool {
        let least = match is_shared {
            true => SHARED_LEASE_PIECES_MIN,
            false => LEASE_PIECES_MIN,
        };
        self.pattern().pieces >= least
    }

    pub(crate) fn explain(&self) -> Selection {
        let mut pattern = self.pattern();
        pattern.stored = pattern.direction == Direction::Write
            && self.handle.stores_list(pattern.pieces, pattern.span);
        pattern.staged = self.access.memory.bytes() > 0
            && self.access.view.layout().size() > 0
            && self.is_staged();
        select::explain(pattern, self.hints)
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
        if self.access.memory.bytes() == 0 {
            return Ok(Moved {
                bytes: 0,
                error: None,
            });
        }
        if self.access.view.layout().size() == 0 {
            return self.run_without_file();
        }
        if let Some(batch) = self.straight() {
            return Ok(self.moved(self.handle.transfer(&batch)));
        }
        let pattern = self.pattern();
        let method = select::method(&pattern, self.hints);
        let staging = match &self.access.converter {
            Some(converter) => Staging::Converted(converter),
            None if method != AccessMethod::Sieve && (self.gathers() || self.is_staged()) => {
                Staging::Packed
            }
            None => Staging::None,
        };
        let window_bytes = match (method, self.access.direction) {
            (AccessMethod::Sieve, Direction::Read) => self.read_window_bytes(),
            (AccessMethod::Sieve, Direction::Write) => self.hints.ind_wr_buffer_size,
            _ => 0,
        };
        // No larger than the access.
        let window_bytes = match window_bytes {
            0 => 0,
            most => most.min(self.access.range.end - self.access.range.start),
        };
        let stage = Stage {
            transfer: self,
            method,
            window_bytes,
            rewrites_cached: self.rewrites_cached(&pattern),
        };
        match staging {
            Staging::None => stage.run_in_place(),
            Staging::Packed => stage.run_packed(),
            Staging::Converted(converter) => stage.run_converted(converter),
        }
    }

    /// The window of a sieved read. Data in the page cache is read in windows that stay in the
    /// processor's cache, unless a hint requests a size: large ones are written to memory and
    /// read again, and touching them for the first time takes longer than reading.
    fn read_window_bytes(&self) -> u64 {
        let most = self.hints.ind_rd_buffer_size;
        let is_cached = self.handle.latency(Direction::Read) != Latency::Unknown;
        let near = self
            .hints
            .pario_slice_bytes
            .unwrap_or_else(|| self.hints.cached_window_bytes())
            .min(most);
        let is_longer = self.access.range.end - self.access.range.start > near;
        let is_requested =
            || self.hints.source("ind_rd_buffer_size") != Some(&pario_hints::Source::Default);
        match is_cached && is_longer && !is_requested() {
            true => near,
            false => most,
        }
    }

    /// The maximum amount of data that is staged at once: it stays in the cache between the copy
    /// and the transfer, and the call costs little compared with them.
    fn stage_bytes(&self) -> u64 {
        self.hints.cached_window_bytes()
    }

    /// The access as one piece, if neither side has gaps, the data is neither
    /// converted nor locked and no hint requests a method. Most small accesses are
    /// of this kind, and the selection would take as long as the access.
    fn straight(&self) -> Option<Batch<'_>> {
        let plain = select::asked(self.access.direction, self.hints).is_none()
            && self.locking == Locking::None
            && self.access.view.layout().is_dense()
            && self.access.view.representation().is_identity();
        if !plain {
            return None;
        }
        let piece = MemorySpan::of(&self.access.memory)
            .at(self.access.view.displacement() + self.access.first)?;
        if is_staged(
            self.hints,
            self.access.direction,
            piece.offset,
            piece.address(),
            piece.len,
        ) {
            return None;
        }
        let mut batch = Batch::new(self.access.direction);
        piece.push(&mut batch);
        Some(batch)
    }

    /// An access to a view without data: a read is at the end of the file, a write
    /// fails.
    fn run_without_file(&self) -> Result<Moved> {
        match self.access.direction {
            Direction::Read => Ok(Moved {
                bytes: 0,
                error: None,
            }),
            Direction::Write => Err(Error::argument(
                "the view contains no bytes of the file: there is nowhere to write",
            )),
        }
    }

    /// The access as one batch that the driver can carry out in the background;
    /// `None` if it needs staging, sieving, locks or many pieces.
    pub(crate) fn as_batch(&self) -> Option<Batch<'static>> {
        let plain = self.access.memory.bytes() > 0
            && self.access.view.layout().size() > 0
            && self.locking == Locking::None
            && self.access.converter.is_none()
            && !self.gathers();
        if !plain || self.method() == AccessMethod::Sieve {
            return None;
        }
        let (file, memory) = (self.file(), MemorySpan::of(&self.access.memory));
        Pieces::new(&file, &memory).detached(self.access.direction, self.hints.pario_list_pieces)
    }

    /// Translates the outcome of that batch.
    pub(crate) fn moved(&self, outcome: Outcome) -> Moved {
        let error = outcome
            .error
            .map(|error| self.error_at(outcome.bytes, error));
        Moved {
            bytes: outcome.bytes,
            error,
        }
    }

    fn file(&self) -> FileSpan<'_> {
        FileSpan {
            displacement: self.access.view.displacement(),
            layout: self.access.view.layout(),
            first: self.access.first,
            len: self.access.file_bytes,
        }
    }

    fn gathers(&self) -> bool {
        let layout = self.access.memory.datatype().layout();
        if layout.is_dense() {
            return false;
        }
        let stats = layout.piece_stats(0..self.access.memory.bytes());
        stats.pieces > 1 && stats.bytes / stats.pieces < self.hints.call_bytes() / GATHERED_PART
    }

    /// Whether an additional copy is faster than the kernel's copy to or from the
    /// user's memory. Pieces are usually aligned alike, so the first one is
    /// representative.
    fn is_staged(&self) -> bool {
        let mut pieces = Pieces::new(&self.file(), &MemorySpan::of(&self.access.memory));
        pieces.next().is_some_and(|piece| {
            is_staged(
                self.hints,
                self.access.direction,
                piece.offset,
                piece.address(),
                piece.len,
            )
        })
    }

    fn pattern(&self) -> Pattern {
        let access = self.access;
        let (layout, data, bytes) = (access.view.layout(), access.data(), access.file_bytes);
        let increasing = layout.order() == Monotonicity::Increasing;
        let (pieces, span) = if layout.is_dense() {
            (1, bytes)
        } else {
            let stats = layout.piece_stats(data.clone());
            (stats.pieces, stats.span)
        };
        let displacement = access.view.displacement();
        let facts = self.handle.facts();
        let block_aligned =
            pieces > 1 && select::consists_of_blocks(layout, data, displacement, facts.block_size);
        Pattern {
            direction: self.access.direction,
            pieces,
            bytes,
            span,
            increasing,
            block_aligned,
            rewrites_blocks: block_aligned
                && select::rewrites_blocks(facts, access.view.rank_views()),
            stored: false,
            staged: false,
            read_modify_write: self.read_modify_write,
            each_piece_is_a_request: select::each_piece_is_a_request(
                self.handle,
                self.access.direction,
            ),
            sieved: select::sieved_access(&facts.file_system, self.access.direction),
        }
    }

    /// Whether gaps are rewritten only if they are in the page cache. Partial blocks are read from storage in
    /// any case, whole ones are not.
    fn rewrites_cached(&self, pattern: &Pattern) -> bool {
        pattern.block_aligned
            && select::asked(pattern.direction, self.hints).is_none()
            && !pattern.each_piece_is_a_request
    }

    fn error_at(&self, file_bytes: u64, error: io::Error) -> Error {
        let error = Error::from(error);
        match file_range(&self.access.view, self.access.first + file_bytes, 1) {
            Some(range) if !range.is_empty() => error.at_offset(range.start),
            _ => error,
        }
    }
}

/// A transfer with its method and the size of its window.
struct Stage<'a> {
    transfer: &'a Transfer<'a>,
    method: AccessMethod,
    window_bytes: u64,
    rewrites_cached: bool,
}

impl Stage<'_> {
    /// Moves part of the file's data bytes to or from a memory span of the
    /// same length.
    fn move_part(&self, file: FileSpan<'_>, memory: MemorySpan<'_>, window: &mut [u8]) -> Outcome {
        let transfer = self.transfer;
        let job = Job {
            handle: transfer.handle,
            direction: transfer.access.direction,
            file,
            memory,
            hints: transfer.hints,
            lease: transfer.lease,
            locking: transfer.locking,
            rewrites_cached: self.rewrites_cached,
        };
        method(self.method).run(&job, window)
    }

    /// In atomic mode, the lock on the whole access. To be taken after the staging
    /// memory.
    fn lock_whole(&self) -> Result<Option<RangeLock>> {
        let transfer = self.transfer;
        let mode = match transfer.access.direction {
            Direction::Read => LockMode::Shared,
            Direction::Write => LockMode::Exclusive,
        };
        let range = &transfer.access.range;
        Ok(match transfer.locking {
            Locking::Whole if !range.is_empty() => Some(transfer.handle.lock(range.clone(), mode)?),
            _ => None,
        })
    }

    fn run_in_place(&self) -> Result<Moved> {
        let transfer = self.transfer;
        let memory = MemorySpan::of(&transfer.access.memory);
        let file = transfer.file();
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
        let stage_bytes = self.transfer.stage_bytes();
        let chunk = stage_bytes.min(self.transfer.access.file_bytes);
        let mut buffer = transfer.buffers.take(chunk)?;
        let _lock = self.lock_whole()?;
        let (memory, file) = (MemorySpan::of(&transfer.access.memory), transfer.file());
        let mut moved = 0;
        while moved < self.transfer.access.file_bytes {
            let len = chunk.min(self.transfer.access.file_bytes - moved);
            let part = memory.slice(moved, len);
            let staged = &mut buffer[..len as usize];
            if transfer.access.direction == Direction::Write {
                part.pack_into(staged);
            }
            let dense_part = MemorySpan::dense(staged, &dense);
            let outcome = self.move_part(file.slice(moved, len), dense_part, &mut []);
            if transfer.access.direction == Direction::Read {
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

    /// Converts elements in chunks. The staging buffer holds a chunk in the file's
    /// representation, and the window of a sieve.
    fn run_converted(&self, converter: &Converter) -> Result<Moved> {
        let transfer = self.transfer;
        let all = 0..converter
            .elements_in_native(transfer.access.memory.bytes())
            .whole;
        let stage_bytes = transfer.stage_bytes();
        let staged = self
            .transfer
            .access
            .file_bytes
            .min(stage_bytes + ELEMENT_BYTES_MAX);
        let mut buffer = transfer.buffers.take(staged + self.window_bytes)?;
        let _lock = self.lock_whole()?;
        let (staged, rest) = buffer.split_at_mut(staged as usize);
        let window = &mut rest[..self.window_bytes as usize];
        let mut next = all.start;
        while next < all.end {
            let piece = converter.piece(next..all.end, stage_bytes)?;
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
        let bytes = transfer.access.memory.bytes();
        Ok(Moved { bytes, error: None })
    }

    /// Converts and moves some elements; returns how many were moved.
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
        if transfer.access.direction == Direction::Write {
            transfer
                .access
                .memory
                .gather(converter, elements.clone(), staged)?;
        }
        let dense = Layout::dense(1);
        let span = transfer.file();
        let part = span.slice(start, len);
        let outcome = self.move_part(part, MemorySpan::dense(staged, &dense), window);
        let whole = converter.elements_in(start + outcome.bytes).whole;
        if transfer.access.direction == Direction::Read {
            let got = (converter.file_bytes_of(whole)? - start) as usize;
            transfer
                .access
                .memory
                .scatter(converter, elements.start..whole, &staged[..got])?;
        }
        let error = outcome
            .error
            .map(|error| transfer.error_at(start + outcome.bytes, error));
        Ok((whole - elements.start, error))
    }
}
