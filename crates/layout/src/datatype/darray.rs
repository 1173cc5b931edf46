//! Distributed arrays: which elements a process owns in each dimension.

use super::Order;
use crate::TypeError;

/// How one dimension of an array is distributed over one dimension of the process grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Distribution {
    /// One block per process, of this length or as even as possible.
    Block(Option<u64>),
    /// Blocks of this length, by default one element, assigned round-robin.
    Cyclic(Option<u64>),
    /// Not distributed: the grid has one process in this dimension.
    None,
}

/// One process's part of a distributed array: the arguments of `MPI_Type_create_darray`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Darray {
    /// Number of processes, the product of the grid.
    pub ranks: u64,
    /// The process whose part this is. Processes are laid out over the grid in row-major
    /// order.
    pub rank: u64,
    /// Elements of the global array in each dimension.
    pub sizes: Vec<u64>,
    /// How each dimension is distributed.
    pub distributions: Vec<Distribution>,
    /// Processes in each dimension.
    pub grid: Vec<u64>,
    /// Order of the array in memory.
    pub order: Order,
}

/// One dimension as one process sees it: blocks of `block` elements, starting at block
/// `coordinate` and `processes` blocks apart.
#[derive(Clone, Copy, Debug)]
pub(super) struct Axis {
    pub(super) size: u64,
    pub(super) block: u64,
    pub(super) processes: u64,
    pub(super) coordinate: u64,
}

impl Axis {
    /// The number of complete blocks, and the number of elements in the incomplete one.
    pub(super) fn whole_and_rest(&self) -> (u64, u64) {
        // Products may exceed 64 bits when blocks are much longer than the array.
        let (size, block) = (u128::from(self.size), u128::from(self.block));
        let first = block * u128::from(self.coordinate);
        let cycle = block * u128::from(self.processes);
        if first >= size {
            return (0, 0);
        }
        let after_first = size - first;
        let (cycles, rest) = (after_first / cycle, after_first % cycle);
        let (whole, rest) = if rest >= block {
            (cycles + 1, 0)
        } else {
            (cycles, rest)
        };
        (whole as u64, rest as u64)
    }

    /// Number of elements the process owns in this dimension.
    pub(super) fn elements(&self) -> u64 {
        let (whole, rest) = self.whole_and_rest();
        whole * self.block + rest
    }
}

impl Darray {
    pub(super) fn check(&self) -> Result<(), TypeError> {
        let dimensions = self.sizes.len();
        if dimensions == 0
            || self.distributions.len() != dimensions
            || self.grid.len() != dimensions
        {
            return Err(TypeError::argument(format!(
                "a distributed array needs one size, distribution and number of processes for \
                 each of one or more dimensions, not {dimensions}, {} and {}",
                self.distributions.len(),
                self.grid.len()
            )));
        }
        let product = self
            .grid
            .iter()
            .try_fold(1_u64, |ranks, &side| ranks.checked_mul(side));
        if product != Some(self.ranks) || self.rank >= self.ranks {
            return Err(TypeError::argument(format!(
                "rank {} of {} does not fit a grid of {:?} processes, whose product must be the \
                 number of ranks",
                self.rank, self.ranks, self.grid
            )));
        }
        for dimension in 0..dimensions {
            self.check_dimension(dimension)?;
        }
        Ok(())
    }

    fn check_dimension(&self, dimension: usize) -> Result<(), TypeError> {
        let (size, processes) = (self.sizes[dimension], self.grid[dimension]);
        let fault = match self.distributions[dimension] {
            Distribution::Block(Some(0)) | Distribution::Cyclic(Some(0)) => {
                Some("empty blocks".to_owned())
            }
            Distribution::Block(Some(block)) if block.saturating_mul(processes) < size => Some(
                format!("{processes} blocks of {block} elements, too few for its {size} elements"),
            ),
            Distribution::None if processes != 1 => {
                Some(format!("{processes} processes but no distribution"))
            }
            _ => None,
        };
        match fault {
            Some(fault) => Err(TypeError::argument(format!(
                "dimension {dimension} of the array has {fault}"
            ))),
            None => Ok(()),
        }
    }

    /// The dimensions, fastest-varying first.
    pub(super) fn grid(&self) -> impl Iterator<Item = Axis> {
        let mut axes = Vec::with_capacity(self.sizes.len());
        let (mut rank, mut below) = (self.rank, self.ranks);
        for (dimension, &processes) in self.grid.iter().enumerate() {
            below /= processes;
            let coordinate = rank / below;
            rank %= below;
            let size = self.sizes[dimension];
            let block = match self.distributions[dimension] {
                Distribution::Block(block) => block.unwrap_or(size.div_ceil(processes)),
                Distribution::Cyclic(block) => block.unwrap_or(1),
                Distribution::None => size,
            };
            axes.push(Axis {
                size,
                block: block.max(1),
                processes,
                coordinate,
            });
        }
        if self.order == Order::C {
            axes.reverse();
        }
        axes.into_iter()
    }
}
