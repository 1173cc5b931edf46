//! Errors of writes whose requests were dropped: the next `sync` or `close` reports them.

use std::sync::{Arc, Mutex, PoisonError};

use crate::{Error, Result};

/// Keeps the first such error of a file until it is reported.
#[derive(Clone, Debug, Default)]
pub struct Unreported(Arc<Mutex<Option<Error>>>);

impl Unreported {
    /// Keeps an error that nothing waits for.
    pub fn note(&self, error: Error) {
        let mut first = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert(error);
    }

    /// Returns the error once.
    pub(crate) fn take(&self) -> Result<()> {
        let mut first = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match first.take() {
            None => Ok(()),
            Some(error) => {
                let message = "a write failed after its request was freed";
                Err(Error::new(error.kind(), message).with_source(error))
            }
        }
    }
}
