//! What the standard says that datatypes stand for: naive type maps.

use super::datatype::{Datatype, Dimension, Distribution, Order, Unit};

/// The bytes of a type: runs in the order of the type map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// Displacement and length of each basic element, neighbours joined.
    pub(super) runs: Vec<(i64, i64)>,
    pub(super) low: i64,
    pub(super) high: i64,
    /// Whether the bounds were given rather than found.
    pub(super) is_marked: bool,
}

impl Layout {
    pub(super) fn extent(&self) -> i64 {
        self.high - self.low
    }

    pub(super) fn size(&self) -> i64 {
        self.runs.iter().map(|(_, length)| length).sum()
    }

    /// Where each byte of `count` items lies.
    pub(super) fn places(&self, count: i64) -> Vec<i64> {
        let mut places = Vec::new();
        for item in 0..count {
            let base = item * self.extent();
            for &(displacement, length) in &self.runs {
                places.extend((0..length).map(|byte| base + displacement + byte));
            }
        }
        places
    }

    /// Several items, each at a displacement in bytes.
    fn at(&self, displacements: impl IntoIterator<Item = i64>) -> Layout {
        let mut all = Gathered::default();
        for displacement in displacements {
            all.add(self, displacement);
        }
        all.layout()
    }
}

/// Layouts put together.
#[derive(Default)]
struct Gathered {
    runs: Vec<(i64, i64)>,
    found: Option<(i64, i64)>,
    marked: Option<(i64, i64)>,
}

impl Gathered {
    fn add(&mut self, layout: &Layout, displacement: i64) {
        for &(start, length) in &layout.runs {
            let start = start + displacement;
            match self.runs.last_mut() {
                Some((before, many)) if *before + *many == start => *many += length,
                _ => self.runs.push((start, length)),
            }
        }
        let bounds = if layout.is_marked {
            &mut self.marked
        } else {
            &mut self.found
        };
        let (low, high) = (layout.low + displacement, layout.high + displacement);
        *bounds = Some(bounds.map_or((low, high), |(least, most)| {
            (least.min(low), most.max(high))
        }));
    }

    fn layout(self) -> Layout {
        let (low, high) = self.marked.or(self.found).unwrap_or((0, 0));
        Layout {
            runs: self.runs,
            low,
            high,
            is_marked: self.marked.is_some(),
        }
    }
}

impl Datatype {
    pub(super) fn layout(&self) -> Layout {
        match self {
            Datatype::Basic(leaf) => Layout {
                runs: vec![(0, leaf.bytes())],
                low: 0,
                high: leaf.bytes(),
                is_marked: false,
            },
            Datatype::Contiguous(count, of) => {
                let old = of.layout();
                old.at((0..*count).map(|item| item * old.extent()))
            }
            Datatype::Vector {
                count,
                length,
                stride,
                unit,
                of,
            } => {
                let starts: Vec<_> = (0..*count).map(|block| (*length, block * stride)).collect();
                blocks(&of.layout(), &starts, *unit)
            }
            Datatype::Indexed {
                blocks: list,
                unit,
                of,
            } => blocks(&of.layout(), list, *unit),
            Datatype::IndexedBlock {
                length,
                displacements,
                unit,
                of,
            } => {
                let list: Vec<_> = displacements.iter().map(|at| (*length, *at)).collect();
                blocks(&of.layout(), &list, *unit)
            }
            Datatype::Struct(fields) => {
                let mut all = Gathered::default();
                for field in fields {
                    let old = field.datatype.layout();
                    for item in 0..field.length {
                        all.add(&old, field.displacement + item * old.extent());
                    }
                }
                all.layout()
            }
            Datatype::Subarray {
                sizes,
                parts,
                starts,
                order,
                of,
            } => {
                let owned = starts.iter().zip(parts);
                let owned: Vec<Vec<i64>> = owned
                    .map(|(start, part)| (*start..start + part).collect())
                    .collect();
                array(&of.layout(), sizes, &owned, *order)
            }
            Datatype::Darray {
                rank,
                dimensions,
                order,
                of,
                ..
            } => {
                let sizes: Vec<i64> = dimensions.iter().map(|it| it.size).collect();
                let owned = owned_indices(*rank, dimensions);
                array(&of.layout(), &sizes, &owned, *order)
            }
            Datatype::Resized { low, extent, of } => Layout {
                runs: of.layout().runs,
                low: *low,
                high: low + extent,
                is_marked: true,
            },
            Datatype::Dup(of) => of.layout(),
        }
    }
}

fn blocks(old: &Layout, list: &[(i64, i64)], unit: Unit) -> Layout {
    let scale = match unit {
        Unit::Elements => old.extent(),
        Unit::Bytes => 1,
    };
    let items = list.iter().flat_map(|&(length, displacement)| {
        (0..length).map(move |item| displacement * scale + item * old.extent())
    });
    old.at(items)
}

/// The elements of an array with the given indices in each dimension, in the order of the array.
fn array(old: &Layout, sizes: &[i64], owned: &[Vec<i64>], order: Order) -> Layout {
    // From the slowest dimension to the fastest.
    let slowest_first: Vec<usize> = match order {
        Order::C => (0..sizes.len()).collect(),
        Order::Fortran => (0..sizes.len()).rev().collect(),
    };
    let mut linear = vec![0];
    for dimension in slowest_first {
        let prefixes = linear.iter();
        linear = prefixes
            .flat_map(|prefix| {
                let indices = owned[dimension].iter();
                indices.map(move |index| prefix * sizes[dimension] + index)
            })
            .collect();
    }
    let layout = old.at(linear.into_iter().map(|index| index * old.extent()));
    Layout {
        low: 0,
        high: sizes.iter().product::<i64>() * old.extent(),
        is_marked: true,
        ..layout
    }
}

/// The indices that a rank owns in each dimension; the grid of ranks is in C's order.
fn owned_indices(rank: i64, dimensions: &[Dimension]) -> Vec<Vec<i64>> {
    let mut rest = rank;
    let mut owned = vec![Vec::new(); dimensions.len()];
    for (at, dimension) in dimensions.iter().enumerate().rev() {
        let coordinate = rest % dimension.grid;
        rest /= dimension.grid;
        let block = match (dimension.distribution, dimension.argument) {
            (Distribution::None, _) => dimension.size,
            (Distribution::Block, 0) => (dimension.size + dimension.grid - 1) / dimension.grid,
            (Distribution::Cyclic, 0) => 1,
            (_, argument) => argument,
        };
        owned[at] = (0..dimension.size)
            .filter(|index| index / block % dimension.grid == coordinate)
            .collect();
    }
    owned
}
