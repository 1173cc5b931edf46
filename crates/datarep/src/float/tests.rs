//! Test vectors derived by hand from the format definitions, and an oracle that
//! works on exact values instead of bit fields.

use super::*;
use crate::testing::{cases, seed};

/// Sign and exponent of an x87 number, then its significand.
fn extended(sign_exponent: u16, significand: u64) -> u128 {
    u128::from(sign_exponent) << 64 | u128::from(significand)
}

/// Sign and exponent of a binary128, then the two halves of its fraction.
fn quad(sign_exponent: u16, fraction_high: u64, fraction_low: u64) -> u128 {
    u128::from(sign_exponent) << 112 | u128::from(fraction_high) << 64 | u128::from(fraction_low)
}

#[test]
fn known_numbers() {
    for (x87, ieee) in [
        // 0, -0, 1, -2, 1.5
        (extended(0, 0), quad(0, 0, 0)),
        (extended(0x8000, 0), quad(0x8000, 0, 0)),
        (extended(0x3fff, 1 << 63), quad(0x3fff, 0, 0)),
        (extended(0xc000, 1 << 63), quad(0xc000, 0, 0)),
        (extended(0x3fff, 3 << 62), quad(0x3fff, 1 << 47, 0)),
        // pi to 64 bits: 0xc90fdaa22168c235 / 2^62
        (
            extended(0x4000, 0xc90f_daa2_2168_c235),
            quad(0x4000, 0x921f_b544_42d1, 0x846a_0000_0000_0000),
        ),
        // the largest and the smallest normal number, and the smallest
        // subnormal
        (
            extended(0x7ffe, u64::MAX),
            quad(0x7ffe, 0xffff_ffff_ffff, 0xfffe_0000_0000_0000),
        ),
        (extended(1, 1 << 63), quad(1, 0, 0)),
        (extended(0, 1), quad(0, 0, 1 << 49)),
        // the largest subnormal
        (
            extended(0, (1 << 63) - 1),
            quad(0, 0xffff_ffff_ffff, 0xfffe_0000_0000_0000),
        ),
        // infinities, a quiet and a signalling NaN
        (extended(0x7fff, 1 << 63), quad(0x7fff, 0, 0)),
        (extended(0xffff, 1 << 63), quad(0xffff, 0, 0)),
        (extended(0x7fff, 3 << 62), quad(0x7fff, 1 << 47, 0)),
        (extended(0x7fff, 1 << 63 | 1), quad(0x7fff, 0, 1 << 49)),
    ] {
        assert_eq!(extended_to_quad(x87), ieee, "{x87:#x}");
        assert_eq!(quad_to_extended(ieee), Some(x87), "{ieee:#x}");
    }
}

#[test]
fn encodings_that_the_x87_rejects_become_nan() {
    for x87 in [
        extended(0x7fff, 0),
        extended(0x7fff, 5),
        extended(0x3fff, 1),
        extended(1, 0),
    ] {
        assert_eq!(extended_to_quad(x87), QUAD_QUIET_NAN, "{x87:#x}");
    }
    let pseudo_denormal = extended(0, 1 << 63 | 1);
    assert_eq!(extended_to_quad(pseudo_denormal), quad(1, 0, 1 << 49));
}

#[test]
fn rounding_is_to_nearest_even() {
    let half = 1 << 48;
    for (fraction_low, significand) in [
        (half - 1, 0),
        (half, 0),
        (half + 1, 1),
        ((1 << 49) + half - 1, 1),
        ((1 << 49) + half, 2),
        (half | 1 << 50, 2),
    ] {
        let rounded = quad_to_extended(quad(0x3fff, 0, fraction_low));
        assert_eq!(
            rounded,
            Some(extended(0x3fff, 1 << 63 | significand)),
            "{fraction_low:#x}"
        );
        let subnormal = quad_to_extended(quad(0x8000, 0, fraction_low));
        assert_eq!(
            subnormal,
            Some(extended(0x8000, significand)),
            "{fraction_low:#x}"
        );
    }
}

#[test]
fn rounding_carries_into_the_exponent() {
    let ones = quad(0, 0xffff_ffff_ffff, u64::MAX);
    assert_eq!(
        quad_to_extended(quad(0x3fff, 0, 0) | ones),
        Some(extended(0x4000, 1 << 63))
    );
    assert_eq!(
        quad_to_extended(ones),
        Some(extended(1, 1 << 63)),
        "a subnormal becomes normal"
    );
    assert_eq!(
        quad_to_extended(quad(0x7ffe, 0, 0) | ones),
        None,
        "finite values never round to infinity"
    );
    assert_eq!(quad_to_extended(quad(0xfffe, 0, 0) | ones), None);
}

