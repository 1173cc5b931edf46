//! Collective calls in the background: a thread of the file carries them out
//! one after the other, in a lane of its own, while the ranks compute.
//!
//! All ranks start the collective calls of a file in the same order, so one
//! thread a file is enough, and files do not wait for each other whatever the
//! order in which ranks use them.

use std::{
    panic::{self, AssertUnwindSafe},
    sync::{Arc, Mutex, PoisonError, mpsc},
    thread,
};

use super::{Lane, foregone::Terms, run_ordered, run_prepared};
use crate::{
    Error, ErrorKind, Result, Status,
    buffer::Memory,
    file::Inner,
    operation::{Call, Operation, Position},
    request::{Completion, InFlight, Keep},
};

type Job = Box<dyn FnOnce(&Lane) + Send>;

/// The background lane of a file.
#[derive(Debug)]
pub(crate) struct Background {
    lane: Arc<Lane>,
    /// To the thread, once it is needed.
    queue: Mutex<Option<mpsc::Sender<Job>>>,
}

impl Background {
    pub(crate) fn new(lane: Lane) -> Background {
        Background {
            lane: Arc::new(lane),
            queue: Mutex::new(None),
        }
    }

    fn submit(&self, job: Job) -> Result<()> {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        if queue.is_none() {
            match start(self.lane.clone()) {
                Ok(sender) => *queue = Some(sender),
                // The other ranks wait for this one's part, so an error here would
                // leave them waiting. The lock keeps later calls behind this one.
                Err(_) => {
                    job(&self.lane);
                    return Ok(());
                }
            }
        }
        let sent = queue.as_ref().map(|queue| queue.send(job));
        match sent {
            Some(Ok(())) => Ok(()),
            _ => Err(Error::new(
                ErrorKind::Io,
                "the file's background thread has ended",
            )),
        }
    }
}

/// The thread ends when the file does.
fn start(lane: Arc<Lane>) -> Result<mpsc::Sender<Job>> {
    let (sender, receiver) = mpsc::channel::<Job>();
    thread::Builder::new()
        .name("pario-collective".into())
        .spawn(move || receiver.iter().for_each(|job| job(&lane)))?;
    Ok(sender)
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
    let completion = Arc::new(Completion::default());
    let (request, under_way) = file.pending.start();
    let in_flight = InFlight {
        completion: completion.clone(),
        _pending: request,
    };
    let terms = Terms::now(file);
    let prepared = match call.position {
        // Its offset is found out together.
        Position::Ordered(_) => None,
        _ => Some(Operation::prepare(file, call, memory.clone())),
    };
    let owner = file.clone();
    let job = move |lane: &Lane| {
        let work = AssertUnwindSafe(|| match prepared {
            Some(prepared) => run_prepared(&owner, lane, call, &terms, prepared),
            None => run_ordered(&owner, lane, call, memory, Ok(())),
        });
        let result: Result<Status> = panic::catch_unwind(work).unwrap_or_else(|_| {
            let error = Error::new(ErrorKind::Io, "the operation panicked");
            Err(owner.name_error(error, call.name))
        });
        drop(keep);
        drop(under_way);
        completion.complete(result);
    };
    file.background.submit(Box::new(job))?;
    Ok(in_flight)
}
