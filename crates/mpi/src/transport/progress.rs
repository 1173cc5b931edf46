//! Messages of background operations, carried by the MPI's own progress.
//!
//! Below `MPI_THREAD_MULTIPLE` pario's threads may not call the MPI, and a
//! program may sit in a function that pario does not see, `MPI_Recv` for
//! instance, until another rank gets on with a file operation. Some MPIs call
//! functions of others whenever they make progress:
//!
//! - Open MPI: `opal_progress_register`. The function stays registered and
//!   costs one look at a counter while nothing is under way.
//! - MPICH from 4.3 on: `MPIX_Async_start`. The function is started with the
//!   first operation, and ends itself when nothing is under way.
//!
//! Elsewhere messages move only while the program is in a function of the file
//! chapter or one that completes requests: see [`is_weak`].
#![allow(unsafe_code)] // functions that the host calls

use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::engine::Moved;
use super::mpi_endpoint::MpiEndpoint;
use super::permission::{Callers, InsideCall};
use crate::{Flavour, Host};

/// An endpoint, and how many operations are under way on it.
type Registered = (Arc<MpiEndpoint>, usize);

/// The endpoints with operations under way. Replaced as a whole: whoever goes
/// through it is not disturbed.
static REGISTERED: Mutex<Option<Arc<[Registered]>>> = Mutex::new(None);
/// How many endpoints there are.
static COUNT: AtomicUsize = AtomicUsize::new(0);
/// Whether a function of this module is at work below: the MPI functions that
/// it calls make progress too.
static BUSY: AtomicBool = AtomicBool::new(false);
/// Whether the host calls [`poll`] or [`progress`] by itself.
static HOOKED: AtomicBool = AtomicBool::new(false);

/// As long as this lives, a transport has an operation in the background, and
/// whoever can carries its messages.
#[derive(Debug)]
pub struct ProgressRegistration {
    endpoint: Arc<MpiEndpoint>,
}

impl ProgressRegistration {
    /// For an endpoint whose background threads may not call the MPI themselves.
    /// The calling thread may.
    pub(super) fn of(endpoint: &Arc<MpiEndpoint>) -> Option<ProgressRegistration> {
        if endpoint.callers() == Callers::All {
            return None;
        }
        change(|all| match place(all, endpoint) {
            Some(place) => all[place].1 += 1,
            None => all.push((Arc::clone(endpoint), 1)),
        });
        if let Some(host) = endpoint.host() {
            hook(host);
        }
        Some(ProgressRegistration {
            endpoint: Arc::clone(endpoint),
        })
    }
}

impl Drop for ProgressRegistration {
    fn drop(&mut self) {
        change(|all| {
            if let Some(place) = place(all, &self.endpoint) {
                all[place].1 -= 1;
            }
            all.retain(|(_, operations)| *operations > 0);
        });
    }
}

fn place(all: &[Registered], endpoint: &Arc<MpiEndpoint>) -> Option<usize> {
    all.iter()
        .position(|(other, _)| Arc::ptr_eq(other, endpoint))
}

fn registered() -> MutexGuard<'static, Option<Arc<[Registered]>>> {
    REGISTERED.lock().unwrap_or_else(PoisonError::into_inner)
}

fn change(edit: impl FnOnce(&mut Vec<Registered>)) {
    let mut registered = registered();
    let mut all = registered.as_deref().unwrap_or_default().to_vec();
    edit(&mut all);
    COUNT.store(all.len(), Ordering::Relaxed);
    *registered = (!all.is_empty()).then(|| all.into());
}

/// Whether messages of operations under way move only while someone calls
/// [`progress_registered`]. A rank that waits for something else should.
#[must_use]
pub fn is_weak() -> bool {
    COUNT.load(Ordering::Relaxed) > 0 && !HOOKED.load(Ordering::Relaxed)
}

/// Carries the messages of all operations under way, if the calling thread may
/// call the MPI.
pub fn progress_registered() -> Moved {
    if COUNT.load(Ordering::Relaxed) == 0 || BUSY.swap(true, Ordering::Acquire) {
        return Moved::Nothing;
    }
    let _idle = Idle;
    // The lock is free again before the MPI is called.
    let all = registered().clone();
    let all = all.as_deref().unwrap_or_default();
    let moved = all.iter().map(|(endpoint, _)| endpoint.progress_once());
    moved.fold(Moved::Nothing, Moved::or)
}

/// Clears the mark of being busy, also when something below panics.
struct Idle;

impl Drop for Idle {
    fn drop(&mut self) {
        BUSY.store(false, Ordering::Release);
    }
}

