//! The tree walk that packs and unpacks: it hands whole subtrees to the copy kernels.
#![allow(unsafe_code)] // Raw copies between user buffers, with bounds checked by the caller.

use std::ops::Range;

use crate::Layout;
use crate::kernels::{Side, copy_piece, copy_pieces};
use crate::shape::{Entry, Kind, Node};

/// Direction of a move between strided memory and a packed buffer. Packing only reads the memory,
/// unpacking only reads the packed buffer.
pub(crate) trait Direction {
    /// # Safety
    /// As [`copy_pieces`], from memory to packed or back.
    unsafe fn pieces(memory: Side<*mut u8>, packed: Side<*mut u8>, len: usize, count: usize);

    /// # Safety
    /// As [`copy_piece`], from memory to packed or back.
    unsafe fn piece(memory: *mut u8, packed: *mut u8, len: usize);
}

/// From memory to the packed buffer.
pub(crate) struct Pack;

/// From the packed buffer to memory.
pub(crate) struct Unpack;

fn source(side: Side<*mut u8>) -> Side<*const u8> {
    Side {
        start: side.start.cast_const(),
        stride: side.stride,
    }
}

impl Direction for Pack {
    #[inline(always)]
    unsafe fn pieces(memory: Side<*mut u8>, packed: Side<*mut u8>, len: usize, count: usize) {
        // SAFETY: the caller's contract.
        unsafe { copy_pieces(source(memory), packed, len, count) }
    }

    #[inline(always)]
    unsafe fn piece(memory: *mut u8, packed: *mut u8, len: usize) {
        // SAFETY: the caller's contract.
        unsafe { copy_piece(memory, packed, len) }
    }
}

impl Direction for Unpack {
    #[inline(always)]
    unsafe fn pieces(memory: Side<*mut u8>, packed: Side<*mut u8>, len: usize, count: usize) {
        // SAFETY: the caller's contract.
        unsafe { copy_pieces(source(packed), memory, len, count) }
    }

    #[inline(always)]
    unsafe fn piece(memory: *mut u8, packed: *mut u8, len: usize) {
        // SAFETY: the caller's contract.
        unsafe { copy_piece(packed, memory, len) }
    }
}

/// The position of a node in both buffers: its first data byte in memory and the corresponding
/// packed byte. Offsets equal pointer differences on the supported 64-bit systems. Pointers use
/// wrapping arithmetic, since only data bytes need to lie inside a buffer.
#[derive(Clone, Copy)]
struct Place {
    memory: *mut u8,
    packed: *mut u8,
}

impl Place {
    #[inline(always)]
    fn at(self, offset: i64, start: u64) -> Self {
        Self {
            memory: self.memory.wrapping_offset(offset as isize),
            packed: self.packed.wrapping_add(start as usize),
        }
    }
}

/// Moves a range of data bytes of the tiling. Stops where offsets no longer fit in 63 bits.
///
/// # Safety
/// As [`Layout::pack`] or [`Layout::unpack`].
pub(crate) unsafe fn transfer<D: Direction>(
    layout: &Layout,
    origin: *mut u8,
    data: Range<u64>,
    packed: *mut u8,
) {
    let Some(row) = layout.row() else { return };
    let end = data.end.min(row.limit);
    if data.start >= end {
        return;
    }
    let size = row.shape.size;
    let origin = Place {
        memory: origin,
        packed,
    };
    let copy_at =
        |index: u64| origin.at(row.base(index), (index * size).saturating_sub(data.start));
    let (first, last) = (data.start / size, (end - 1) / size);
    let (head, tail) = (data.start - first * size, end - last * size);
    // SAFETY: head, whole copies and tail make up the range; the contract for their bytes is the
    // caller's.
    unsafe {
        if row.is_gapless() {
            let place = copy_at(first).at(head.cast_signed(), 0);
            D::piece(place.memory, place.packed, (end - data.start) as usize);
        } else if first == last {
            part::<D>(&row.shape, copy_at(first), head..tail);
        } else {
            part::<D>(&row.shape, copy_at(first), head..size);
            copies::<D>(&row.shape, row.step, last - first - 1, copy_at(first + 1));
            part::<D>(&row.shape, copy_at(last), 0..tail);
        }
    }
}