#[test]
fn nan_stays_nan_when_its_payload_is_lost() {
    let nan = quad_to_extended(quad(0x7fff, 0, 1));
    assert_eq!(nan, Some(extended(0x7fff, 3 << 62)));
}

/// A finite number as an integer multiple of 2^-16494, the smallest binary128:
/// a significand and its left shift.
#[derive(Debug, PartialEq)]
struct Exact {
    significand: u128,
    shift: u32,
}

impl Exact {
    fn of_quad(bits: u128) -> Exact {
        let exponent = (bits >> 112 & 0x7fff) as u32;
        let mut significand = 0;
        for bit in 0..112 {
            significand += (bits >> bit & 1) << bit;
        }
        if exponent > 0 {
            significand += 1 << 112;
        }
        Exact {
            significand,
            shift: exponent.saturating_sub(1),
        }
    }

    fn of_extended(bits: u128) -> Exact {
        let exponent = (bits >> 64 & 0x7fff) as u32;
        let mut significand = 0;
        for bit in 0..64 {
            significand += (bits >> bit & 1) << (bit + 49);
        }
        Exact {
            significand,
            shift: exponent.saturating_sub(1),
        }
    }

    /// |self - other|, for shifts at most one apart.
    fn distance(&self, other: &Exact) -> u128 {
        let base = self.shift.min(other.shift);
        let scaled = |exact: &Exact| exact.significand << (exact.shift - base);
        scaled(self).abs_diff(scaled(other))
    }
}

fn random_bits(rng: &mut fastrand::Rng) -> u128 {
    let bits = rng.u128(..);
    // Long runs of ones and zeros and extreme exponents find more than uniform
    // noise.
    match rng.u8(..6) {
        0 => bits & (u128::MAX << rng.u32(..112)),
        1 => bits | ((1 << rng.u32(..112)) - 1),
        2 => bits & !(0x7ffe << 112),
        3 => bits | 0x7ffe << 112,
        _ => bits,
    }
}

#[test]
fn extended_to_quad_is_exact() {
    let seed = seed();
    let mut rng = fastrand::Rng::with_seed(seed);
    for _ in 0..cases(20_000) {
        let integer = if rng.u8(..) < 250 { INTEGER_BIT } else { 0 };
        let exponent = (random_bits(&mut rng) >> 112 & 0x7fff) % 0x7fff;
        let integer = if exponent == 0 {
            0
        } else {
            integer | INTEGER_BIT
        };
        let x87 = (rng.u128(..) & 1 << 79)
            | exponent << 64
            | integer
            | (rng.u128(..) & EXTENDED_FRACTION);
        let ieee = extended_to_quad(x87);
        assert_eq!(
            Exact::of_quad(ieee),
            Exact::of_extended(x87),
            "{x87:#x} PARIO_SEED={seed}"
        );
        assert_eq!(ieee >> 127, x87 >> 79, "sign of {x87:#x} PARIO_SEED={seed}");
        assert_eq!(quad_to_extended(ieee), Some(x87), "PARIO_SEED={seed}");
    }
}

#[test]
fn quad_to_extended_is_nearest() {
    let seed = seed();
    let mut rng = fastrand::Rng::with_seed(seed);
    for _ in 0..cases(20_000) {
        let ieee = random_bits(&mut rng);
        if ieee >> 112 & 0x7fff == 0x7fff {
            continue;
        }
        let Some(x87) = quad_to_extended(ieee) else {
            assert_eq!(ieee >> 112 & 0x7fff, 0x7ffe, "{ieee:#x} PARIO_SEED={seed}");
            continue;
        };
        assert_eq!(
            ieee >> 127,
            x87 >> 79,
            "sign of {ieee:#x} PARIO_SEED={seed}"
        );
        let (wanted, got) = (Exact::of_quad(ieee), Exact::of_extended(x87));
        // The nearest number is at most half a unit in the last place away, at
        // the larger of the two exponents.
        let scale = wanted.shift.min(got.shift);
        let half = 1u128 << (48 + wanted.shift.max(got.shift) - scale);
        let distance = wanted.distance(&got);
        assert!(distance <= half, "{ieee:#x} -> {x87:#x} PARIO_SEED={seed}");
        if distance == half {
            assert_eq!(
                x87 & 1,
                0,
                "a tie goes to even: {ieee:#x} PARIO_SEED={seed}"
            );
        }
    }
}
