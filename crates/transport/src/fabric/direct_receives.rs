//! Posted transfers between ranks that are threads of one process: the sender
//! copies the bytes to their place by itself, and a packet tells the receiver that
//! they are there. Through the receiver's queue they would be copied twice, in
//! pieces of a page, and ranks that share cores would take turns at every few.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::transfers::{Data, Key};
use crate::Rank;
use crate::unexpected::ContextId;

/// The receives of all ranks that nobody has sent to.
#[derive(Debug, Default)]
pub(crate) struct DirectReceives {
    /// By receiver and key, in the order in which they were posted.
    posted: Mutex<HashMap<(Rank, Key), VecDeque<Data>>>,
}

impl DirectReceives {
    fn lock(&self) -> MutexGuard<'_, HashMap<(Rank, Key), VecDeque<Data>>> {
        self.posted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn post(&self, receiver: Rank, key: Key, data: Data) {
        let mut posted = self.lock();
        posted.entry((receiver, key)).or_default().push_back(data);
    }

    /// Copies the bytes of a send to their place; whether there is a receive for
    /// them. One of another length is left alone: the receiver reports it.
    pub(super) fn fill(&self, receiver: Rank, key: Key, source: &Data) -> bool {
        match self.take(receiver, key, source.len()) {
            Some(target) => {
                target.copy_from(source);
                true
            }
            None => false,
        }
    }

    fn take(&self, receiver: Rank, key: Key, bytes: usize) -> Option<Data> {
        let mut posted = self.lock();
        let queue = posted.get_mut(&(receiver, key))?;
        if queue.front()?.len() != bytes {
            return None;
        }
        let data = queue.pop_front()?;
        if queue.is_empty() {
            posted.remove(&(receiver, key));
        }
        Some(data)
    }

    /// Forgets the receives of a context that a rank no longer uses.
    pub(super) fn close(&self, receiver: Rank, context: ContextId) {
        let mut posted = self.lock();
        posted.retain(|(rank, key), _| *rank != receiver || key.context != context);
    }
}
