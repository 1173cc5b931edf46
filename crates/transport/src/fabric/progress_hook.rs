//! Work that a rank does while it waits in shared memory.

use std::fmt;
use std::sync::Arc;

use crate::Result;

/// Something that a waiting rank does before each sleep, such as keeping the
/// progress of a host MPI moving. Nothing by default.
#[derive(Clone, Default)]
pub struct ProgressHook(Option<Work>);

type Work = Arc<dyn Fn() -> Result<()> + Send + Sync>;

impl ProgressHook {
    /// Calls `work` before each sleep; its error ends the wait. It must not
    /// wait for the transport.
    #[must_use]
    pub fn new(work: impl Fn() -> Result<()> + Send + Sync + 'static) -> Self {
        ProgressHook(Some(Arc::new(work)))
    }

    pub(super) fn call(&self) -> Result<()> {
        match &self.0 {
            Some(work) => work(),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for ProgressHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Some(_) => "ProgressHook(work)",
            None => "ProgressHook(nothing)",
        })
    }
}
