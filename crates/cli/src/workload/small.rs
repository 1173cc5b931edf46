//! Small calls (Chaarawi 2011's Latency-IO): what a call costs when it moves next to nothing.

use super::records::Records;
use super::{Job, Parameter, Setting, Workload};

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
        ];
        PARAMETERS
    }

    fn job(&self, setting: &Setting) -> Result<Box<dyn Job>, String> {
        let calls = (CALLS * setting.scale).max(1.0) as u64;
        Records {
            ranks: u64::from(setting.ranks),
            record: setting.parameters.number("bytes", BYTES)?,
            count: 1,
            calls: setting.parameters.number("calls", calls)?,
        }
        .checked(setting)
    }
}
