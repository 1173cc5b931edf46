//! The distributed array: its shape and how ranks share it.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use super::cells::CELL_BYTES;

/// Cells in each dimension; the last one varies fastest in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape(pub(crate) [u64; 3]);

impl Shape {
    /// Number of cells; `None` if the bytes of that many do not fit a file.
    fn cells(self) -> Option<u64> {
        let [planes, rows, columns] = self.0;
        let cells = planes.checked_mul(rows)?.checked_mul(columns)?;
        let bytes = cells.checked_mul(CELL_BYTES)?;
        i64::try_from(bytes).is_ok().then_some(cells)
    }
}

impl FromStr for Shape {
    type Err = String;

    /// `128` is a cube, `64x128x256` gives each dimension.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let sizes: Vec<u64> = text
            .split('x')
            .map(|size| match size.parse() {
                Ok(0) => Err("a dimension has at least one cell".to_owned()),
                Ok(size) => Ok(size),
                Err(_) => Err(format!("`{size}` is not a number of cells")),
            })
            .collect::<Result<_, _>>()?;
        let shape = match *sizes.as_slice() {
            [edge] => Shape([edge; 3]),
            [planes, rows, columns] => Shape([planes, rows, columns]),
            _ => return Err("give one size or three, as in 128 or 64x128x256".to_owned()),
        };
        match shape.cells() {
            Some(_) => Ok(shape),
            None => Err("an array of that many cells is larger than any file".to_owned()),
        }
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [planes, rows, columns] = self.0;
        write!(f, "{planes}x{rows}x{columns}")
    }
}

/// The part of the array that one rank holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    /// Its first cell.
    pub(crate) start: [u64; 3],
    /// Its cells in each dimension.
    pub(crate) extent: [u64; 3],
}

impl Block {
    /// Number of cells.
    pub(crate) fn cells(&self) -> u64 {
        self.extent.iter().product()
    }
}

/// An array cut into one block a rank.
#[derive(Clone, Debug)]
pub(crate) struct Array {
    shape: Shape,
    /// Ranks along each dimension.
    grid: [u64; 3],
}

impl Array {
    /// Shares an array among ranks as evenly as can be, cutting the fastest dimension first:
    /// that gives the small pieces which make parallel I/O hard.
    pub(crate) fn new(shape: Shape, ranks: u32) -> Result<Self, String> {
        let grid = balanced_grid(u64::from(ranks));
        let fits = shape
            .0
            .iter()
            .zip(grid)
            .all(|(&cells, parts)| parts <= cells);
        if !fits {
            let [planes, rows, columns] = grid;
            return Err(format!(
                "an array of {shape} cells cannot be cut into {planes}x{rows}x{columns} blocks for {ranks} ranks: \
                 choose a larger --size or fewer --ranks"
            ));
        }
        Ok(Array { shape, grid })
    }

    /// Cells in each dimension.
    pub(crate) fn shape(&self) -> Shape {
        self.shape
    }

    /// Ranks along each dimension.
    pub(crate) fn grid(&self) -> [u64; 3] {
        self.grid
    }

    /// Number of ranks.
    pub(crate) fn ranks(&self) -> u32 {
        let ranks = self.grid.iter().product::<u64>();
        u32::try_from(ranks).expect("the grid was made from a 32-bit number of ranks")
    }

    /// Number of cells.
    pub(crate) fn cells(&self) -> u64 {
        self.shape
            .cells()
            .expect("the size was checked when the shape was made")
    }

    /// Bytes of the whole array.
    pub(crate) fn bytes(&self) -> u64 {
        self.cells() * CELL_BYTES
    }

    /// The block of a rank; the last dimension of the grid varies fastest.
    pub(crate) fn block(&self, rank: u32) -> Block {
        let [_, rows, columns] = self.grid;
        let rank = u64::from(rank);
        let place = [
            rank / (rows * columns),
            rank / columns % rows,
            rank % columns,
        ];
        let ranges: [_; 3] = std::array::from_fn(|dimension| {
            share(
                self.shape.0[dimension],
                self.grid[dimension],
                place[dimension],
            )
        });
        Block {
            start: ranges.each_ref().map(|range| range.start),
            extent: ranges.each_ref().map(|range| range.end - range.start),
        }
    }

    /// The cells a rank has if the array is cut into contiguous shares instead of blocks.
    pub(crate) fn contiguous_share(&self, rank: u32) -> Range<u64> {
        share(self.cells(), u64::from(self.ranks()), u64::from(rank))
    }

    /// Position of a cell in the file, counted in cells.
    pub(crate) fn index(&self, plane: u64, row: u64, column: u64) -> u64 {
        let [_, rows, columns] = self.shape.0;
        (plane * rows + row) * columns + column
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

/// Three factors of `ranks`, as close to each other as they get, in ascending order.
fn balanced_grid(ranks: u64) -> [u64; 3] {
    let factors = |number: u64| (1..=number).filter(move |factor| number.is_multiple_of(*factor));
    factors(ranks)
        .flat_map(|first| {
            factors(ranks / first).map(move |second| [first, second, ranks / first / second])
        })
        .filter(|grid| grid.is_sorted())
        .min_by_key(|grid| grid[2] - grid[0])
        .expect("1 x 1 x ranks is always a grid")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_parse_or_say_why_not() {
        assert_eq!("8".parse(), Ok(Shape([8, 8, 8])));
        assert_eq!("1x2x3".parse(), Ok(Shape([1, 2, 3])));
        for wrong in [
            "",
            "0",
            "2x3",
            "1x2x3x4",
            "-1",
            "axbxc",
            "9999999999x9999999999x1",
        ] {
            assert!(wrong.parse::<Shape>().is_err(), "{wrong} was accepted");
        }
    }

    #[test]
    fn grids_are_even_and_cut_the_last_dimension_most() {
        assert_eq!(balanced_grid(1), [1, 1, 1]);
        assert_eq!(balanced_grid(4), [1, 2, 2]);
        assert_eq!(balanced_grid(7), [1, 1, 7]);
        assert_eq!(balanced_grid(8), [2, 2, 2]);
        assert_eq!(balanced_grid(12), [2, 2, 3]);
    }

    #[test]
    fn blocks_and_shares_cover_every_cell_once() {
        for (shape, ranks) in [
            ([5, 7, 9], 6),
            ([3, 3, 3], 1),
            ([4, 8, 8], 8),
            ([2, 5, 11], 7),
        ] {
            let array = Array::new(Shape(shape), ranks).unwrap();
            let mut seen = vec![0; usize::try_from(array.cells()).unwrap()];
            let mut shares = 0;
            for rank in 0..ranks {
                let Block { start, extent } = array.block(rank);
                for plane in start[0]..start[0] + extent[0] {
                    for row in start[1]..start[1] + extent[1] {
                        for column in start[2]..start[2] + extent[2] {
                            let index = array.index(plane, row, column);
                            seen[usize::try_from(index).unwrap()] += 1;
                        }
                    }
                }
                assert_eq!(array.contiguous_share(rank).start, shares);
                shares = array.contiguous_share(rank).end;
            }
            assert!(
                seen.iter().all(|&times| times == 1),
                "{shape:?} over {ranks}"
            );
            assert_eq!(shares, array.cells());
        }
    }

    #[test]
    fn too_many_ranks_for_an_array_are_refused() {
        assert!(Array::new(Shape([1, 1, 3]), 4).is_err());
    }
}
