//! Variable-length integers: seven bits per byte, lowest first, shortest form only.

use crate::WireError;

const MORE: u8 = 0x80;
const BITS: u32 = 7;

pub(crate) fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= u64::from(MORE) {
        out.push(value as u8 | MORE);
        value >>= BITS;
    }
    out.push(value as u8);
}

/// Zigzag-encoded, so that small numbers of either sign take few bytes.
pub(crate) fn put_signed(out: &mut Vec<u8>, value: i64) {
    put(
        out,
        ((value << 1) ^ (value >> (i64::BITS - 1))).cast_unsigned(),
    );
}

/// Reads a wire form from the front.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(crate) fn remaining(&self) -> usize {
        self.rest.len()
    }

    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub(crate) fn byte(&mut self) -> Result<u8, WireError> {
        let (&byte, rest) = self.rest.split_first().ok_or(WireError::Truncated)?;
        self.rest = rest;
        Ok(byte)
    }

    pub(crate) fn number(&mut self) -> Result<u64, WireError> {
        let mut value = 0_u64;
        for shift in (0..u64::BITS).step_by(BITS as usize) {
            let byte = self.byte()?;
            let bits = u64::from(byte & !MORE);
            if shift > 0 && byte == 0 {
                return Err(WireError::NotCanonical);
            }
            if bits << shift >> shift != bits {
                break;
            }
            value |= bits << shift;
            if byte & MORE == 0 {
                return Ok(value);
            }
        }
        Err(WireError::Invalid("number larger than 64 bits"))
    }

    pub(crate) fn signed(&mut self) -> Result<i64, WireError> {
        let value = self.number()?;
        Ok((value >> 1).cast_signed() ^ -(value & 1).cast_signed())
    }

    /// A count of entries that take at least `bytes` each; rejected if the input is too short
    /// for them.
    pub(crate) fn count(&mut self, bytes: usize) -> Result<usize, WireError> {
        let count = self.number()?;
        let limit = self.remaining() / bytes;
        match usize::try_from(count) {
            Ok(count) if count <= limit => Ok(count),
            _ => Err(WireError::Truncated),
        }
    }

    pub(crate) fn finish(&self) -> Result<(), WireError> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(WireError::Trailing)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_round_trip_in_the_shortest_form() {
        for value in [0, 1, 127, 128, 16_383, 16_384, u64::MAX / 2, u64::MAX] {
            let mut bytes = Vec::new();
            put(&mut bytes, value);
            let mut reader = Reader::new(&bytes);
            assert_eq!(reader.number(), Ok(value));
            assert_eq!(reader.finish(), Ok(()));
        }
        for value in [0, -1, 1, i64::MIN, i64::MAX] {
            let mut bytes = Vec::new();
            put_signed(&mut bytes, value);
            assert_eq!(Reader::new(&bytes).signed(), Ok(value));
        }
    }

    #[test]
    fn longer_forms_are_rejected() {
        assert_eq!(
            Reader::new(&[0x80, 0]).number(),
            Err(WireError::NotCanonical)
        );
        assert_eq!(Reader::new(&[0x80]).number(), Err(WireError::Truncated));
        assert!(Reader::new(&[0xFF; 11]).number().is_err());
        let past = [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x02];
        assert!(Reader::new(&past).number().is_err());
        assert_eq!(Reader::new(&[100, 0]).count(1), Err(WireError::Truncated));
    }
}
