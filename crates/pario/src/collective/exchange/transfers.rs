//! File transfers of an exchange, on the calling thread or on an I/O thread.

use std::{
    ops::Range,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
        mpsc::{self, Receiver, Sender},
    },
    thread::{Builder, Scope},
};

use pario_driver::Direction;
use pario_exchange::{Buffer, Contents, Job, Outcome, Part, Planned, Realm};
use pario_plan::{MemberRanks, Window};
use pario_transport::Transport;

use super::{
    super::{PlanResult, turns::WAIT_MAX, window_io::WindowIo},
    Planning,
    copies::data_parts,
    memory::{Addresses, ExchangeMemory},
    packed::{self, PackedPart, Stopped},
};
use crate::{Error, ErrorKind, access::WindowBuffer, operation::Operation};

/// A window that is to be moved between its buffer and the file.
#[derive(Debug)]
pub(super) struct WindowTransfer {
    pub(super) job: Job,
    pub(super) realm: Realm,
    pub(super) file: Range<u64>,
    pub(super) buffer: Buffer,
    pub(super) contents: Contents,
    pub(super) parts: Vec<Part>,
}

/// What transfers need to know of their call.
#[derive(Clone, Copy)]
pub(super) struct Transfers<'a> {
    pub(super) comm: &'a dyn Transport,
    pub(super) operation: &'a Operation,
    pub(super) planning: &'a Planning,
    pub(super) memory: &'a ExchangeMemory,
    pub(super) addresses: &'a Addresses,
}

impl Transfers<'_> {
    pub(super) fn carry_out(&self, transfer: &WindowTransfer) -> Outcome {
        let planned = &*self.planning.planned;
        let Some(turns) = &self.planning.turns else {
            return self.move_window(transfer);
        };
        turns.take(
            self.comm,
            (planned.rounds(), planned.accesses()),
            transfer.realm.0 as usize,
            transfer.file.clone(),
            || self.move_window(transfer),
        )
    }

    fn move_window(&self, transfer: &WindowTransfer) -> Outcome {
        let planned = &*self.planning.planned;
        let buffer = self.memory.buffer(self.addresses, transfer.buffer);
        match transfer.contents {
            Contents::Image => self.image(transfer, buffer),
            Contents::Packed => self.packed(planned, transfer, buffer),
        }
    }

    fn io(&self) -> WindowIo<'_> {
        let Planning {
            planned,
            proof,
            holes,
            ..
        } = self.planning;
        WindowIo::of_call(self.operation, planned.accesses(), *holes, proof)
    }

    fn image(&self, transfer: &WindowTransfer, buffer: WindowBuffer<'_>) -> Outcome {
        let realm = self.planning.planned.realm(transfer.realm);
        let window = Window::of(realm.extents_in(transfer.file.clone()));
        let mut ranks: Vec<u32> = transfer.parts.iter().map(|part| part.rank.0).collect();
        ranks.sort_unstable();
        let members = MemberRanks::Some(ranks.iter());
        let mut result = PlanResult::default();
        match self.operation.direction() {
            Direction::Write => self.io().write(&window, members, buffer, &mut result),
            Direction::Read => {
                self.io().read(&window, members, buffer, &mut result);
            }
        }
        outcome_of(result)
    }

    fn packed(
        &self,
        planned: &Planned,
        transfer: &WindowTransfer,
        buffer: WindowBuffer<'_>,
    ) -> Outcome {
        let mut parts = Vec::with_capacity(transfer.parts.len());
        let mut at = 0;
        for part in &transfer.parts {
            let access = planned.access(part.rank);
            for (_, data) in data_parts(planned, access, transfer.realm, transfer.file.clone()) {
                let len = (data.end - data.start) as usize;
                parts.push(PackedPart {
                    access,
                    data,
                    buffer: buffer.part(at..at + len),
                });
                at += len;
            }
        }
        self.transfer_packed(&parts)
    }

    /// Moves packed data of several ranks.
    pub(super) fn transfer_packed(&self, parts: &[PackedPart<'_>]) -> Outcome {
        transfer_packed(self.operation, self.io().list_pieces(), parts)
    }
}

