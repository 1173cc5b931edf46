//! The driver under test, and helpers that all checks share.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::{Access, Batch, Create, Driver, Handle, OpenHow};

#[derive(Clone, Debug)]
pub(super) struct Subject {
    pub(super) driver: Arc<dyn Driver>,
    directory: PathBuf,
    how: OpenHow,
    check: &'static str,
}

impl Subject {
    pub(super) fn new(driver: Arc<dyn Driver>, directory: &Path, how: OpenHow) -> Self {
        let directory = directory.to_owned();
        Subject {
            driver,
            directory,
            how,
            check: "",
        }
    }

    pub(super) fn opening(self, how: OpenHow) -> Self {
        Subject { how, ..self }
    }

    pub(super) fn named(&self, check: &'static str) -> Self {
        Subject {
            check,
            ..self.clone()
        }
    }

    /// The file of this check.
    pub(super) fn path(&self) -> PathBuf {
        self.directory
            .join(format!("{} {}", self.driver.name(), self.check))
    }

    pub(super) fn how(&self, access: Access, create: Create) -> OpenHow {
        OpenHow {
            access,
            create,
            ..self.how.clone()
        }
    }

    /// A new empty file.
    pub(super) fn create(&self) -> Arc<dyn Handle> {
        self.remove();
        let how = self.how(Access::ReadWrite, Create::Exclusive);
        self.opened(self.driver.open(&self.path(), &how))
    }

    /// Opens the file once more.
    pub(super) fn open(&self, access: Access) -> Arc<dyn Handle> {
        let how = self.how(access, Create::Never);
        self.opened(self.driver.open(&self.path(), &how))
    }

    fn opened(&self, result: io::Result<Arc<dyn Handle>>) -> Arc<dyn Handle> {
        result.unwrap_or_else(|error| panic!("{}: cannot open: {error}", self.path().display()))
    }

    /// Deletes the file if it exists.
    pub(super) fn remove(&self) {
        // The file may be missing; any other failure shows up when it is
        // created.
        let _ = self.driver.delete(&self.path());
    }

    /// Closes a handle and deletes the file.
    pub(super) fn finish(&self, file: &dyn Handle) {
        file.close().expect("closing must not fail");
        self.driver
            .delete(&self.path())
            .expect("deleting must not fail");
    }
}

/// Writes all of `bytes`.
pub(super) fn write(file: &dyn Handle, offset: u64, bytes: &[u8]) {
    let outcome = file.transfer(&Batch::write(offset, bytes));
    assert!(outcome.error.is_none(), "write at {offset}: {outcome:?}");
    assert_eq!(outcome.bytes, bytes.len() as u64, "write at {offset}");
}

/// Reads up to `len` bytes, as far as the file has them.
pub(super) fn read(file: &dyn Handle, offset: u64, len: usize) -> Vec<u8> {
    const UNTOUCHED: u8 = 0xa5;
    let mut bytes = vec![UNTOUCHED; len];
    let outcome = file.transfer(&Batch::read(offset, &mut bytes));
    assert!(outcome.error.is_none(), "read at {offset}: {outcome:?}");
    let rest = bytes.split_off(outcome.bytes as usize);
    assert!(
        rest.iter().all(|&byte| byte == UNTOUCHED),
        "memory beyond the end of the file must be untouched"
    );
    bytes
}
