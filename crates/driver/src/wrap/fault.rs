//! Fault injection: the n-th operation fails.

use std::{
    io,
    sync::{Arc, Mutex},
};

use super::{Call, Operation, Wrapped, Wrapper};
use crate::{
    Batch, CallAction, Completion, Handle, Interference, Outcome, SystemCall, background,
    closing::lock,
};

/// The kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The operation fails with this `errno` and has no effect, except that a
    /// failing close still closes.
    Error(i32),
    /// Half of a transfer's bytes (rounded down) are moved before it fails with
    /// this `errno`, like on a full disk. Other operations simply fail.
    Partial(i32),
    /// A transfer stops half-way without an error and is continued: by the
    /// driver's own loops if this happens to its system calls
    /// ([`Posix::with_interference`](crate::Posix::with_interference)),
    /// otherwise by the wrapper on the driver's behalf. Other operations
    /// succeed.
    Short,
    /// As `Short`, but nothing was moved: the system call was interrupted.
    Interruption,
}

/// A fault plan and its operation counter. Clones share both, and so do all
/// files of the wrapped driver.
///
/// As a [`Wrapper`], it counts the operations of a driver; as an
/// [`Interference`], it counts the system calls below one.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    rules: Vec<Rule>,
    operations: u64,
    fired: u64,
}

#[derive(Debug)]
struct Rule {
    operations: Vec<Operation>,
    /// Matching operations to let pass first.
    pass: u64,
    fault: Fault,
    span: Span,
}

/// How long a rule applies once triggered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Span {
    Once,
    Forever,
}

impl Faults {
    /// No faults yet.
    pub fn new() -> Self {
        Faults::default()
    }

    /// Injects a fault into the `nth` of these operations from now on (the
    /// first is 1).
    pub fn fail_nth(&self, nth: u64, operations: &[Operation], fault: Fault) {
        self.plan(nth, operations, fault, Span::Once);
    }

    /// Injects a fault into the `nth` of these operations and all later ones.
    pub fn fail_from_nth(&self, nth: u64, operations: &[Operation], fault: Fault) {
        self.plan(nth, operations, fault, Span::Forever);
    }

    fn plan(&self, nth: u64, operations: &[Operation], fault: Fault, span: Span) {
        let (operations, pass) = (operations.to_vec(), nth.saturating_sub(1));
        lock(&self.state).rules.push(Rule {
            operations,
            pass,
            fault,
            span,
        });
    }

    /// Removes all planned faults.
    pub fn clear(&self) {
        lock(&self.state).rules.clear();
    }

    /// Number of operations so far.
    pub fn operations(&self) -> u64 {
        lock(&self.state).operations
    }

    /// Number of faults injected so far.
    pub fn fired(&self) -> u64 {
        lock(&self.state).fired
    }

    /// Counts an operation and returns its fault, if one is planned.
    fn next(&self, operation: Operation) -> Option<Fault> {
        let mut state = lock(&self.state);
        state.operations += 1;
        let mut due = None;
        for (at, rule) in state.rules.iter_mut().enumerate() {
            if !rule.operations.contains(&operation) {
                continue;
            }
            if rule.pass > 0 {
                rule.pass -= 1;
            } else if due.is_none() {
                due = Some((at, rule.fault, rule.span));
            }
        }
        let (at, fault, span) = due?;
        if span == Span::Once {
            state.rules.remove(at);
        }
        state.fired += 1;
        Some(fault)
    }
}

/// Number of bytes moved before a fault, and the `errno` that follows.
fn cut(fault: Fault, bytes: u64) -> (u64, Option<i32>) {
    match fault {
        Fault::Error(errno) => (0, Some(errno)),
        Fault::Partial(errno) => (bytes / 2, Some(errno)),
        Fault::Short => (bytes / 2, None),
        Fault::Interruption => (0, None),
    }
}

impl Wrapper for Faults {
    const NAME: &'static str = "fault";

    fn call<T>(&self, call: &Call<'_>, make: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        match self.next(call.operation) {
            Some(Fault::Error(errno) | Fault::Partial(errno)) => {
                if call.operation == Operation::Close {
                    make()?;
                }
                Err(io::Error::from_raw_os_error(errno))
            }
            Some(Fault::Short | Fault::Interruption) | None => make(),
        }
    }

    fn transfer(&self, file: &Wrapped<dyn Handle>, batch: &Batch<'_>) -> Outcome {
        let Some(fault) = self.next(batch.direction().into()) else {
            return file.inner.transfer(batch);
        };
        let (keep, errno) = cut(fault, batch.bytes());
        let first = file.inner.transfer(&batch.prefix(keep));
        if first.error.is_some() || first.bytes < keep {
            return first;
        }
        match errno {
            Some(errno) => Outcome::failed(keep, io::Error::from_raw_os_error(errno)),
            None => after(keep, file.inner.transfer(&batch.suffix(keep))),
        }
    }

    fn submit(&self, file: &Wrapped<dyn Handle>, batch: Batch<'static>, done: Completion) {
        let Some(fault) = self.next(batch.direction().into()) else {
            return file.inner.submit(batch, done);
        };
        let (keep, errno) = cut(fault, batch.bytes());
        if let (0, Some(errno)) = (keep, errno) {
            return background::fail(io::Error::from_raw_os_error(errno), done);
        }
        let (prefix, suffix) = (batch.prefix(keep), batch.suffix(keep));
        let inner = file.inner.clone();
        let then: Completion = Box::new(move |first| {
            if first.error.is_some() || first.bytes < keep {
                return done(first);
            }
            match errno {
                Some(errno) => done(Outcome::failed(keep, io::Error::from_raw_os_error(errno))),
                None => inner.submit(suffix, Box::new(move |rest| done(after(keep, rest)))),
            }
        });
        file.inner.submit(prefix, then);
    }
}

/// The outcome of the rest of a transfer, including the bytes before it.
fn after(bytes: u64, rest: Outcome) -> Outcome {
    Outcome {
        bytes: bytes + rest.bytes,
        ..rest
    }
}

impl Interference for Faults {
    fn before(&self, call: SystemCall, bytes: usize) -> CallAction {
        let operation = match call {
            SystemCall::Read => Operation::Read,
            SystemCall::Write => Operation::Write,
            SystemCall::Truncate => Operation::SetSize,
            SystemCall::Allocate => Operation::Preallocate,
            SystemCall::Sync => Operation::Sync,
            SystemCall::Lock => Operation::Lock,
            SystemCall::Unlock => Operation::Unlock,
            SystemCall::Reopen | SystemCall::Map => Operation::Open,
            SystemCall::Store => Operation::Write,
        };
        match self.next(operation) {
            None => CallAction::Proceed,
            Some(Fault::Error(errno)) => CallAction::Fail(errno),
            Some(Fault::Partial(errno)) if bytes < 2 => CallAction::Fail(errno),
            Some(Fault::Partial(errno)) => {
                self.fail_nth(1, &[operation], Fault::Error(errno));
                CallAction::Shorten(bytes / 2)
            }
            Some(Fault::Short) => CallAction::Shorten(bytes / 2),
            Some(Fault::Interruption) => CallAction::Fail(libc::EINTR),
        }
    }
}
