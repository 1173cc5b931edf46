//! Arithmetic.

/// The greatest common divisor; of zero and a number, the number.
pub(crate) fn gcd(a: u64, b: u64) -> u64 {
    match b {
        0 => a,
        b => gcd(b, a % b),
    }
}
