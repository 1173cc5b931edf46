//! Data representations, element by element.

use std::sync::Once;

use pario::Basic;
use pario_datarep::{Conversion, UserRepresentation, register};

/// How a view stores elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stored {
    Native,
    Internal,
    External32,
    /// Registered here: one byte longer, backwards, and masked.
    Twisted,
    /// Registered here: native bytes, but not known to be so beforehand.
    Plain,
}

const MASK: u8 = 0x5a;

/// Registers the representations of this test with the library, once.
pub(crate) fn register_all() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let write = Conversion::runs(|basic, native, file| {
            let size = basic.size() as usize;
            for (from, to) in native.chunks(size).zip(file.chunks_mut(size + 1)) {
                to.copy_from_slice(&twist(from));
            }
            Ok(())
        });
        let read = Conversion::runs(|basic, file, native| {
            let size = basic.size() as usize;
            for (from, to) in file.chunks(size + 1).zip(native.chunks_mut(size)) {
                to.copy_from_slice(&untwist(from));
            }
            Ok(())
        });
        let twisted = UserRepresentation::new(|basic| Ok(basic.size() + 1), write, read);
        register("twisted", twisted).expect("the name is free");
        let (write, read) = (Conversion::Identity, Conversion::Identity);
        let plain = UserRepresentation::new(|basic| Ok(basic.size()), write, read);
        register("plain", plain).expect("the name is free");
    });
}

fn twist(native: &[u8]) -> Vec<u8> {
    let mut file: Vec<u8> = native.iter().rev().map(|byte| byte ^ MASK).collect();
    file.push(MASK);
    file
}

fn untwist(file: &[u8]) -> Vec<u8> {
    let data = &file[..file.len() - 1];
    data.iter().rev().map(|byte| byte ^ MASK).collect()
}

impl Stored {
    pub(crate) const ALL: [Stored; 5] = [
        Stored::Native,
        Stored::Internal,
        Stored::External32,
        Stored::Twisted,
        Stored::Plain,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Stored::Native => "native",
            Stored::Internal => "internal",
            Stored::External32 => "external32",
            Stored::Twisted => "twisted",
            Stored::Plain => "plain",
        }
    }

    pub(crate) fn size(self, basic: Basic) -> u64 {
        match (self, basic) {
            (Stored::External32, Basic::Long | Basic::UnsignedLong) => 4,
            (Stored::External32, Basic::Wchar) => 2,
            (Stored::Twisted, _) => basic.size() + 1,
            _ => basic.size(),
        }
    }

    /// Whether elements are stored byte for byte, so that half of one counts.
    pub(crate) fn keeps_bytes(self, basic: Basic) -> bool {
        match self {
            Stored::Native | Stored::Plain => true,
            Stored::Internal => basic != Basic::LongDouble,
            Stored::External32 => basic.size() == 1 && !is_truth(basic),
            Stored::Twisted => false,
        }
    }

    /// Changes random bytes to ones that this representation can store.
    pub(crate) fn tame(self, basic: Basic, native: &mut [u8]) {
        match (self, basic) {
            (Stored::External32, Basic::Long) => {
                let fill = if native[3] >= 0x80 { 0xff } else { 0 };
                native[4..].fill(fill);
            }
            (Stored::External32, Basic::UnsignedLong) => native[4..].fill(0),
            (Stored::External32, Basic::Wchar) => native[2..].fill(0),
            (Stored::External32 | Stored::Internal, Basic::LongDouble) => {
                native[7] |= 0x80;
                // Neither infinite nor subnormal.
                native[8] = native[8].clamp(1, 0xfe);
                native[10..].fill(0);
            }
            _ => {}
        }
    }

    /// The bytes of the file for an element; `None` if it has none.
    pub(crate) fn encode(self, basic: Basic, native: &[u8]) -> Option<Vec<u8>> {
        let reversed = || native.iter().rev().copied().collect::<Vec<u8>>();
        Some(match (self, basic) {
            (Stored::Internal | Stored::External32, Basic::LongDouble) => {
                let mut quad = quad_of_extended(native)?.to_le_bytes();
                if self == Stored::External32 {
                    quad.reverse();
                }
                quad.to_vec()
            }
            (Stored::Native | Stored::Plain | Stored::Internal, _) => native.to_vec(),
            (Stored::Twisted, _) => twist(native),
            (Stored::External32, Basic::Long) => {
                let long = i64::from_le_bytes(native.try_into().ok()?);
                i32::try_from(long).ok()?.to_be_bytes().to_vec()
            }
            (Stored::External32, Basic::UnsignedLong) => {
                let long = u64::from_le_bytes(native.try_into().ok()?);
                u32::try_from(long).ok()?.to_be_bytes().to_vec()
            }
            (Stored::External32, Basic::Wchar) => {
                let wide = u32::from_le_bytes(native.try_into().ok()?);
                u16::try_from(wide).ok()?.to_be_bytes().to_vec()
            }
            (Stored::External32, Basic::CDoubleComplex) => {
                let (real, imaginary) = native.split_at(8);
                let parts = real.iter().rev().chain(imaginary.iter().rev());
                parts.copied().collect()
            }
            (Stored::External32, _) if is_truth(basic) => truth(native, native.len() - 1),
            (Stored::External32, _) => reversed(),
        })
    }

    /// The element that bytes of a file stand for; `None` if the model does
    /// not know.
    pub(crate) fn decode(self, basic: Basic, file: &[u8]) -> Option<Vec<u8>> {
        let reversed = || file.iter().rev().copied().collect::<Vec<u8>>();
        Some(match (self, basic) {
            (Stored::Internal | Stored::External32, Basic::LongDouble) => {
                let mut quad: [u8; 16] = file.try_into().ok()?;
                if self == Stored::External32 {
                    quad.reverse();
                }
                extended_of_quad(u128::from_le_bytes(quad))?.to_vec()
            }
            (Stored::Native | Stored::Plain | Stored::Internal, _) => file.to_vec(),
            (Stored::Twisted, _) => untwist(file),
            (Stored::External32, Basic::Long) => {
                let int = i32::from_be_bytes(file.try_into().ok()?);
                i64::from(int).to_le_bytes().to_vec()
            }
            (Stored::External32, Basic::UnsignedLong) => {
                let int = u32::from_be_bytes(file.try_into().ok()?);
                u64::from(int).to_le_bytes().to_vec()
            }
            (Stored::External32, Basic::Wchar) => {
                let unit = u16::from_be_bytes(file.try_into().ok()?);
                u32::from(unit).to_le_bytes().to_vec()
            }
            (Stored::External32, Basic::CDoubleComplex) => self.encode(basic, file)?,
            (Stored::External32, _) if is_truth(basic) => truth(file, 0),
            (Stored::External32, _) => reversed(),
        })
    }
}