/// Moves a range of a node's data bytes. The packed position is that of the first byte in the
/// range.
///
/// # Safety
/// As [`transfer`] for those bytes.
unsafe fn part<D: Direction>(node: &Node, place: Place, data: Range<u64>) {
    if data.is_empty() {
        return;
    }
    // SAFETY: the parts make up the range; the contract for their bytes is the caller's.
    unsafe {
        if data.start == 0 && data.end == node.size {
            return whole::<D>(node, place);
        }
        let ends = node.entry_of(data.start).zip(node.entry_of(data.end - 1));
        let Some((first, last)) = ends else {
            let place = place.at(data.start.cast_signed(), 0);
            return D::piece(place.memory, place.packed, (data.end - data.start) as usize);
        };
        let place_of = |offset: i64, start: u64| place.at(offset, start.saturating_sub(data.start));
        let within = |entry: Entry<'_>, range: Range<u64>| {
            let place = place_of(entry.offset, entry.start);
            match entry.shape {
                Some(shape) => part::<D>(shape, place, range),
                None => {
                    let place = place.at(range.start.cast_signed(), 0);
                    D::piece(
                        place.memory,
                        place.packed,
                        (range.end - range.start) as usize,
                    );
                }
            }
        };
        if first.index == last.index {
            return within(first, data.start - first.start..data.end - first.start);
        }
        within(first, data.start - first.start..first.size);
        if let Some(next) = node.entry(first.index + 1) {
            entries::<D>(node, next.index..last.index, place_of(0, next.start));
        }
        within(last, 0..data.end - last.start);
    }
}

/// Moves all data bytes of a node.
///
/// # Safety
/// As [`transfer`] for those bytes.
unsafe fn whole<D: Direction>(node: &Node, place: Place) {
    // SAFETY: the caller's contract.
    unsafe {
        match &node.kind {
            Kind::Dense => D::piece(place.memory, place.packed, node.size as usize),
            Kind::Repeat {
                count,
                stride,
                child,
            } => copies::<D>(child, *stride, *count, place),
            _ => entries::<D>(node, 0..node.entries(), place),
        }
    }
}

/// Moves whole entries of an inner node. The memory position is that of the node, the packed
/// position that of the first entry.
///
/// # Safety
/// As [`transfer`] for the bytes of the entries.
unsafe fn entries<D: Direction>(node: &Node, indices: Range<u64>, place: Place) {
    let range = indices.start as usize..indices.end as usize;
    // SAFETY: the entries are consecutive in the packed buffer; the contract for their bytes is
    // the caller's.
    unsafe {
        match &node.kind {
            Kind::Dense => {}
            Kind::Repeat { stride, child, .. } => {
                let first = node.entry(indices.start).map_or(0, |entry| entry.offset);
                copies::<D>(
                    child,
                    *stride,
                    indices.end - indices.start,
                    place.at(first, 0),
                );
            }
            Kind::Copies { offsets, child, .. } => {
                let places = offsets[range].iter().zip(0_u64..);
                for (&offset, index) in places {
                    let place = place.at(offset, index * child.size);
                    if child.is_dense() {
                        D::piece(place.memory, place.packed, child.size as usize);
                    } else {
                        whole::<D>(child, place);
                    }
                }
            }
            Kind::Blocks {
                offsets, starts, ..
            } => {
                let mut packed = place.packed;
                let stops = starts[range.start + 1..].iter().copied().chain([node.size]);
                let lengths = stops
                    .zip(&starts[range.clone()])
                    .map(|(stop, start)| stop - start);
                for (&offset, len) in offsets[range].iter().zip(lengths) {
                    D::piece(place.at(offset, 0).memory, packed, len as usize);
                    packed = packed.wrapping_add(len as usize);
                }
            }
            Kind::Sequence { parts, .. } => {
                let start = parts.get(range.start).map_or(0, |part| part.start);
                for part in &parts[range] {
                    whole::<D>(&part.shape, place.at(part.offset, part.start - start));
                }
            }
        }
    }
}

