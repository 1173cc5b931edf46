//! Irregular blocks, like a rank's nodes in an unstructured mesh.

use pario_layout::{Basic, Datatype, TypeError};

use super::{Job, Piece, Step, Workload, signed};

/// Bytes of a block are from this to twice as many less one unit.
const SHORTEST: u64 = 512;

/// Lengths differ by multiples of this many bytes.
const UNIT: u64 = 8;

pub(super) const INDEXED: Workload = Workload {
    name: "indexed",
    about: "irregular blocks assigned to ranks at random, as an indexed type",
    parameters: &[("shortest", "bytes of the shortest block")],
    job: |setting| {
        let shortest = setting.parameters.number("shortest", SHORTEST)?;
        let shortest = shortest.next_multiple_of(UNIT);
        let ranks = u64::from(setting.ranks);
        let slots = setting.items(shortest + shortest / 2) * ranks;
        setting.check_bytes(&[shortest, 2, slots])?;
        Ok(Box::new(Scattered {
            ranks,
            shortest,
            slots,
        }))
    },
};

struct Scattered {
    ranks: u64,
    shortest: u64,
    slots: u64,
}

impl Scattered {
    /// The blocks of a rank: where they begin and their bytes.
    fn blocks(&self, rank: u32) -> impl Iterator<Item = (u64, u64)> {
        let mut at = 0;
        (0..self.slots).filter_map(move |slot| {
            let number = scatter(slot);
            let bytes = self.shortest + (number >> 32) % (self.shortest / UNIT) * UNIT;
            let begin = at;
            at += bytes;
            (number % self.ranks == u64::from(rank)).then_some((begin, bytes))
        })
    }
}

/// A number that looks random, the same in every run.
fn scatter(slot: u64) -> u64 {
    // The finaliser of splitmix64.
    let mut bits = slot.wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

impl Job for Scattered {
    fn sizes(&self) -> String {
        let Scattered { shortest, .. } = self;
        let longest = 2 * shortest - UNIT;
        format!("{} blocks of {shortest} to {longest} bytes", self.slots)
    }

    fn step(&self, rank: u32, _call: u64) -> Result<Step, TypeError> {
        let byte = Datatype::basic(Basic::Byte);
        let blocks = self
            .blocks(rank)
            .map(|(begin, bytes)| (bytes, signed(begin)))
            .collect::<Vec<_>>();
        let bytes = blocks.iter().map(|(bytes, _)| bytes).sum();
        let filetype = match blocks.as_slice() {
            [] => byte.clone(),
            blocks => Datatype::hindexed(blocks, &byte)?,
        };
        Ok(Step::dense(0, &byte, &filetype, bytes))
    }

    fn pieces(&self, rank: u32, _call: u64, each: &mut dyn FnMut(Piece)) {
        let mut memory = 0;
        for (file, bytes) in self.blocks(rank) {
            each(Piece {
                file,
                memory,
                bytes,
            });
            memory += bytes;
        }
    }
}
