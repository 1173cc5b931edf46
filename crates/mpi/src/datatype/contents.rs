//! Reads a constructor's arguments in order.

use std::ffi::c_int;
use std::slice;

use crate::host::Contents;

/// Where the byte displacements and strides of a constructor are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Displacements {
    /// Among the addresses: current constructors.
    Addresses,
    /// Among the integers: Fortran constructors of MPI-1.
    Integers,
}

/// The arguments that have not been read yet.
///
/// Types made by large-count constructors have all counts and displacements in one array, in
/// the order in which other constructors have them in two.
pub(super) struct Arguments<'a> {
    integers: slice::Iter<'a, c_int>,
    addresses: slice::Iter<'a, i64>,
    large_counts: slice::Iter<'a, i64>,
    is_large: bool,
    displacements: Displacements,
}

impl<'a> Arguments<'a> {
    pub(super) fn new(contents: &'a Contents, displacements: Displacements) -> Self {
        Self {
            integers: contents.integers.iter(),
            addresses: contents.addresses.iter(),
            large_counts: contents.large_counts.iter(),
            is_large: !contents.large_counts.is_empty(),
            displacements,
        }
    }

    /// The next argument that is an integer in every form of the constructor.
    pub(super) fn integer(&mut self) -> Option<c_int> {
        self.integers.next().copied()
    }

    /// The next `count` integers.
    pub(super) fn integers(&mut self, count: usize) -> Option<&'a [c_int]> {
        let (taken, rest) = self.integers.as_slice().split_at_checked(count)?;
        self.integers = rest.iter();
        Some(taken)
    }

    /// The next count, or displacement in extents.
    pub(super) fn count(&mut self) -> Option<i64> {
        match self.is_large {
            true => self.large_counts.next().copied(),
            false => self.integers.next().map(|&count| i64::from(count)),
        }
    }

    /// The next count that must not be negative.
    pub(super) fn length(&mut self) -> Option<u64> {
        u64::try_from(self.count()?).ok()
    }

    /// The next `count` counts or displacements in extents.
    pub(super) fn counts(&mut self, count: usize) -> Option<Vec<i64>> {
        (0..count).map(|_| self.count()).collect()
    }

    /// The next `count` counts that must not be negative.
    pub(super) fn lengths(&mut self, count: usize) -> Option<Vec<u64>> {
        (0..count).map(|_| self.length()).collect()
    }

    /// The next displacement in bytes.
    pub(super) fn bytes(&mut self) -> Option<i64> {
        match (self.is_large, self.displacements) {
            (true, _) => self.large_counts.next().copied(),
            (false, Displacements::Addresses) => self.addresses.next().copied(),
            (false, Displacements::Integers) => self.integers.next().map(|&int| i64::from(int)),
        }
    }

    /// The next `count` displacements in bytes.
    pub(super) fn bytes_each(&mut self, count: usize) -> Option<Vec<i64>> {
        (0..count).map(|_| self.bytes()).collect()
    }
}
