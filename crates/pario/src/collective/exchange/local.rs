//! The actions that a rank carries out by itself: copies and file transfers.

use pario_driver::Direction;
use pario_exchange::{Action, Event, Outcome, Rank, Span, Table};

use super::{
    super::{entry::check_same_call, write_guard::CollectiveWriteGuard},
    PlannedCall,
    call::Call,
    copies::{arrange, copy_own},
    eager::access_of,
    transfers::{IoThread, WindowTransfer, transfer_packed},
};
use crate::{Result, access::MemorySpan, operation::Operation};

impl Call<'_, '_> {
    /// Moves a window here if it is the only one, else on the I/O thread.
    pub(super) fn transfer(&mut self, transfer: WindowTransfer) {
        let environment = self.environment;
        let transfers = environment.transfers();
        let is_only = {
            let planning = &environment.planned().planning;
            let planned = &planning.planned;
            // Who waits for its turn must not keep others from theirs.
            planning.turns.is_none()
                && planned.realm(transfer.realm).bytes() <= planned.rounds().window_bytes
        };
        let mut left = Some(transfer);
        if !is_only {
            if self.io_thread.is_none() {
                let (comm, done) = (environment.comm, &environment.done);
                self.io_thread = IoThread::start(self.scope, transfers, comm, done);
            }
            if let Some(thread) = &self.io_thread {
                left = left.and_then(|transfer| thread.order(transfer).err());
            }
        }
        if let Some(transfer) = left {
            let outcome = transfers.carry_out(&transfer);
            let job = transfer.job;
            self.events.push_back(Event::Transferred { job, outcome });
        }
    }

    pub(super) fn copy(&mut self, action: Action) {
        let environment = self.environment;
        let operation = environment.operation();
        let job = match action {
            Action::Copy {
                job,
                realm,
                file,
                buffer,
                place,
                among,
            } => {
                let PlannedCall {
                    planning,
                    memory,
                    addresses,
                } = environment.planned();
                let planned = &planning.planned;
                let bytes = memory.buffer(addresses, buffer);
                copy_own(planned, operation, self.me(), (realm, file), bytes, place);
                let is_last = memory.count(addresses, buffer, among);
                self.events.push_back(Event::CopiedOwn { job, is_last });
                return;
            }
            Action::Arrange {
                job,
                realm,
                file,
                staging,
                window,
                parts,
            } => {
                let PlannedCall {
                    planning,
                    memory,
                    addresses,
                } = environment.planned();
                let staging = memory.buffer(addresses, staging);
                let window = memory.buffer(addresses, window);
                let planned = &planning.planned;
                arrange(planned, operation, (realm, file), staging, window, &parts);
                job
            }
            Action::Pack { job, .. } => {
                let memory = MemorySpan::of(operation.memory());
                let packed = self.state.eager.own(memory.len());
                memory.exchange_packed(Direction::Write, packed);
                job
            }
            Action::Unpack { job, spans, stop } => {
                self.unpack(operation, &spans, stop);
                job
            }
            _ => unreachable!("only copies come here"),
        };
        self.events.push_back(Event::Copied(job));
    }

    fn unpack(&self, operation: &Operation, spans: &[Span], stop: u64) {
        let memory = MemorySpan::of(operation.memory());
        let below = match self.state.own_access.as_ref() {
            Some(access) if stop < u64::MAX => access.bytes_below(stop),
            _ => memory.len(),
        };
        let mut at = 0;
        for span in spans {
            let len = span.bytes().min(below - at);
            if len == 0 {
                // Nothing was read, so that there may be no buffer either.
                break;
            }
            let bytes = &self.state.eager.bytes(span)[..len as usize];
            memory.slice(at, len).unpack_from(bytes);
            at += len;
        }
    }

    /// As the root: moves the data of all ranks.
    pub(super) fn transfer_eager(
        &mut self,
        table: &Table,
        parts: &[(Rank, Vec<Span>)],
    ) -> Result<Outcome> {
        let operation = self.environment.operation();
        let accesses = parts.iter().map(|(rank, _)| {
            let entry = table.get(*rank).cloned().unwrap_or_default();
            access_of(operation, *rank, &entry)
        });
        let accesses = check_same_call(table).and_then(|()| accesses.collect::<Result<Vec<_>>>());
        let accesses = match accesses {
            Ok(accesses) => accesses,
            Err(error) => {
                return Ok(Outcome {
                    stop: Some(0),
                    error: Some(error.to_wire().into()),
                });
            }
        };
        let _guard = CollectiveWriteGuard::ordinary(operation);
        let list_pieces = (operation.hints().pario_list_pieces as usize).max(1);
        let parts = self.state.eager.parts(&accesses, parts, table);
        Ok(transfer_packed(operation, list_pieces, &parts))
    }
}
