//! The host's request handles that are pario's.
//!
//! A handle is in the table as long as the host's request exists: the callback that frees the
//! request removes it, before the host can reuse the handle. The lock is never held while the
//! host is called.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use pario_mpi::Request;

use super::started::Started;

type Table = HashMap<Request, Arc<Started>>;

static TABLE: LazyLock<RwLock<Table>> = LazyLock::new(RwLock::default);

/// The number of handles in the table.
static OUTSTANDING: AtomicUsize = AtomicUsize::new(0);

fn read() -> RwLockReadGuard<'static, Table> {
    TABLE.read().unwrap_or_else(PoisonError::into_inner)
}

/// Changes the table, and updates the number of handles.
fn change<T>(edit: impl FnOnce(&mut RwLockWriteGuard<'static, Table>) -> T) -> T {
    let mut table = TABLE.write().unwrap_or_else(PoisonError::into_inner);
    let result = edit(&mut table);
    OUTSTANDING.store(table.len(), Ordering::Relaxed);
    result
}

/// Whether pario has any requests. A thread that has one got it from the thread that started
/// it, which orders the memory accesses.
pub(crate) fn is_any_outstanding() -> bool {
    OUTSTANDING.load(Ordering::Relaxed) > 0
}

pub(super) fn insert(handle: Request, started: Arc<Started>) {
    change(|table| table.insert(handle, started));
}

/// Removes an operation, unless its handle already stands for another one.
pub(super) fn remove(handle: Request, started: &Arc<Started>) {
    change(|table| {
        let kept = table.get(&handle);
        if kept.is_some_and(|kept| Arc::ptr_eq(kept, started)) {
            table.remove(&handle);
        }
    });
}

pub(super) fn remove_all() -> Vec<Arc<Started>> {
    change(|table| table.drain().map(|(_, started)| started).collect())
}

/// The operations among some handles, with their positions.
pub(super) fn find(handles: impl Iterator<Item = Request>) -> Vec<(usize, Arc<Started>)> {
    let table = read();
    let found = handles.enumerate().filter_map(|(place, handle)| {
        let started = table.get(&handle)?;
        Some((place, Arc::clone(started)))
    });
    found.collect()
}
