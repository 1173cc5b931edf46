//! Datatypes: the tree of MPI constructors, with its layout and signature.

mod check;
mod construct;
mod contents;
mod darray;
mod flatten;
mod pair;

use std::{borrow::Cow, sync::Arc};

pub use contents::Contents;
pub use darray::{Darray, Distribution};
pub use pair::Pair;

use crate::{Basic, Layout, MAX_DEPTH, Signature, TypeError};
use flatten::Flattened;

/// An MPI datatype: an immutable tree of constructors. Cloning is cheap.
///
/// Equality compares constructor trees; different trees may have equal layouts.
#[derive(Clone, Debug)]
pub struct Datatype(Arc<Node>);

impl From<&Datatype> for Datatype {
    fn from(datatype: &Datatype) -> Datatype {
        datatype.clone()
    }
}

impl From<Datatype> for Cow<'static, Datatype> {
    fn from(datatype: Datatype) -> Self {
        Cow::Owned(datatype)
    }
}

impl From<&Datatype> for Cow<'static, Datatype> {
    fn from(datatype: &Datatype) -> Self {
        Cow::Owned(datatype.clone())
    }
}

#[derive(Debug)]
struct Node {
    constructor: Constructor,
    native: Flattened,
    signature: Signature,
    depth: u16,
}

/// How the elements of an array follow each other in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// The last index varies fastest.
    C,
    /// The first index varies fastest.
    Fortran,
}

/// Unit of displacements and strides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Extents of the inner type; they scale with the representation.
    Extents,
    /// Bytes; they do not scale.
    Bytes,
}

/// Block lengths of an indexed type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Lengths {
    Uniform(u64),
    Each(Box<[u64]>),
}

impl Lengths {
    pub(crate) fn get(&self, index: usize) -> u64 {
        match self {
            Self::Uniform(length) => *length,
            Self::Each(lengths) => lengths[index],
        }
    }
}

/// A block of a structure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) block_length: u64,
    pub(crate) displacement: i64,
    pub(crate) of: Datatype,
}

/// A dimension of a subarray.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dimension {
    pub(crate) size: u64,
    pub(crate) subsize: u64,
    pub(crate) start: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Constructor {
    Basic(Basic),
    Contiguous {
        count: u64,
        of: Datatype,
    },
    Vector {
        count: u64,
        block_length: u64,
        stride: i64,
        unit: Unit,
        of: Datatype,
    },
    Indexed {
        lengths: Lengths,
        displacements: Box<[i64]>,
        unit: Unit,
        of: Datatype,
    },
    Structure {
        members: Box<[Member]>,
    },
    Subarray {
        dimensions: Box<[Dimension]>,
        order: Order,
        of: Datatype,
    },
    Darray {
        array: Darray,
        of: Datatype,
    },
    Resized {
        lower_bound: i64,
        extent: i64,
        of: Datatype,
    },
}

impl PartialEq for Datatype {
    fn eq(&self, other: &Self) -> bool {
        if Arc::ptr_eq(&self.0, &other.0) {
            return true;
        }
        match (&self.0.constructor, &other.0.constructor) {
            // Equal trees have equal wire forms. Encoding visits shared subtrees once; comparing
            // members directly would walk every path.
            (Constructor::Structure { .. }, Constructor::Structure { .. }) => {
                self.layout() == other.layout() && self.to_wire() == other.to_wire()
            }
            (mine, theirs) => mine == theirs,
        }
    }
}

impl Eq for Datatype {}

impl Datatype {
    fn new(constructor: Constructor) -> Result<Self, TypeError> {
        let depth = constructor
            .children()
            .map(|of| of.0.depth)
            .max()
            .unwrap_or(0)
            + 1;
        if depth > MAX_DEPTH {
            return Err(TypeError::depth());
        }
        let mut native = |of: &Datatype| Ok(of.0.native.clone());
        let flattened = flatten::flatten(&constructor, &Basic::size, &mut native)?;
        let signature = construct::signature(&constructor)?;
        Ok(Self(Arc::new(Node {
            constructor,
            native: flattened,
            signature,
            depth,
        })))
    }

    pub(crate) fn constructor(&self) -> &Constructor {
        &self.0.constructor
    }

    /// Identity of the allocation.
    pub(crate) fn address(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }

    /// Number of data bytes in one instance.
    pub fn size(&self) -> u64 {
        self.layout().size()
    }

    /// Distance between consecutive instances in an array.
    pub fn extent(&self) -> i64 {
        self.layout().extent()
    }

    /// The lower bound of an instance.
    pub fn lower_bound(&self) -> i64 {
        self.layout().lower_bound()
    }

    /// The upper bound: lower bound plus extent.
    pub fn upper_bound(&self) -> i64 {
        self.layout().upper_bound()
    }

    /// Offset of the lowest data byte; zero if there are none.
    pub fn true_lower_bound(&self) -> i64 {
        self.layout().true_lower_bound()
    }

    /// Distance from the lowest data byte to the end of the highest; saturates at `i64::MAX`.
    pub fn true_extent(&self) -> i64 {
        let layout = self.layout();
        layout
            .true_upper_bound()
            .saturating_sub(layout.true_lower_bound())
    }

    /// Where the data bytes lie in memory.
    pub fn layout(&self) -> &Layout {
        &self.0.native.layout
    }

    /// The sequence of basic types.
    pub fn signature(&self) -> &Signature {
        &self.0.signature
    }

    /// The layout in a representation in which elements take `size_of` bytes.
    ///
    /// Displacements and strides counted in extents scale with the element sizes; those counted
    /// in bytes do not. With the native sizes, this is [`layout`](Self::layout). Structure
    /// padding follows the sizes too: an element of non-native size is aligned as far as its
    /// size allows.
    pub fn flatten(&self, size_of: &dyn Fn(Basic) -> u64) -> Result<Layout, TypeError> {
        Ok(flatten::flatten_tree(self, size_of)?.layout)
    }
}

impl From<Basic> for Datatype {
    fn from(basic: Basic) -> Self {
        Self::basic(basic)
    }
}

impl Constructor {
    /// The inner types.
    pub(crate) fn children(&self) -> impl Iterator<Item = &Datatype> {
        let (single, members): (Option<&Datatype>, &[Member]) = match self {
            Self::Basic(_) => (None, &[]),
            Self::Structure { members } => (None, members),
            Self::Contiguous { of, .. }
            | Self::Vector { of, .. }
            | Self::Indexed { of, .. }
            | Self::Subarray { of, .. }
            | Self::Darray { of, .. }
            | Self::Resized { of, .. } => (Some(of), &[]),
        };
        single
            .into_iter()
            .chain(members.iter().map(|member| &member.of))
    }
}
