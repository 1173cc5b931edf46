//! What else a rank has to see to while it waits in shared memory.

use std::fmt;
use std::sync::Arc;

/// Something that a waiting rank does before each sleep, such as keeping the
/// progress of a host MPI moving. Nothing by default.
#[derive(Clone, Default)]
pub struct Meanwhile(Option<Arc<dyn Fn() + Send + Sync>>);

impl Meanwhile {
    /// Calls `work` before each sleep. It must not wait for the transport.
    #[must_use]
    pub fn new(work: impl Fn() + Send + Sync + 'static) -> Self {
        Meanwhile(Some(Arc::new(work)))
    }

    pub(super) fn call(&self) {
        if let Some(work) = &self.0 {
            work();
        }
    }
}

impl fmt::Debug for Meanwhile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Some(_) => "Meanwhile(work)",
            None => "Meanwhile(nothing)",
        })
    }
}
