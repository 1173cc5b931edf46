//! Copies to memory that aliases the pages of a file.

use std::fmt;

use pario_driver::PerProcess;
use pario_hints::{Hints, StagedCopies};

use super::{measure, micros};

/// A second copy must save at least this share of the time: it also takes space in the cache.
const GAIN_PERCENT_MIN: u64 = 10;

/// The times of a copy to memory that aliases the pages of the file, in nanoseconds; 0 if they
/// could not be measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AliasedCopies {
    /// Directly.
    pub(super) aliased_ns: u32,
    /// Through another buffer.
    pub(super) staged_ns: u32,
}

impl AliasedCopies {
    /// Measured when this process first needs them.
    pub fn of_process() -> AliasedCopies {
        static MEASURED: PerProcess<AliasedCopies> = PerProcess::new();
        *MEASURED.get_or_make(|| measure::aliased_copies().unwrap_or_default())
    }

    /// Whether data that aliases the pages of a file is better copied through a buffer.
    pub fn is_staged_faster(&self) -> bool {
        u64::from(self.staged_ns) * 100 < u64::from(self.aliased_ns) * (100 - GAIN_PERCENT_MIN)
    }
}

/// Whether data that aliases is copied through a buffer, by hint or because that is faster.
#[inline]
pub fn stages_aliases(hints: &Hints) -> bool {
    match hints.pario_staged_copies {
        StagedCopies::Enable => true,
        StagedCopies::Disable => false,
        StagedCopies::Automatic => AliasedCopies::of_process().is_staged_faster(),
    }
}

impl fmt::Display for AliasedCopies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == AliasedCopies::default() {
            return f.write_str("not measured: no file in memory could be made");
        }
        let (aliased, staged) = (micros(self.aliased_ns), micros(self.staged_ns));
        write!(
            f,
            "32 KiB take {aliased} us directly, {staged} us through a buffer"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::tests::hints;

    #[test]
    fn a_second_copy_must_pay() {
        let is_faster = |aliased_ns, staged_ns| {
            let copies = AliasedCopies {
                aliased_ns,
                staged_ns,
            };
            copies.is_staged_faster()
        };
        assert!(is_faster(20_000, 12_000));
        assert!(!is_faster(20_000, 19_000));
        assert!(!is_faster(12_000, 20_000));
        assert!(!AliasedCopies::default().is_staged_faster());
    }

    #[test]
    fn copies_are_measured_unless_a_hint_decides() {
        let measured = AliasedCopies::of_process();
        assert!(
            measured.aliased_ns > 1 && measured.staged_ns > 1,
            "{measured:?}"
        );
        assert_eq!(AliasedCopies::of_process(), measured, "once");
        let staged = |value| stages_aliases(&hints(&[("pario_staged_copies", value)]));
        assert_eq!(staged("automatic"), measured.is_staged_faster());
        assert!(staged("enable") && !staged("disable"));
    }
}
