//! The wire form of layouts.

use super::{Table, earlier, read_table};
use crate::shape::{BlockList, Kind, Placed, Shape, sequence};
use crate::varint::{self, Reader};
use crate::{Layout, WireError};

/// Format and version in one: any change of the format takes a new number.
const FORMAT: u8 = 0x11;

const DENSE: u8 = 1;
const REPEAT: u8 = 2;
const COPIES: u8 = 3;
const BLOCKS: u8 = 4;
const SEQUENCE: u8 = 5;

impl Layout {
    /// Serialises the layout; see [`from_wire`](Self::from_wire).
    pub fn to_wire(&self) -> Vec<u8> {
        let mut table = Table::new();
        if let Some(tile) = self.tile() {
            add(&mut table, &tile.shape);
        }
        let mut out = table.finish(FORMAT);
        varint::put_signed(&mut out, self.lower_bound());
        varint::put_signed(&mut out, self.extent());
        if let Some(tile) = self.tile() {
            varint::put_signed(&mut out, tile.at);
        }
        out
    }

    /// Deserialises a layout. Anything but the exact output of [`to_wire`](Self::to_wire) is an
    /// error. No input causes a panic or an allocation out of proportion to its length.
    pub fn from_wire(bytes: &[u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new(bytes);
        let mut nodes = read_table(&mut reader, FORMAT, read)?;
        let (lower_bound, extent) = (reader.signed()?, reader.signed()?);
        let tile = match nodes.pop() {
            Some(shape) => Some(Placed {
                at: reader.signed()?,
                shape,
            }),
            None => None,
        };
        reader.finish()?;
        let layout = Layout::new(tile, lower_bound, extent)?;
        if layout.to_wire() != bytes {
            return Err(WireError::NotCanonical);
        }
        Ok(layout)
    }
}

fn add(table: &mut Table, shape: &Shape) -> u64 {
    if let Some(index) = table.visited(shape.address()) {
        return index;
    }
    let mut node = Vec::new();
    match &shape.kind {
        Kind::Dense => {
            node.push(DENSE);
            varint::put(&mut node, shape.size);
        }
        Kind::Repeat {
            count,
            stride,
            child,
        } => {
            node.push(REPEAT);
            varint::put(&mut node, add(table, child));
            varint::put(&mut node, *count);
            varint::put_signed(&mut node, *stride);
        }
        Kind::Copies { offsets, child, .. } => {
            node.push(COPIES);
            varint::put(&mut node, add(table, child));
            varint::put(&mut node, offsets.len() as u64);
            for pair in offsets.windows(2) {
                varint::put_signed(&mut node, pair[1].wrapping_sub(pair[0]));
            }
        }
        Kind::Blocks { offsets, .. } => {
            node.push(BLOCKS);
            varint::put(&mut node, offsets.len() as u64);
            let mut end = 0_i64;
            for entry in (0..shape.entries()).filter_map(|index| shape.entry(index)) {
                varint::put_signed(&mut node, entry.offset.wrapping_sub(end));
                varint::put(&mut node, entry.size);
                end = entry.offset + entry.size.cast_signed();
            }
        }
        Kind::Sequence { parts, .. } => {
            let children: Vec<u64> = parts.iter().map(|part| add(table, &part.shape)).collect();
            node.push(SEQUENCE);
            varint::put(&mut node, parts.len() as u64);
            let mut before = 0_i64;
            for (part, child) in parts.iter().zip(children) {
                varint::put_signed(&mut node, part.offset.wrapping_sub(before));
                varint::put(&mut node, child);
                before = part.offset;
            }
        }
    }
    table.add(shape.address(), node)
}

/// Reads one node, which must already be in normal form.
fn read(reader: &mut Reader<'_>, nodes: &[Shape]) -> Result<Shape, WireError> {
    let tag = reader.byte()?;
    let shape = match tag {
        DENSE => match reader.number()? {
            0 => return Err(WireError::Invalid("length")),
            len => Shape::dense(len)?,
        },
        REPEAT => read_repeat(reader, nodes)?,
        COPIES => placed_at_zero(read_copies(reader, nodes)?)?,
        BLOCKS => placed_at_zero(read_blocks(reader)?)?,
        SEQUENCE => placed_at_zero(read_sequence(reader, nodes)?)?,
        _ => return Err(WireError::Invalid("node kind")),
    };
    let kept = match &shape.kind {
        Kind::Dense => DENSE,
        Kind::Repeat { .. } => REPEAT,
        Kind::Copies { .. } => COPIES,
        Kind::Blocks { .. } => BLOCKS,
        Kind::Sequence { .. } => SEQUENCE,
    };
    if kept == tag {
        Ok(shape)
    } else {
        Err(WireError::NotCanonical)
    }
}

fn placed_at_zero(placed: Option<Placed>) -> Result<Shape, WireError> {
    match placed {
        Some(Placed { at: 0, shape }) => Ok(shape),
        _ => Err(WireError::NotCanonical),
    }
}

fn read_repeat(reader: &mut Reader<'_>, nodes: &[Shape]) -> Result<Shape, WireError> {
    let child = earlier(reader, nodes)?;
    let (count, stride) = (reader.number()?, reader.signed()?);
    if count < 2 {
        return Err(WireError::Invalid("count"));
    }
    Ok(Shape::repeat(count, stride, child)?)
}

fn read_copies(reader: &mut Reader<'_>, nodes: &[Shape]) -> Result<Option<Placed>, WireError> {
    let child = earlier(reader, nodes)?;
    let count = reader.number()?;
    // The first copy is at zero and is not stored.
    let further = usize::try_from(count.saturating_sub(1)).map_err(|_| WireError::Truncated)?;
    if further > reader.remaining() {
        return Err(WireError::Truncated);
    }
    let mut parts = Vec::with_capacity(further + 1);
    let mut at = 0_i64;
    parts.push(Placed {
        at,
        shape: child.clone(),
    });
    for _ in 0..further {
        at = at.wrapping_add(reader.signed()?);
        parts.push(Placed {
            at,
            shape: child.clone(),
        });
    }
    Ok(sequence(parts)?)
}

fn read_blocks(reader: &mut Reader<'_>) -> Result<Option<Placed>, WireError> {
    let count = reader.count(2)?;
    let mut list = BlockList::with_capacity(count);
    let mut end = 0_i64;
    for _ in 0..count {
        let at = end.wrapping_add(reader.signed()?);
        let len = reader.number()?;
        list.push(at, len)?;
        end = at.wrapping_add(len.cast_signed());
    }
    Ok(list.finish()?)
}

fn read_sequence(reader: &mut Reader<'_>, nodes: &[Shape]) -> Result<Option<Placed>, WireError> {
    let count = reader.count(2)?;
    let mut parts = Vec::with_capacity(count);
    let mut at = 0_i64;
    for _ in 0..count {
        at = at.wrapping_add(reader.signed()?);
        parts.push(Placed {
            at,
            shape: earlier(reader, nodes)?.clone(),
        });
    }
    Ok(sequence(parts)?)
}
