//! Arithmetic, and numbers in sentences.

use std::fmt;

/// The greatest common divisor; of zero and a number, the number.
pub(crate) fn gcd(a: u64, b: u64) -> u64 {
    match b {
        0 => a,
        b => gcd(b, a % b),
    }
}

/// A number of things, with the plural where it belongs.
pub(crate) struct Counted(pub(crate) u64, pub(crate) &'static str);

impl fmt::Display for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.0 == 1 { "" } else { "s" };
        write!(f, "{} {}{plural}", self.0, self.1)
    }
}