/// Has the host call this module when it makes progress.
fn hook(host: &'static Host) {
    if HOOKED.swap(true, Ordering::Relaxed) {
        return;
    }
    let functions = &host.functions;
    let code = match (
        host.flavour(),
        functions.opal_progress_register,
        functions.mpix_async_start,
    ) {
        // SAFETY: the function has the type that the host expects, and lives
        // as long as the process.
        (Flavour::OpenMpi, Some(register), _) => unsafe { register(progress as *mut c_void) },
        // SAFETY: as above; it takes no state.
        (Flavour::Mpich, _, Some(start)) => unsafe {
            start(poll as *mut c_void, ptr::null_mut(), MPIX_STREAM_NULL)
        },
        _ => NO_HOOK,
    };
    if code != 0 {
        HOOKED.store(false, Ordering::Relaxed);
    }
}

/// Anything but a success.
const NO_HOOK: c_int = -1;
/// MPICH's extension is of its own ABI alone.
const MPIX_STREAM_NULL: u64 = 0x3c00_0000;
const MPIX_ASYNC_NOPROGRESS: c_int = 0;
const MPIX_ASYNC_DONE: c_int = 1;

/// Called by Open MPI; returns how many events there were.
unsafe extern "C" fn progress() -> c_int {
    match progress_inside() {
        Moved::Something => 1,
        Moved::Nothing => 0,
    }
}

/// Called by MPICH.
unsafe extern "C" fn poll(_thing: *mut c_void) -> c_int {
    if COUNT.load(Ordering::Relaxed) == 0 {
        HOOKED.store(false, Ordering::Relaxed);
        return MPIX_ASYNC_DONE;
    }
    progress_inside();
    MPIX_ASYNC_NOPROGRESS
}

/// The host makes progress on a thread of the program that is inside of it.
fn progress_inside() -> Moved {
    if COUNT.load(Ordering::Relaxed) == 0 {
        return Moved::Nothing;
    }
    let _inside = InsideCall::enter();
    // Nothing may unwind into the host.
    std::panic::catch_unwind(progress_registered).unwrap_or(Moved::Nothing)
}

#[cfg(test)]
mod tests {
    use super::super::point_to_point::{Arriving, Data, Pending, PendingMessage, PointToPoint};
    use super::*;
    use pario_transport::unexpected::ContextId;
    use pario_transport::{Rank, Result, Tag};
    use std::collections::VecDeque;
    use std::thread;
    use std::time::Duration;

    type ProgressHook = Arc<Mutex<Option<Arc<MpiEndpoint>>>>;

    /// Two ranks in one process.
    #[derive(Debug)]
    struct Pipe {
        rank: Rank,
        /// By receiver.
        sent: Arc<[Mutex<VecDeque<Vec<u8>>>; 2]>,
        /// An endpoint over which another thread sends, once, while this one
        /// looks.
        progress_hook: ProgressHook,
        looks_per_send: usize,
        sending: Arc<()>,
    }

