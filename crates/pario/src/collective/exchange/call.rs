//! The driver loop of one call.

use std::{
    collections::VecDeque,
    sync::{Arc, OnceLock},
    thread::Scope,
};

use pario_exchange::{
    Action, Event, Finished, Job, Machine, Message, Planned, Rank, Setting, Span, Table,
};
use pario_transport::{DataTag, Posted, Tag, Transport, TransportError};

use super::{
    ExchangeState, PlannedCall, Step,
    transfers::{Done, IoThread, Transfers, WindowTransfer},
};
use crate::{Result, operation::Operation};

/// Control messages of the exchange.
const CONTROL: Tag = Tag(1);

/// What a call needs for as long as it lasts.
pub(super) struct Environment<'a> {
    pub(super) comm: &'a dyn Transport,
    /// `None` if this rank's arguments are wrong.
    pub(super) operation: Option<&'a Operation>,
    pub(super) planned: OnceLock<PlannedCall>,
    pub(super) done: Done,
}

impl Environment<'_> {
    pub(super) fn operation(&self) -> &Operation {
        let operation = self.operation;
        operation.expect("nothing is moved in a call with wrong arguments")
    }

    pub(super) fn planned(&self) -> &PlannedCall {
        let planned = self.planned.get();
        planned.expect("data is moved once the call is planned")
    }

    pub(super) fn transfers(&self) -> Transfers<'_> {
        let PlannedCall {
            planning,
            addresses,
            memory,
        } = self.planned();
        Transfers {
            comm: self.comm,
            operation: self.operation(),
            planning,
            memory,
            addresses,
        }
    }
}

/// A posted transfer: whether it is a receive, and its length.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    job: Job,
    is_receive: bool,
    bytes: u64,
}

pub(super) struct Call<'scope, 'env> {
    pub(super) scope: &'scope Scope<'scope, 'env>,
    pub(super) environment: &'env Environment<'env>,
    pub(super) state: &'scope mut ExchangeState,
    machine: Machine<Planned>,
    pub(super) events: VecDeque<Event<Planned>>,
    actions: Vec<Action>,
    posted: Vec<(Posted, Waiting)>,
    pub(super) io_thread: Option<IoThread<'env>>,
    finished: Option<Finished>,
}

/// Plans a call from the entries of all ranks.
pub(super) type Planner<'a> = &'a mut dyn FnMut(&mut ExchangeState, &Table) -> Result<Step>;

impl<'scope, 'env> Call<'scope, 'env> {
    pub(super) fn new(
        scope: &'scope Scope<'scope, 'env>,
        environment: &'env Environment<'env>,
        state: &'scope mut ExchangeState,
        setting: Arc<Setting>,
    ) -> Call<'scope, 'env> {
        let me = Rank(environment.comm.rank().0);
        Call {
            machine: Machine::new(setting, me),
            scope,
            environment,
            state,
            events: VecDeque::new(),
            actions: Vec::new(),
            posted: Vec::new(),
            io_thread: None,
            finished: None,
        }
    }

    pub(super) fn me(&self) -> Rank {
        Rank(self.environment.comm.rank().0)
    }

    /// Runs the call to its end.
    pub(super) fn run(mut self, start: Event<Planned>, planner: Planner<'_>) -> Result<Finished> {
        self.events.push_back(start);
        for (from, message) in std::mem::take(&mut self.state.early) {
            self.take_in(from, message)?;
        }
        let comm = self.environment.comm;
        loop {
            self.handle_events(planner)?;
            if let Some(finished) = self.finished.take() {
                return Ok(finished);
            }
            comm.wait_until(&mut || self.gather())?;
        }
    }

    fn handle_events(&mut self, planner: Planner<'_>) -> Result<()> {
        while let Some(event) = self.events.pop_front() {
            let mut actions = std::mem::take(&mut self.actions);
            self.machine.handle(event, &mut actions);
            for action in actions.drain(..) {
                self.act(action, planner)?;
            }
            self.actions = actions;
        }
        Ok(())
    }

    /// Takes in what has happened; whether anything has.
    fn gather(&mut self) -> pario_transport::Result<bool> {
        let comm = self.environment.comm;
        while let Some((from, message)) = comm.try_receive_any(CONTROL)? {
            self.take_in(Rank(from.0), message)?;
        }
        let mut index = 0;
        while index < self.posted.len() {
            if !comm.is_complete(self.posted[index].0)? {
                index += 1;
                continue;
            }
            let (_, waiting) = self.posted.swap_remove(index);
            let Waiting { job, bytes, .. } = waiting;
            let is_under_way = self.environment.done.is_under_way();
            self.state.overlap.count(bytes, is_under_way);
            self.events.push_back(match waiting.is_receive {
                true => Event::Received { job, bytes },
                false => Event::Sent(job),
            });
        }
        for (job, outcome) in self.environment.done.take() {
            self.events.push_back(Event::Transferred { job, outcome });
        }
        Ok(!self.events.is_empty())
    }

