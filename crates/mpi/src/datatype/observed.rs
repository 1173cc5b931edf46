//! Contiguous types that the program was seen to make.
//!
//! Programs make such types for a single call. To learn from the host what a type consists of, and to
//! keep it as an attribute, takes longer than a small access where the host duplicates inner types
//! and allocates a table of attributes per type. A library that is called whenever the program makes,
//! commits or frees a type can know without asking.
//!
//! The handle of a type that is freed may stand for another one, so an entry must not outlive its
//! type. Besides [`Host::type_freed`], a second commit ends an entry: the program may have freed a
//! type and made another one unseen, but has to commit that one, too, before it describes data. As a
//! part of another type it need not be committed, so the host is asked what kind of type it is.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use pario_layout::Datatype as Layout;
use pario_transport::BuildNumberHasher;

use crate::handles::Datatype;
use crate::host::Host;
use crate::host::combiner::Combiner;

/// A type that repeats a predefined one without gaps.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Repetition {
    /// The number of elements.
    pub(super) count: u64,
    /// The predefined type of the elements.
    pub(super) of: Datatype,
    is_committed: bool,
}

/// The contiguous types that were seen to be made and are not known to be freed, by their handles.
#[derive(Debug, Default)]
pub(super) struct ObservedTypes {
    by_handle: Mutex<ByHandle>,
}

type ByHandle = HashMap<u64, Repetition, BuildNumberHasher>;

impl ObservedTypes {
    /// What a committed type repeats.
    #[inline]
    pub(super) fn committed(&self, datatype: Datatype) -> Option<Repetition> {
        let found = self.lock().get(&datatype.0).copied();
        found.filter(|repetition| repetition.is_committed)
    }

    fn get(&self, datatype: Datatype) -> Option<Repetition> {
        self.lock().get(&datatype.0).copied()
    }

    /// A handle stands for a new type.
    fn made(&self, datatype: Datatype, repeats: Option<Repetition>) {
        let mut types = self.lock();
        match repeats {
            Some(repetition) => types.insert(datatype.0, repetition),
            None => types.remove(&datatype.0),
        };
    }

    fn commit(&self, datatype: Datatype) {
        let mut types = self.lock();
        match types.get_mut(&datatype.0) {
            Some(repetition) if !repetition.is_committed => repetition.is_committed = true,
            Some(_) => {
                types.remove(&datatype.0);
            }
            None => {}
        }
    }

    fn forget(&self, datatype: Datatype) {
        self.lock().remove(&datatype.0);
    }

    fn lock(&self) -> MutexGuard<'_, ByHandle> {
        self.by_handle
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// For those through whom all calls of the program pass that make, commit and free datatypes.
impl Host {
    /// The program has made a type of `count` elements of another.
    pub fn type_made_contiguous(&self, count: u64, of: Datatype, made: Datatype) {
        let repeated = self.observed_inner(of).and_then(|inner| {
            let count = inner.count.checked_mul(count)?;
            let is_sized = (1..=i64::MAX as u64).contains(&self.bytes_of(count, inner.of)?);
            is_sized.then_some(Repetition {
                count,
                of: inner.of,
                is_committed: false,
            })
        });
        self.observed().made(made, repeated);
    }

    /// The program has duplicated a type. A duplicate is committed if its original is.
    pub fn type_made_duplicate(&self, of: Datatype, made: Datatype) {
        self.observed().made(made, self.observed().get(of));
    }

    /// The program has committed a type.
    pub fn type_committed(&self, datatype: Datatype) {
        self.observed().commit(datatype);
    }

    /// The program is about to free a type.
    pub fn type_freed(&self, datatype: Datatype) {
        self.observed().forget(datatype);
    }

    fn observed(&self) -> &ObservedTypes {
        self.decoded().observed()
    }

    /// What a type repeats that the program makes another one of.
    fn observed_inner(&self, datatype: Datatype) -> Option<Repetition> {
        if self.decoded().predefined(datatype).is_some() {
            return self.one_element(datatype);
        }
        match self.type_envelope(datatype).ok()?.combiner? {
            Combiner::Named => {
                self.decode(datatype).ok()?;
                self.one_element(datatype)
            }
            Combiner::Contiguous | Combiner::Dup => {
                let known = self.observed().get(datatype)?;
                let bytes = self.bytes_of(known.count, known.of)?;
                (self.type_size(datatype).ok()? == bytes).then_some(known)
            }
            _ => None,
        }
    }

    /// A predefined type without gaps, as one element of itself.
    fn one_element(&self, datatype: Datatype) -> Option<Repetition> {
        let layout = self.decoded().predefined(datatype)?;
        layout.layout().is_dense().then_some(Repetition {
            count: 1,
            of: datatype,
            is_committed: true,
        })
    }

    /// The bytes of `count` elements of a predefined type.
    pub(super) fn bytes_of(&self, count: u64, of: Datatype) -> Option<u64> {
        self.decoded().predefined(of)?.size().checked_mul(count)
    }

    /// The layout of a committed type that was seen to be made.
    pub(super) fn observed_layout(&self, datatype: Datatype) -> Option<Layout> {
        let Repetition { count, of, .. } = self.observed().committed(datatype)?;
        let of = self.decoded().predefined(of)?;
        self.decoded().contiguous(count, of).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: Repetition = Repetition {
        count: 8,
        of: Datatype(1),
        is_committed: false,
    };

    #[test]
    fn a_type_is_known_once_it_is_committed_and_until_it_is_freed() {
        let (types, handle) = (ObservedTypes::default(), Datatype(7));
        types.made(handle, Some(BYTES));
        assert_eq!(types.committed(handle), None);
        types.commit(handle);
        assert_eq!(types.committed(handle).map(|known| known.count), Some(8));
        types.forget(handle);
        assert_eq!(types.committed(handle), None);
        types.commit(handle);
        assert_eq!(types.committed(handle), None);
    }

    #[test]
    fn a_handle_that_was_freed_unseen_is_not_mistaken() {
        let (types, handle) = (ObservedTypes::default(), Datatype(7));
        types.made(handle, Some(BYTES));
        types.commit(handle);
        // Freed unseen; now it stands for a vector, which no one reports until it is committed.
        types.commit(handle);
        assert_eq!(types.committed(handle), None);
        types.made(handle, Some(BYTES));
        types.commit(handle);
        // Freed unseen; now it is the duplicate of a type that is not known.
        types.made(handle, None);
        assert_eq!(types.committed(handle), None);
    }
}
