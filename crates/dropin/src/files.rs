//! The open files: what pario's `MPI_File` handles stand for.
//!
//! A handle is a number, not an address: a tag that no address has, then a generation, then an
//! index in a table. So the host's handles can be distinguished from pario's without accessing
//! memory, and a handle that was closed is recognised.

use std::cell::Cell;
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use pario_mpi::{Datatype, MpiTransport, ProgressRegistration};

use crate::errhandler::Handler;
use crate::requests::ActiveSplit;

/// The upper bits of a handle. No address of a 64-bit system has them.
const TAG: u64 = 0x5041 << 48;
const TAG_MASK: u64 = 0xffff << 48;
const GENERATION_SHIFT: u32 = 32;
const GENERATION_MASK: u64 = 0xffff;
const INDEX_MASK: u64 = 0xffff_ffff;

/// The Fortran integer of the first file: hosts count theirs from 0.
const FIRST_FORTRAN: i32 = 0x5000_0000;

/// An `MPI_File` as passed in C.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub(crate) struct FileId(pub(crate) u64);

impl FileId {
    fn new(index: usize, generation: u16) -> FileId {
        FileId(TAG | u64::from(generation) << GENERATION_SHIFT | index as u64)
    }

    /// Whether it is pario's, open or not.
    pub(crate) fn is_ours(self) -> bool {
        self.0 & TAG_MASK == TAG
    }

    fn generation(self) -> u16 {
        (self.0 >> GENERATION_SHIFT & GENERATION_MASK) as u16
    }

    fn index(self) -> usize {
        (self.0 & INDEX_MASK) as usize
    }
}

/// The types of a view as the program passed them, for `MPI_File_get_view`.
#[derive(Clone, Debug)]
pub(crate) struct ViewTypes {
    pub(crate) etype: Datatype,
    pub(crate) filetype: Datatype,
    /// The decoded filetype, if it is a duplicate of a derived type.
    pub(crate) duplicated: Option<engine::Datatype>,
}

impl ViewTypes {
    /// A view of a named type.
    pub(crate) fn named(datatype: Datatype) -> ViewTypes {
        ViewTypes {
            etype: datatype,
            filetype: datatype,
            duplicated: None,
        }
    }
}

/// An open file.
#[derive(Debug)]
pub(crate) struct OpenFile {
    pub(crate) id: FileId,
    pub(crate) file: engine::File,
    pub(crate) transport: Arc<MpiTransport>,
    pub(crate) amode: i32,
    pub(crate) handler: Mutex<Handler>,
    /// Duplicates of derived types, or the host's handles of named ones.
    pub(crate) types: Mutex<ViewTypes>,
    pub(crate) split: Mutex<Option<ActiveSplit>>,
    /// Makes progress for operations whose requests were freed, until the file is closed.
    pub(crate) freed: Mutex<Option<ProgressRegistration>>,
}

#[derive(Debug, Default)]
struct Place {
    generation: u16,
    file: Option<Arc<OpenFile>>,
}

/// How often files were removed from the table. What a thread keeps is valid if none was since.
static REMOVALS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// The file of this thread's last call, so that the next call on it needs neither the lock
    /// of the table nor another reference. A call takes it out, because error handlers may call
    /// file functions.
    static LAST: Cell<Option<Kept>> = const { Cell::new(None) };
}

#[derive(Debug)]
struct Kept {
    file: Arc<OpenFile>,
    removals: u64,
}

impl Kept {
    fn is_current(&self) -> bool {
        self.removals == REMOVALS.load(Ordering::Acquire)
    }
}

/// An open file that a call uses. Its thread keeps it for the next call.
#[derive(Debug)]
pub(crate) struct FileInUse(Option<Kept>);

impl Deref for FileInUse {
    type Target = OpenFile;

    fn deref(&self) -> &OpenFile {
        let kept = self.0.as_ref();
        &kept.expect("a file is in use until it is dropped").file
    }
}

impl Drop for FileInUse {
    #[inline]
    fn drop(&mut self) {
        if let Some(kept) = self.0.take_if(|kept| kept.is_current()) {
            // A thread that is ending keeps nothing.
            let _ = LAST.try_with(|last| last.set(Some(kept)));
        }
    }
}

static TABLE: RwLock<Vec<Place>> = RwLock::new(Vec::new());

/// What a handle stands for.
#[derive(Debug)]
pub(crate) enum Found {
    /// One of pario's files.
    Ours(FileInUse),
    /// One of pario's files that was closed.
    Closed,
    /// A handle of the host, or invalid.
    Hosts,
}

/// Adds the file that `make` makes for its handle.
pub(crate) fn enter(make: impl FnOnce(FileId) -> OpenFile) -> FileId {
    let mut table = TABLE.write().unwrap_or_else(PoisonError::into_inner);
    let free = table.iter().position(|place| place.file.is_none());
    let index = free.unwrap_or(table.len());
    if index == table.len() {
        table.push(Place::default());
    }
    let place = &mut table[index];
    place.generation = place.generation.wrapping_add(1);
    let id = FileId::new(index, place.generation);
    place.file = Some(Arc::new(make(id)));
    id
}

#[inline]
pub(crate) fn find(id: FileId) -> Found {
    if !id.is_ours() {
        return Found::Hosts;
    }
    let last = LAST.try_with(Cell::take).ok().flatten();
    match last.filter(|kept| kept.file.id == id && kept.is_current()) {
        Some(kept) => Found::Ours(FileInUse(Some(kept))),
        None => look_up(id),
    }
}

/// Finds one of pario's files in the table.
#[cold]
fn look_up(id: FileId) -> Found {
    let table = TABLE.read().unwrap_or_else(PoisonError::into_inner);
    // Removals take the lock, so this one belongs to what the table holds.
    let removals = REMOVALS.load(Ordering::Acquire);
    let place = table.get(id.index());
    let current = place.filter(|place| place.generation == id.generation());
    match current.and_then(|place| place.file.clone()) {
        Some(file) => Found::Ours(FileInUse(Some(Kept { file, removals }))),
        None => Found::Closed,
    }
}

/// Removes a file from the table: its handle is closed from now on.
pub(crate) fn remove(id: FileId) {
    let mut table = TABLE.write().unwrap_or_else(PoisonError::into_inner);
    if let Some(place) = table.get_mut(id.index())
        && place.generation == id.generation()
    {
        place.file = None;
        REMOVALS.fetch_add(1, Ordering::AcqRel);
    }
}

/// Removes all files, at the end of the MPI.
pub(crate) fn remove_all() -> Vec<Arc<OpenFile>> {
    let mut table = TABLE.write().unwrap_or_else(PoisonError::into_inner);
    REMOVALS.fetch_add(1, Ordering::AcqRel);
    let _ = LAST.try_with(Cell::take);
    let files = table.iter_mut().filter_map(|place| place.file.take());
    files.collect()
}

/// The Fortran integer of a handle.
pub(crate) fn to_fortran(id: FileId) -> i32 {
    FIRST_FORTRAN.saturating_add(id.index() as i32)
}

/// The handle of a Fortran integer, if it is pario's.
pub(crate) fn from_fortran(number: i32) -> Option<FileId> {
    let index = number.checked_sub(FIRST_FORTRAN)?;
    let index = usize::try_from(index).ok()?;
    let table = TABLE.read().unwrap_or_else(PoisonError::into_inner);
    let place = table.get(index)?;
    Some(FileId::new(index, place.generation))
}