/// Moves whole copies of a node, `stride` apart.
///
/// # Safety
/// As [`transfer`] for the bytes of the copies.
unsafe fn copies<D: Direction>(child: &Node, stride: i64, count: u64, place: Place) {
    // SAFETY: the caller's contract.
    unsafe {
        if matches!(child.kind, Kind::Dense) {
            let len = child.size as usize;
            let memory = Side {
                start: place.memory,
                stride: stride as isize,
            };
            let packed = Side {
                start: place.packed,
                stride: len.cast_signed(),
            };
            return D::pieces(memory, packed, len, count as usize);
        }
        if count >= COLUMN_COPIES_MIN
            && let Some(columns) = Columns::of(child, stride)
        {
            return columns.transfer::<D>(child, stride, count, place);
        }
        for index in 0..count {
            let offset = stride.wrapping_mul(index.cast_signed());
            whole::<D>(child, place.at(offset, index * child.size));
        }
    }
}

/// Copies of a node with at most this many pieces are moved piece by piece across many copies, in
/// the kernels' strided loops, instead of copy by copy.
const COLUMNS_MAX: usize = 8;

/// With fewer copies, changing the order does not pay.
const COLUMN_COPIES_MIN: u64 = 4;

/// Bytes of memory and packed buffer that one pass over the pieces covers: half of a small L1
/// cache, so that cache lines shared by pieces are still present for the next piece.
const COLUMN_PASS_BYTES: u64 = 16 << 10;

/// The few pieces of a node, as columns of a table whose rows are the copies.
struct Columns {
    /// Offset, packed start and length of each piece.
    pieces: [(i64, u64, u64); COLUMNS_MAX],
    count: usize,
}

impl Columns {
    /// `None` if there are too many pieces, or if copies overlap and their order matters.
    fn of(child: &Node, stride: i64) -> Option<Self> {
        if child.pieces > COLUMNS_MAX as u64 || !child.increasing || stride < child.high {
            return None;
        }
        let mut columns = Self {
            pieces: [(0, 0, 0); COLUMNS_MAX],
            count: 0,
        };
        let mut start = 0;
        let collected = child.for_each_piece::<()>(0, &mut |offset, len| {
            *columns.pieces.get_mut(columns.count).ok_or(())? = (offset, start, len);
            columns.count += 1;
            start += len;
            Ok(())
        });
        collected.ok().map(|()| columns)
    }

    /// # Safety
    /// As [`transfer`] for the bytes of the copies.
    unsafe fn transfer<D: Direction>(&self, child: &Node, stride: i64, count: u64, place: Place) {
        let row_bytes = stride.unsigned_abs().saturating_add(child.size);
        let copies_per_pass = (COLUMN_PASS_BYTES / row_bytes).max(COLUMN_COPIES_MIN);
        let mut done = 0;
        while done < count {
            let copies = copies_per_pass.min(count - done);
            let corner = place.at(stride.wrapping_mul(done.cast_signed()), done * child.size);
            for &(offset, start, len) in &self.pieces[..self.count] {
                let place = corner.at(offset, start);
                let memory = Side {
                    start: place.memory,
                    stride: stride as isize,
                };
                let packed = Side {
                    start: place.packed,
                    stride: child.size as isize,
                };
                // SAFETY: the piece of each copy lies at its stride on both sides; the contract
                // for its bytes is the caller's.
                unsafe { D::pieces(memory, packed, len as usize, copies as usize) };
            }
            done += copies;
        }
    }
}
