//! BTIO (Liao 2008): a 3-D array of five doubles per point, block-tridiagonal, one array per call.

use pario_layout::{Basic, Datatype, TypeError};

use super::block::Block;
use super::{Job, Piece, Step, Workload};

/// Bytes of a point: five doubles.
const POINT: u64 = 5 * size_of::<f64>() as u64;
const DOUBLES: u64 = 5;

/// Arrays written one after the other: forty in the paper, at scale 1 a tenth of that.
const STEPS: u64 = 4;

pub(super) const BTIO: Workload = Workload {
    name: "btio",
    about: "block-tridiagonal cells of a 3-D grid; class C of Liao 2008 is side=162,steps=40",
    parameters: &[
        ("side", "points along a side of the grid"),
        ("steps", "arrays, one after the other, one call each"),
    ],
    job: |setting| {
        let steps = setting.parameters.number("steps", STEPS)?;
        let points = setting.items(POINT * steps) * u64::from(setting.ranks);
        let cells = u64::from(setting.ranks).isqrt();
        let side = (points as f64).cbrt() as u64;
        let side = setting.parameters.number("side", side.max(cells))?;
        if side < cells {
            return Err(format!(
                "a side of {side} points cannot be divided into {cells} cells: choose a larger side"
            ));
        }
        setting.check_bytes(&[side, side, side, POINT, steps])?;
        Ok(Box::new(Grid { side, cells, steps }))
    },
};

/// A cube of cells, `cells` along each side; each of `cells * cells` ranks has one in every layer.
/// Other ranks have none, as BTIO needs a square number.
struct Grid {
    side: u64,
    cells: u64,
    steps: u64,
}

impl Grid {
    /// The points that a rank has in a layer, moved on by one cell from layer to layer.
    fn cell(&self, rank: u32, layer: u64) -> Block<3> {
        let (row, column) = (u64::from(rank) / self.cells, u64::from(rank) % self.cells);
        let place = [
            layer,
            (row + layer) % self.cells,
            (column + layer) % self.cells,
        ];
        Block::at([self.side; 3], [self.cells; 3], place)
    }

    fn layers(&self, rank: u32) -> impl Iterator<Item = Block<3>> {
        let has_cells = u64::from(rank) < self.cells * self.cells;
        let layers = if has_cells { self.cells } else { 0 };
        (0..layers).map(move |layer| self.cell(rank, layer))
    }

    fn base(&self, call: u64) -> u64 {
        call * self.side.pow(3) * POINT
    }
}

impl Job for Grid {
    fn sizes(&self) -> String {
        let Grid { side, cells, steps } = self;
        format!("{steps} grids of {side}x{side}x{side} points of 40 bytes, {cells} cells per rank")
    }

    fn calls(&self) -> u64 {
        self.steps
    }

    fn step(&self, rank: u32, call: u64) -> Result<Step, TypeError> {
        let double = Datatype::basic(Basic::Double);
        let point = Datatype::contiguous(DOUBLES, &double)?;
        let members = self
            .layers(rank)
            .map(|cell| Ok((1, 0, cell.datatype(&point)?)))
            .collect::<Result<Vec<_>, TypeError>>()?;
        let bytes = self.layers(rank).map(|cell| cell.elements() * POINT).sum();
        let filetype = match members.as_slice() {
            [] => double.clone(),
            members => Datatype::structure(members)?,
        };
        Ok(Step::dense(self.base(call), &double, &filetype, bytes))
    }

    fn pieces(&self, rank: u32, call: u64, each: &mut dyn FnMut(Piece)) {
        let mut memory = 0;
        for cell in self.layers(rank) {
            cell.pieces(POINT, self.base(call), memory, each);
            memory += cell.elements() * POINT;
        }
    }
}
