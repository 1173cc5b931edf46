//! The sizes of contiguous types by their handles: a copy of what the attributes of these types say.
//!
//! Finding an attribute touches several objects of the host. In programs with thousands of types
//! they are not in the cache, and take longer to find than the rest of a small access.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use pario_transport::BuildNumberHasher;

use crate::handles::Datatype;

/// The sizes of types whose attribute holds a size. A handle may stand for another type once its own
/// is freed, so whoever deletes the attribute must [`forget`](Self::forget) the handle; the map is
/// never larger than the number of types in the program.
#[derive(Debug, Default)]
pub(super) struct KnownSizes {
    sizes: Mutex<Sizes>,
}

type Sizes = HashMap<u64, u64, BuildNumberHasher>;

impl KnownSizes {
    /// The size of a type, if it is known. `None`, too, if another thread is looking at this moment:
    /// the attribute says the same.
    #[inline]
    pub(super) fn get(&self, datatype: Datatype) -> Option<u64> {
        let sizes = self.sizes.try_lock().ok()?;
        sizes.get(&datatype.0).copied()
    }

    /// Keeps the size of a type that has it as its attribute.
    pub(super) fn insert(&self, datatype: Datatype, bytes: u64) {
        self.lock().insert(datatype.0, bytes);
    }

    /// Forgets a type whose attribute is deleted.
    pub(super) fn forget(&self, datatype: Datatype) {
        self.lock().remove(&datatype.0);
    }

    fn lock(&self) -> MutexGuard<'_, Sizes> {
        self.sizes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
