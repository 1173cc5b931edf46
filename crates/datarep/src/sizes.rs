//! Element sizes in a file.

use crate::error::DatarepError;
use crate::representation::Representation;
use pario_layout::{Basic, Signature};
use std::cell::{Cell, RefCell};

/// Sizes in the file of the types in a signature. The representation is queried
/// once, so that later steps cannot fail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileSizes {
    /// One entry per type; rarely more than a few.
    sizes: Vec<(Basic, u64)>,
}

impl FileSizes {
    /// The sizes of the types that occur in `signature`.
    pub fn of(
        representation: &dyn Representation,
        signature: &Signature,
    ) -> Result<FileSizes, DatarepError> {
        let sizes = RefCell::new(Vec::new());
        let failure = Cell::new(None);
        // Computing the size queries each type that occurs, in time
        // proportional to the number of constructors, not elements.
        signature.size_in(&|basic| match representation.file_size(basic) {
            Ok(size) => {
                let mut sizes = sizes.borrow_mut();
                if !sizes.contains(&(basic, size)) {
                    sizes.push((basic, size));
                }
                size
            }
            Err(error) => {
                failure.set(Some(error));
                basic.size()
            }
        });
        match failure.into_inner() {
            Some(error) => Err(error),
            None => Ok(FileSizes {
                sizes: sizes.into_inner(),
            }),
        }
    }

    /// Size of an element in the file; for types not in the signature, the
    /// native size.
    pub fn get(&self, basic: Basic) -> u64 {
        let known = self.sizes.iter().find(|(known, _)| *known == basic);
        known.map_or(basic.size(), |(_, size)| *size)
    }

    /// The types that occur.
    pub fn basics(&self) -> impl Iterator<Item = Basic> {
        self.sizes.iter().map(|(basic, _)| *basic)
    }
}
