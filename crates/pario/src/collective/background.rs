//! Starting nonblocking and split collective calls, which are carried out in a separate
//! context.
//!
//! Short calls that need no exchange (`deferred.rs`) are carried out when they start. All
//! others wait in a queue (`queue.rs`). All ranks start the collective calls of a file in the
//! same order, so one queue per file is enough, and files do not wait for each other, in
//! whatever order the ranks use them.
//!
//! If some ranks make a blocking call where others make one in the background, each side takes
//! part in the other's call with an error, so that both end on all ranks (`call_history.rs`).

use std::{
    panic::{self, AssertUnwindSafe},
    sync::Arc,
};

use super::{
    CollectiveContext,
    call_history::Begun,
    deferred::{Deferred, DeferredCall},
    queue::{Queue, Urgency},
    run_ordered, run_prepared,
};
use crate::{
    Error, ErrorKind, Result, Status,
    agree::GatherBuffers,
    buffer::Memory,
    collective_call::CollectiveCall,
    file::{CallSettings, Inner},
    operation::{Call, Operation, Position},
    request::{Completion, InFlight, KeepAlive, Placement},
};

/// The background context of a file.
#[derive(Debug)]
pub(crate) struct Background {
    queue: Arc<Queue>,
    deferred: Option<Arc<Deferred>>,
}

impl Background {
    pub(crate) fn new(context: CollectiveContext) -> Background {
        Background {
            deferred: Deferred::new(&context.comm),
            queue: Arc::new(Queue::new(context)),
        }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.queue.close();
    }
}

/// Starts a collective call. Arguments are checked and pointers advance here; the call itself
/// reports invalid arguments to all ranks, so that none waits for another.
pub(crate) fn start_all(
    file: &Arc<Inner>,
    call: Call,
    memory: Memory,
    keep: KeepAlive,
) -> Result<InFlight> {
    let settings = file.settings();
    let is_large = memory.bytes() > settings.hints.pario_inline_bytes;
    let begun = file.background.begin(CollectiveCall::in_background(call));
    let work = match call.position {
        // The ranks determine its offset together.
        Position::Ordered(_) => Work::Ordered(memory),
        _ => {
            let prepared = Operation::prepare_on(&settings, file, call, memory);
            let background = &file.background;
            if file.comm.size() == 1
                && background.is_independent(file, &settings)
                && let Some(result) = can_run_inline(&prepared)
            {
                let result = result.map_err(|error| file.name_error(error, call.name));
                let request = file.pending.request();
                return Ok(InFlight::complete(request, result, call.unreported(file)));
            }
            match background.next_deferred(file, call.name, &settings, begun) {
                Some(call_state) => Work::Deferred(prepared, Arc::new(call_state)),
                None => Work::Together(prepared),
            }
        }
    };
    let started = Started {
        file: file.clone(),
        call,
        settings,
        begun,
        keep,
        urgency: match is_large {
            true => Urgency::Now,
            false => Urgency::Soon,
        },
    };
    started.begin(work)
}

impl Background {
    /// Called before the ranks synchronise by other means: none may wait for results that this
    /// rank has not announced yet.
    pub(crate) fn announce_all(&self) {
        if let Some(deferred) = &self.deferred {
            deferred.announce_all();
        }
    }

    /// Publishes that this rank begins a collective call; `None` if the ranks share no memory.
    fn begin(&self, call: CollectiveCall) -> Option<Begun> {
        self.deferred.as_ref()?.begin(call)
    }

    /// Whether a call of a file with a single rank is independent.
    fn is_independent(&self, file: &Inner, settings: &CallSettings) -> bool {
        let deferred = self.deferred.as_ref();
        deferred.is_some_and(|deferred| deferred.is_independent(file, settings))
    }

    fn next_deferred(
        &self,
        file: &Arc<Inner>,
        name: &'static str,
        settings: &CallSettings,
        begun: Option<Begun>,
    ) -> Option<DeferredCall> {
        self.deferred.as_ref()?.next(file, name, settings, begun)
    }

    /// After a blocking call in place of which some rank made one in the background: takes part in
    /// that one with the error.
    fn fail_in_background(&self, file: &Arc<Inner>, begun: Begun, error: &Error) {
        let Some(deferred) = &self.deferred else {
            return;
        };
        let Some(made) = deferred.join_background(begun) else {
            return;
        };
        let error = error.clone();
        let next = match made.is_ordered() {
            true => None,
            false => self.next_deferred(file, made.name(), &file.settings(), None),
        };
        match next {
            Some(call) if call.is_first() => call.finish(&Err(error)),
            Some(call) => self
                .queue
                .submit(Urgency::Now, Box::new(move |_| call.finish(&Err(error)))),
            None => self.queue.submit(
                Urgency::Now,
                Box::new(move |context| {
                    // The ranks that made the call report the error.
                    let _ = GatherBuffers::default().agree::<()>(&*context.comm, Err(error));
                }),
            ),
        }
    }
}

