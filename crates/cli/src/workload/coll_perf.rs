//! ROMIO's collective test (Zhang 2009 and Liao 2008): a 3-D array of ints, block, block, block.

use pario_layout::{Basic, Datatype, TypeError};

use super::block::{Block, balanced_grid, by, even_extent};
use super::{Job, Parameter, Piece, Setting, Step, Workload};

const INT: u64 = size_of::<i32>() as u64;

/// See the module.
pub(crate) struct CollPerf;

impl Workload for CollPerf {
    fn name(&self) -> &'static str {
        "coll_perf"
    }

    fn about(&self) -> &'static str {
        "ROMIO's 3-D array of ints in blocks; 128x128x128 a rank at scale 1, as in Liao 2008"
    }

    fn parameters(&self) -> &'static [Parameter] {
        const PARAMETERS: &[Parameter] = &[
            Parameter::new(
                "edge",
                "ints along an edge of a rank's cube; 100 gives unaligned rows",
            ),
            Parameter::new("side", "ints along an edge of the whole array instead"),
        ];
        PARAMETERS
    }

    fn job(&self, setting: &Setting) -> Result<Box<dyn Job>, String> {
        let edge = setting.parameters.number("edge", setting.edge(INT))?;
        let grid = balanced_grid(setting.ranks);
        let extent = even_extent(&setting.parameters, edge, grid)?;
        setting.check_bytes(&[extent[0], extent[1], extent[2], INT])?;
        Ok(Box::new(Blocks { extent, grid }))
    }
}

struct Blocks {
    extent: [u64; 3],
    grid: [u64; 3],
}

impl Blocks {
    fn block(&self, rank: u32) -> Block<3> {
        Block::of_rank(self.extent, self.grid, rank)
    }
}

impl Job for Blocks {
    fn sizes(&self) -> String {
        format!(
            "{} ints a rank in a grid of {}",
            by(self.extent),
            by(self.grid)
        )
    }

    fn step(&self, rank: u32, _call: u64) -> Result<Step, TypeError> {
        let int = Datatype::basic(Basic::Int);
        let block = self.block(rank);
        let filetype = block.datatype(&int)?;
        Ok(Step::dense(0, &int, &filetype, block.elements() * INT))
    }

    fn pieces(&self, rank: u32, _call: u64, each: &mut dyn FnMut(Piece)) {
        self.block(rank).pieces(INT, 0, 0, each);
    }
}
