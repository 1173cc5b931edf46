//! pario's requests among those passed to a completion function.
#![allow(unsafe_code)] // arrays of handles and statuses in the memory of programs

use std::ffi::{c_int, c_void};
use std::sync::Arc;
use std::thread;

use pario_mpi::{ErrorClass, Host, Moved, Request, is_weak, progress_registered};

use super::backoff::BACKOFF;
use super::started::Started;
use super::table;
use crate::call::SUCCESS;
use crate::failure::Failure;

/// What a function does to the requests that it reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Delivery {
    /// Requests are complete and gone.
    Completed,
    /// Requests were only tested.
    Looked,
}

/// The requests of a call that are pario's.
#[derive(Debug)]
pub(crate) struct ParioRequests {
    pub(crate) host: &'static Host,
    /// The function, for messages.
    pub(crate) function: &'static str,
    /// With their positions among all requests of the call.
    found: Vec<(usize, Arc<Started>)>,
}

impl ParioRequests {
    /// pario's requests among `count` requests at an address. `None` if there are none and the
    /// call does not concern pario.
    ///
    /// # Safety
    /// There are that many handles of the host.
    pub(crate) unsafe fn among(
        function: &'static str,
        count: c_int,
        requests: *const c_void,
    ) -> Option<ParioRequests> {
        let host = Host::current().ok()?;
        let count = usize::try_from(count)
            .ok()
            .filter(|_| !requests.is_null())?;
        let flavour = host.flavour();
        // SAFETY: promised by the caller.
        let read = |index| Request(unsafe { flavour.read_handle(requests, index) });
        Self::of(function, host, (0..count).map(read))
    }

    /// As [`among`](Self::among) for one request that C passed by value.
    pub(crate) fn by_value(function: &'static str, request: u64) -> Option<ParioRequests> {
        let host = Host::current().ok()?;
        let request = Request(host.flavour().from_register(request));
        Self::of(function, host, std::iter::once(request))
    }

    fn of(
        function: &'static str,
        host: &'static Host,
        handles: impl Iterator<Item = Request>,
    ) -> Option<ParioRequests> {
        let found = table::find(handles);
        // A rank that waits for its own messages makes progress for pario if nothing else does.
        (!found.is_empty() || is_weak()).then_some(ParioRequests {
            host,
            function,
            found,
        })
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// Makes progress on messages, and reports completed operations to the host.
    pub(crate) fn advance(&self) -> Result<Moved, Failure> {
        let moved = progress_registered();
        let moved = match self.found.first() {
            Some((_, first)) => moved.or(first.make_progress()),
            None => moved,
        };
        self.announce()?;
        Ok(moved)
    }

    /// Makes progress and backs off until `look` has a result.
    pub(crate) fn poll<T>(&self, mut look: impl FnMut() -> Option<T>) -> Result<T, Failure> {
        let mut state = BACKOFF.start();
        loop {
            let moved = self.advance()?;
            if let Some(result) = look() {
                return Ok(result);
            }
            if moved == Moved::Something {
                state.restart();
            }
            let running = self.found.iter().find(|(_, started)| !started.is_over());
            state.rest(|bound| match running {
                Some((_, started)) => {
                    started.wait_for(bound);
                }
                None => thread::sleep(bound),
            });
        }
    }

    /// Waits until all operations are complete and reports them to the host. The last one comes
    /// first: operations of a file usually complete in order, so that there is one wait for all
    /// of them and one look at each.
    fn wait(&self) -> Result<(), Failure> {
        // Up to the first that does not complete soon.
        let _ = self.found.iter().rev().all(|(_, it)| it.hasten());
        for (_, started) in self.found.iter().rev() {
            started.wait();
        }
        self.announce()
    }

    /// Reports completed operations to the host.
    fn announce(&self) -> Result<(), Failure> {
        let over = self.found.iter().filter(|(_, started)| started.is_over());
        over.into_iter()
            .try_for_each(|(_, started)| started.announce(self.host))
    }

    /// Completes requests by a blocking function of the host, once pario's are complete; by
    /// `test` while other operations need progress on this rank.
    pub(crate) fn block(
        &self,
        block: impl FnOnce() -> c_int,
        test: impl FnMut() -> Option<c_int>,
    ) -> Result<c_int, Failure> {
        self.wait()?;
        match is_weak() {
            true => self.poll(test),
            false => Ok(block()),
        }
    }

    /// Abandons the operations, which continue.
    pub(crate) fn abandon(&self) -> Result<(), Failure> {
        for (_, started) in &self.found {
            started.abandon();
            started.announce(self.host)?;
        }
        Ok(())
    }

    /// The result of a function that completes at most one request: the host's, or the error of
    /// the operation that it completed.
    pub(crate) fn result_of_one(&self, code: c_int) -> c_int {
        let completed = self.found.iter().find(|(_, started)| started.is_freed());
        match completed {
            Some((_, started)) if code == SUCCESS => self.raise(started),
            _ => code,
        }
    }

    /// As [`result_of_one`](Self::result_of_one), for a function that tests the request at a
    /// position and keeps it.
    pub(crate) fn result_of_look(&self, code: c_int, place: Option<usize>) -> c_int {
        match place.and_then(|place| self.at(place)) {
            Some(started) if code == SUCCESS => self.raise(started),
            _ => code,
        }
    }

    /// The operation at a position. Positions are in order.
    fn at(&self, place: usize) -> Option<&Started> {
        let found = self.found.binary_search_by_key(&place, |(place, _)| *place);
        found.ok().map(|index| &*self.found[index].1)
    }

    /// The error of an operation, or success.
    fn raise(&self, started: &Started) -> c_int {
        started.raise(self.host, self.function).unwrap_or(SUCCESS)
    }

    /// The result of a function that completes several requests and writes a status for each.
    /// `places` are the positions of the statuses' requests. If there is an error, every status
    /// contains the result of its request.
    ///
    /// # Safety
    /// `statuses` points to as many statuses as there are places, or is `MPI_STATUSES_IGNORE`.
    pub(crate) unsafe fn result_of_many(
        &self,
        code: c_int,
        delivery: Delivery,
        places: impl ExactSizeIterator<Item = usize>,
        statuses: *mut c_void,
    ) -> c_int {
        let host = self.host;
        let in_status = host.error_class(ErrorClass::InStatus);
        if code != SUCCESS && host.class_number_of(code) != in_status {
            return code;
        }
        let count = places.len();
        let mut failed = Vec::new();
        for (index, place) in places.enumerate() {
            let told = |started: &&Started| delivery == Delivery::Looked || started.is_freed();
            let started = self.at(place).filter(told);
            let raised = started.and_then(|started| started.raise(host, self.function));
            failed.extend(raised.map(|code| (index, code)));
        }
        if failed.is_empty() {
            return code;
        }
        // SAFETY: promised by the caller.
        let write = |index, code| unsafe {
            host.write_status_error(host.status_at(statuses, index), code);
        };
        if code == SUCCESS {
            // The host knows of no error and has not written the field.
            (0..count).for_each(|index| write(index, SUCCESS));
        }
        for (index, code) in failed {
            write(index, code);
        }
        match code {
            SUCCESS => in_status,
            _ => code,
        }
    }
}