    /// A send that is over when it has been asked about so many times more; those
    /// that are not hold a reference.
    #[derive(Debug)]
    struct Sending(usize, #[allow(dead_code)] Arc<()>);

    impl Pending for Sending {
        fn is_over(&mut self) -> Result<bool> {
            self.0 = self.0.saturating_sub(1);
            Ok(self.0 == 0)
        }
    }

    /// A message that has arrived.
    #[derive(Debug)]
    struct Done(Vec<u8>);

    impl PendingMessage for Done {
        fn try_finish(&mut self) -> Result<Option<Vec<u8>>> {
            Ok(Some(std::mem::take(&mut self.0)))
        }
    }

    const TAG: Tag = Tag(7);
    const CONTEXT: ContextId = ContextId(3);

    impl PointToPoint for Pipe {
        fn rank(&self) -> Rank {
            self.rank
        }

        fn size(&self) -> u32 {
            2
        }

        fn isend(&self, to: Rank, bytes: Vec<u8>) -> Result<Box<dyn Pending>> {
            self.sent[to.index()].lock().unwrap().push_back(bytes);
            Ok(Box::new(Sending(
                self.looks_per_send,
                Arc::clone(&self.sending),
            )))
        }

        fn poll_receive(&self) -> Result<Option<Arriving>> {
            let endpoint = self.progress_hook.lock().unwrap().take();
            if let Some(endpoint) = endpoint {
                let other = Rank(1 - self.rank.0);
                let send = move || endpoint.send(CONTEXT, other, TAG, b"late");
                thread::spawn(send).join().unwrap()?;
            }
            let message = self.sent[self.rank.index()].lock().unwrap().pop_front();
            Ok(message.map(|message| Arriving {
                from: Rank(1 - self.rank.0),
                message: Box::new(Done(message)),
            }))
        }

        fn isend_data(&self, _: Rank, _: c_int, _: Data) -> Result<Box<dyn Pending>> {
            unreachable!("the tests send messages only")
        }

        fn irecv_data(&self, _: Rank, _: c_int, _: Data) -> Result<Box<dyn Pending>> {
            unreachable!("the tests send messages only")
        }
    }

    fn pair(callers: Callers) -> ([Arc<MpiEndpoint>; 2], ProgressHook) {
        slow_pair(callers, 1, &Arc::new(()))
    }

    fn slow_pair(
        callers: Callers,
        looks_per_send: usize,
        sending: &Arc<()>,
    ) -> ([Arc<MpiEndpoint>; 2], ProgressHook) {
        let sent = Arc::new([Mutex::default(), Mutex::default()]);
        let progress_hook = ProgressHook::default();
        let endpoints = [0, 1].map(|rank| {
            let pipe = Pipe {
                rank: Rank(rank),
                sent: Arc::clone(&sent),
                progress_hook: match rank {
                    0 => Arc::clone(&progress_hook),
                    _ => ProgressHook::default(),
                },
                looks_per_send,
                sending: Arc::clone(sending),
            };
            Arc::new(MpiEndpoint::new(Box::new(pipe), callers))
        });
        (endpoints, progress_hook)
    }

    /// The list of endpoints is one for the process.
    static ALONE: Mutex<()> = Mutex::new(());

    #[test]
    fn messages_of_threads_that_may_not_call_are_delivered_by_progress() {
        let _alone = ALONE.lock().unwrap();
        let ([near, far], _) = pair(Callers::Inside);
        near.send(CONTEXT, Rank(1), TAG, b"hello").unwrap();
        assert_eq!(progress_inside(), Moved::Nothing);
        let first = ProgressRegistration::of(&near).expect("threads may not call");
        let second = ProgressRegistration::of(&near).expect("threads may not call");
        assert!(is_weak(), "there is no MPI to call us");
        drop(first);
        // Outside of any call this thread may not either.
        assert_eq!(progress_registered(), Moved::Nothing);
        assert_eq!(progress_inside(), Moved::Something);
        drop(second);
        assert!(!is_weak());
        let _inside = InsideCall::enter();
        far.progress_once();
        let received = far.take(CONTEXT, Rank(0), TAG).unwrap();
        assert_eq!(received.as_deref(), Some(&b"hello"[..]));
    }

    #[test]
    fn nothing_needs_progress_where_all_threads_may_call() {
        let _alone = ALONE.lock().unwrap();
        let ([near, _], _) = pair(Callers::All);
        assert!(ProgressRegistration::of(&near).is_none());
    }

    /// A thread that finds another one carrying leaves its message to that
    /// one, which may have looked at the outbox already. It stayed there until
    /// someone came by again, and nobody had to.
    #[test]
    fn a_message_sent_while_another_thread_carries_leaves_too() {
        let ([near, far], progress_hook) = pair(Callers::All);
        *progress_hook.lock().unwrap() = Some(Arc::clone(&near));
        near.progress_once();
        far.progress_once();
        let received = far.take(CONTEXT, Rank(0), TAG).unwrap();
        assert_eq!(received.as_deref(), Some(&b"late"[..]));
    }

    #[test]
    fn what_was_sent_has_left_when_sending_is_finished() {
        let sending = Arc::new(());
        let ([near, _], _) = slow_pair(Callers::All, 1000, &sending);
        near.send(CONTEXT, Rank(1), TAG, b"last").unwrap();
        assert_eq!(
            Arc::strong_count(&sending),
            3,
            "the pipe, the send, and this"
        );
        near.finish_sending().unwrap();
        assert_eq!(Arc::strong_count(&sending), 2);
    }

    #[test]
    fn ranks_part_together() {
        let ([early, late], _) = slow_pair(Callers::All, 10, &Arc::new(()));
        let has_parted = Arc::new(AtomicBool::new(false));
        let parting = {
            let has_parted = Arc::clone(&has_parted);
            thread::spawn(move || {
                early.part().unwrap();
                has_parted.store(true, Ordering::Release);
            })
        };
        thread::sleep(Duration::from_millis(20));
        assert!(
            !has_parted.load(Ordering::Acquire),
            "the other has not come"
        );
        late.part().unwrap();
        parting.join().unwrap();
    }

    #[test]
    fn a_thread_that_may_not_call_does_not_wait_for_others_at_the_end() {
        let ([barred, _], _) = pair(Callers::Inside);
        barred.part().unwrap();
    }
}
