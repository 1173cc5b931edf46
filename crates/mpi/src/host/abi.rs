//! The three binary interfaces: how wide handles are and where a status keeps its fields.

#![allow(unsafe_code)] // Reads and writes handles in the memory of C callers.

use std::ffi::{c_int, c_void};

/// The binary interface of an MPI library.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Flavour {
    /// MPICH and its derivatives: Intel MPI, Cray MPICH, MVAPICH, ParaStation MPI.
    Mpich,
    /// Open MPI 4 and 5.
    OpenMpi,
    /// The standard ABI of MPI-5.
    Standard,
}

/// Where the public fields of an `MPI_Status` lie, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatusFields {
    /// The size of a status.
    pub size: usize,
    /// The offset of `MPI_SOURCE`.
    pub source: usize,
    /// The offset of `MPI_TAG`.
    pub tag: usize,
    /// The offset of `MPI_ERROR`.
    pub error: usize,
    /// Where it keeps a count of bytes, if that is known. The standard does not say, so it is
    /// compared with what the host does before it is used.
    pub(crate) count: Option<CountFields>,
}

/// Where a status keeps a count of bytes, as long as it is less than 2^31, and whether the
/// operation was cancelled. In bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CountFields {
    /// The offset of the count, a 64-bit number.
    pub(crate) bytes: usize,
    /// The offset of the cancellation flag, a C integer, if the count does not include it.
    pub(crate) cancelled: Option<usize>,
}

/// The size of the largest status.
pub const STATUS_BYTES_MAX: usize = 32;

impl Flavour {
    /// Every flavour.
    pub const ALL: [Flavour; 3] = [Self::Mpich, Self::OpenMpi, Self::Standard];

    /// The column of this flavour in tables.
    pub(crate) const fn column(self) -> usize {
        self as usize
    }

    /// The name of the flavour.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mpich => "MPICH ABI",
            Self::OpenMpi => "Open MPI ABI",
            Self::Standard => "standard ABI",
        }
    }

    /// The width of a handle in C, other than `MPI_File`, which is a pointer on every host.
    pub const fn handle_bytes(self) -> usize {
        match self {
            Self::Mpich => size_of::<c_int>(),
            Self::OpenMpi | Self::Standard => size_of::<*const c_void>(),
        }
    }

    /// The layout of an `MPI_Status`.
    pub const fn status(self) -> StatusFields {
        match self {
            Self::Mpich => StatusFields {
                size: 20,
                source: 8,
                tag: 12,
                error: 16,
                count: Some(CountFields {
                    bytes: 0,
                    cancelled: None,
                }),
            },
            Self::OpenMpi => StatusFields {
                size: 24,
                source: 0,
                tag: 4,
                error: 8,
                count: Some(CountFields {
                    bytes: 16,
                    cancelled: Some(12),
                }),
            },
            Self::Standard => StatusFields {
                size: 32,
                source: 0,
                tag: 4,
                error: 8,
                count: None,
            },
        }
    }

    /// A handle that C passed or returned in a register: the upper half of the register is
    /// undefined if handles are C integers.
    pub const fn from_register(self, raw: u64) -> u64 {
        match self {
            Self::Mpich => raw & u32::MAX as u64,
            Self::OpenMpi | Self::Standard => raw,
        }
    }

    /// Reads element `index` of an array of handles.
    ///
    /// # Safety
    /// `handles` must point to more than `index` readable handles of this flavour.
    pub unsafe fn read_handle(self, handles: *const c_void, index: usize) -> u64 {
        // SAFETY: the caller vouches for the memory; C aligns arrays of handles.
        unsafe {
            match self {
                Self::Mpich => u64::from(handles.cast::<u32>().add(index).read()),
                Self::OpenMpi | Self::Standard => handles.cast::<u64>().add(index).read(),
            }
        }
    }

    /// Writes element `index` of an array of handles.
    ///
    /// # Safety
    /// `handles` must point to more than `index` writable handles of this flavour.
    pub unsafe fn write_handle(self, handles: *mut c_void, index: usize, handle: u64) {
        // SAFETY: the caller vouches for the memory; C aligns arrays of handles.
        unsafe {
            match self {
                // Handles of this flavour are C integers: the upper half is zero.
                Self::Mpich => handles.cast::<u32>().add(index).write(handle as u32),
                Self::OpenMpi | Self::Standard => handles.cast::<u64>().add(index).write(handle),
            }
        }
    }
}

/// Memory for one handle that a function of the host writes or changes.
#[derive(Debug)]
pub struct Slot {
    memory: u64,
    flavour: Flavour,
}

impl Slot {
    /// A slot that holds `handle`.
    pub fn new(flavour: Flavour, handle: u64) -> Self {
        let mut slot = Self { memory: 0, flavour };
        // SAFETY: the slot is as wide as the widest handle.
        unsafe { flavour.write_handle(slot.pointer(), 0, handle) };
        slot
    }

    /// The address to pass to C.
    pub fn pointer(&mut self) -> *mut c_void {
        (&raw mut self.memory).cast()
    }

    /// The current handle.
    pub fn handle(&self) -> u64 {
        // SAFETY: the slot is as wide as the widest handle.
        unsafe { self.flavour.read_handle((&raw const self.memory).cast(), 0) }
    }
}

/// An array of handles in C's form.
#[derive(Debug)]
pub struct Slots {
    memory: Vec<u64>,
    flavour: Flavour,
    len: usize,
}

impl Slots {
    /// Copies `handles` to C's form.
    pub fn new(flavour: Flavour, handles: impl ExactSizeIterator<Item = u64>) -> Self {
        let len = handles.len();
        let mut slots = Self {
            memory: vec![0; len],
            flavour,
            len,
        };
        for (index, handle) in handles.enumerate() {
            // SAFETY: the memory holds `len` handles of the widest kind.
            unsafe { flavour.write_handle(slots.pointer(), index, handle) };
        }
        slots
    }

    /// The address to pass to C.
    pub fn pointer(&mut self) -> *mut c_void {
        self.memory.as_mut_ptr().cast()
    }

    /// The current handles.
    pub fn handles(&self) -> impl Iterator<Item = u64> {
        let memory = self.memory.as_ptr().cast();
        // SAFETY: there are `len` initialised handles.
        (0..self.len).map(move |index| unsafe { self.flavour.read_handle(memory, index) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_survive_the_way_through_c() {
        for flavour in Flavour::ALL {
            let handle = 0x9000_0001;
            assert_eq!(Slot::new(flavour, handle).handle(), handle);
            let slots = Slots::new(flavour, [1, handle, 3].into_iter());
            assert_eq!(slots.handles().collect::<Vec<_>>(), [1, handle, 3]);
        }
        assert_eq!(Flavour::Mpich.from_register(u64::MAX << 32 | 7), 7);
        assert_eq!(Flavour::OpenMpi.from_register(1 << 40), 1 << 40);
    }
}
