//! A rank's memory: its block alone, or its block inside a frame of ghost cells.

use std::ops::Range;

use super::array::{Array, Block};
use super::cells::{self, CELL_BYTES, WrongByte};
use super::wrong::{Fault, Place};

/// What the bytes of ghost cells hold; reading the block must leave them so.
const GHOST: u8 = 0xa5;

/// How the block lies in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    /// Without gaps.
    None,
    /// With one ghost cell on each side of each dimension, as stencil codes have them.
    Ghost,
}

impl Frame {
    /// Cells between the block and the edge of the memory.
    pub(crate) fn width(self) -> u64 {
        match self {
            Frame::None => 0,
            Frame::Ghost => 1,
        }
    }

    /// Its name in the table.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Frame::None => "dense",
            Frame::Ghost => "ghosts",
        }
    }
}

/// The memory of one rank.
#[derive(Debug)]
pub(crate) struct Memory {
    block: Block,
    frame: Frame,
    bytes: Vec<u8>,
}

impl Memory {
    /// Memory for a block, touched once so that page faults stay out of the timing.
    pub(crate) fn new(block: Block, frame: Frame) -> Self {
        let sizes = block.extent.map(|cells| cells + 2 * frame.width());
        let bytes = vec![GHOST; index(sizes.iter().product())];
        Memory {
            block,
            frame,
            bytes,
        }
    }

    /// Cells in each dimension, ghost cells included.
    pub(crate) fn sizes(&self) -> [u64; 3] {
        self.block
            .extent
            .map(|cells| cells + 2 * self.frame.width())
    }

    /// The block in it.
    pub(crate) fn block(&self) -> &Block {
        &self.block
    }

    /// How the block lies in it.
    pub(crate) fn frame(&self) -> Frame {
        self.frame
    }

    /// All of it, ghost cells included.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// All of it, ghost cells included.
    pub(crate) fn bytes_mut(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Gives the block the values of a round.
    pub(crate) fn fill(&mut self, array: &Array, round: u64) {
        for row in rows(array, &self.block, self.frame) {
            cells::fill(&mut self.bytes[row.memory], row.first, round);
        }
    }

    /// Overwrites every byte, so that nothing of an earlier round can pass for what was read.
    pub(crate) fn clear(&mut self) {
        self.bytes.fill(GHOST);
    }

    /// Fails unless the block has the values of a round and the ghost cells are untouched.
    pub(crate) fn check(&self, array: &Array, round: u64, rank: u32) -> Result<(), Fault> {
        let mut next = 0;
        for row in rows(array, &self.block, self.frame) {
            self.check_ghosts(next..row.memory.start, rank)?;
            next = row.memory.end;
            if let Some(byte) = cells::first_wrong(&self.bytes[row.memory], row.first, round) {
                return Err(Fault::Byte {
                    place: Place::Memory { rank },
                    byte,
                });
            }
        }
        self.check_ghosts(next..self.bytes.len(), rank)
    }

    fn check_ghosts(&self, bytes: Range<usize>, rank: u32) -> Result<(), Fault> {
        let start = bytes.start;
        match self.bytes[bytes].iter().position(|byte| *byte != GHOST) {
            None => Ok(()),
            Some(ahead) => {
                let offset = (start + ahead) as u64;
                let found = self.bytes[start + ahead];
                let byte = WrongByte {
                    offset,
                    expected: GHOST,
                    found,
                };
                Err(Fault::Byte {
                    place: Place::Ghost { rank },
                    byte,
                })
            }
        }
    }
}

/// A row of a block: a contiguous piece of the file and of memory.
struct Row {
    /// Index of its first cell in the array.
    first: u64,
    /// Its bytes in memory.
    memory: Range<usize>,
}

/// The rows of a block in the order of the file.
fn rows(array: &Array, block: &Block, frame: Frame) -> impl Iterator<Item = Row> {
    let Block { start, extent } = *block;
    let width = frame.width();
    let [_, memory_rows, memory_columns] = extent.map(|cells| cells + 2 * width);
    (0..extent[0]).flat_map(move |plane| {
        (0..extent[1]).map(move |row| {
            let from = ((plane + width) * memory_rows + row + width) * memory_columns + width;
            Row {
                first: array.index(start[0] + plane, start[1] + row, start[2]),
                memory: index(from)..index(from + extent[2]),
            }
        })
    })
}

/// Where a cell begins in memory.
fn index(cells: u64) -> usize {
    usize::try_from(cells * CELL_BYTES).expect("what lies in memory is counted by a usize")
}

#[cfg(test)]
mod tests {
    use super::super::array::Shape;
    use super::*;

    fn memories(frame: Frame) -> (Array, Vec<Memory>) {
        let array = Array::new(Shape([3, 5, 7]), 4).unwrap();
        let memories = (0..4)
            .map(|rank| Memory::new(array.block(rank), frame))
            .collect();
        (array, memories)
    }

    #[test]
    fn filled_memory_passes_its_check() {
        for frame in [Frame::None, Frame::Ghost] {
            let (array, memories) = memories(frame);
            for (rank, mut memory) in (0..).zip(memories) {
                memory.fill(&array, 3);
                assert_eq!(memory.check(&array, 3, rank), Ok(()));
                assert!(
                    memory.check(&array, 4, rank).is_err(),
                    "an older round passed"
                );
                memory.clear();
                assert!(memory.check(&array, 3, rank).is_err(), "nothing passed");
            }
        }
    }

    #[test]
    fn any_changed_byte_is_found() {
        for frame in [Frame::None, Frame::Ghost] {
            let (array, memories) = memories(frame);
            for (rank, mut memory) in (0..).zip(memories) {
                memory.fill(&array, 0);
                for byte in 0..memory.bytes().len() {
                    memory.bytes_mut()[byte] ^= 1;
                    assert!(
                        memory.check(&array, 0, rank).is_err(),
                        "byte {byte} of rank {rank}"
                    );
                    memory.bytes_mut()[byte] ^= 1;
                }
            }
        }
    }
}
