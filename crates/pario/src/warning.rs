//! Warnings: what the user should know but need not handle.

use std::sync::{Mutex, PoisonError};

type Handler = Box<dyn Fn(&str) + Send>;

static HANDLER: Mutex<Option<Handler>> = Mutex::new(None);

/// Sends warnings (a malformed hint, an info that differs between ranks) to
/// `handler` instead of standard error.
pub fn set_warning_handler(handler: impl Fn(&str) + Send + 'static) {
    *HANDLER.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(handler));
}

pub(crate) fn warn(message: &str) {
    match &*HANDLER.lock().unwrap_or_else(PoisonError::into_inner) {
        Some(handler) => handler(message),
        None => eprintln!("pario: warning: {message}"),
    }
}
