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

use super::bridge::{Bridge, Moved};
use super::permission::{Callers, InsideCall};
use crate::{Flavour, Host};

/// A bridge, and how many operations are under way on it.
type Attended = (Arc<Bridge>, usize);

/// The bridges with operations under way. Replaced as a whole: whoever goes
/// through it is not disturbed.
static ATTENDED: Mutex<Option<Arc<[Attended]>>> = Mutex::new(None);
/// How many bridges there are.
static COUNT: AtomicUsize = AtomicUsize::new(0);
/// Whether a function of this module is at work below: the MPI functions that
/// it calls make progress too.
static BUSY: AtomicBool = AtomicBool::new(false);
/// Whether the host calls [`poll`] or [`progress`] by itself.
static HOOKED: AtomicBool = AtomicBool::new(false);

/// As long as this lives, a transport has an operation in the background, and
/// whoever can carries its messages.
#[derive(Debug)]
pub struct Attendance {
    bridge: Arc<Bridge>,
}

impl Attendance {
    /// For a bridge whose background threads may not call the MPI themselves.
    /// The calling thread may.
    pub(super) fn of(bridge: &Arc<Bridge>) -> Option<Attendance> {
        if bridge.callers() == Callers::All {
            return None;
        }
        change(|all| match place(all, bridge) {
            Some(place) => all[place].1 += 1,
            None => all.push((Arc::clone(bridge), 1)),
        });
        if let Some(host) = bridge.host() {
            hook(host);
        }
        Some(Attendance {
            bridge: Arc::clone(bridge),
        })
    }
}

impl Drop for Attendance {
    fn drop(&mut self) {
        change(|all| {
            if let Some(place) = place(all, &self.bridge) {
                all[place].1 -= 1;
            }
            all.retain(|(_, operations)| *operations > 0);
        });
    }
}

fn place(all: &[Attended], bridge: &Arc<Bridge>) -> Option<usize> {
    all.iter().position(|(other, _)| Arc::ptr_eq(other, bridge))
}

fn attended() -> MutexGuard<'static, Option<Arc<[Attended]>>> {
    ATTENDED.lock().unwrap_or_else(PoisonError::into_inner)
}

fn change(edit: impl FnOnce(&mut Vec<Attended>)) {
    let mut attended = attended();
    let mut all = attended.as_deref().unwrap_or_default().to_vec();
    edit(&mut all);
    COUNT.store(all.len(), Ordering::Relaxed);
    *attended = (!all.is_empty()).then(|| all.into());
}

/// Whether messages of operations under way move only while someone calls
/// [`carry_attended`]. A rank that waits for something else should.
#[must_use]
pub fn is_weak() -> bool {
    COUNT.load(Ordering::Relaxed) > 0 && !HOOKED.load(Ordering::Relaxed)
}

