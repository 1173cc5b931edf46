//! MPI-TILE-IO (Chaarawi 2011): tiles of a 2-D dense data set.

use pario_layout::{Basic, Datatype, TypeError};

use super::block::{Block, balanced_grid, by, place};
use super::{Job, Parameter, Piece, Setting, Step, Workload};

/// Bytes of an element: the paper has 64 and 1 MiB.
const ELEMENT: u64 = 64;

/// Width of a tile over its height in the paper: 2048 by 1600 elements.
const ASPECT: f64 = 2048.0 / 1600.0;

/// See the module.
pub(crate) struct Tile;

impl Workload for Tile {
    fn name(&self) -> &'static str {
        "tile"
    }

    fn about(&self) -> &'static str {
        "2-D tiles; Chaarawi 2011 has width=2048,height=1600 and element=1M,width=20,height=15"
    }

    fn parameters(&self) -> &'static [Parameter] {
        const PARAMETERS: &[Parameter] = &[
            Parameter::new("element", "bytes of an element"),
            Parameter::new("width", "elements in a row of a tile"),
            Parameter::new("height", "rows of a tile"),
        ];
        PARAMETERS
    }

    fn job(&self, setting: &Setting) -> Result<Box<dyn Job>, String> {
        let choices = &setting.parameters;
        let element = choices.number("element", ELEMENT)?;
        let elements = setting.items(element);
        let width = (elements as f64 * ASPECT).sqrt().max(1.0) as u64;
        let width = choices.number("width", width)?;
        let height = choices.number("height", (elements / width).max(1))?;
        setting.check_bytes(&[element, width, height])?;
        let grid = balanced_grid(setting.ranks);
        Ok(Box::new(Tiles {
            element,
            tile: [height, width],
            grid,
        }))
    }
}

struct Tiles {
    element: u64,
    tile: [u64; 2],
    grid: [u64; 2],
}

impl Tiles {
    fn block(&self, rank: u32) -> Block<2> {
        let sizes = [self.grid[0] * self.tile[0], self.grid[1] * self.tile[1]];
        Block::at(sizes, self.grid, place(self.grid, rank))
    }
}

impl Job for Tiles {
    fn sizes(&self) -> String {
        format!(
            "a tile of {} elements of {} bytes a rank in a grid of {}",
            by(self.tile),
            self.element,
            by(self.grid)
        )
    }

    fn step(&self, rank: u32, _call: u64) -> Result<Step, TypeError> {
        let element = Datatype::contiguous(self.element, &Basic::Byte.into())?;
        let block = self.block(rank);
        let filetype = block.datatype(&element)?;
        let bytes = block.elements() * self.element;
        Ok(Step::dense(0, &element, &filetype, bytes))
    }

    fn pieces(&self, rank: u32, _call: u64, each: &mut dyn FnMut(Piece)) {
        self.block(rank).pieces(self.element, 0, 0, each);
    }
}
