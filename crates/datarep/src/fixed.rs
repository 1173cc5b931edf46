//! Representations with a fixed form for every type: external32 and internal.

use crate::error::DatarepError;
use crate::float::{extended_to_quad, quad_to_extended};
use crate::kernels::{Order, convert_each, copy_logicals, copy_numbers};
use crate::representation::{Representation, check_lengths};
use pario_layout::Basic;

/// The form of a basic type in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// Numbers of the native width (`width` bytes), in the file's byte order.
    Numbers { width: u64 },
    /// Logicals of `width` bytes: false is zero and true is one.
    Logical { width: u64 },
    /// A signed 8-byte integer in 4 bytes.
    NarrowSigned,
    /// An unsigned 8-byte integer in 4 bytes.
    NarrowUnsigned,
    /// A 4-byte wide character in 2 bytes.
    NarrowCharacter,
    /// x87 numbers (10 significant bytes out of 16) as IEEE binary128.
    Quads,
}

/// A representation with a fixed form for every type.
#[derive(Debug)]
pub(crate) struct Fixed {
    name: &'static str,
    order: Order,
    form: fn(Basic) -> Form,
}

/// The standard's portable representation: big-endian, IEEE, with the
/// standard's table of sizes. `MPI_LONG` and `MPI_UNSIGNED_LONG` take 4 bytes
/// and `MPI_WCHAR` 2; values that need more are errors.
pub(crate) const EXTERNAL32: Fixed = Fixed {
    name: "external32",
    order: Order::Big,
    form: external32_form,
};

/// pario's own representation: little-endian, the sizes of 64-bit Linux, long
/// double as IEEE binary128. It equals the native representation on every
/// machine that pario supports, except for long double on x86, and files are
/// portable between them.
pub(crate) const INTERNAL: Fixed = Fixed {
    name: "internal",
    order: Order::Little,
    form: internal_form,
};

/// Whether the native long double is in x87 format; elsewhere it is binary128.
const NATIVE_LONG_DOUBLE_IS_X87: bool = cfg!(target_arch = "x86_64");

fn external32_form(basic: Basic) -> Form {
    use Basic::*;
    match basic {
        Long => Form::NarrowSigned,
        UnsignedLong => Form::NarrowUnsigned,
        Wchar => Form::NarrowCharacter,
        CBool | CxxBool | Logical | Logical1 | Logical2 | Logical4 | Logical8 | Logical16 => {
            Form::Logical {
                width: basic.size(),
            }
        }
        _ => internal_form(basic),
    }
}

fn internal_form(basic: Basic) -> Form {
    use Basic::*;
    match basic {
        LongDouble | CLongDoubleComplex | CxxLongDoubleComplex if NATIVE_LONG_DOUBLE_IS_X87 => {
            Form::Quads
        }
        CFloatComplex | CDoubleComplex | CLongDoubleComplex | Complex | DoubleComplex
        | Complex4 | Complex8 | Complex16 | Complex32 | CxxFloatComplex | CxxDoubleComplex
        | CxxLongDoubleComplex => Form::Numbers {
            width: basic.size() / 2,
        },
        _ => Form::Numbers {
            width: basic.size(),
        },
    }
}

impl Representation for Fixed {
    fn name(&self) -> &str {
        self.name
    }

    fn file_size(&self, basic: Basic) -> Result<u64, DatarepError> {
        Ok(match (self.form)(basic) {
            Form::NarrowSigned | Form::NarrowUnsigned => 4,
            Form::NarrowCharacter => 2,
            Form::Numbers { .. } | Form::Logical { .. } | Form::Quads => basic.size(),
        })
    }

    fn keeps_bytes(&self, basic: Basic) -> bool {
        match (self.form)(basic) {
            Form::Numbers { width } => width == 1 || self.order == Order::NATIVE,
            _ => false,
        }
    }

