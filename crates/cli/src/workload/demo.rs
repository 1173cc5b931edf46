//! The resonance demonstration (Zhang 2009, section 1): each rank takes four segments a call,
//! in turn with the others.

use super::records::Records;
use super::{Job, Parameter, Setting, Workload};

/// Bytes of a segment; the paper goes from 32 KiB to 1 MiB and finds resonance at 64 KiB, the
/// striping unit.
const SEGMENT: u64 = 64 << 10;

/// Segments of a rank in a call.
const SEGMENTS: u64 = 4;

/// See the module.
pub(crate) struct Demo;

impl Workload for Demo {
    fn name(&self) -> &'static str {
        "demo"
    }

    fn about(&self) -> &'static str {
        "four segments a rank and call, in turn: the demonstration of resonance (Zhang 2009)"
    }

    fn parameters(&self) -> &'static [Parameter] {
        const PARAMETERS: &[Parameter] = &[
            Parameter::new("segment", "bytes of a segment"),
            Parameter::new("segments", "segments of a rank in a call"),
        ];
        PARAMETERS
    }

    fn job(&self, setting: &Setting) -> Result<Box<dyn Job>, String> {
        let record = setting.parameters.number("segment", SEGMENT)?;
        let count = setting.parameters.number("segments", SEGMENTS)?;
        Records {
            ranks: u64::from(setting.ranks),
            record,
            count,
            calls: setting.items(record.saturating_mul(count)),
        }
        .checked(setting)
    }
}
