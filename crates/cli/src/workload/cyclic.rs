//! Doubles dealt one by one: the finest interleave, as a distributed array.

use pario_layout::{Basic, Darray, Datatype, Distribution, Order, TypeError};

use super::{Job, Parameter, Piece, Setting, Step, Workload};

const DOUBLE: u64 = size_of::<f64>() as u64;

/// See the module.
pub(crate) struct Cyclic;

impl Workload for Cyclic {
    fn name(&self) -> &'static str {
        "cyclic"
    }

    fn about(&self) -> &'static str {
        "doubles dealt one by one with a darray"
    }

    fn parameters(&self) -> &'static [Parameter] {
        const PARAMETERS: &[Parameter] = &[Parameter::new("block", "doubles in a row")];
        PARAMETERS
    }

    fn job(&self, setting: &Setting) -> Result<Box<dyn Job>, String> {
        let block = setting.parameters.number("block", 1)?;
        setting.check_bytes(&[block, DOUBLE])?;
        let count = setting.items(block * DOUBLE);
        setting.check_bytes(&[block, DOUBLE, count])?;
        Ok(Box::new(Dealt {
            ranks: setting.ranks,
            block,
            count,
        }))
    }
}

struct Dealt {
    ranks: u32,
    block: u64,
    /// Blocks of a rank.
    count: u64,
}

impl Job for Dealt {
    fn sizes(&self) -> String {
        format!("{} blocks of {} doubles a rank", self.count, self.block)
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
