//! The sizes of elements in a file.

use crate::error::DatarepError;
use crate::representation::Representation;
use pario_layout::{Basic, Signature};
use std::cell::{Cell, RefCell};

/// What the elements of some types take in a file: the answers of a
/// representation, asked once, so that no later step can fail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileSizes {
    /// One entry a type; there are rarely more than a few.
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
        // Computing the size asks for each type that occurs, in time that
        // depends on the number of constructors, not of elements.
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

    /// The size of an element; of a type that did not occur, the native one.
    pub fn get(&self, basic: Basic) -> u64 {
        let known = self.sizes.iter().find(|(known, _)| *known == basic);
        known.map_or(basic.size(), |(_, size)| *size)
    }

    /// The types that occur.
    pub fn basics(&self) -> impl Iterator<Item = Basic> {
        self.sizes.iter().map(|(basic, _)| *basic)
    }
}
