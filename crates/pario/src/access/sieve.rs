//! Data sieving: a large contiguous window instead of many small pieces.
//!
//! A read copies the data out of the window. A write of a window with holes reads
//! the window, modifies it and writes it back, which is safe only if no other
//! write occurs in between. The selection of this method ensures that, by
//! exclusive use of the file or by locks that every writer takes (semantics
//! rule 1).

use std::{io, ops::Range};

use pario_driver::{Batch, Direction, Latency, Lease, Outcome, RangeLock};

use super::{
    Job, Method,
    batches::lock_for_write,
    list::List,
    select::each_piece_is_a_request,
    span::{FileSpan, MemorySpan, WindowBuffer},
};

/// At most how many windows are written under one lock where a lock is a request to a server, too.
const WINDOWS_PER_LOCK: u64 = 4;
/// Ranks whose data is interleaved follow each other through the file at the length of a lock, so
/// an access takes at least so many of them, if it has as many windows.
const LOCKS_MIN: u64 = 4;

/// The part of a window that is looked for in the page cache: several pieces with their gaps.
const SAMPLE_BYTES: u64 = 32 << 10;

pub(super) struct Sieve;

impl Method for Sieve {
    fn run(&self, job: &Job<'_>, buffer: &mut [u8]) -> Outcome {
        let mut moved = 0;
        // Looking for a range in the cache makes the kernel read ahead, so it is not done in vain again.
        let mut rewrites = true;
        let mut lock = WindowLock::new(job, buffer.len() as u64);
        while moved < job.file.len {
            let window = Window::new(job, moved, buffer.len() as u64);
            let outcome = match job.direction {
                Direction::Read => window.read(job, buffer),
                Direction::Write => window.write(job, buffer, &mut rewrites, &mut lock),
            };
            moved += outcome.bytes;
            if outcome.error.is_some() || outcome.bytes < window.file.len {
                return Outcome {
                    bytes: moved,
                    error: outcome.error,
                };
            }
        }
        Outcome {
            bytes: moved,
            error: None,
        }
    }
}

/// A range of the file from one data byte to another, at most as long as the
/// buffer.
struct Window<'a> {
    start: u64,
    end: u64,
    file: FileSpan<'a>,
    memory: MemorySpan<'a>,
}

