//! The wire form of datatypes: the constructor tree.

use super::{Table, earlier, read_table};
use crate::datatype::{Constructor, Dimension, Lengths, Member, Unit};
use crate::varint::{self, Reader};
use crate::{Basic, Darray, Datatype, Distribution, Order, WireError};

/// Format and version in one: any change of the format takes a new number.
const FORMAT: u8 = 0x21;

const BASIC: u8 = 1;
const CONTIGUOUS: u8 = 2;
const VECTOR: u8 = 3;
const HVECTOR: u8 = 4;
const INDEXED: u8 = 5;
const HINDEXED: u8 = 6;
const INDEXED_BLOCK: u8 = 7;
const HINDEXED_BLOCK: u8 = 8;
const STRUCTURE: u8 = 9;
const SUBARRAY: u8 = 10;
const DARRAY: u8 = 11;
const RESIZED: u8 = 12;

impl Datatype {
    /// Serialises the datatype; see [`from_wire`](Self::from_wire).
    pub fn to_wire(&self) -> Vec<u8> {
        let mut table = Table::new();
        add(&mut table, self);
        table.finish(FORMAT)
    }

    /// Deserialises a datatype. Anything but the exact output of [`to_wire`](Self::to_wire) is
    /// an error. No input causes a panic or an allocation out of proportion to its length.
    pub fn from_wire(bytes: &[u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new(bytes);
        let mut nodes = read_table(&mut reader, FORMAT, read)?;
        reader.finish()?;
        let datatype: Datatype = nodes.pop().ok_or(WireError::Truncated)?;
        if datatype.to_wire() != bytes {
            return Err(WireError::NotCanonical);
        }
        Ok(datatype)
    }
}

fn add(table: &mut Table, datatype: &Datatype) -> u64 {
    if let Some(index) = table.visited(datatype.address()) {
        return index;
    }
    let children: Vec<u64> = datatype
        .constructor()
        .children()
        .map(|child| add(table, child))
        .collect();
    let node = encode(datatype.constructor(), &children);
    table.add(datatype.address(), node)
}

/// One constructor; `children` are the indices of its inner types.
fn encode(constructor: &Constructor, children: &[u64]) -> Vec<u8> {
    let mut out = Vec::new();
    let start = |out: &mut Vec<u8>, tag: u8| {
        out.push(tag);
        varint::put(out, children[0]);
    };
    match constructor {
        Constructor::Basic(basic) => out.extend([BASIC, basic.code()]),
        Constructor::Contiguous { count, .. } => {
            start(&mut out, CONTIGUOUS);
            varint::put(&mut out, *count);
        }
        Constructor::Vector {
            count,
            block_length,
            stride,
            unit,
            ..
        } => {
            start(
                &mut out,
                if *unit == Unit::Extents {
                    VECTOR
                } else {
                    HVECTOR
                },
            );
            varint::put(&mut out, *count);
            varint::put(&mut out, *block_length);
            varint::put_signed(&mut out, *stride);
        }
        Constructor::Indexed {
            lengths,
            displacements,
            unit,
            ..
        } => {
            start(&mut out, indexed_tag(lengths, *unit));
            put_blocks(&mut out, lengths, displacements);
        }
        Constructor::Structure { members } => {
            out.push(STRUCTURE);
            varint::put(&mut out, members.len() as u64);
            for (member, child) in members.iter().zip(children) {
                put_member(&mut out, member, *child);
            }
        }
        Constructor::Subarray {
            dimensions, order, ..
        } => {
            start(&mut out, SUBARRAY);
            out.push(order_code(*order));
            varint::put(&mut out, dimensions.len() as u64);
            for part in dimensions {
                put_dimension(&mut out, part);
            }
        }
        Constructor::Darray { array, .. } => {
            start(&mut out, DARRAY);
            put_array(&mut out, array);
        }
        Constructor::Resized {
            lower_bound,
            extent,
            ..
        } => {
            start(&mut out, RESIZED);
            varint::put_signed(&mut out, *lower_bound);
            varint::put_signed(&mut out, *extent);
        }
    }
    out
}

fn indexed_tag(lengths: &Lengths, unit: Unit) -> u8 {
    match (lengths, unit) {
        (Lengths::Each(_), Unit::Extents) => INDEXED,
        (Lengths::Each(_), Unit::Bytes) => HINDEXED,
        (Lengths::Uniform(_), Unit::Extents) => INDEXED_BLOCK,
        (Lengths::Uniform(_), Unit::Bytes) => HINDEXED_BLOCK,
    }
}

fn put_blocks(out: &mut Vec<u8>, lengths: &Lengths, displacements: &[i64]) {
    if let Lengths::Uniform(length) = lengths {
        varint::put(out, *length);
    }
    varint::put(out, displacements.len() as u64);
    let mut before = 0_i64;
    for (index, &place) in displacements.iter().enumerate() {
        varint::put_signed(out, place.wrapping_sub(before));
        before = place;
        if let Lengths::Each(lengths) = lengths {
            varint::put(out, lengths[index]);
        }
    }
}

fn put_member(out: &mut Vec<u8>, member: &Member, child: u64) {
    varint::put(out, member.block_length);
    varint::put_signed(out, member.displacement);
    varint::put(out, child);
}

fn put_dimension(out: &mut Vec<u8>, part: &Dimension) {
    varint::put(out, part.size);
    varint::put(out, part.subsize);
    varint::put(out, part.start);
}

fn order_code(order: Order) -> u8 {
    match order {
        Order::C => 0,
        Order::Fortran => 1,
    }
}

fn put_array(out: &mut Vec<u8>, array: &Darray) {
    out.push(order_code(array.order));
    varint::put(out, array.rank);
    varint::put(out, array.sizes.len() as u64);
    for (dimension, &size) in array.sizes.iter().enumerate() {
        varint::put(out, size);
        varint::put(out, array.grid[dimension]);
        // Zero is not a valid length, so it stands for "none given".
        let (code, length) = match array.distributions[dimension] {
            Distribution::None => (0, None),
            Distribution::Block(length) => (1, length),
            Distribution::Cyclic(length) => (2, length),
        };
        out.push(code);
        varint::put(out, length.unwrap_or(0));
    }
}

fn read(reader: &mut Reader<'_>, nodes: &[Datatype]) -> Result<Datatype, WireError> {
    let tag = reader.byte()?;
    match tag {
        BASIC => {
            let basic = Basic::from_code(reader.byte()?);
            return basic
                .map(Datatype::basic)
                .ok_or(WireError::Invalid("basic type"));
        }
        STRUCTURE => return read_structure(reader, nodes),
        _ => {}
    }
    let of = earlier(reader, nodes)?;
    let datatype = match tag {
        CONTIGUOUS => Datatype::contiguous(reader.number()?, of),
        VECTOR | HVECTOR => {
            let (count, block_length) = (reader.number()?, reader.number()?);
            let stride = reader.signed()?;
            match tag {
                VECTOR => Datatype::vector(count, block_length, stride, of),
                _ => Datatype::hvector(count, block_length, stride, of),
            }
        }
        INDEXED => Datatype::indexed(&read_blocks(reader)?, of),
        HINDEXED => Datatype::hindexed(&read_blocks(reader)?, of),
        INDEXED_BLOCK | HINDEXED_BLOCK => {
            let (block_length, places) = (reader.number()?, read_places(reader)?);
            match tag {
                INDEXED_BLOCK => Datatype::indexed_block(block_length, &places, of),
                _ => Datatype::hindexed_block(block_length, &places, of),
            }
        }
        SUBARRAY => return read_subarray(reader, of),
        DARRAY => Datatype::darray(&read_array(reader)?, of),
        RESIZED => Datatype::resized(of, reader.signed()?, reader.signed()?),
        _ => return Err(WireError::Invalid("constructor")),
    };
    Ok(datatype?)
}

fn read_structure(reader: &mut Reader<'_>, nodes: &[Datatype]) -> Result<Datatype, WireError> {
    let count = reader.count(3)?;
    let mut members = Vec::with_capacity(count);
    for _ in 0..count {
        let (block_length, displacement) = (reader.number()?, reader.signed()?);
        members.push((block_length, displacement, earlier(reader, nodes)?.clone()));
    }
    Ok(Datatype::structure(&members)?)
}

fn read_blocks(reader: &mut Reader<'_>) -> Result<Vec<(u64, i64)>, WireError> {
    let count = reader.count(2)?;
    let mut blocks = Vec::with_capacity(count);
    let mut place = 0_i64;
    for _ in 0..count {
        place = place.wrapping_add(reader.signed()?);
        blocks.push((reader.number()?, place));
    }
    Ok(blocks)
}

fn read_places(reader: &mut Reader<'_>) -> Result<Vec<i64>, WireError> {
    let count = reader.count(1)?;
    let mut places = Vec::with_capacity(count);
    let mut place = 0_i64;
    for _ in 0..count {
        place = place.wrapping_add(reader.signed()?);
        places.push(place);
    }
    Ok(places)
}

fn read_order(reader: &mut Reader<'_>) -> Result<Order, WireError> {
    match reader.byte()? {
        0 => Ok(Order::C),
        1 => Ok(Order::Fortran),
        _ => Err(WireError::Invalid("array order")),
    }
}

fn read_subarray(reader: &mut Reader<'_>, of: &Datatype) -> Result<Datatype, WireError> {
    let order = read_order(reader)?;
    let count = reader.count(3)?;
    let (mut sizes, mut subsizes, mut starts) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..count {
        sizes.push(reader.number()?);
        subsizes.push(reader.number()?);
        starts.push(reader.number()?);
    }
    Ok(Datatype::subarray(&sizes, &subsizes, &starts, order, of)?)
}

fn read_array(reader: &mut Reader<'_>) -> Result<Darray, WireError> {
    let order = read_order(reader)?;
    let rank = reader.number()?;
    let count = reader.count(4)?;
    let (mut sizes, mut grid) = (Vec::new(), Vec::new());
    let mut distributions = Vec::new();
    for _ in 0..count {
        sizes.push(reader.number()?);
        grid.push(reader.number()?);
        let code = reader.byte()?;
        let length = match reader.number()? {
            0 => None,
            length => Some(length),
        };
        distributions.push(match (code, length) {
            (0, None) => Distribution::None,
            (1, length) => Distribution::Block(length),
            (2, length) => Distribution::Cyclic(length),
            _ => return Err(WireError::Invalid("distribution")),
        });
    }
    let ranks = grid
        .iter()
        .try_fold(1_u64, |ranks, &side: &u64| ranks.checked_mul(side));
    let ranks = ranks.ok_or(WireError::Invalid("process grid"))?;
    Ok(Darray {
        ranks,
        rank,
        sizes,
        distributions,
        grid,
        order,
    })
}