/// Carries the messages of all operations under way, if the calling thread may
/// call the MPI.
pub fn carry_attended() -> Moved {
    if COUNT.load(Ordering::Relaxed) == 0 || BUSY.swap(true, Ordering::Acquire) {
        return Moved::Nothing;
    }
    let _idle = Idle;
    // The lock is free again before the MPI is called.
    let all = attended().clone();
    let all = all.as_deref().unwrap_or_default();
    let moved = all.iter().map(|(bridge, _)| bridge.carry_briefly());
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
    match carry_inside() {
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
    carry_inside();
    MPIX_ASYNC_NOPROGRESS
}

/// The host makes progress on a thread of the program that is inside of it.
fn carry_inside() -> Moved {
    if COUNT.load(Ordering::Relaxed) == 0 {
        return Moved::Nothing;
    }
    let _inside = InsideCall::enter();
    // Nothing may unwind into the host.
    std::panic::catch_unwind(carry_attended).unwrap_or(Moved::Nothing)
}

#[cfg(test)]
mod tests {
    use super::super::wire::{Departure, Wire};
    use super::*;
    use pario_transport::{Rank, Result, Tag};
    use std::collections::VecDeque;
    use std::thread;

    type Meanwhile = Arc<Mutex<Option<Arc<Bridge>>>>;

    /// Two ranks in one process.
    #[derive(Debug)]
    struct Pipe {
        rank: Rank,
        /// By receiver.
        sent: Arc<[Mutex<VecDeque<Vec<u8>>>; 2]>,
        /// A bridge that another thread sends over, once, while this one looks.
        meanwhile: Meanwhile,
    }

    #[derive(Debug)]
    struct Gone;

    impl Departure for Gone {
        fn is_over(&mut self) -> Result<bool> {
            Ok(true)
        }
    }

    const TAG: Tag = Tag(7);
    const CONTEXT: u64 = 3;

    impl Wire for Pipe {
        fn rank(&self) -> Rank {
            self.rank
        }

        fn size(&self) -> u32 {
            2
        }

        fn depart(&self, to: Rank, bytes: Vec<u8>) -> Result<Box<dyn Departure>> {
            self.sent[to.index()].lock().unwrap().push_back(bytes);
            Ok(Box::new(Gone))
        }

        fn arrive(&self) -> Result<Option<(Rank, Vec<u8>)>> {
            let bridge = self.meanwhile.lock().unwrap().take();
            if let Some(bridge) = bridge {
                let other = Rank(1 - self.rank.0);
                let send = move || bridge.send(CONTEXT, other, TAG, b"late");
                thread::spawn(send).join().unwrap()?;
            }
            let message = self.sent[self.rank.index()].lock().unwrap().pop_front();
            Ok(message.map(|message| (Rank(1 - self.rank.0), message)))
        }
    }

    fn pair(callers: Callers) -> ([Arc<Bridge>; 2], Meanwhile) {
        let sent = Arc::new([Mutex::default(), Mutex::default()]);
        let meanwhile = Meanwhile::default();
        let bridges = [0, 1].map(|rank| {
            let pipe = Pipe {
                rank: Rank(rank),
                sent: Arc::clone(&sent),
                meanwhile: match rank {
                    0 => Arc::clone(&meanwhile),
                    _ => Meanwhile::default(),
                },
            };
            Arc::new(Bridge::new(Box::new(pipe), callers))
        });
        (bridges, meanwhile)
    }

    /// The list of bridges is one for the process.
    static ALONE: Mutex<()> = Mutex::new(());

    #[test]
    fn messages_of_threads_that_may_not_call_are_carried_while_attended() {
        let _alone = ALONE.lock().unwrap();
        let ([near, far], _) = pair(Callers::Inside);
        near.send(CONTEXT, Rank(1), TAG, b"hello").unwrap();
        assert_eq!(carry_inside(), Moved::Nothing);
        let first = Attendance::of(&near).expect("threads may not call");
        let second = Attendance::of(&near).expect("threads may not call");
        assert!(is_weak(), "there is no MPI to call us");
        drop(first);
        // Outside of any call this thread may not either.
        assert_eq!(carry_attended(), Moved::Nothing);
        assert_eq!(carry_inside(), Moved::Something);
        drop(second);
        assert!(!is_weak());
        let _inside = InsideCall::enter();
        let received = far.try_receive(CONTEXT, Rank(0), TAG).unwrap();
        assert_eq!(received.as_deref(), Some(&b"hello"[..]));
    }

    #[test]
    fn nothing_needs_attendance_where_all_threads_may_call() {
        let _alone = ALONE.lock().unwrap();
        let ([near, _], _) = pair(Callers::All);
        assert!(Attendance::of(&near).is_none());
    }

    /// A thread that finds another one carrying leaves its message to that
    /// one, which may have looked at the outbox already. It stayed there until
    /// someone came by again, and nobody had to.
    #[test]
    fn a_message_sent_while_another_thread_carries_leaves_too() {
        let ([near, far], meanwhile) = pair(Callers::All);
        *meanwhile.lock().unwrap() = Some(Arc::clone(&near));
        near.carry_briefly();
        let received = far.try_receive(CONTEXT, Rank(0), TAG).unwrap();
        assert_eq!(received.as_deref(), Some(&b"late"[..]));
    }
}
