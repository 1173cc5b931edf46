//! Copies between the program's memory, buffers and messages.

use std::ops::Range;

use pario_exchange::{Accesses, Place, Placement, Planned, Rank, Realm};
use pario_layout::Layout;
use pario_plan::Access;

use super::super::window_io;
use crate::{
    access::{MemorySpan, WindowBuffer},
    operation::Operation,
};

/// The data of an access in each stretch of a realm within a range of the file.
pub(super) fn data_parts<'a>(
    planned: &'a Planned,
    access: &'a Access,
    realm: Realm,
    file: Range<u64>,
) -> impl Iterator<Item = (Range<u64>, Range<u64>)> + 'a {
    let extents = planned.realm(realm).extents_in(file);
    extents.into_iter().filter_map(|extent| {
        let data = access.data_in(extent.clone());
        (!data.is_empty()).then_some((extent, data))
    })
}

/// Copies this rank's data in a range between its memory and a buffer.
pub(super) fn copy_own(
    planned: &Planned,
    operation: &Operation,
    me: Rank,
    (realm, file): (Realm, Range<u64>),
    buffer: WindowBuffer<'_>,
    place: Place,
) {
    let memory = MemorySpan::of(operation.memory());
    let access = planned.access(me);
    copy(
        operation,
        planned,
        (access, realm, file),
        |data| memory.slice(data.start, data.end - data.start),
        buffer,
        place,
    );
}

/// Copies the parts of a slice between a staging buffer and a window.
pub(super) fn arrange(
    planned: &Planned,
    operation: &Operation,
    (realm, file): (Realm, Range<u64>),
    staging: WindowBuffer<'_>,
    window: WindowBuffer<'_>,
    parts: &[Placement],
) {
    let dense = Layout::dense(1);
    for Placement { part, at, place } in parts {
        let packed = staging.part(*at as usize..(at + part.bytes) as usize);
        let memory = MemorySpan::packed(packed, &dense);
        let access = planned.access(part.rank);
        let mut done = 0;
        copy(
            operation,
            planned,
            (access, realm, file.clone()),
            |data| {
                let len = data.end - data.start;
                done += len;
                memory.slice(done - len, len)
            },
            window,
            *place,
        );
    }
}

/// `memory` gives the memory of some data bytes; it is asked in ascending order.
fn copy<'m>(
    operation: &Operation,
    planned: &Planned,
    (access, realm, file): (&Access, Realm, Range<u64>),
    mut memory: impl FnMut(Range<u64>) -> MemorySpan<'m>,
    buffer: WindowBuffer<'_>,
    place: Place,
) {
    let direction = operation.direction();
    let mut packed = 0;
    for (extent, data) in data_parts(planned, access, realm, file) {
        let (first, len) = (data.start, data.end - data.start);
        let part = memory(data);
        match place {
            Place::Image { origin, at } => {
                let at = at + planned.realm_bytes(realm, origin..extent.start);
                let place = window_io::Place::new(at, extent);
                window_io::exchange_part(direction, access, first, &part, &place, buffer);
            }
            Place::Packed { at } => {
                let at = (at + packed) as usize;
                part.exchange_packed(direction, buffer.part(at..at + len as usize));
            }
        }
        packed += len;
    }
}
