//! Nonblocking and split collective calls: started here, and carried out in a
//! lane of their own.
//!
//! Calls that need no exchange (`deferred.rs`) are carried out when they start,
//! if they are short. All others wait in a queue (`queue.rs`). All ranks start
//! the collective calls of a file in the same order, so one queue per file is
//! enough, and files do not wait for each other whatever the order in which
//! ranks use them.

use std::{
    panic::{self, AssertUnwindSafe},
    sync::Arc,
};

use super::{
    Lane,
    deferred::{Deferred, Turn},
    foregone::Terms,
    queue::{Queue, Urgency},
    run_ordered, run_prepared,
};
use crate::{
    Error, ErrorKind, Result, Status,
    buffer::Memory,
    file::Inner,
    operation::{Call, Operation, Position},
    request::{CarriedOut, Completion, InFlight, Keep},
};

/// The background lane of a file.
#[derive(Debug)]
pub(crate) struct Background {
    queue: Arc<Queue>,
    deferred: Option<Arc<Deferred>>,
}

impl Background {
    pub(crate) fn new(lane: Lane) -> Background {
        Background {
            deferred: Deferred::new(&lane.comm),
            queue: Arc::new(Queue::new(lane)),
        }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.queue.close();
    }
}

/// Starts a collective call. Arguments are looked at and pointers move on
/// here; what is wrong with them is told to all ranks by the call itself, so
/// that none waits for another.
pub(crate) fn start_all(
    file: &Arc<Inner>,
    call: Call,
    memory: Memory,
    keep: Keep,
) -> Result<InFlight> {
    let terms = Terms::now(file);
    let is_large = memory.bytes() > file.hints().pario_inline_bytes;
    let work = match call.position {
        // Its offset is found out together.
        Position::Ordered(_) => Work::Ordered(memory),
        _ => {
            let prepared = Operation::prepare(file, call, memory);
            match file.background.next_deferred(file, call, &terms) {
                Some(turn) => Work::Deferred(prepared, Arc::new(turn)),
                None => Work::Together(prepared),
            }
        }
    };
    let started = Started {
        file: file.clone(),
        call,
        terms,
        keep,
        urgency: match is_large {
            true => Urgency::Now,
            false => Urgency::Soon,
        },
    };
    started.begin(work)
}

impl Background {
    /// Before the ranks meet in another way: none may wait for what this one
    /// has not told yet.
    pub(crate) fn announce_all(&self) {
        if let Some(deferred) = &self.deferred {
            deferred.announce_all();
        }
    }

    fn next_deferred(&self, file: &Arc<Inner>, call: Call, terms: &Terms) -> Option<Turn> {
        self.deferred.as_ref()?.next(file, call.name, terms)
    }
}

/// What is left to do for a call.
enum Work {
    /// Everything, for an ordered call.
    Ordered(Memory),
    /// The call, by all ranks together.
    Together(Result<Operation>),
    /// This rank's own transfer.
    Deferred(Result<Operation>, Arc<Turn>),
}

struct Started {
    file: Arc<Inner>,
    call: Call,
    terms: Terms,
    keep: Keep,
    urgency: Urgency,
}

impl Started {
    fn begin(self, work: Work) -> Result<InFlight> {
        let (request, under_way) = self.file.pending.start();
        if let Work::Deferred(prepared, turn) = &work
            && turn.is_first()
            && let Some(result) = at_once(prepared)
        {
            turn.finish(&result);
            let completion = Completion::awaiting(turn.clone());
            completion.complete(result);
            return Ok(InFlight {
                completion: Arc::new(completion),
                _pending: request,
                carried_out: CarriedOut::Inline,
            });
        }
        let queue = &self.file.background.queue;
        let completion = Arc::new(match &work {
            Work::Deferred(_, turn) => Completion::awaiting(turn.clone()).queued(queue.clone()),
            _ => Completion::default().queued(queue.clone()),
        });
        let in_flight = InFlight {
            completion: completion.clone(),
            _pending: request,
            carried_out: CarriedOut::InBackground,
        };
        let queue = queue.clone();
        let urgency = self.urgency;
        let job = move |lane: &Lane| {
            let result = self.carry_out(lane, work);
            drop(self.keep);
            drop(under_way);
            completion.complete(result);
        };
        queue.submit(urgency, Box::new(job));
        Ok(in_flight)
    }

    fn carry_out(&self, lane: &Lane, work: Work) -> Result<Status> {
        let Started {
            file, call, terms, ..
        } = self;
        let turn = match &work {
            Work::Deferred(_, turn) => Some(turn.clone()),
            _ => None,
        };
        let work = AssertUnwindSafe(|| match work {
            Work::Ordered(memory) => run_ordered(file, lane, *call, memory, Ok(())),
            Work::Together(prepared) => run_prepared(file, lane, *call, terms, prepared),
            Work::Deferred(prepared, _) => prepared.and_then(|operation| operation.run()),
        });
        let result = panic::catch_unwind(work).unwrap_or_else(|_| {
            let error = Error::new(ErrorKind::Io, "the operation panicked");
            Err(file.name_error(error, call.name))
        });
        if let Some(turn) = turn {
            turn.finish(&result);
        }
        result
    }
}

/// The result of a call that takes no longer than to hand it over: errors of
/// arguments are known at once.
fn at_once(prepared: &Result<Operation>) -> Option<Result<Status>> {
    match prepared {
        Ok(operation) => operation.at_once(),
        Err(error) => Some(Err(error.clone())),
    }
}
