//! Errors of writes whose requests were dropped: whoever makes the file safe or
//! closes it has to know.

use std::sync::{Arc, Mutex, PoisonError};

use crate::{Error, Result};

/// Where a file keeps the first such error until it is reported.
#[derive(Clone, Debug, Default)]
pub struct Unreported(Arc<Mutex<Option<Error>>>);

impl Unreported {
    /// Keeps an error that nobody waits for.
    pub fn note(&self, error: Error) {
        let mut first = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert(error);
    }

    /// The error, once.
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
