//! Group locks: a lock on a whole file that all descriptors with the same group
//! number hold together, instead of one lock per range and client.
//!
//! Everyone without the group waits. The caches of holders are not coherent
//! with each other, so holders must write different pages, and the data has to
//! be on the servers before the lock is released. Only for callers that ensure
//! both; nothing takes a group lock without a hint.

use std::{
    io,
    num::NonZeroU32,
    os::fd::BorrowedFd,
    sync::{Mutex, PoisonError},
};

use crate::{
    IoctlArgument,
    control::{Control, write_request},
};

/// `LL_IOC_GROUP_LOCK` and `LL_IOC_GROUP_UNLOCK`: the argument is the group.
const LOCK: u64 = write_request(b'f', 158, 8);
const UNLOCK: u64 = write_request(b'f', 159, 8);

/// The group lock of one descriptor. A descriptor holds it once, however many
/// threads use it.
#[derive(Debug, Default)]
pub(crate) struct GroupLock {
    /// The group and the number of its users.
    held: Mutex<Option<(NonZeroU32, usize)>>,
}

impl GroupLock {
    /// Takes the lock, or joins those that hold it through this descriptor.
    /// Waits while anyone without the group has locks on the file.
    pub(crate) fn take(
        &self,
        control: &Control,
        file: BorrowedFd<'_>,
        group: NonZeroU32,
    ) -> io::Result<()> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *held {
            Some((current, users)) if *current == group => *users += 1,
            Some((current, _)) => {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidInput,
                    format!("cannot take group lock {group}: the file holds group lock {current}"),
                ));
            }
            None => {
                let argument = IoctlArgument::Value(group.get().into());
                control.ioctl(file, LOCK, argument)?;
                *held = Some((group, 1));
            }
        }
        Ok(())
    }

    /// Gives up a use of the lock; the last one calls `flush` and releases it,
    /// even if flushing fails.
    pub(crate) fn release(
        &self,
        control: &Control,
        file: BorrowedFd<'_>,
        flush: impl FnOnce() -> io::Result<()>,
    ) -> io::Result<()> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *held {
            None => Ok(()),
            Some((_, users)) if *users > 1 => {
                *users -= 1;
                Ok(())
            }
            Some((group, _)) => {
                let group = IoctlArgument::Value(group.get().into());
                *held = None;
                let flushed = flush();
                let released = control.ioctl(file, UNLOCK, group);
                flushed.and(released)
            }
        }
    }
}
