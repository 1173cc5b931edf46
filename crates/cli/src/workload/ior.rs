//! IOR over MPI-IO (Zhang 2009): each rank has its own part of the file, or strides through it.

use pario_layout::TypeError;

use super::records::Records;
use super::{Job, Parameter, Piece, Setting, Step, Workload};

/// Bytes of a transfer.
const SEGMENT: u64 = 256 << 10;

/// See the module.
pub(crate) struct Ior;

impl Workload for Ior {
    fn name(&self) -> &'static str {
        "ior"
    }

    fn about(&self) -> &'static str {
        "a segment a call: in each rank's own part of the file, or strided over all of it"
    }

    fn parameters(&self) -> &'static [Parameter] {
        const PARAMETERS: &[Parameter] = &[
            Parameter::new("segment", "bytes of a segment"),
            Parameter::new("layout", "segmented (a part of the file a rank) or strided"),
        ];
        PARAMETERS
    }

    fn job(&self, setting: &Setting) -> Result<Box<dyn Job>, String> {
        let segment = setting.parameters.number("segment", SEGMENT)?;
        let calls = setting.items(segment);
        let layout = setting
            .parameters
            .word("layout", &["segmented", "strided"])?;
        let records = Records {
            ranks: u64::from(setting.ranks),
            record: segment,
            count: 1,
            calls,
        };
        let strided = records.checked(setting)?;
        Ok(match layout {
            "strided" => strided,
            _ => Box::new(Parts { segment, calls }),
        })
    }
}

/// Each rank goes through a part of the file of its own.
struct Parts {
    segment: u64,
    calls: u64,
}

impl Parts {
    fn place(&self, rank: u32, call: u64) -> u64 {
        (u64::from(rank) * self.calls + call) * self.segment
    }
}

impl Job for Parts {
    fn sizes(&self) -> String {
        format!(
            "{} segments of {} bytes in a rank's own part",
            self.calls, self.segment
        )
    }

    fn calls(&self) -> u64 {
        self.calls
    }

    fn step(&self, rank: u32, call: u64) -> Result<Step, TypeError> {
        Ok(Step::contiguous(self.place(rank, call), self.segment))
    }

    fn pieces(&self, rank: u32, call: u64, each: &mut dyn FnMut(Piece)) {
        each(Piece {
            file: self.place(rank, call),
            memory: 0,
            bytes: self.segment,
        });
    }
}
