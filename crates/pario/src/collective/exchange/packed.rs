//! Moves the packed data of several ranks between buffers and the file, as a
//! list of pieces in the order of the file.

use std::{cmp::Reverse, collections::BinaryHeap, io, ops::Range};

use pario_driver::{Batch, Outcome};
use pario_layout::Layout;
use pario_plan::Access;

use super::super::window_io;
use crate::{
    access::{MemorySpan, Pieces, Shared, WindowBuffer},
    operation::Operation,
};

/// Consecutive data bytes of one rank, in a buffer of that length.
pub(super) struct PackedPart<'a> {
    pub(super) access: &'a Access,
    pub(super) data: Range<u64>,
    pub(super) buffer: WindowBuffer<'a>,
}

/// The first byte of the file that was not moved, and why, unless the file
/// ended there.
pub(super) type Stopped = (u64, Option<io::Error>);

/// Moves parts, `list_pieces` pieces per call of the driver, in ascending order:
/// everything below a stop has been moved.
pub(super) fn transfer(
    operation: &Operation,
    list_pieces: usize,
    parts: &[PackedPart<'_>],
) -> Result<(), Stopped> {
    let dense = Layout::dense(1);
    let mut pieces: Vec<Pieces<'_>> = parts
        .iter()
        .map(|part| {
            let len = part.data.end - part.data.start;
            let file = window_io::file_span(part.access, part.data.start, len);
            Pieces::new(&file, &MemorySpan::packed(part.buffer, &dense))
        })
        .collect();
    // The next piece of each part; the parts with the lowest ones first.
    let mut next: Vec<Option<Shared<'_>>> = pieces.iter_mut().map(Iterator::next).collect();
    let mut order: BinaryHeap<Reverse<(u64, usize)>> = next
        .iter()
        .enumerate()
        .filter_map(|(index, piece)| Some(Reverse((piece.as_ref()?.offset, index))))
        .collect();
    let mut batch = Batch::new(operation.direction());
    while let Some(Reverse((_, index))) = order.pop() {
        if let Some(piece) = next[index].take() {
            piece.push(&mut batch);
        }
        next[index] = pieces[index].next();
        if let Some(piece) = &next[index] {
            order.push(Reverse((piece.offset, index)));
        }
        if batch.pieces().len() == list_pieces {
            carry_out(operation, &batch)?;
            batch.clear();
        }
    }
    carry_out(operation, &batch)
}

fn carry_out(operation: &Operation, batch: &Batch<'_>) -> Result<(), Stopped> {
    if batch.pieces().is_empty() {
        return Ok(());
    }
    let Outcome { mut bytes, error } = operation.transfer_list(batch);
    if bytes == batch.bytes() && error.is_none() {
        return Ok(());
    }
    for piece in batch.pieces() {
        let len = piece.len as u64;
        if bytes < len {
            return Err((piece.offset + bytes, error));
        }
        bytes -= len;
    }
    let last = batch.pieces().last();
    Err((
        last.map_or(0, |piece| piece.offset + piece.len as u64),
        error,
    ))
}
