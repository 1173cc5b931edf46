//! FLASH I/O (Liao 2008): 24 variables in blocks with guard cells, one call per variable.

use pario_layout::{Basic, Datatype, TypeError};

use super::block::Block;
use super::{Job, Piece, Step, Workload};

const DOUBLE: u64 = size_of::<f64>() as u64;

/// Variables of a mesh cell.
const VARIABLES: u64 = 24;

/// Guard cells at each side of a block.
const GUARDS: u64 = 4;

/// Cells along an edge of a block in the paper.
const EDGE: u64 = 32;

/// Number of blocks differs by up to this between ranks, as in an adaptive mesh.
const UNEVENNESS: u64 = 3;

pub(super) const FLASH: Workload = Workload {
    name: "flash",
    about: "24 variables, blocks with guard cells, uneven distribution; Liao 2008 is edge=32,blocks=80",
    parameters: &[
        ("edge", "cells along an edge of a block"),
        (
            "blocks",
            "blocks of rank 0; other ranks have up to two more",
        ),
    ],
    job: |setting| {
        // Small scales have smaller blocks rather than less than one.
        let cells = setting.items(VARIABLES * DOUBLE);
        let edge = EDGE.min((cells as f64).cbrt().max(2.0) as u64);
        let edge = setting.parameters.number("edge", edge)?;
        let blocks = (cells / edge.saturating_pow(3)).max(1);
        let blocks = setting.parameters.number("blocks", blocks)?;
        setting.check_bytes(&[edge + 2 * GUARDS, edge + 2 * GUARDS, edge + 2 * GUARDS])?;
        let guarded = (edge + 2 * GUARDS).pow(3) * DOUBLE;
        setting.check_bytes(&[guarded, blocks + UNEVENNESS, VARIABLES])?;
        let ranks = setting.ranks;
        Ok(Box::new(Mesh {
            ranks,
            edge,
            blocks,
        }))
    },
};

struct Mesh {
    ranks: u32,
    edge: u64,
    blocks: u64,
}

impl Mesh {
    fn blocks_of(&self, rank: u32) -> u64 {
        self.blocks + u64::from(rank) % UNEVENNESS
    }

    fn blocks_before(&self, rank: u32) -> u64 {
        (0..rank).map(|rank| self.blocks_of(rank)).sum()
    }

    fn block_bytes(&self) -> u64 {
        self.edge.pow(3) * DOUBLE
    }

    /// A block among its guard cells.
    fn guarded(&self) -> Block<3> {
        Block {
            sizes: [self.edge + 2 * GUARDS; 3],
            start: [GUARDS; 3],
            extent: [self.edge; 3],
        }
    }

    fn guarded_bytes(&self) -> u64 {
        (self.edge + 2 * GUARDS).pow(3) * DOUBLE
    }

    /// Where a rank's blocks of a variable begin.
    fn base(&self, rank: u32, variable: u64) -> u64 {
        let variable = variable * self.blocks_before(self.ranks);
        (variable + self.blocks_before(rank)) * self.block_bytes()
    }
}

impl Job for Mesh {
    fn sizes(&self) -> String {
        let Mesh { edge, blocks, .. } = self;
        let most = blocks + UNEVENNESS - 1;
        format!("{VARIABLES} variables, {blocks} to {most} blocks of {edge}x{edge}x{edge} per rank")
    }

    fn calls(&self) -> u64 {
        VARIABLES
    }

    fn step(&self, rank: u32, call: u64) -> Result<Step, TypeError> {
        let byte = Datatype::basic(Basic::Byte);
        let double = Datatype::basic(Basic::Double);
        let blocks = self.blocks_of(rank);
        Ok(Step {
            displacement: self.base(rank, call),
            etype: byte.clone(),
            filetype: byte,
            sets_view: true,
            offset: 0,
            memory: self.guarded().datatype(&double)?,
            count: blocks,
            memory_bytes: blocks * self.guarded_bytes(),
        })
    }

    fn pieces(&self, rank: u32, call: u64, each: &mut dyn FnMut(Piece)) {
        let mut file = self.base(rank, call);
        let bytes = self.edge * DOUBLE;
        for block in 0..self.blocks_of(rank) {
            let memory = block * self.guarded_bytes();
            self.guarded().rows(|at| {
                each(Piece {
                    file,
                    memory: memory + at * DOUBLE,
                    bytes,
                });
                file += bytes;
            });
        }
    }
}
