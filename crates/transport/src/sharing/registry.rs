//! Segments that the threads of a process offer to each other.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::backing::Secret;
use crate::Segment;

/// The segments that are on offer, by their secrets.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    segments: Mutex<HashMap<Secret, Segment>>,
}

/// Takes a segment off the registry when dropped.
pub(super) struct Entry {
    registry: Arc<Registry>,
    secret: Secret,
}

impl Registry {
    fn segments(&self) -> MutexGuard<'_, HashMap<Secret, Segment>> {
        self.segments.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn enter(registry: &Arc<Self>, secret: Secret, segment: Segment) -> Entry {
        registry.segments().insert(secret, segment);
        let registry = Arc::clone(registry);
        Entry { registry, secret }
    }

    pub(super) fn find(&self, secret: &Secret) -> io::Result<Segment> {
        let segment = self.segments().get(secret).cloned();
        segment.ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.registry.segments().remove(&self.secret);
    }
}
