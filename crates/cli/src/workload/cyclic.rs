//! Doubles distributed round-robin: the finest interleaving, as a distributed array.

use pario_layout::{Basic, Darray, Datatype, Distribution, Order, TypeError};

use super::{Job, Piece, Step, Workload};

const DOUBLE: u64 = size_of::<f64>() as u64;

pub(super) const CYCLIC: Workload = Workload {
    name: "cyclic",
    about: "single doubles in round-robin order, as a darray",
    parameters: &[("block", "consecutive doubles")],
    job: |setting| {
        let block = setting.parameters.number("block", 1)?;
        setting.check_bytes(&[block, DOUBLE])?;
        let count = setting.items(block * DOUBLE);
        setting.check_bytes(&[block, DOUBLE, count])?;
        Ok(Box::new(CyclicJob {
            ranks: setting.ranks,
            block,
            count,
        }))
    },
};

struct CyclicJob {
    ranks: u32,
    block: u64,
    /// Blocks of a rank.
    count: u64,
}

impl Job for CyclicJob {
    fn sizes(&self) -> String {
        format!("{} blocks of {} doubles per rank", self.count, self.block)
    }

    fn step(&self, rank: u32, _call: u64) -> Result<Step, TypeError> {
        let double = Datatype::basic(Basic::Double);
        let ranks = u64::from(self.ranks);
        let filetype = Datatype::darray(
            &Darray {
                ranks,
                rank: u64::from(rank),
                sizes: vec![self.count * self.block * ranks],
                distributions: vec![Distribution::Cyclic(Some(self.block))],
                grid: vec![ranks],
                order: Order::C,
            },
            &double,
        )?;
        let bytes = self.count * self.block * DOUBLE;
        Ok(Step::dense(0, &double, &filetype, bytes))
    }

    fn pieces(&self, rank: u32, _call: u64, each: &mut dyn FnMut(Piece)) {
        let bytes = self.block * DOUBLE;
        for number in 0..self.count {
            each(Piece {
                file: (number * u64::from(self.ranks) + u64::from(rank)) * bytes,
                memory: number * bytes,
                bytes,
            });
        }
    }
}
