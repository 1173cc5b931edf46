//! The shared pointer at rank 0 (Thakur 1999, section 3.9): a thread of that rank changes it for
//! the others, which send a message and wait for the answer. It needs neither common memory nor
//! locks of the file system.
//!
//! A rank has one request under way at a time. When rank 0 closes the file, its thread tells all
//! ranks, so that one that still asks gets an error instead of waiting.

use std::{
    io,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
};

use pario_transport::{Rank, Tag, Transport, TransportError};

use super::{Change, Generation, Method};
use crate::{Error, Result};

const OWNER: Rank = Rank(0);
/// A request to the owner, and its answer.
const REQUEST: Tag = Tag(1);
const ANSWER: Tag = Tag(2);

/// A generation, what to do, and a number.
const REQUEST_BYTES: usize = 17;

#[derive(Debug)]
pub(super) struct Owner {
    comm: Arc<dyn Transport>,
    /// At the owner.
    slots: Option<Arc<Slots>>,
    thread: Option<JoinHandle<()>>,
    /// Held from a request to its answer: whether the owner has closed the file.
    asking: Mutex<bool>,
}

/// The two positions, and whether the thread is to end.
#[derive(Debug, Default)]
struct Slots {
    positions: Mutex<[u64; 2]>,
    ends: AtomicBool,
}

impl Slots {
    fn positions(&self) -> MutexGuard<'_, [u64; 2]> {
        self.positions
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn update(&self, generation: Generation, change: Change) -> u64 {
        let mut positions = self.positions();
        let position = &mut positions[generation.slot()];
        let old = *position;
        if let Some(new) = change.of(old) {
            *position = new;
        }
        old
    }
}

impl Owner {
    /// *Collective*.
    pub(super) fn new(comm: &dyn Transport) -> Result<Owner> {
        let comm = comm.duplicate()?;
        let (mut slots, mut thread) = (None, None);
        if comm.rank() == OWNER {
            let shared = Arc::new(Slots::default());
            let (comm, of_thread) = (comm.clone(), shared.clone());
            let serve = move || serve(&*comm, &of_thread);
            let started = thread::Builder::new().name("pario-pointer".into());
            thread = Some(started.spawn(serve).map_err(Error::from)?);
            slots = Some(shared);
        }
        Ok(Owner {
            comm,
            slots,
            thread,
            asking: Mutex::new(false),
        })
    }

    /// Asks the owner.
    fn ask(&self, generation: Generation, change: Change) -> io::Result<u64> {
        let mut is_closed = self.asking.lock().unwrap_or_else(PoisonError::into_inner);
        if !*is_closed {
            let request = to_wire(generation, change);
            self.comm
                .send(OWNER, REQUEST, &request)
                .map_err(io::Error::other)?;
            let answer = self.comm.receive(OWNER, ANSWER).map_err(io::Error::other)?;
            if let Ok(position) = answer.as_slice().try_into() {
                return Ok(u64::from_le_bytes(position));
            }
            *is_closed = true;
        }
        Err(io::Error::other(
            "rank 0, which owns the shared pointer, has closed the file",
        ))
    }
}

impl Method for Owner {
    fn name(&self) -> &'static str {
        "owner"
    }

    fn prepare(&self, generation: Generation) -> io::Result<()> {
        if let Some(slots) = &self.slots {
            slots.positions()[generation.slot()] = 0;
        }
        Ok(())
    }

    fn update(&self, generation: Generation, change: Change) -> io::Result<u64> {
        match &self.slots {
            Some(slots) => Ok(slots.update(generation, change)),
            None => self.ask(generation, change),
        }
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        let (Some(slots), Some(thread)) = (&self.slots, self.thread.take()) else {
            return;
        };
        slots.ends.store(true, Ordering::Release);
        self.comm.wake();
        // It has no result, and a panic in it has been printed.
        let _ = thread.join();
    }
}

/// The owner's thread: answers until the file is closed or a rank is lost.
fn serve(comm: &dyn Transport, slots: &Slots) {
    while let Ok(Some((rank, wire))) = next_request(comm, slots) {
        let answer = match from_wire(&wire) {
            Some((generation, change)) => slots.update(generation, change).to_le_bytes().to_vec(),
            None => Vec::new(),
        };
        // The loss of a rank is reported by the calls of the others.
        let _ = comm.send(rank, ANSWER, &answer);
    }
    for rank in (1..comm.size()).map(Rank) {
        let _ = comm.send(rank, ANSWER, &[]);
    }
}

/// Waits for a request; `None` when the file is closed.
fn next_request(
    comm: &dyn Transport,
    slots: &Slots,
) -> std::result::Result<Option<(Rank, Vec<u8>)>, TransportError> {
    let mut request = None;
    comm.wait_until(&mut || {
        request = comm.try_receive_any(REQUEST)?;
        Ok(request.is_some() || slots.ends.load(Ordering::Acquire))
    })?;
    Ok(request)
}

fn to_wire(generation: Generation, change: Change) -> [u8; REQUEST_BYTES] {
    let (kind, number) = match change {
        Change::Keep => (0, 0),
        Change::Add(by) => (1, by),
        Change::Set(position) => (2, position),
    };
    let mut wire = [0; REQUEST_BYTES];
    wire[..8].copy_from_slice(&generation.0.to_le_bytes());
    wire[8..16].copy_from_slice(&number.to_le_bytes());
    wire[16] = kind;
    wire
}

fn from_wire(wire: &[u8]) -> Option<(Generation, Change)> {
    let wire: &[u8; REQUEST_BYTES] = wire.try_into().ok()?;
    let (generation, rest) = wire.split_first_chunk()?;
    let (number, kind) = rest.split_first_chunk()?;
    let number = u64::from_le_bytes(*number);
    let change = match kind {
        [0] => Change::Keep,
        [1] => Change::Add(number),
        [2] => Change::Set(number),
        _ => return None,
    };
    Some((Generation(u64::from_le_bytes(*generation)), change))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_survive_the_wire() {
        for change in [Change::Keep, Change::Add(u64::MAX), Change::Set(7)] {
            let wire = to_wire(Generation(3), change);
            assert_eq!(from_wire(&wire), Some((Generation(3), change)));
        }
        assert_eq!(from_wire(&[0; REQUEST_BYTES - 1]), None);
        assert_eq!(from_wire(&[9; REQUEST_BYTES]), None);
    }

    #[test]
    fn a_rank_that_asks_after_the_owner_has_closed_gets_an_error() {
        let results = pario_transport::threads::run(2, |comm| {
            let owner = Owner::new(&*comm).unwrap();
            if comm.rank() == OWNER {
                drop(owner);
                comm.barrier().unwrap();
            } else {
                comm.barrier().unwrap();
                for _ in 0..2 {
                    let error = owner.update(Generation(0), Change::Add(1)).unwrap_err();
                    assert!(error.to_string().contains("has closed the file"), "{error}");
                }
            }
            // Rank 0 is there until then.
            comm.barrier().unwrap();
        });
        results.into_iter().for_each(|result| result.unwrap());
    }
}
