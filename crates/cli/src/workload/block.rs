//! Blocks of arrays: how a grid of ranks divides an array, and where a block's rows are.

use std::ops::Range;

use pario_layout::{Datatype, Order, TypeError};

use super::Piece;

/// A block of an array; the last dimension varies fastest in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Block<const DIMENSIONS: usize> {
    /// Elements of the array in each dimension.
    pub(crate) sizes: [u64; DIMENSIONS],
    /// The block's first element.
    pub(crate) start: [u64; DIMENSIONS],
    /// The block's elements in each dimension.
    pub(crate) extent: [u64; DIMENSIONS],
}

impl<const DIMENSIONS: usize> Block<DIMENSIONS> {
    /// The block at a position of a grid that divides the array into nearly equal parts.
    pub(crate) fn at(
        sizes: [u64; DIMENSIONS],
        grid: [u64; DIMENSIONS],
        place: [u64; DIMENSIONS],
    ) -> Self {
        let shares: [_; DIMENSIONS] =
            std::array::from_fn(|axis| share(sizes[axis], grid[axis], place[axis]));
        Block {
            sizes,
            start: shares.each_ref().map(|share| share.start),
            extent: shares.each_ref().map(|share| share.end - share.start),
        }
    }

    /// The block of a rank in a grid of equal blocks.
    pub(crate) fn of_rank(extent: [u64; DIMENSIONS], grid: [u64; DIMENSIONS], rank: u32) -> Self {
        let sizes = std::array::from_fn(|axis| extent[axis] * grid[axis]);
        Block::at(sizes, grid, place(grid, rank))
    }

    pub(crate) fn elements(&self) -> u64 {
        self.extent.iter().product()
    }

    /// The block as a part of the array.
    pub(crate) fn datatype(&self, element: &Datatype) -> Result<Datatype, TypeError> {
        Datatype::subarray(&self.sizes, &self.extent, &self.start, Order::C, element)
    }

    /// The rows of the block: where each begins in the array, counted in elements, and how long
    /// they are.
    pub(crate) fn rows(&self, mut each: impl FnMut(u64)) -> u64 {
        let row = self.extent[DIMENSIONS - 1];
        let rows = self.elements().checked_div(row).unwrap_or(0);
        for number in 0..rows {
            let (mut rest, mut stride, mut at) = (number, 1, self.start[DIMENSIONS - 1]);
            for axis in (0..DIMENSIONS - 1).rev() {
                stride *= self.sizes[axis + 1];
                at += (self.start[axis] + rest % self.extent[axis]) * stride;
                rest /= self.extent[axis];
            }
            each(at);
        }
        row
    }

    /// The pieces of the block in an array at `base`, with dense memory from `memory` on.
    pub(crate) fn pieces(
        &self,
        element_bytes: u64,
        base: u64,
        memory: u64,
        each: &mut dyn FnMut(Piece),
    ) {
        let bytes = self.extent[DIMENSIONS - 1] * element_bytes;
        let mut memory = memory;
        self.rows(|at| {
            each(Piece {
                file: base + at * element_bytes,
                memory,
                bytes,
            });
            memory += bytes;
        });
    }
}

/// The `part`-th of `parts` nearly equal shares of `total`.
fn share(total: u64, parts: u64, part: u64) -> Range<u64> {
    let bound = |part: u64| {
        let bound = u128::from(total) * u128::from(part) / u128::from(parts);
        u64::try_from(bound).expect("a share ends within its total")
    };
    bound(part)..bound(part + 1)
}

/// Factors of `ranks`, as close to each other as possible, in descending order, as
/// `MPI_Dims_create` returns them.
pub(crate) fn balanced_grid<const DIMENSIONS: usize>(ranks: u32) -> [u64; DIMENSIONS] {
    let mut grid = [1; DIMENSIONS];
    let mut best = [0; DIMENSIONS];
    factor(u64::from(ranks), &mut grid, 0, &mut best);
    best.sort_unstable_by(|first, second| second.cmp(first));
    best
}

/// Tries every factorisation of `rest` into the dimensions from `axis` on.
fn factor<const DIMENSIONS: usize>(
    rest: u64,
    grid: &mut [u64; DIMENSIONS],
    axis: usize,
    best: &mut [u64; DIMENSIONS],
) {
    let spread = |grid: &[u64; DIMENSIONS]| {
        let least = grid.iter().min().copied().unwrap_or(0);
        grid.iter().max().copied().unwrap_or(0) - least
    };
    if axis + 1 == DIMENSIONS {
        grid[axis] = rest;
        if best.contains(&0) || spread(grid) < spread(best) {
            *best = *grid;
        }
        return;
    }
    for divisor in (1..=rest).filter(|divisor| rest.is_multiple_of(*divisor)) {
        grid[axis] = divisor;
        factor(rest / divisor, grid, axis + 1, best);
    }
}

/// The position of a rank in a grid whose last dimension varies fastest.
pub(crate) fn place<const DIMENSIONS: usize>(
    grid: [u64; DIMENSIONS],
    rank: u32,
) -> [u64; DIMENSIONS] {
    let mut rest = u64::from(rank);
    let mut place = [0; DIMENSIONS];
    for axis in (0..DIMENSIONS).rev() {
        place[axis] = rest % grid[axis];
        rest /= grid[axis];
    }
    place
}

/// `3x4x5`.
pub(crate) fn by<const DIMENSIONS: usize>(sizes: [u64; DIMENSIONS]) -> String {
    sizes.map(|size| size.to_string()).join("x")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grids_are_even() {
        assert_eq!(balanced_grid(1), [1, 1, 1]);
        assert_eq!(balanced_grid(4), [2, 2, 1]);
        assert_eq!(balanced_grid(7), [7, 1, 1]);
        assert_eq!(balanced_grid(12), [3, 2, 2]);
        assert_eq!(balanced_grid(6), [3, 2]);
    }

    #[test]
    fn blocks_cover_every_element_once() {
        for (sizes, ranks) in [([5, 7, 9], 6), ([3, 3, 3], 1), ([2, 5, 11], 7)] {
            let mut grid = balanced_grid(ranks);
            grid.reverse();
            let mut seen = vec![0; sizes.iter().product::<u64>() as usize];
            for rank in 0..ranks {
                let block = Block::at(sizes, grid, place(grid, rank));
                let mut starts = Vec::new();
                let row = block.rows(|at| starts.push(at as usize));
                for at in starts {
                    seen[at..at + row as usize]
                        .iter_mut()
                        .for_each(|it| *it += 1);
                }
            }
            assert!(seen.iter().all(|it| *it == 1), "{sizes:?} over {ranks}");
        }
    }
}
