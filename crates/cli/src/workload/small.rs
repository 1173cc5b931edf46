//! Small calls (Chaarawi 2011's Latency-IO): what a call costs when it moves next to nothing.

use pario_layout::TypeError;

use super::records::Records;
use super::{Job, Parameter, Piece, Setting, Step, Workload};

/// Bytes that each rank moves in a call.
const BYTES: u64 = 4096;

/// Calls at scale 1.
const CALLS: f64 = 1000.0;

/// See the module.
pub(crate) struct Small;

impl Workload for Small {
    fn name(&self) -> &'static str {
        "small"
    }

    fn about(&self) -> &'static str {
        "1000 times set_view and a call of 4 KiB a rank: latency (Chaarawi 2011)"
    }

    fn parameters(&self) -> &'static [Parameter] {
        const PARAMETERS: &[Parameter] = &[
            Parameter::new("bytes", "bytes of a rank in a call"),
            Parameter::new("calls", "number of calls"),
            Parameter::new("view", "tiled (records in turn) or contiguous (a record)"),
        ];
        PARAMETERS
    }

    fn job(&self, setting: &Setting) -> Result<Box<dyn Job>, String> {
        let calls = (CALLS * setting.scale).max(1.0) as u64;
        let records = Records {
            ranks: u64::from(setting.ranks),
            record: setting.parameters.number("bytes", BYTES)?,
            count: 1,
            calls: setting.parameters.number("calls", calls)?,
        };
        let tiled = records.clone().checked(setting)?;
        let view = setting.parameters.word("view", &["tiled", "contiguous"])?;
        Ok(match view {
            "contiguous" => Box::new(Contiguous(records)),
            _ => tiled,
        })
    }
}

/// The same records, each call with a view without gaps.
struct Contiguous(Records);

impl Job for Contiguous {
    fn sizes(&self) -> String {
        self.0.sizes()
    }

    fn calls(&self) -> u64 {
        self.0.calls()
    }

    fn step(&self, rank: u32, call: u64) -> Result<Step, TypeError> {
        let record = self.0.record;
        let place = self.0.base(call) + u64::from(rank) * record;
        Ok(Step::contiguous(place, record))
    }

    fn pieces(&self, rank: u32, call: u64, each: &mut dyn FnMut(Piece)) {
        self.0.pieces(rank, call, each);
    }
}
