//! Closing files.

use std::sync::atomic::Ordering;

use super::{File, Inner, open::ROOT};
use crate::{Error, Mode, Result, agree, collective_call::CollectiveCall};

impl File {
    /// Closes the file. *Collective*. Written data becomes visible to other processes, and errors
    /// of the file system are reported on all ranks. Data does not become durable:
    /// [`File::sync`] and the hint `pario_sync_on_close` do that.
    ///
    /// Fails on all ranks if a request is still pending, or if the ranks make different calls;
    /// then the file stays open. After any other result it is closed. Operations whose requests
    /// were dropped are waited for.
    pub fn close(&self) -> Result<()> {
        let inner = &self.inner;
        let merged = inner.merge_logs(CollectiveCall::Close);
        let ready = inner.check_not_closed().and_then(|()| inner.check_idle());
        inner.collectively(CollectiveCall::Close, || {
            inner
                .begin(CollectiveCall::Close, ready)
                .map_err(|error| inner.name_error(error, "close"))?;
            inner.close_together().and(merged)
        })
    }

    /// Closes the file on this rank only and ignores errors: for programs that end with open
    /// files. Rank 0 deletes a file that is to be deleted on close.
    #[doc(hidden)]
    pub fn close_alone(&self) {
        let inner = &self.inner;
        let deletes = inner.mode.contains(Mode::DELETE_ON_CLOSE) && inner.comm.rank() == ROOT;
        if !inner.close_locally() {
            return;
        }
        // There is nowhere to report an error.
        if inner.shared_pointer.is_used() {
            let _ = inner.shared_pointer.remove();
        }
        if deletes {
            let _ = inner.driver.delete(&inner.driver_path);
        }
    }
}

impl Inner {
    fn close_together(&self) -> Result<()> {
        self.state.closed.store(true, Ordering::Release);
        let synced = match self.hints().pario_sync_on_close && self.mode.can_write() {
            true => self.handle.sync(),
            false => Ok(()),
        };
        self.writers.leave();
        let closed = self.handle.close();
        let closed = synced.and(closed).map_err(Error::from);
        let closed = self.unreported.take().and(closed);
        let is_used = closed.map(|()| vec![u8::from(self.shared_pointer.is_used())]);
        let closed = agree::gather(&*self.comm, is_used);
        let is_used = match &closed {
            Ok(all) => all.iter().any(|used| used.as_slice() == [1]),
            Err(_) => true,
        };
        let closed = closed
            .map(drop)
            .map_err(|error| self.name_error(error, "close"));
        let removed = match (is_used, self.comm.rank()) {
            (false, _) => Ok(()),
            (true, ROOT) => self.agree("close", self.shared_pointer.remove()),
            (true, _) => self.agree("close", Ok(())),
        };
        let closed = closed.and(removed);
        if !self.mode.contains(Mode::DELETE_ON_CLOSE) {
            return closed;
        }
        // The file is deleted even if closing failed.
        let deleted = match self.comm.rank() {
            ROOT => self.driver.delete(&self.driver_path),
            _ => Ok(()),
        };
        let deleted = self.agree("close", deleted.map_err(Error::from));
        closed.and(deleted)
    }
}