fn is_truth(basic: Basic) -> bool {
    matches!(basic, Basic::CBool | Basic::Logical)
}

/// Zero or one, with the one's byte at `place`.
fn truth(bytes: &[u8], place: usize) -> Vec<u8> {
    let mut truth = vec![0; bytes.len()];
    truth[place] = u8::from(bytes.iter().any(|byte| *byte != 0));
    truth
}

const EXPONENT_MAX: u128 = 0x7fff;
/// Fraction bits that binary128 has more than the x87.
const LOST_BITS: u32 = 49;

/// IEEE binary128 of a normal x87 number.
fn quad_of_extended(native: &[u8]) -> Option<u128> {
    let significand = u128::from(u64::from_le_bytes(native[..8].try_into().ok()?));
    let sign_exponent = u128::from(u16::from_le_bytes(native[8..10].try_into().ok()?));
    let exponent = sign_exponent & EXPONENT_MAX;
    let normal = significand >> 63 == 1 && exponent > 0 && exponent < EXPONENT_MAX;
    let fraction = significand & !(1 << 63);
    normal.then_some(sign_exponent << 112 | fraction << LOST_BITS)
}

/// The x87 number nearest to a finite binary128, ties to even.
fn extended_of_quad(quad: u128) -> Option<[u8; 16]> {
    let exponent = quad >> 112 & EXPONENT_MAX;
    let hidden = u128::from(exponent > 0);
    let significand = hidden << 112 | quad & ((1 << 112) - 1);
    let mut kept = significand >> LOST_BITS;
    let (rest, half) = (significand & ((1 << LOST_BITS) - 1), 1 << (LOST_BITS - 1));
    if rest > half || (rest == half && kept & 1 == 1) {
        kept += 1;
    }
    let mut exponent = exponent;
    if kept >> 64 == 1 {
        (kept, exponent) = (kept >> 1, exponent + 1);
    } else if exponent == 0 && kept >> 63 == 1 {
        exponent = 1;
    }
    let sign_exponent = quad >> 127 << 15 | exponent;
    (exponent < EXPONENT_MAX).then(|| (sign_exponent << 64 | kept).to_le_bytes())
}
