//! Conversion between the x87 80-bit extended format and IEEE binary128.
//!
//! Both have a sign, a 15-bit exponent with bias 16383, and a significand: 64
//! bits with an explicit integer bit in x87 format, 112 bits after an implied
//! one in binary128. Conversion to binary128 is therefore exact, and the
//! reverse rounds away 49 bits.

/// The exponent of infinities and NaNs: all bits set.
const EXPONENT_MAX: u128 = 0x7fff;
/// Position of the exponent in binary128, above the 112-bit fraction.
const QUAD_EXPONENT_SHIFT: u32 = 112;
const QUAD_FRACTION: u128 = (1 << QUAD_EXPONENT_SHIFT) - 1;
/// Position of the exponent in x87 format, above the 64-bit significand.
const EXTENDED_EXPONENT_SHIFT: u32 = 64;
const INTEGER_BIT: u128 = 1 << 63;
const EXTENDED_FRACTION: u128 = INTEGER_BIT - 1;
const EXTENDED_QUIET_BIT: u128 = 1 << 62;
/// Additional fraction bits in binary128.
const EXTRA_BITS: u32 = QUAD_EXPONENT_SHIFT - 63;
const QUAD_QUIET_NAN: u128 = EXPONENT_MAX << QUAD_EXPONENT_SHIFT | 1 << (QUAD_EXPONENT_SHIFT - 1);

/// Converts the x87 number in the low 80 bits to binary128.
///
/// Encodings that the x87 rejects as operands (no integer bit with a nonzero
/// exponent) become quiet NaNs, as they do in x87 arithmetic.
pub(crate) fn extended_to_quad(extended: u128) -> u128 {
    let sign = (extended >> 79 & 1) << 127;
    let exponent = extended >> EXTENDED_EXPONENT_SHIFT & EXPONENT_MAX;
    let integer_bit = extended & INTEGER_BIT;
    let fraction = (extended & EXTENDED_FRACTION) << EXTRA_BITS;
    let magnitude = match (exponent, integer_bit) {
        // Zero and subnormals; both formats scale them like exponent 1.
        (0, 0) => fraction,
        // A pseudo-denormal equals the normal number with exponent 1.
        (0, _) => 1 << QUAD_EXPONENT_SHIFT | fraction,
        (_, 0) => QUAD_QUIET_NAN,
        _ => exponent << QUAD_EXPONENT_SHIFT | fraction,
    };
    sign | magnitude
}

/// The x87 number nearest to a binary128 (ties to even), in the low 80 bits;
/// `None` for a finite number that would round to infinity.
pub(crate) fn quad_to_extended(quad: u128) -> Option<u128> {
    let sign = (quad >> 127) << 79;
    let exponent = quad >> QUAD_EXPONENT_SHIFT & EXPONENT_MAX;
    let fraction = quad & QUAD_FRACTION;
    if exponent == EXPONENT_MAX {
        return Some(sign | special(fraction));
    }
    let implied = u128::from(exponent != 0) << QUAD_EXPONENT_SHIFT;
    let rounded = round(implied | fraction);
    // Rounding up may carry out of the significand, or make a subnormal normal.
    let (exponent, significand) = match rounded >> 63 {
        0 => (0, rounded),
        1 => (exponent.max(1), rounded),
        _ => (exponent + 1, rounded >> 1),
    };
    (exponent < EXPONENT_MAX).then_some(sign | exponent << EXTENDED_EXPONENT_SHIFT | significand)
}

/// Infinity or NaN, given the binary128 fraction.
fn special(fraction: u128) -> u128 {
    let kept = fraction >> EXTRA_BITS;
    // A NaN whose payload is only in the dropped bits must not become infinity.
    let quiet = if kept == 0 && fraction != 0 {
        EXTENDED_QUIET_BIT
    } else {
        0
    };
    EXPONENT_MAX << EXTENDED_EXPONENT_SHIFT | INTEGER_BIT | quiet | kept
}

/// Drops the extra bits: round to nearest, ties to even.
fn round(significand: u128) -> u128 {
    let kept = significand >> EXTRA_BITS;
    let dropped = significand & ((1 << EXTRA_BITS) - 1);
    let half = 1 << (EXTRA_BITS - 1);
    let up = dropped > half || (dropped == half && kept & 1 == 1);
    kept + u128::from(up)
}

#[cfg(test)]
mod tests;
