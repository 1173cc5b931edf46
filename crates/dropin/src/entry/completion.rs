//! Functions that complete requests: pario's, the host's, and any mixture of them.
//!
//! If pario has no requests, they only read a counter. Otherwise pario's operations are waited
//! for here, and the host's function then completes all requests together.
#![allow(unsafe_code)] // C functions

use std::ffi::{c_int, c_void};

use pario_mpi::is_weak;

use super::next::passing_functions;
use super::{HandlePointer, Logical, Raw, StatusPointer};
use crate::call::{self, SUCCESS};
use crate::failure::Failure;
use crate::requests::{self, Delivery, ParioRequests};

/// Runs the work of a function that got requests of pario, and delivers the errors of those
/// that are complete. That happens outside the work, whose panics are caught, since a handler
/// may throw a C++ exception.
fn handle(
    ours: &ParioRequests,
    work: impl FnOnce() -> Result<c_int, Failure>,
    deliver: impl FnOnce(c_int) -> c_int,
) -> c_int {
    let mut code = SUCCESS;
    let failed = call::on_no_file(ours.function, || {
        code = work()?;
        Ok(())
    });
    match failed {
        SUCCESS => deliver(code),
        failed => failed,
    }
}

/// pario's requests among those of a call, if any.
///
/// # Safety
/// There are `count` handles of the host's at `requests`.
unsafe fn ours(
    function: &'static str,
    count: c_int,
    requests: *const c_void,
) -> Option<ParioRequests> {
    match requests::is_any_outstanding() || is_weak() {
        // SAFETY: promised by the caller.
        true => unsafe { ParioRequests::among(function, count, requests) },
        false => None,
    }
}

/// The positions `0..count` of a call's requests.
fn all_places(count: c_int) -> std::ops::Range<usize> {
    0..usize::try_from(count).unwrap_or(0)
}

/// The positions that a host wrote.
///
/// # Safety
/// There are `count` of them, if that is positive.
unsafe fn some_places(count: c_int, places: *const c_int) -> Vec<usize> {
    // SAFETY: promised by the caller.
    let place = |index| unsafe { places.add(index).read() };
    let places = all_places(count).map(place);
    places
        .filter_map(|place| usize::try_from(place).ok())
        .collect()
}

/// The result of a test: `None` if it is neither true nor an error.
fn tested(code: c_int, flag: c_int) -> Option<c_int> {
    (code != SUCCESS || flag != 0).then_some(code)
}

