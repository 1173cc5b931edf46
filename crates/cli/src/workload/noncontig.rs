//! noncontig (Zhang 2009): each rank has a column of a table of ints.

use super::records::Records;
use super::{Job, Parameter, Setting, Workload};

const INT: u64 = size_of::<i32>() as u64;

/// Ints in a row of a column; the paper goes from 4096 up.
const ELEMENTS: u64 = 4096;

/// Bytes that all ranks move in a call.
const BUFFER: u64 = 16 << 20;

/// See the module.
pub(crate) struct Noncontig;

impl Workload for Noncontig {
    fn name(&self) -> &'static str {
        "noncontig"
    }

    fn about(&self) -> &'static str {
        "a column of a table of ints each, 16 MiB a call of all ranks (Zhang 2009)"
    }

    fn parameters(&self) -> &'static [Parameter] {
        const PARAMETERS: &[Parameter] = &[
            Parameter::new("elements", "ints in a row of a column"),
            Parameter::new("buffer", "bytes that all ranks move in a call"),
        ];
        PARAMETERS
    }

    fn job(&self, setting: &Setting) -> Result<Box<dyn Job>, String> {
        let ranks = u64::from(setting.ranks);
        let elements = setting.parameters.number("elements", ELEMENTS)?;
        setting.check_bytes(&[elements, INT])?;
        let record = elements * INT;
        let buffer = setting.parameters.number("buffer", BUFFER)?;
        let rows = (buffer / ranks / record).max(1).min(setting.items(record));
        Records {
            ranks,
            record,
            count: rows,
            calls: setting.items(record * rows),
        }
        .checked(setting)
    }
}
