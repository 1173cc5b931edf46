//! mpi-io-test (Zhang 2009): in each call the ranks move segments that follow one another.

use super::records::Records;
use super::{Job, Parameter, Setting, Workload};

/// Bytes of a segment: where the paper's file system resonates.
const SEGMENT: u64 = 64 << 10;

/// See the module.
pub(crate) struct MpiIoTest;

impl Workload for MpiIoTest {
    fn name(&self) -> &'static str {
        "mpi-io-test"
    }

    fn about(&self) -> &'static str {
        "segments of all ranks in a row, the next row in the next call (Zhang 2009)"
    }

    fn parameters(&self) -> &'static [Parameter] {
        const PARAMETERS: &[Parameter] = &[Parameter::new("segment", "bytes of a segment")];
        PARAMETERS
    }

    fn job(&self, setting: &Setting) -> Result<Box<dyn Job>, String> {
        let record = setting.parameters.number("segment", SEGMENT)?;
        Records {
            ranks: u64::from(setting.ranks),
            record,
            count: 1,
            calls: setting.items(record),
        }
        .checked(setting)
    }
}