    /// A control message: of this call, or of one that this rank has not entered
    /// yet.
    fn take_in(&mut self, from: Rank, bytes: Vec<u8>) -> pario_transport::Result<()> {
        let malformed = || TransportError::Malformed {
            rank: rank(from),
            operation: "an exchange",
        };
        let (number, rest) = bytes.split_first_chunk().ok_or_else(malformed)?;
        match u32::from_le_bytes(*number).wrapping_sub(self.state.number) as i32 {
            0 => {}
            ahead if ahead > 0 => {
                self.state.early.push((from, bytes));
                return Ok(());
            }
            // Of a call that failed.
            _ => return Ok(()),
        }
        let (message, payload) = Message::from_wire(rest).ok_or_else(malformed)?;
        let payload = self.state.eager.arrive(self.me(), payload);
        self.events.push_back(Event::Message {
            from,
            message,
            payload,
        });
        Ok(())
    }

    fn act(&mut self, action: Action, planner: Planner<'_>) -> Result<()> {
        match action {
            Action::Plan(table) => self.plan(&table, planner)?,
            Action::Control {
                to,
                message,
                payload,
            }
            | Action::Notify {
                to,
                message,
                payload,
            } => self.send_control(to, &message, &payload)?,
            Action::Receive {
                job,
                from,
                tag,
                span,
            } => {
                let waiting = Waiting {
                    job,
                    is_receive: true,
                    bytes: span.bytes(),
                };
                self.post(waiting, &span, |comm, memory, range| {
                    comm.post_receive(rank(from), DataTag(tag.0), memory, range)
                })?;
            }
            Action::Send { job, to, tag, span } => {
                let waiting = Waiting {
                    job,
                    is_receive: false,
                    bytes: span.bytes(),
                };
                self.post(waiting, &span, |comm, memory, range| {
                    comm.post_send(rank(to), DataTag(tag.0), memory, range)
                })?;
            }
            Action::TryAcquire(kind) => self.events.push_back(Event::Acquired(kind)),
            Action::Release(buffer) => self.state.eager.release(buffer),
            Action::Finish(finished) => self.finished = Some(finished),
            Action::Transfer {
                job,
                realm,
                file,
                buffer,
                contents,
                parts,
            } => self.transfer(WindowTransfer {
                job,
                realm,
                file,
                buffer,
                contents,
                parts,
            }),
            Action::Copy { .. }
            | Action::Arrange { .. }
            | Action::Pack { .. }
            | Action::Unpack { .. } => self.copy(action),
            Action::TransferEager { job, table, parts } => {
                let outcome = self.transfer_eager(&table, &parts)?;
                self.events.push_back(Event::Transferred { job, outcome });
            }
        }
        Ok(())
    }

    fn plan(&mut self, table: &Table, planner: Planner<'_>) -> Result<()> {
        self.state.was_eager = false;
        let event = match planner(self.state, table)? {
            Step::Exchange(planned) => {
                let accesses = planned.planning.planned.clone();
                let is_first = self.environment.planned.set(*planned).is_ok();
                debug_assert!(is_first, "a call is planned once");
                Event::Planned(accesses)
            }
            Step::Alone(progress) => Event::MovedAlone(progress),
        };
        self.events.push_back(event);
        Ok(())
    }

    fn send_control(&self, to: Rank, message: &Message, payload: &[Span]) -> Result<()> {
        let payload_bytes: u64 = payload.iter().map(Span::bytes).sum();
        let bytes = 4 + message.wire_bytes() + payload_bytes;
        let mut wire = Vec::with_capacity(bytes as usize + pario_transport::SEND_HEADROOM);
        wire.extend(self.state.number.to_le_bytes());
        message.write_to(&mut wire);
        for span in payload {
            wire.extend_from_slice(self.state.eager.bytes(span));
        }
        Ok(self.environment.comm.send_owned(rank(to), CONTROL, wire)?)
    }

    fn post(
        &mut self,
        waiting: Waiting,
        span: &Span,
        post: impl FnOnce(
            &dyn Transport,
            &pario_transport::Segment,
            std::ops::Range<usize>,
        ) -> pario_transport::Result<Posted>,
    ) -> Result<()> {
        let PlannedCall {
            memory, addresses, ..
        } = self.environment.planned();
        let (segment, place) = memory.segment(addresses, span.buffer);
        let start = (place.start + span.range.start) as usize;
        let range = start..start + span.bytes() as usize;
        let posted = post(self.environment.comm, segment, range)?;
        self.posted.push((posted, waiting));
        Ok(())
    }
}

fn rank(rank: Rank) -> pario_transport::Rank {
    pario_transport::Rank(rank.0)
}