/// Moves packed data of several ranks.
pub(super) fn transfer_packed(
    operation: &Operation,
    list_pieces: usize,
    parts: &[PackedPart<'_>],
) -> Outcome {
    match packed::transfer(operation, list_pieces, parts) {
        Ok(()) => Outcome::ALL,
        Err(stopped) => stopped_at(stopped),
    }
}

fn stopped_at((stop, error): Stopped) -> Outcome {
    let error = error.map(|error| Error::from(error).at_offset(stop));
    outcome_of(PlanResult {
        stop: Some(stop),
        error,
    })
}

fn outcome_of(result: PlanResult) -> Outcome {
    Outcome {
        stop: result.stop,
        error: result.error.map(|error| error.to_wire().into()),
    }
}

/// Transfers in the order in which they are carried out: as they were ordered, or as in the file
/// if the aggregator takes turns with others.
struct OrderedTransfers<'a> {
    transfers: Transfers<'a>,
    received: Receiver<WindowTransfer>,
    /// Those that have to wait for an earlier one.
    early: Vec<WindowTransfer>,
}

impl OrderedTransfers<'_> {
    fn is_next(&self, transfer: &WindowTransfer) -> bool {
        let turns = self.transfers.planning.turns.as_ref();
        turns.is_none_or(|turns| turns.is_next(transfer.realm.0 as usize, transfer.file.start))
    }
}

impl Iterator for OrderedTransfers<'_> {
    type Item = WindowTransfer;

    fn next(&mut self) -> Option<WindowTransfer> {
        loop {
            let next = self.early.iter().position(|it| self.is_next(it));
            if let Some(index) = next {
                return Some(self.early.swap_remove(index));
            }
            let received = match self.early.is_empty() {
                true => self.received.recv().ok(),
                false => self.received.recv_timeout(WAIT_MAX).ok(),
            };
            match received {
                Some(transfer) => self.early.push(transfer),
                // The earlier one has failed to come.
                None => return self.early.pop(),
            }
        }
    }
}

/// A thread that carries out transfers one after the other, while the calling
/// thread moves messages.
pub(super) struct IoThread<'env> {
    orders: Sender<WindowTransfer>,
    done: &'env Done,
}

/// Transfers that the I/O thread has carried out, and how many it has still to.
#[derive(Debug, Default)]
pub(super) struct Done {
    outcomes: Mutex<Vec<(Job, Outcome)>>,
    under_way: AtomicUsize,
}

impl Done {
    pub(super) fn take(&self) -> Vec<(Job, Outcome)> {
        let mut outcomes = self.outcomes.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut outcomes)
    }

    /// Whether the I/O thread is moving a window.
    pub(super) fn is_under_way(&self) -> bool {
        self.under_way.load(Ordering::Relaxed) > 0
    }

    fn push(&self, job: Job, outcome: Outcome) {
        self.under_way.fetch_sub(1, Ordering::Relaxed);
        let mut outcomes = self.outcomes.lock().unwrap_or_else(PoisonError::into_inner);
        outcomes.push((job, outcome));
    }
}

impl<'env> IoThread<'env> {
    /// `None` if no thread can be had.
    pub(super) fn start<'scope>(
        scope: &'scope Scope<'scope, 'env>,
        transfers: Transfers<'env>,
        comm: &'env dyn Transport,
        done: &'env Done,
    ) -> Option<IoThread<'env>> {
        let (orders, received): (_, Receiver<WindowTransfer>) = mpsc::channel();
        let work = move || {
            let ordered = OrderedTransfers {
                transfers,
                received,
                early: Vec::new(),
            };
            for transfer in ordered {
                // The calling thread waits for the outcome, whatever it is.
                let outcome = catch_unwind(AssertUnwindSafe(|| transfers.carry_out(&transfer)));
                let outcome = outcome.unwrap_or_else(|_| {
                    let error = Error::new(ErrorKind::Io, "the transfer of a window panicked");
                    outcome_of(PlanResult {
                        stop: Some(transfer.file.start),
                        error: Some(error),
                    })
                });
                done.push(transfer.job, outcome);
                comm.wake();
            }
        };
        let thread = Builder::new().name("pario-io".into());
        let started = thread.spawn_scoped(scope, work);
        started.ok().map(|_| IoThread { orders, done })
    }

    /// Gives the transfer back if the thread has ended.
    pub(super) fn order(&self, transfer: WindowTransfer) -> Result<(), WindowTransfer> {
        self.done.under_way.fetch_add(1, Ordering::Relaxed);
        self.orders.send(transfer).map_err(|refused| {
            self.done.under_way.fetch_sub(1, Ordering::Relaxed);
            refused.0
        })
    }
}
