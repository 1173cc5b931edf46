//! Datatypes as C statements.

use std::fmt::Write as _;

use super::datatype::{Datatype, Distribution, Leaf, Order, Unit};

/// C statements, with names for the types that they make.
#[derive(Default)]
pub(super) struct Statements {
    pub(super) text: String,
    types: usize,
}

impl Statements {
    pub(super) fn add(&mut self, statement: impl AsRef<str>) {
        let _ = writeln!(self.text, "    {}", statement.as_ref());
    }

    /// Makes a type; the name of the variable, or of a predefined type.
    pub(super) fn datatype(&mut self, it: &Datatype) -> String {
        if let Datatype::Basic(leaf) = it {
            return basic(*leaf).into();
        }
        let call = match it {
            Datatype::Basic(_) => unreachable!("it is handled above"),
            Datatype::Contiguous(count, of) => {
                format!("contiguous({count}, {}", self.datatype(of))
            }
            Datatype::Vector {
                count,
                length,
                stride,
                unit,
                of,
            } => {
                let name = match unit {
                    Unit::Elements => "vector",
                    Unit::Bytes => "create_hvector",
                };
                format!("{name}({count}, {length}, {stride}, {}", self.datatype(of))
            }
            Datatype::Indexed { blocks, unit, of } => {
                let (lengths, places): (Vec<i64>, Vec<i64>) = blocks.iter().copied().unzip();
                let name = match unit {
                    Unit::Elements => "indexed",
                    Unit::Bytes => "create_hindexed",
                };
                format!(
                    "{name}({}, {}, {}, {}",
                    blocks.len(),
                    integers(&lengths),
                    places_in(&places, *unit),
                    self.datatype(of)
                )
            }
            Datatype::IndexedBlock {
                length,
                displacements,
                unit,
                of,
            } => {
                let name = match unit {
                    Unit::Elements => "create_indexed_block",
                    Unit::Bytes => "create_hindexed_block",
                };
                format!(
                    "{name}({}, {length}, {}, {}",
                    displacements.len(),
                    places_in(displacements, *unit),
                    self.datatype(of)
                )
            }
            Datatype::Struct(fields) => {
                let names: Vec<String> = fields
                    .iter()
                    .map(|field| self.datatype(&field.datatype))
                    .collect();
                let lengths: Vec<i64> = fields.iter().map(|it| it.length).collect();
                let places: Vec<i64> = fields.iter().map(|it| it.displacement).collect();
                format!(
                    "create_struct({}, {}, {}, (MPI_Datatype[]){{{}}}",
                    fields.len(),
                    integers(&lengths),
                    places_in(&places, Unit::Bytes),
                    names.join(", ")
                )
            }
            Datatype::Subarray {
                sizes,
                parts,
                starts,
                order: it,
                of,
            } => format!(
                "create_subarray({}, {}, {}, {}, {}, {}",
                sizes.len(),
                integers(sizes),
                integers(parts),
                integers(starts),
                order(*it),
                self.datatype(of)
            ),
            Datatype::Darray { of, .. } => {
                let head = darray(it);
                format!("{head}, {}", self.datatype(of))
            }
            Datatype::Resized { low, extent, of } => {
                format!("create_resized({}, {low}, {extent}", self.datatype(of))
            }
            Datatype::Dup(of) => format!("dup({}", self.datatype(of)),
        };
        self.types += 1;
        let name = format!("type{}", self.types);
        self.add(format!("MPI_Datatype {name};"));
        self.add(format!("MPI_Type_{call}, &{name});"));
        name
    }
}

fn darray(it: &Datatype) -> String {
    let Datatype::Darray {
        size,
        rank,
        dimensions,
        order: array,
        ..
    } = it
    else {
        unreachable!("only distributed arrays are printed here");
    };
    let list = |number: &dyn Fn(usize) -> String| {
        let words: Vec<String> = (0..dimensions.len()).map(number).collect();
        format!("(int[]){{{}}}", words.join(", "))
    };
    let sizes = list(&|at| dimensions[at].size.to_string());
    let distributions = list(&|at| {
        match dimensions[at].distribution {
            Distribution::Block => "MPI_DISTRIBUTE_BLOCK",
            Distribution::Cyclic => "MPI_DISTRIBUTE_CYCLIC",
            Distribution::None => "MPI_DISTRIBUTE_NONE",
        }
        .into()
    });
    let arguments = list(&|at| match dimensions[at].argument {
        0 => "MPI_DISTRIBUTE_DFLT_DARG".into(),
        argument => argument.to_string(),
    });
    let grid = list(&|at| dimensions[at].grid.to_string());
    let (many, order) = (dimensions.len(), order(*array));
    format!(
        "create_darray({size}, {rank}, {many}, {sizes}, {distributions}, {arguments}, {grid}, {order}"
    )
}

fn basic(leaf: Leaf) -> &'static str {
    match leaf {
        Leaf::Byte => "MPI_BYTE",
        Leaf::Char => "MPI_CHAR",
        Leaf::Short => "MPI_SHORT",
        Leaf::Int => "MPI_INT",
        Leaf::Float => "MPI_FLOAT",
        Leaf::Double => "MPI_DOUBLE",
        Leaf::LongLong => "MPI_LONG_LONG",
    }
}

fn order(order: Order) -> &'static str {
    match order {
        Order::C => "MPI_ORDER_C",
        Order::Fortran => "MPI_ORDER_FORTRAN",
    }
}

fn integers(numbers: &[i64]) -> String {
    places_in(numbers, Unit::Elements)
}

/// Displacements in elements are ints, those in bytes are addresses.
fn places_in(numbers: &[i64], unit: Unit) -> String {
    let kind = match unit {
        Unit::Elements => "int",
        Unit::Bytes => "MPI_Aint",
    };
    let words: Vec<String> = numbers.iter().map(i64::to_string).collect();
    format!("({kind}[]){{{}}}", words.join(", "))
}
