//! Workloads with arrays divided into equal blocks.

use pario_layout::{Basic, Datatype, TypeError};

use super::block::{Block, balanced_grid, by};
use super::{Job, Parameters, Piece, Setting, Step, Workload};

/// ROMIO's collective test, in Zhang 2009 and Liao 2008.
pub(super) const COLL_PERF: Workload = Workload {
    name: "coll_perf",
    about: "ROMIO's 3-D array of ints in blocks; 128x128x128 per rank at scale 1, as in Liao 2008",
    parameters: &[
        (
            "edge",
            "ints along an edge of a rank's cube; 100 gives unaligned rows",
        ),
        ("side", "ints along an edge of the whole array instead"),
    ],
    job: |setting| {
        let int = Datatype::basic(Basic::Int);
        let edge = setting
            .parameters
            .number("edge", setting.edge(int.size()))?;
        let grid = balanced_grid(setting.ranks);
        let extent = even_extent(&setting.parameters, edge, grid)?;
        let sizes = format!("{} ints per rank in a grid of {}", by(extent), by(grid));
        Arrays::job(setting, vec![extent], grid, int, sizes)
    },
};

/// MPI-TILE-IO of Chaarawi 2011: tiles of 2048 by 1600 elements of 64 bytes, or of 1 MiB.
pub(super) const TILE: Workload = Workload {
    name: "tile",
    about: "2-D tiles; Chaarawi 2011 has width=2048,height=1600 and element=1M,width=20,height=15",
    parameters: &[
        ("element", "bytes per element"),
        ("width", "elements per row of a tile"),
        ("height", "rows per tile"),
    ],
    job: |setting| {
        const ASPECT: f64 = 2048.0 / 1600.0;
        let choices = &setting.parameters;
        let bytes = choices.number("element", 64)?;
        let elements = setting.items(bytes);
        let width = (elements as f64 * ASPECT).sqrt().max(1.0) as u64;
        let width = choices.number("width", width)?;
        let height = choices.number("height", (elements / width).max(1))?;
        let tile = [height, width];
        let grid = balanced_grid(setting.ranks);
        let sizes = format!(
            "one tile of {} elements of {bytes} bytes per rank in a grid of {}",
            by(tile),
            by(grid)
        );
        let element = Datatype::contiguous(bytes, &Basic::Byte.into());
        let element = element.map_err(|error| error.to_string())?;
        Arrays::job(setting, vec![tile], grid, element, sizes)
    },
};

/// S3D I/O of Liao 2008: mass and velocity are 4-D arrays, pressure and temperature 3-D ones. The
/// fourth dimension, that of the components, is not divided.
pub(super) const S3D: Workload = Workload {
    name: "s3d",
    about: "four arrays of 11, 3, 1 and 1 components in x-y-z blocks; Liao 2008 is edge=50",
    parameters: &[
        ("edge", "points along an edge of a rank's cube"),
        ("side", "points along an edge of the whole mesh instead"),
    ],
    job: |setting| {
        const COMPONENTS: [u64; 4] = [11, 3, 1, 1];
        let double = Datatype::basic(Basic::Double);
        let components: u64 = COMPONENTS.iter().sum();
        let edge = setting.edge(components * double.size());
        let edge = setting.parameters.number("edge", edge)?;
        let grid = balanced_grid(setting.ranks);
        let extent = even_extent(&setting.parameters, edge, grid)?;
        let sizes = format!(
            "11+3+1+1 components of {} doubles per rank in a grid of {}",
            by(extent),
            by(grid)
        );
        let with = |components: u64, [x, y, z]: [u64; 3]| [components, x, y, z];
        let extents = COMPONENTS.map(|components| with(components, extent));
        Arrays::job(setting, extents.into(), with(1, grid), double, sizes)
    },
};

/// A rank's block of an array that is divided evenly: a cube of that edge, or its share of the
/// cube whose edge is the parameter `side`.
fn even_extent(choices: &Parameters, edge: u64, grid: [u64; 3]) -> Result<[u64; 3], String> {
    match choices.text("side") {
        None => Ok([edge; 3]),
        Some(_) => {
            let side = choices.number("side", 1)?;
            Ok(grid.map(|parts| (side / parts).max(1)))
        }
    }
}

/// One array after the other, one call each.
struct Arrays<const DIMENSIONS: usize> {
    /// A rank's block of each array.
    extents: Vec<[u64; DIMENSIONS]>,
    grid: [u64; DIMENSIONS],
    element: Datatype,
    sizes: String,
}

impl<const DIMENSIONS: usize> Arrays<DIMENSIONS> {
    fn job(
        setting: &Setting,
        extents: Vec<[u64; DIMENSIONS]>,
        grid: [u64; DIMENSIONS],
        element: Datatype,
        sizes: String,
    ) -> Result<Box<dyn Job>, String> {
        let arrays = extents.len() as u64;
        for extent in &extents {
            let mut factors = vec![element.size(), arrays];
            factors.extend(extent);
            setting.check_bytes(&factors)?;
        }
        Ok(Box::new(Arrays {
            extents,
            grid,
            element,
            sizes,
        }))
    }

    fn block(&self, rank: u32, call: u64) -> Block<DIMENSIONS> {
        Block::of_rank(self.extents[call as usize], self.grid, rank)
    }

    /// The start of the array of a call.
    fn base(&self, call: u64) -> u64 {
        let before = self.extents.iter().take(call as usize);
        let elements: u64 = before
            .map(|it| it.iter().chain(&self.grid).product::<u64>())
            .sum();
        elements * self.element.size()
    }
}

impl<const DIMENSIONS: usize> Job for Arrays<DIMENSIONS> {
    fn sizes(&self) -> String {
        self.sizes.clone()
    }

    fn calls(&self) -> u64 {
        self.extents.len() as u64
    }

    fn step(&self, rank: u32, call: u64) -> Result<Step, TypeError> {
        let block = self.block(rank, call);
        let filetype = block.datatype(&self.element)?;
        let bytes = block.elements() * self.element.size();
        Ok(Step::dense(
            self.base(call),
            &self.element,
            &filetype,
            bytes,
        ))
    }

    fn pieces(&self, rank: u32, call: u64, each: &mut dyn FnMut(Piece)) {
        let block = self.block(rank, call);
        block.pieces(self.element.size(), self.base(call), 0, each);
    }
}