impl Inner {
    /// Called before a blocking data access: completes calls in the background on whose plans
    /// this one's depends.
    pub(crate) fn finish_earlier(&self, settings: &CallSettings) {
        if self.context.depends_on_earlier(settings) {
            self.background.queue.finish(&*self.comm);
        }
    }

    /// Makes a blocking collective call, which `run` carries out.
    pub(crate) fn collectively<T>(
        self: &Arc<Self>,
        call: CollectiveCall,
        run: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let begun = match self.comm.size() {
            1 => None,
            _ => {
                // Not while a call in the background takes part in a blocking one.
                let _context = self.context.state();
                self.background.begin(call)
            }
        };
        let result = run();
        if let (Some(begun), Err(error)) = (begun, &result)
            && error.kind() == ErrorKind::NotSame
        {
            self.background.fail_in_background(self, begun, error);
        }
        result
    }
}

/// What remains to be done for a call.
enum Work {
    /// Everything, for an ordered call.
    Ordered(Memory),
    /// The call, by all ranks together.
    Together(Result<Operation>),
    /// This rank's own transfer.
    Deferred(Result<Operation>, Arc<DeferredCall>),
}

struct Started {
    file: Arc<Inner>,
    call: Call,
    settings: Arc<CallSettings>,
    begun: Option<Begun>,
    keep: KeepAlive,
    urgency: Urgency,
}

impl Started {
    fn begin(self, work: Work) -> Result<InFlight> {
        if let Work::Deferred(prepared, call_state) = &work
            && call_state.is_first()
            && let Some(result) = can_run_inline(prepared)
        {
            call_state.finish(&result);
            let completion = Completion::awaiting(call_state.clone());
            completion.complete(result, || ());
            return Ok(InFlight {
                completion: Arc::new(completion),
                _pending: self.file.pending.request(),
                carried_out: Placement::Inline,
                unreported: self.call.unreported(&self.file),
            });
        }
        let (request, under_way) = self.file.pending.start();
        let queue = &self.file.background.queue;
        let completion = Arc::new(match &work {
            Work::Deferred(_, call_state) => {
                Completion::awaiting(call_state.clone()).queued(queue.clone())
            }
            _ => Completion::default().queued(queue.clone()),
        });
        let in_flight = InFlight {
            completion: completion.clone(),
            _pending: request,
            carried_out: Placement::InBackground,
            unreported: self.call.unreported(&self.file),
        };
        let queue = queue.clone();
        let urgency = self.urgency;
        let job = move |context: &CollectiveContext| {
            let result = self.carry_out(context, work, &completion);
            drop(self.keep);
            completion.complete(result, || drop(under_way));
        };
        queue.submit(urgency, Box::new(job));
        Ok(in_flight)
    }

    fn carry_out(
        &self,
        context: &CollectiveContext,
        work: Work,
        completion: &Completion,
    ) -> Result<Status> {
        let Started {
            file,
            call,
            settings,
            ..
        } = self;
        let call_state = match &work {
            Work::Deferred(_, call_state) => Some(call_state.clone()),
            _ => None,
        };
        let work = AssertUnwindSafe(|| match work {
            Work::Ordered(memory) => {
                run_ordered(file, context, *call, memory, self.await_ranks(completion))
            }
            Work::Together(prepared) => {
                let prepared = self.await_ranks(completion).and(prepared);
                run_prepared(file, context, *call, settings, prepared)
            }
            Work::Deferred(prepared, _) => prepared.and_then(|operation| operation.run()),
        });
        let result = panic::catch_unwind(work).unwrap_or_else(|_| {
            let error = Error::new(ErrorKind::Io, "the operation panicked");
            Err(file.name_error(error, call.name))
        });
        if let Some(call_state) = call_state {
            call_state.finish(&result);
        }
        result
    }

    /// Waits until all ranks have made the call. Fails if one has made a blocking call instead,
    /// and this rank waits for the call.
    fn await_ranks(&self, completion: &Completion) -> Result<()> {
        match (&self.file.background.deferred, self.begun) {
            (Some(deferred), Some(begun)) => deferred.await_ranks(
                &self.file,
                CollectiveCall::in_background(self.call),
                begun,
                &|| completion.is_awaited(),
            ),
            _ => Ok(()),
        }
    }
}

/// The result of a call that takes no longer than handing it over, or the error of invalid
/// arguments.
fn can_run_inline(prepared: &Result<Operation>) -> Option<Result<Status>> {
    match prepared {
        Ok(operation) => operation.can_run_inline(),
        Err(error) => Some(Err(error.clone())),
    }
}
