//! Loops over elements.

use crate::reverse::reverse;

/// The order of bytes in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Least significant byte first.
    Little,
    /// Most significant byte first.
    Big,
}

impl Order {
    /// The order of this machine.
    pub(crate) const NATIVE: Order = if cfg!(target_endian = "little") {
        Order::Little
    } else {
        Order::Big
    };

    /// Turns bytes from big-endian to this order, or back.
    pub(crate) fn arrange<const N: usize>(self, mut bytes: [u8; N]) -> [u8; N] {
        if self == Order::Little {
            bytes.reverse();
        }
        bytes
    }
}

/// Copies numbers of `width` bytes between equally long slices, from or to
/// `order` on one side and the machine's on the other.
pub(crate) fn copy_numbers(order: Order, width: u64, from: &[u8], to: &mut [u8]) {
    match width {
        _ if order == Order::NATIVE => to.copy_from_slice(from),
        1 => to.copy_from_slice(from),
        2 => reverse::<2>(from, to),
        4 => reverse::<4>(from, to),
        8 => reverse::<8>(from, to),
        16 => reverse::<16>(from, to),
        _ => unreachable!("no basic type has numbers of {width} bytes"),
    }
}

/// Copies truth values of `width` bytes between equally long slices: zero
/// stays, everything else becomes one in `order`.
///
/// All bytes count, as the standard says. Compilers differ in what true is in
/// memory (1, or all bits), and a C `_Bool` other than 0 and 1 is undefined
/// behaviour: one is true to all of them.
pub(crate) fn copy_truths(order: Order, width: u64, from: &[u8], to: &mut [u8]) {
    match width {
        1 => truths(from, to, order.arrange(1u8.to_be_bytes())),
        2 => truths(from, to, order.arrange(1u16.to_be_bytes())),
        4 => truths(from, to, order.arrange(1u32.to_be_bytes())),
        8 => truths(from, to, order.arrange(1u64.to_be_bytes())),
        16 => truths(from, to, order.arrange(1u128.to_be_bytes())),
        _ => unreachable!("no logical type has {width} bytes"),
    }
}

fn truths<const N: usize>(from: &[u8], to: &mut [u8], one: [u8; N]) {
    let (from, to) = (from.as_chunks::<N>().0, to.as_chunks_mut::<N>().0);
    for (from, to) in from.iter().zip(to) {
        *to = if *from == [0; N] { [0; N] } else { one };
    }
}

/// Converts groups of `A` bytes to groups of `B`. Where `convert` gives up,
/// the error is the offset in `from` of what it could not convert.
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
