//! DIST3D: a 3-D array of doubles in blocks that divide the fastest dimension most.

use pario_layout::{Basic, Datatype, TypeError};

use super::block::{Block, balanced_grid, by, place};
use super::{JOB_BYTES_MAX, Job, Piece, Step, Workload};

/// Bytes of a cell.
const CELL: u64 = size_of::<f64>() as u64;

/// The shape at scale 1, whatever the number of ranks: 16 MiB.
const SHAPE: [u64; 3] = [32, 256, 256];

pub(super) const DIST3D: Workload = Workload {
    name: "dist3d",
    about: "3-D array of doubles in blocks, the fastest dimension divided most: the default",
    parameters: &[
        (
            "size",
            "cells of the array: one size for a cube, or three as in 64x256x256",
        ),
        ("ghosts", "cells around a block in memory, on each side"),
    ],
    job: |setting| {
        let sizes = match setting.parameters.text("size") {
            Some(text) => parse_shape(text)?,
            None => {
                let [planes, rows, columns] = SHAPE;
                let planes = (planes as f64 * setting.scale).round().max(1.0) as u64;
                [planes, rows, columns]
            }
        };
        let mut grid: [u64; 3] = balanced_grid(setting.ranks);
        grid.reverse();
        if sizes.iter().zip(grid).any(|(cells, parts)| *cells < parts) {
            return Err(format!(
                "an array of {} cells cannot be divided into {} blocks for {} ranks: \
                 choose a larger --size or fewer --ranks",
                by(sizes),
                by(grid),
                setting.ranks
            ));
        }
        let ghosts = setting.parameters.number_or_zero("ghosts", 0)?;
        let framed = sizes.map(|cells| cells.saturating_add(ghosts.saturating_mul(2)));
        setting.check_bytes(&[framed[0], framed[1], framed[2], CELL])?;
        Ok(Box::new(Array {
            sizes,
            grid,
            ghosts,
        }))
    },
};

/// `128` is a cube, `64x128x256` gives each dimension.
fn parse_shape(text: &str) -> Result<[u64; 3], String> {
    let sizes: Vec<u64> = text
        .split('x')
        .map(|size| match size.parse() {
            Ok(0) => Err("a dimension must have at least one cell".to_owned()),
            Ok(size) => Ok(size),
            Err(_) => Err(format!("`{size}` is not a number of cells")),
        })
        .collect::<Result<_, _>>()?;
    let shape = match *sizes.as_slice() {
        [edge] => [edge; 3],
        [planes, rows, columns] => [planes, rows, columns],
        _ => return Err("give one size or three, as in 128 or 64x128x256".to_owned()),
    };
    let bytes = shape
        .iter()
        .try_fold(CELL, |bytes, size| bytes.checked_mul(*size));
    match bytes.filter(|bytes| *bytes <= JOB_BYTES_MAX) {
        Some(_) => Ok(shape),
        None => Err("an array of that many cells exceeds the largest file".to_owned()),
    }
}

struct Array {
    sizes: [u64; 3],
    grid: [u64; 3],
    /// Cells around a block in memory, on each side.
    ghosts: u64,
}

impl Array {
    fn block(&self, rank: u32) -> Block<3> {
        Block::at(self.sizes, self.grid, place(self.grid, rank))
    }

    /// The block among its ghost cells.
    fn framed(&self, rank: u32) -> Block<3> {
        let extent = self.block(rank).extent;
        Block {
            sizes: extent.map(|cells| cells + 2 * self.ghosts),
            start: [self.ghosts; 3],
            extent,
        }
    }
}

impl Job for Array {
    fn sizes(&self) -> String {
        format!(
            "{} doubles in {} blocks, rows of {} bytes",
            by(self.sizes),
            by(self.grid),
            self.block(0).extent[2] * CELL
        )
    }

    fn step(&self, rank: u32, _call: u64) -> Result<Step, TypeError> {
        let cell = Datatype::basic(Basic::Double);
        let block = self.block(rank);
        let framed = self.framed(rank);
        Ok(Step {
            displacement: 0,
            filetype: block.datatype(&cell)?,
            sets_view: true,
            offset: 0,
            memory: framed.datatype(&cell)?,
            etype: cell,
            count: 1,
            memory_bytes: framed.sizes.iter().product::<u64>() * CELL,
        })
    }

    fn pieces(&self, rank: u32, _call: u64, each: &mut dyn FnMut(Piece)) {
        let mut rows = Vec::new();
        self.framed(rank).rows(|at| rows.push(at * CELL));
        let mut rows = rows.into_iter();
        self.block(rank).pieces(CELL, 0, 0, &mut |piece| {
            let memory = rows.next().expect("both have the rows of the block");
            each(Piece { memory, ..piece });
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_parse_or_say_why_not() {
        assert_eq!(parse_shape("8"), Ok([8, 8, 8]));
        assert_eq!(parse_shape("1x2x3"), Ok([1, 2, 3]));
        let huge = "9999999999x9999999999x1";
        for wrong in ["", "0", "2x3", "1x2x3x4", "-1", "axbxc", huge] {
            assert!(parse_shape(wrong).is_err(), "{wrong} was accepted");
        }
    }
}