passing_functions! {
    "Wait" fn wait(request: HandlePointer, status: StatusPointer)
    unless {
        ours(NAME, 1, request).map(|ours| handle(&ours, || {
            let functions = &ours.host.functions;
            ours.block(
                || (functions.wait)(request, status),
                || {
                    let mut flag = 0;
                    tested((functions.test)(request, &mut flag, status), flag)
                },
            )
        }, |code| ours.result_of_one(code)))
    }

    "Test" fn test(request: HandlePointer, flag: *mut Logical, status: StatusPointer)
    unless {
        ours(NAME, 1, request).map(|ours| handle(&ours, || {
            ours.advance()?;
            Ok((ours.host.functions.test)(request, flag, status))
        }, |code| ours.result_of_one(code)))
    }

    "Waitany" fn waitany(count: c_int, requests: HandlePointer, place: *mut c_int, status: StatusPointer)
    unless {
        ours(NAME, count, requests).map(|ours| handle(&ours, || {
            let test = ours.host.functions.testany;
            ours.poll(|| {
                let mut flag = 0;
                tested(test(count, requests, place, &mut flag, status), flag)
            })
        }, |code| ours.result_of_one(code)))
    }

    "Testany" fn testany(count: c_int, requests: HandlePointer, place: *mut c_int, flag: *mut Logical, status: StatusPointer)
    unless {
        ours(NAME, count, requests).map(|ours| handle(&ours, || {
            ours.advance()?;
            Ok((ours.host.functions.testany)(count, requests, place, flag, status))
        }, |code| ours.result_of_one(code)))
    }

    "Waitall" fn waitall(count: c_int, requests: HandlePointer, statuses: StatusPointer)
    unless {
        ours(NAME, count, requests).map(|ours| handle(&ours, || {
            let functions = &ours.host.functions;
            ours.block(
                || (functions.waitall)(count, requests, statuses),
                || {
                    let mut flag = 0;
                    tested((functions.testall)(count, requests, &mut flag, statuses), flag)
                },
            )
        }, |code| ours.result_of_many(code, Delivery::Completed, all_places(count), statuses)))
    }

    "Testall" fn testall(count: c_int, requests: HandlePointer, flag: *mut Logical, statuses: StatusPointer)
    unless {
        ours(NAME, count, requests).map(|ours| handle(&ours, || {
            ours.advance()?;
            Ok((ours.host.functions.testall)(count, requests, flag, statuses))
        }, |code| ours.result_of_many(code, Delivery::Completed, all_places(count), statuses)))
    }

    "Waitsome" fn waitsome(count: c_int, requests: HandlePointer, done: *mut c_int, places: *mut c_int, statuses: StatusPointer)
    unless {
        ours(NAME, count, requests).map(|ours| handle(&ours, || {
            let test = ours.host.functions.testsome;
            ours.poll(|| {
                let code = test(count, requests, done, places, statuses);
                // Nothing is complete, or there are no active requests: `MPI_UNDEFINED`.
                tested(code, done.read())
            })
        }, |code| {
            let done = some_places(done.read(), places);
            ours.result_of_many(code, Delivery::Completed, done.into_iter(), statuses)
        }))
    }

    "Testsome" fn testsome(count: c_int, requests: HandlePointer, done: *mut c_int, places: *mut c_int, statuses: StatusPointer)
    unless {
        ours(NAME, count, requests).map(|ours| handle(&ours, || {
            ours.advance()?;
            Ok((ours.host.functions.testsome)(count, requests, done, places, statuses))
        }, |code| {
            let done = some_places(done.read(), places);
            ours.result_of_many(code, Delivery::Completed, done.into_iter(), statuses)
        }))
    }

    "Request_get_status" fn request_get_status(request: Raw, flag: *mut Logical, status: StatusPointer)
    unless {
        let found = requests::is_any_outstanding().then(|| ParioRequests::by_value(NAME, request));
        found.flatten().map(|ours| handle(&ours, || {
            ours.advance()?;
            Ok((ours.host.functions.request_get_status)(request, flag, status))
        }, |code| {
            let looked_at = flag.read() != 0;
            ours.result_of_look(code, looked_at.then_some(0))
        }))
    }

    "Request_get_status_any" fn request_get_status_any(count: c_int, requests: HandlePointer, place: *mut c_int, flag: *mut Logical, status: StatusPointer)
    unless {
        ours(NAME, count, requests).and_then(|ours| {
            let look = ours.host.functions.request_get_status_any?;
            Some(handle(&ours, || {
                ours.advance()?;
                Ok(look(count, requests, place, flag, status))
            }, |code| {
                let looked_at = flag.read() != 0;
                let place = looked_at.then(|| place.read());
                ours.result_of_look(code, place.and_then(|place| usize::try_from(place).ok()))
            }))
        })
    }

    "Request_get_status_all" fn request_get_status_all(count: c_int, requests: HandlePointer, flag: *mut Logical, statuses: StatusPointer)
    unless {
        ours(NAME, count, requests).and_then(|ours| {
            let look = ours.host.functions.request_get_status_all?;
            Some(handle(&ours, || {
                ours.advance()?;
                Ok(look(count, requests, flag, statuses))
            }, |code| {
                let places = match flag.read() {
                    0 => 0..0,
                    _ => all_places(count),
                };
                ours.result_of_many(code, Delivery::Looked, places, statuses)
            }))
        })
    }

    "Request_get_status_some" fn request_get_status_some(count: c_int, requests: HandlePointer, done: *mut c_int, places: *mut c_int, statuses: StatusPointer)
    unless {
        ours(NAME, count, requests).and_then(|ours| {
            let look = ours.host.functions.request_get_status_some?;
            Some(handle(&ours, || {
                ours.advance()?;
                Ok(look(count, requests, done, places, statuses))
            }, |code| {
                let done = some_places(done.read(), places);
                ours.result_of_many(code, Delivery::Looked, done.into_iter(), statuses)
            }))
        })
    }

    /// pario's operations cannot be cancelled; their status says so.
    "Cancel" fn cancel(request: HandlePointer)
    unless {
        let ours = ours(NAME, 1, request);
        ours.filter(|ours| !ours.is_empty()).map(|_| SUCCESS)
    }

    /// pario's operation continues. The host may free its request at once, since nothing will
    /// ask for it.
    "Request_free" fn request_free(request: HandlePointer)
    unless {
        let ours = ours(NAME, 1, request);
        ours.filter(|ours| !ours.is_empty()).map(|ours| handle(&ours, || {
            ours.abandon()?;
            Ok((ours.host.functions.request_free)(request))
        }, |code| code))
    }
}
