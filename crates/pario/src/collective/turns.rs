//! Turns of agents that share a server (Zhang 2009, section 3.4): requests reach the server in the
//! order of the file. Every agent knows from the plan where each of them has its first data. One
//! that has started a transfer tells the others where its next data is; before it starts one, it
//! waits until no other has earlier data left.
//!
//! The order matters to the speed of the server only. So an agent that hears nothing for a while,
//! because another's transfer failed or takes long, goes on without it.

use std::{
    sync::{Mutex, MutexGuard, PoisonError, mpsc},
    thread,
    time::{Duration, Instant},
};

use pario_plan::{Access, Rounds, Signal};
use pario_transport::{Rank, Tag, Transport};

/// Where an agent goes on.
const POSITION: Tag = Tag(8);
/// An agent waits no longer than this for the others, or for a window that fails to come.
pub(super) const WAIT_MAX: Duration = Duration::from_secs(5);
/// How often it looks for messages.
const LOOK_EVERY: Duration = Duration::from_micros(50);

/// The turns of one call.
#[derive(Debug)]
pub(super) struct Turns {
    /// Which call, to tell messages of earlier ones apart.
    call: u64,
    /// Where each aggregator has its next data, as far as known.
    positions: Mutex<Vec<u64>>,
}

/// A position of an aggregator in a call.
struct Message {
    call: u64,
    aggregator: u64,
    position: u64,
}

impl Message {
    fn to_wire(&self) -> [u8; 24] {
        let words = [self.call, self.aggregator, self.position];
        let mut wire = [0; 24];
        for (bytes, word) in wire.chunks_exact_mut(8).zip(words) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        wire
    }

    fn from_wire(wire: &[u8]) -> Option<Message> {
        let word = |index: usize| {
            let bytes = wire.get(8 * index..8 * index + 8)?;
            Some(u64::from_le_bytes(bytes.try_into().ok()?))
        };
        Some(Message {
            call: word(0)?,
            aggregator: word(1)?,
            position: word(2)?,
        })
    }
}

impl Turns {
    /// `None` if no aggregators share a server.
    pub(super) fn of(rounds: &Rounds, accesses: &[Access], call: u64) -> Option<Turns> {
        let aggregators = || rounds.aggregators.iter().enumerate();
        if aggregators().all(|(_, it)| it.turn.is_none()) {
            return None;
        }
        let first = |index| rounds.next_data(accesses, index, 0).unwrap_or(u64::MAX);
        let positions = aggregators().map(|(index, it)| match it.turn {
            Some(_) => first(index),
            None => u64::MAX,
        });
        Some(Turns {
            call,
            positions: Mutex::new(positions.collect()),
        })
    }

    fn positions(&self) -> MutexGuard<'_, Vec<u64>> {
        self.positions
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Carries out an aggregator's transfer of a range of the file in its turn.
    pub(super) fn take<T>(
        &self,
        comm: &dyn Transport,
        (rounds, accesses): (&Rounds, &[Access]),
        aggregator: usize,
        file: std::ops::Range<u64>,
        transfer: impl FnOnce() -> T,
    ) -> T {
        let Some(turn) = rounds.aggregators[aggregator].turn else {
            return transfer();
        };
        self.await_turn(comm, rounds, aggregator, file.start);
        let next = rounds.next_data(accesses, aggregator, file.end);
        let next = next.unwrap_or(u64::MAX);
        self.positions()[aggregator] = next;
        let pass = || self.pass(comm, rounds, aggregator, next);
        match turn.signal {
            Signal::StartedUs(delay_us) => thread::scope(|scope| {
                let (moving, moved) = mpsc::channel::<()>();
                let delayed = move || {
                    // Ends when the data has been moved, if that is earlier.
                    let _ = moved.recv_timeout(Duration::from_micros(delay_us));
                    pass();
                };
                let signal = thread::Builder::new().spawn_scoped(scope, delayed);
                let result = transfer();
                drop(moving);
                if signal.is_err() {
                    pass();
                }
                result
            }),
            Signal::Complete => {
                let result = transfer();
                pass();
                result
            }
        }
    }

    /// Waits until no other agent of the server has data before `file_byte` left to request.
    pub(super) fn await_turn(
        &self,
        comm: &dyn Transport,
        rounds: &Rounds,
        aggregator: usize,
        file_byte: u64,
    ) {
        let began = Instant::now();
        loop {
            // Losses are reported by the calls that move the data.
            while let Ok(Some((_, wire))) = comm.try_receive_any(POSITION) {
                self.note(&wire);
            }
            let mut positions = self.positions();
            let mut behind = others(rounds, aggregator).filter(|it| positions[*it] < file_byte);
            if behind.next().is_none() {
                return;
            }
            drop(behind);
            if began.elapsed() > WAIT_MAX {
                // Nor again in this call.
                for index in others(rounds, aggregator) {
                    positions[index] = u64::MAX;
                }
                return;
            }
            drop(positions);
            if comm.progress().is_err() {
                return;
            }
            thread::sleep(LOOK_EVERY);
        }
    }

    fn note(&self, wire: &[u8]) {
        let Some(message) = Message::from_wire(wire) else {
            return;
        };
        let mut positions = self.positions();
        if message.call == self.call
            && let Some(position) = positions.get_mut(message.aggregator as usize)
        {
            *position = (*position).max(message.position);
        }
    }

    /// Whether an aggregator's transfer from `file_byte` on is the next one in the order of the
    /// file.
    pub(super) fn is_next(&self, aggregator: usize, file_byte: u64) -> bool {
        file_byte <= self.positions()[aggregator]
    }

    /// Tells the other agents of the server where the next data of this one is.
    pub(super) fn pass(
        &self,
        comm: &dyn Transport,
        rounds: &Rounds,
        aggregator: usize,
        position: u64,
    ) {
        let message = Message {
            call: self.call,
            aggregator: aggregator as u64,
            position,
        };
        for other in others(rounds, aggregator) {
            let rank = Rank(rounds.aggregators[other].rank);
            // Whoever misses it waits for a bounded time.
            let _ = comm.send(rank, POSITION, &message.to_wire());
        }
    }
}

/// The other agents of an aggregator's server.
fn others(rounds: &Rounds, aggregator: usize) -> impl Iterator<Item = usize> {
    let server = |index: usize| rounds.aggregators[index].turn.map(|turn| turn.server);
    let mine = server(aggregator);
    (0..rounds.aggregators.len())
        .filter(move |index| *index != aggregator && mine.is_some() && server(*index) == mine)
}
