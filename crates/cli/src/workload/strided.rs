//! Records of one size, dealt to the ranks in turn, all in one call.

use super::records::Records;
use super::{Job, Parameter, Setting, Workload};

const RECORD: u64 = 4096;

/// See the module.
pub(crate) struct Strided;

impl Workload for Strided {
    fn name(&self) -> &'static str {
        "strided"
    }

    fn about(&self) -> &'static str {
        "records in turn, one call; try --sweep record=64,4K,64K,1M"
    }

    fn parameters(&self) -> &'static [Parameter] {
        const PARAMETERS: &[Parameter] = &[Parameter::new("record", "bytes of a record")];
        PARAMETERS
    }

    fn job(&self, setting: &Setting) -> Result<Box<dyn Job>, String> {
        let record = setting.parameters.number("record", RECORD)?;
        Records {
            ranks: u64::from(setting.ranks),
            record,
            count: setting.items(record),
            calls: 1,
        }
        .checked(setting)
    }
}
