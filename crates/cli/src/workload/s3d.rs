//! S3D I/O (Liao 2008): mass and velocity as 4-D arrays, pressure and temperature as 3-D ones.

use pario_layout::{Basic, Datatype, TypeError};

use super::block::{Block, balanced_grid, by, even_extent};
use super::{Job, Parameter, Piece, Setting, Step, Workload};

const DOUBLE: u64 = size_of::<f64>() as u64;

/// Components of mass, velocity, pressure and temperature: the length of the fourth dimension,
/// which is not cut.
const COMPONENTS: [u64; 4] = [11, 3, 1, 1];

/// See the module.
pub(crate) struct S3d;

impl Workload for S3d {
    fn name(&self) -> &'static str {
        "s3d"
    }

    fn about(&self) -> &'static str {
        "four arrays of 11, 3, 1 and 1 components in x-y-z blocks; Liao 2008 is edge=50"
    }

    fn parameters(&self) -> &'static [Parameter] {
        const PARAMETERS: &[Parameter] = &[
            Parameter::new("edge", "points along an edge of a rank's cube"),
            Parameter::new("side", "points along an edge of the whole mesh instead"),
        ];
        PARAMETERS
    }

    fn job(&self, setting: &Setting) -> Result<Box<dyn Job>, String> {
        let components: u64 = COMPONENTS.iter().sum();
        let edge = setting.edge(components * DOUBLE);
        let edge = setting.parameters.number("edge", edge)?;
        let grid = balanced_grid(setting.ranks);
        let extent = even_extent(&setting.parameters, edge, grid)?;
        setting.check_bytes(&[extent[0], extent[1], extent[2], components, DOUBLE])?;
        Ok(Box::new(Checkpoint { extent, grid }))
    }
}

struct Checkpoint {
    extent: [u64; 3],
    grid: [u64; 3],
}

impl Checkpoint {
    fn block(&self, rank: u32) -> Block<3> {
        Block::of_rank(self.extent, self.grid, rank)
    }

    /// Bytes of one component of the whole mesh.
    fn component(&self) -> u64 {
        self.grid.iter().chain(&self.extent).product::<u64>() * DOUBLE
    }

    fn base(&self, call: u64) -> u64 {
        let before: u64 = COMPONENTS.iter().take(call as usize).sum();
        before * self.component()
    }

    /// A rank's block of all components of an array.
    fn with_components(&self, rank: u32, components: u64) -> Block<4> {
        let Block {
            sizes,
            start,
            extent,
        } = self.block(rank);
        let first = |first: u64, [x, y, z]: [u64; 3]| [first, x, y, z];
        Block {
            sizes: first(components, sizes),
            start: first(0, start),
            extent: first(components, extent),
        }
    }
}

impl Job for Checkpoint {
    fn sizes(&self) -> String {
        format!(
            "11+3+1+1 components of {} doubles a rank in a grid of {}",
            by(self.extent),
            by(self.grid)
        )
    }

    fn calls(&self) -> u64 {
        COMPONENTS.len() as u64
    }

    fn step(&self, rank: u32, call: u64) -> Result<Step, TypeError> {
        let double = Datatype::basic(Basic::Double);
        let block = self.with_components(rank, COMPONENTS[call as usize]);
        let filetype = block.datatype(&double)?;
        let bytes = block.elements() * DOUBLE;
        Ok(Step::dense(self.base(call), &double, &filetype, bytes))
    }

    fn pieces(&self, rank: u32, call: u64, each: &mut dyn FnMut(Piece)) {
        let block = self.block(rank);
        for component in 0..COMPONENTS[call as usize] {
            let base = self.base(call) + component * self.component();
            let memory = component * block.elements() * DOUBLE;
            block.pieces(DOUBLE, base, memory, each);
        }
    }
}
