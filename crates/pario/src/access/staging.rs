//! Staging memory: reused between accesses, bounded per file.

use std::{
    io,
    ops::{Deref, DerefMut},
    sync::{Mutex, MutexGuard, PoisonError},
};

use super::page_aliasing::PAGE_BYTES;
use crate::condition::Condition;

/// The maximum number of idle buffers per file: one for each of the two steps of
/// an access, conversion and sieving.
const IDLE_BUFFERS_MAX: usize = 2;
/// Larger buffers are freed.
const IDLE_BYTES_MAX: usize = 8 << 20;

/// Buffers start this many bytes past a page boundary. The other side of a copy
/// usually starts at a page boundary (pages of the file) or shortly after one
/// (large allocations): with this offset, neither [aliases] the other.
///
/// [aliases]: super::page_aliasing
const PHASE: usize = PAGE_BYTES / 4;
/// The additional bytes that this offset requires.
const SLACK: usize = PAGE_BYTES + PHASE;

/// The staging memory of one open file. Requests beyond the bound wait, unless no
/// other buffer is in use.
#[derive(Debug)]
pub(crate) struct Buffers {
    state: Mutex<State>,
    returned: Condition,
}

#[derive(Debug)]
struct State {
    bound: u64,
    used: u64,
    idle: Vec<Vec<u8>>,
}

impl State {
    /// The first request always succeeds, whatever its size.
    fn has_room(&self, bytes: u64) -> bool {
        self.used == 0 || self.used.saturating_add(bytes) <= self.bound
    }

    /// Keeps a buffer for later, if there are enough already in place of the smallest.
    fn keep(&mut self, memory: Vec<u8>) {
        if self.idle.len() < IDLE_BUFFERS_MAX {
            self.idle.push(memory);
        } else if let Some(smallest) = self.idle.iter_mut().min_by_key(|idle| idle.len())
            && smallest.len() < memory.len()
        {
            *smallest = memory;
        }
    }
}

impl Buffers {
    pub(crate) fn new(bound: u64) -> Buffers {
        let state = State {
            bound,
            used: 0,
            idle: Vec::new(),
        };
        Buffers {
            state: Mutex::new(state),
            returned: Condition::default(),
        }
    }

    pub(crate) fn set_bound(&self, bound: u64) {
        self.state().bound = bound;
        self.returned.notify_all();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a request for this many bytes would succeed without waiting.
    pub(crate) fn has_room(&self, bytes: u64) -> bool {
        self.state().has_room(bytes)
    }

    /// As [`take`](Self::take), but does not wait: `None` if others use too much memory.
    pub(crate) fn try_take(&self, bytes: u64) -> Option<io::Result<Staging<'_>>> {
        let state = self.state();
        state.has_room(bytes).then(|| self.take_from(state, bytes))
    }

    /// A buffer of at least this many bytes, with unspecified contents.
    pub(crate) fn take(&self, bytes: u64) -> io::Result<Staging<'_>> {
        let state = self
            .returned
            .wait_while(self.state(), |state| !state.has_room(bytes));
        self.take_from(state, bytes)
    }

    fn take_from(&self, mut state: MutexGuard<'_, State>, bytes: u64) -> io::Result<Staging<'_>> {
        let len = usize::try_from(bytes).map_err(|_| io::ErrorKind::OutOfMemory)?;
        let fitting = state.idle.iter().position(|idle| idle.len() >= len + SLACK);
        let idle = fitting.map(|index| state.idle.swap_remove(index));
        let memory = match idle {
            Some(memory) => memory,
            None => zeroed(len.checked_add(SLACK).ok_or(io::ErrorKind::OutOfMemory)?)?,
        };
        state.used += bytes;
        drop(state);
        let start = memory.as_ptr().align_offset(PAGE_BYTES) + PHASE;
        Ok(Staging {
            memory,
            start,
            bytes,
            owner: self,
        })
    }
}

/// Allocates memory of a size that the user chose: fails instead of aborting.
fn zeroed(len: usize) -> io::Result<Vec<u8>> {
    let mut memory = Vec::new();
    memory
        .try_reserve_exact(len)
        .map_err(|_| io::ErrorKind::OutOfMemory)?;
    memory.resize(len, 0);
    Ok(memory)
}

/// A buffer on loan.
#[derive(Debug)]
pub(crate) struct Staging<'a> {
    memory: Vec<u8>,
    /// The offset of the buffer in `memory`.
    start: usize,
    bytes: u64,
    owner: &'a Buffers,
}

impl Deref for Staging<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.memory[self.start..]
    }
}

impl DerefMut for Staging<'_> {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..]
    }
}

impl Drop for Staging<'_> {
    fn drop(&mut self) {
        let mut state = self.owner.state();
        state.used -= self.bytes;
        if self.memory.len() <= IDLE_BYTES_MAX + SLACK {
            state.keep(std::mem::take(&mut self.memory));
        }
        self.owner.returned.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    #[test]
    fn takers_never_hold_more_than_the_bound() {
        let buffers = Buffers::new(1000);
        let held = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let buffer = buffers.take(400).unwrap();
                        assert!(held.fetch_add(400, Ordering::SeqCst) + 400 <= 1000);
                        std::thread::yield_now();
                        held.fetch_sub(400, Ordering::SeqCst);
                        drop(buffer);
                    }
                });
            }
        });
    }

    #[test]
    fn buffers_keep_their_distance_from_pages() {
        let buffers = Buffers::new(1 << 20);
        for bytes in [1, 5000, 1 << 17] {
            let buffer = buffers.take(bytes).unwrap();
            assert!(buffer.len() as u64 >= bytes);
            assert_eq!(buffer.as_ptr().addr() % PAGE_BYTES, PHASE);
        }
    }

    #[test]
    fn larger_buffers_take_the_place_of_smaller_ones() {
        let buffers = Buffers::new(1 << 20);
        let small = [1000, 4000].map(|bytes| buffers.take(bytes).unwrap());
        drop(small);
        let first = buffers.take(1 << 16).unwrap();
        let address = first.as_ptr();
        drop(first);
        assert_eq!(buffers.take(1 << 16).unwrap().as_ptr(), address);
    }

    #[test]
    fn one_taker_gets_more_than_the_bound() {
        let buffers = Buffers::new(10);
        assert!(buffers.take(100).unwrap().len() >= 100);
        assert!(buffers.take(100).unwrap().len() >= 100);
    }

    #[test]
    fn a_size_that_cannot_be_had_is_an_error() {
        let buffers = Buffers::new(u64::MAX);
        let error = buffers.take(u64::MAX / 2).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::OutOfMemory);
    }
}