impl<'a> Window<'a> {
    fn new(job: &'a Job<'_>, from: u64, buffer_bytes: u64) -> Window<'a> {
        let start = job.file.file_byte(from);
        let len = job.file.bytes_below(start.saturating_add(buffer_bytes)) - from;
        let end = job.file.file_byte(from + len - 1) + 1;
        let (file, memory) = (job.file.slice(from, len), job.memory.slice(from, len));
        Window {
            start,
            end,
            file,
            memory,
        }
    }

    fn bytes(&self) -> usize {
        (self.end - self.start) as usize
    }

    fn has_holes(&self) -> bool {
        // The layout is strictly increasing, so there are no holes if the lengths are equal.
        self.file.len < self.end - self.start
    }

    fn read(&self, job: &Job<'_>, buffer: &mut [u8]) -> Outcome {
        let bytes = &mut buffer[..self.bytes()];
        let outcome = job.handle.transfer(&Batch::read(self.start, bytes));
        let useful = self.file.bytes_below(self.start + outcome.bytes);
        let (file, memory) = (self.file.slice(0, useful), self.memory.slice(0, useful));
        memory.exchange(
            Direction::Read,
            &file,
            &WindowBuffer::new(bytes),
            self.start,
        );
        Outcome {
            bytes: useful,
            error: outcome.error,
        }
    }

    /// `rewrites` says whether holes are to be rewritten if they may be, and becomes false if they are not
    /// cached but should be.
    fn write(
        &self,
        job: &Job<'_>,
        buffer: &mut [u8],
        rewrites: &mut bool,
        lock: &mut WindowLock,
    ) -> Outcome {
        // Other ranks may write under the same lease.
        let _lock = job.lease.and_then(|lease| lease.lock(self.start..self.end));
        if self.has_holes() {
            *rewrites = *rewrites && self.may_rewrite(job, buffer);
            if !*rewrites || !is_alone(job) {
                return self.write_pieces(job, lock);
            }
        }
        let bytes = &mut buffer[..self.bytes()];
        match self.write_locked(job, bytes, lock) {
            Ok(Some(outcome)) => Outcome {
                bytes: self.file.bytes_below(self.start + outcome.bytes),
                error: outcome.error,
            },
            Ok(None) => self.write_pieces(job, lock),
            Err(error) => Outcome {
                bytes: 0,
                error: Some(error),
            },
        }
    }

    /// Whether its holes are in the page cache or past the end of the file, if that is required. A sample from the
    /// middle is enough: other ranks rewrite the same ranges, except at their ends.
    fn may_rewrite(&self, job: &Job<'_>, buffer: &mut [u8]) -> bool {
        if !job.rewrites_cached {
            return true;
        }
        let Ok(size) = job.handle.size() else {
            return false;
        };
        let middle = self.start + (self.end - self.start) / 2;
        let start = middle.saturating_sub(SAMPLE_BYTES / 2).max(self.start);
        let end = (middle + SAMPLE_BYTES / 2).min(self.end).min(size);
        if start >= end {
            return true;
        }
        if job.handle.latency(Direction::Read) != Latency::WhereCached {
            return false;
        }
        let sample = Batch::read(start, &mut buffer[..(end - start) as usize]);
        job.handle.transfer_cached(&sample).is_some()
    }

    /// Writes nothing but the data, under locks of its own.
    fn write_pieces(&self, job: &Job<'_>, lock: &mut WindowLock) -> Outcome {
        lock.release();
        let part = Job {
            file: self.file.slice(0, self.file.len),
            memory: self.memory.slice(0, self.file.len),
            ..*job
        };
        List.run(&part, &mut [])
    }

    /// `None` if others may have written to the holes since they were read.
    fn write_locked(
        &self,
        job: &Job<'_>,
        bytes: &mut [u8],
        lock: &mut WindowLock,
    ) -> io::Result<Option<Outcome>> {
        lock.cover(job, self.start..self.end)?;
        if self.has_holes() {
            let Outcome { bytes: got, error } =
                job.handle.transfer(&Batch::read(self.start, bytes));
            if let Some(error) = error {
                return Err(error);
            }
            // Past the end of the file, holes become zeros when the file grows.
            bytes[got as usize..].fill(0);
        }
        self.memory.exchange(
            Direction::Write,
            &self.file,
            &WindowBuffer::new(bytes),
            self.start,
        );
        if self.has_holes() && !is_alone(job) {
            return Ok(None);
        }
        Ok(Some(job.handle.transfer(&Batch::write(self.start, bytes))))
    }
}

/// The lock under which windows are written, if writes lock.
struct WindowLock {
    held: Option<RangeLock>,
    /// What it covers.
    range: Range<u64>,
    /// The length of a lock.
    bytes: u64,
}

impl WindowLock {
    fn new(job: &Job<'_>, window_bytes: u64) -> WindowLock {
        let (first, last) = (job.file.file_byte(0), job.file.file_byte(job.file.len - 1));
        let bytes = match each_piece_is_a_request(job.handle, job.direction) {
            true => ((last - first) / LOCKS_MIN)
                .min(WINDOWS_PER_LOCK * window_bytes)
                .max(window_bytes),
            false => window_bytes,
        };
        WindowLock {
            held: None,
            range: 0..0,
            bytes,
        }
    }

    /// Locks a window, and those after it that are covered by a lock of this length.
    fn cover(&mut self, job: &Job<'_>, window: Range<u64>) -> io::Result<()> {
        if self.range.start <= window.start && window.end <= self.range.end {
            return Ok(());
        }
        // Ranks that held one lock and waited for another could wait for each other.
        self.release();
        let last = job.file.file_byte(job.file.len - 1) + 1;
        let end = window.start.saturating_add(self.bytes).min(last);
        let range = window.start..end.max(window.end);
        self.held = lock_for_write(job, range.clone())?;
        self.range = range;
        Ok(())
    }

    fn release(&mut self) {
        self.held = None;
        self.range = 0..0;
    }
}

/// Whether there is still no other writer, if a lease was to show that.
fn is_alone(job: &Job<'_>) -> bool {
    job.lease.is_none_or(Lease::is_intact)
}
