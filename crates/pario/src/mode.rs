//! Access modes and their rules.

use bitflags::bitflags;
use pario_driver::Access;

use crate::{Error, ErrorKind, Result};

bitflags! {
    /// How a file is opened: exactly one of the first three flags, and any of the others that
    /// are compatible with it.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct Mode: u32 {
        /// Reading only.
        const READ_ONLY = 1;
        /// Reading and writing.
        const READ_WRITE = 1 << 1;
        /// Writing only.
        const WRITE_ONLY = 1 << 2;
        /// Create the file if it does not exist.
        const CREATE = 1 << 3;
        /// With `CREATE`: fail if it exists.
        const EXCLUSIVE = 1 << 4;
        /// Delete the file when it is closed.
        const DELETE_ON_CLOSE = 1 << 5;
        /// A promise that nothing else opens the file at the same time.
        const UNIQUE_OPEN = 1 << 6;
        /// Only shared-pointer calls, in sequence.
        const SEQUENTIAL = 1 << 7;
        /// Both pointers start at the end of the file.
        const APPEND = 1 << 8;
    }
}

impl Mode {
    /// Checks the combination against the standard's rules.
    pub(crate) fn validate(self) -> Result<()> {
        let bad = |why: &str| {
            Err(Error::new(
                ErrorKind::Mode,
                format!("access mode {self:?} is not allowed: {why}"),
            ))
        };
        if !Mode::all().contains(self) {
            return bad("it has undefined bits");
        }
        let access = self & (Mode::READ_ONLY | Mode::READ_WRITE | Mode::WRITE_ONLY);
        if access.bits().count_ones() != 1 {
            return bad("give exactly one of READ_ONLY, READ_WRITE and WRITE_ONLY");
        }
        if self.contains(Mode::READ_ONLY) && self.intersects(Mode::CREATE | Mode::EXCLUSIVE) {
            return bad("CREATE and EXCLUSIVE cannot be combined with READ_ONLY");
        }
        if self.contains(Mode::READ_WRITE | Mode::SEQUENTIAL) {
            return bad("SEQUENTIAL cannot be combined with READ_WRITE");
        }
        Ok(())
    }

    /// The kind of access that the file is opened for. Only for modes that passed `validate`.
    pub(crate) fn access(self) -> Access {
        if self.contains(Mode::READ_ONLY) {
            Access::Read
        } else if self.contains(Mode::WRITE_ONLY) {
            Access::Write
        } else {
            Access::ReadWrite
        }
    }

    pub(crate) fn can_write(self) -> bool {
        !self.contains(Mode::READ_ONLY)
    }

    pub(crate) fn can_read(self) -> bool {
        !self.contains(Mode::WRITE_ONLY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_combinations_the_standard_forbids_and_no_others() {
        for bits in 0..1u32 << 9 {
            let mode = Mode::from_bits(bits).unwrap();
            let access = [Mode::READ_ONLY, Mode::READ_WRITE, Mode::WRITE_ONLY]
                .iter()
                .filter(|access| mode.contains(**access))
                .count();
            let creates = mode.contains(Mode::CREATE) || mode.contains(Mode::EXCLUSIVE);
            let forbidden = access != 1
                || (mode.contains(Mode::READ_ONLY) && creates)
                || (mode.contains(Mode::READ_WRITE) && mode.contains(Mode::SEQUENTIAL));
            assert_eq!(mode.validate().is_err(), forbidden, "{mode:?}");
        }
    }
}
