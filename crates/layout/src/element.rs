//! Rust's numbers as elements of files.
//!
//! `unsafe` is needed here because the trait makes a promise about bit patterns.
#![allow(unsafe_code)]

use crate::Basic;

/// A Rust number that can be an element of a file.
///
/// # Safety
/// Any bit pattern is a valid value, there is no padding, and `BASIC` has the
/// size of the type.
pub unsafe trait Element: Copy + Send + 'static {
    /// The corresponding predefined datatype.
    const BASIC: Basic;
}

macro_rules! elements {
    ($($rust:ty => $basic:ident),* $(,)?) => {$(
        // SAFETY: a primitive number has no padding and no invalid pattern.
        unsafe impl Element for $rust {
            const BASIC: Basic = Basic::$basic;
        }
        const _: () = assert!(Basic::$basic.size() == size_of::<$rust>() as u64);
    )*};
}

elements! {
    u8 => Byte, i8 => Int8, i16 => Int16, u16 => Uint16, i32 => Int32, u32 => Uint32,
    i64 => Int64, u64 => Uint64, f32 => Float, f64 => Double,
}
