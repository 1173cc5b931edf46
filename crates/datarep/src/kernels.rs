//! Element conversion loops.

use crate::reverse::reverse;

/// Byte order in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Least significant byte first.
    Little,
    /// Most significant byte first.
    Big,
}

impl Order {
    /// The byte order of this machine.
    pub(crate) const NATIVE: Order = if cfg!(target_endian = "little") {
        Order::Little
    } else {
        Order::Big
    };

    /// Converts bytes from big-endian to this order, or back.
    pub(crate) fn arrange<const N: usize>(self, mut bytes: [u8; N]) -> [u8; N] {
        if self == Order::Little {
            bytes.reverse();
        }
        bytes
    }
}

/// Copies numbers of `width` bytes between slices of equal length, one in
/// `order` and the other in the machine's order.
pub(crate) fn copy_numbers(order: Order, width: u64, from: &[u8], to: &mut [u8]) {
    match width {
        _ if order == Order::NATIVE => to.copy_from_slice(from),
        1 => to.copy_from_slice(from),
        2 => reverse::<2>(from, to),
        4 => reverse::<4>(from, to),
        8 => reverse::<8>(from, to),
        16 => reverse::<16>(from, to),
        _ => unreachable!("no basic type is {width} bytes wide"),
    }
}

/// Copies logical values of `width` bytes between slices of equal length: zero
/// stays zero, anything else becomes one in `order`.
///
/// All bytes are significant, as the standard requires. Compilers differ in
/// their representation of true (1, or all bits set), and a C `_Bool` other
/// than 0 and 1 is undefined behaviour, but all accept 1 as true.
pub(crate) fn copy_logicals(order: Order, width: u64, from: &[u8], to: &mut [u8]) {
    match width {
        1 => logicals(from, to, order.arrange(1u8.to_be_bytes())),
        2 => logicals(from, to, order.arrange(1u16.to_be_bytes())),
        4 => logicals(from, to, order.arrange(1u32.to_be_bytes())),
        8 => logicals(from, to, order.arrange(1u64.to_be_bytes())),
        16 => logicals(from, to, order.arrange(1u128.to_be_bytes())),
        _ => unreachable!("no logical type is {width} bytes wide"),
    }
}

fn logicals<const N: usize>(from: &[u8], to: &mut [u8], one: [u8; N]) {
    let (from, to) = (from.as_chunks::<N>().0, to.as_chunks_mut::<N>().0);
    for (from, to) in from.iter().zip(to) {
        *to = if *from == [0; N] { [0; N] } else { one };
    }
}

/// Converts groups of `A` bytes to groups of `B` bytes. On failure, the error
/// is the offset in `from` of the group that `convert` rejected.
pub(crate) fn convert_each<const A: usize, const B: usize>(
    from: &[u8],
    to: &mut [u8],
    convert: impl Fn([u8; A]) -> Option<[u8; B]>,
) -> Result<(), usize> {
    let (from, to) = (from.as_chunks::<A>().0, to.as_chunks_mut::<B>().0);
    for (index, (from, to)) in from.iter().zip(to).enumerate() {
        *to = convert(*from).ok_or(index * A)?;
    }
    Ok(())
}
