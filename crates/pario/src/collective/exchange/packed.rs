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
/// everything below a stop has been moved, also of parts that overlap the one that stopped, as
/// those of ranks that read the same place.
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
    let mut moved = Ok(());
    while let Some(Reverse((offset, index))) = order.pop() {
        if matches!(moved, Err((stop, _)) if offset >= stop) {
            break;
        }
        if let Some(piece) = next[index].take() {
            piece.push(&mut batch);
        }
        next[index] = pieces[index].next();
        if let Some(piece) = &next[index] {
            order.push(Reverse((piece.offset, index)));
        }
        if batch.pieces().len() == list_pieces {
            moved = carry_out(operation, &batch, moved);
            batch.clear();
        }
    }
    carry_out(operation, &batch, moved)
}

/// Moves what is below the stop of earlier batches. A batch that stops earlier replaces that stop.
fn carry_out(
    operation: &Operation,
    batch: &Batch<'_>,
    mut moved: Result<(), Stopped>,
) -> Result<(), Stopped> {
    let mut below;
    let mut left = batch;
    if let Err((stop, _)) = moved {
        below = batch.below(0, stop);
        left = &below;
    }
    while let Some(last) = left.pieces().last() {
        let end = last.offset + last.len as u64;
        let Outcome { mut bytes, error } = operation.transfer_list(left);
        let stopped = left.pieces().iter().position(|piece| {
            let len = piece.len as u64;
            bytes < len || {
                bytes -= len;
                false
            }
        });
        let Some(index) = stopped else {
            if error.is_some() {
                moved = Err((end, error));
            }
            break;
        };
        let stop = left.pieces()[index].offset + bytes;
        moved = Err((stop, error));
        let rest = left.below(index + 1, stop);
        below = rest;
        left = &below;
    }
    moved
}
