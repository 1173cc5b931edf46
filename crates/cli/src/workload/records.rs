//! Records of equal size dealt to the ranks in turn.

use pario_layout::{Basic, Datatype, TypeError};

use super::{Job, Piece, Setting, Step, signed};

/// Records in turn: record `k` of rank `r` is number `k * ranks + r` of the file.
#[derive(Clone, Debug)]
pub(crate) struct Records {
    /// Number of ranks.
    pub(crate) ranks: u64,
    /// Bytes of a record.
    pub(crate) record: u64,
    /// Records of a rank in a call.
    pub(crate) count: u64,
    /// Calls; each goes on where the last one ended.
    pub(crate) calls: u64,
}

impl Records {
    /// Fails if there are too many of them.
    pub(crate) fn checked(self, setting: &Setting) -> Result<Box<dyn Job>, String> {
        setting.check_bytes(&[self.record, self.count, self.calls])?;
        Ok(Box::new(self))
    }

    /// Where a call's first record of rank 0 is.
    pub(super) fn base(&self, call: u64) -> u64 {
        call * self.count * self.ranks * self.record
    }
}

impl Job for Records {
    fn sizes(&self) -> String {
        format!(
            "{} calls of {} records of {} bytes a rank",
            self.calls, self.count, self.record
        )
    }

    fn calls(&self) -> u64 {
        self.calls
    }

    fn step(&self, rank: u32, call: u64) -> Result<Step, TypeError> {
        let byte = Datatype::basic(Basic::Byte);
        let record = Datatype::contiguous(self.record, &byte)?;
        let filetype = Datatype::resized(&record, 0, signed(self.record * self.ranks))?;
        let displacement = self.base(call) + u64::from(rank) * self.record;
        let bytes = self.record * self.count;
        Ok(Step::dense(displacement, &byte, &filetype, bytes))
    }

    fn pieces(&self, rank: u32, call: u64, each: &mut dyn FnMut(Piece)) {
        for record in 0..self.count {
            each(Piece {
                file: self.base(call) + (record * self.ranks + u64::from(rank)) * self.record,
                memory: record * self.record,
                bytes: self.record,
            });
        }
    }
}