    fn to_file(&self, basic: Basic, native: &[u8], file: &mut [u8]) -> Result<(), DatarepError> {
        check_lengths(self, basic, native.len(), file.len())?;
        let order = self.order;
        let converted = match (self.form)(basic) {
            Form::Numbers { width } => {
                copy_numbers(order, width, native, file);
                Ok(())
            }
            Form::Logical { width } => {
                copy_logicals(order, width, native, file);
                Ok(())
            }
            Form::NarrowSigned => convert_each(native, file, |long| {
                let int = i32::try_from(i64::from_ne_bytes(long)).ok()?;
                Some(order.arrange(int.to_be_bytes()))
            }),
            Form::NarrowUnsigned => convert_each(native, file, |long| {
                let int = u32::try_from(u64::from_ne_bytes(long)).ok()?;
                Some(order.arrange(int.to_be_bytes()))
            }),
            Form::NarrowCharacter => convert_each(native, file, |wide| {
                let unit = u16::try_from(u32::from_ne_bytes(wide)).ok()?;
                Some(order.arrange(unit.to_be_bytes()))
            }),
            Form::Quads => convert_each(native, file, |x87| {
                let quad = extended_to_quad(u128::from_ne_bytes(x87));
                Some(order.arrange(quad.to_be_bytes()))
            }),
        };
        converted.map_err(|offset| {
            let element = offset as u64 / basic.size();
            let value = self.native_value(basic, &native[offset..]);
            self.out_of_range(basic, element, value)
        })
    }

    fn to_native(&self, basic: Basic, file: &[u8], native: &mut [u8]) -> Result<(), DatarepError> {
        let file_size = check_lengths(self, basic, native.len(), file.len())?;
        let order = self.order;
        let converted = match (self.form)(basic) {
            Form::Numbers { width } => {
                copy_numbers(order, width, file, native);
                Ok(())
            }
            Form::Logical { width } => {
                copy_logicals(Order::NATIVE, width, file, native);
                Ok(())
            }
            Form::NarrowSigned => convert_each(file, native, |int| {
                Some(i64::from(i32::from_be_bytes(order.arrange(int))).to_ne_bytes())
            }),
            Form::NarrowUnsigned => convert_each(file, native, |int| {
                Some(u64::from(u32::from_be_bytes(order.arrange(int))).to_ne_bytes())
            }),
            Form::NarrowCharacter => convert_each(file, native, |unit| {
                Some(u32::from(u16::from_be_bytes(order.arrange(unit))).to_ne_bytes())
            }),
            Form::Quads => convert_each(file, native, |quad| {
                quad_to_extended(u128::from_be_bytes(order.arrange(quad))).map(u128::to_ne_bytes)
            }),
        };
        converted.map_err(|offset| {
            // Only binary128 has a wider range than the native type.
            let value = "a finite binary128 that rounds to infinity in 80 bits".to_owned();
            self.out_of_range(basic, offset as u64 / file_size, value)
        })
    }
}

impl Fixed {
    fn out_of_range(&self, basic: Basic, element: u64, value: String) -> DatarepError {
        DatarepError::OutOfRange {
            basic,
            element,
            value,
            representation: self.name.to_owned(),
        }
    }

    /// The integer at the start of `native`, for an error message.
    fn native_value(&self, basic: Basic, native: &[u8]) -> String {
        let word = |size: u64| {
            let mut bytes = [0; 8];
            let bytes_of_value = &native[..size as usize];
            match Order::NATIVE {
                Order::Little => bytes[..size as usize].copy_from_slice(bytes_of_value),
                Order::Big => bytes[8 - size as usize..].copy_from_slice(bytes_of_value),
            }
            u64::from_ne_bytes(bytes)
        };
        match (self.form)(basic) {
            Form::NarrowSigned => word(8).cast_signed().to_string(),
            Form::NarrowCharacter => format!("{:#x}", word(4)),
            _ => word(8).to_string(),
        }
    }
}
