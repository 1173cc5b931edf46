//! Datatypes as trees of constructors.

/// The basic type at the leaves of a tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Leaf {
    Byte,
    Char,
    Short,
    Int,
    Float,
    Double,
    LongLong,
}

impl Leaf {
    pub(super) const ALL: [Leaf; 7] = [
        Leaf::Byte,
        Leaf::Char,
        Leaf::Short,
        Leaf::Int,
        Leaf::Float,
        Leaf::Double,
        Leaf::LongLong,
    ];

    pub(super) fn bytes(self) -> i64 {
        match self {
            Leaf::Byte | Leaf::Char => 1,
            Leaf::Short => 2,
            Leaf::Int | Leaf::Float => 4,
            Leaf::Double | Leaf::LongLong => 8,
        }
    }
}

/// The order of an array's elements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Order {
    C,
    Fortran,
}

/// How one dimension of an array is distributed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Distribution {
    Block,
    Cyclic,
    None,
}

/// A dimension of a distributed array; an argument of 0 is the default.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Dimension {
    pub(super) size: i64,
    pub(super) distribution: Distribution,
    pub(super) argument: i64,
    pub(super) grid: i64,
}

/// What displacements and strides are counted in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Unit {
    Elements,
    Bytes,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Field {
    pub(super) length: i64,
    pub(super) displacement: i64,
    pub(super) datatype: Datatype,
}

/// A datatype.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Datatype {
    Basic(Leaf),
    Contiguous(i64, Box<Datatype>),
    Vector {
        count: i64,
        length: i64,
        stride: i64,
        unit: Unit,
        of: Box<Datatype>,
    },
    /// Pairs of length and displacement.
    Indexed {
        blocks: Vec<(i64, i64)>,
        unit: Unit,
        of: Box<Datatype>,
    },
    IndexedBlock {
        length: i64,
        displacements: Vec<i64>,
        unit: Unit,
        of: Box<Datatype>,
    },
    Struct(Vec<Field>),
    Subarray {
        sizes: Vec<i64>,
        parts: Vec<i64>,
        starts: Vec<i64>,
        order: Order,
        of: Box<Datatype>,
    },
    Darray {
        size: i64,
        rank: i64,
        dimensions: Vec<Dimension>,
        order: Order,
        of: Box<Datatype>,
    },
    Resized {
        low: i64,
        extent: i64,
        of: Box<Datatype>,
    },
    Dup(Box<Datatype>),
}

impl Datatype {
    /// Whether this holds for the type or for one that it is made of.
    pub(super) fn any(&self, holds: &dyn Fn(&Datatype) -> bool) -> bool {
        holds(self)
            || match self {
                Datatype::Basic(_) => false,
                Datatype::Struct(fields) => fields.iter().any(|field| field.datatype.any(holds)),
                Datatype::Contiguous(_, of)
                | Datatype::Vector { of, .. }
                | Datatype::Indexed { of, .. }
                | Datatype::IndexedBlock { of, .. }
                | Datatype::Subarray { of, .. }
                | Datatype::Darray { of, .. }
                | Datatype::Resized { of, .. }
                | Datatype::Dup(of) => of.any(holds),
            }
    }

    /// Whether there is a distributed array in it.
    pub(super) fn has_darray(&self) -> bool {
        self.any(&|it| matches!(it, Datatype::Darray { .. }))
    }

    pub(super) fn leaf(&self) -> Leaf {
        match self {
            Datatype::Basic(leaf) => *leaf,
            Datatype::Struct(fields) => fields[0].datatype.leaf(),
            Datatype::Contiguous(_, of)
            | Datatype::Vector { of, .. }
            | Datatype::Indexed { of, .. }
            | Datatype::IndexedBlock { of, .. }
            | Datatype::Subarray { of, .. }
            | Datatype::Darray { of, .. }
            | Datatype::Resized { of, .. }
            | Datatype::Dup(of) => of.leaf(),
        }
    }
}
