//! Wire forms of layouts and datatypes.
//!
//! Both are a table of nodes in variable-length integers: children before parents, equal nodes
//! once. Each value has exactly one form: [`from_wire`](Layout::from_wire) accepts only what
//! [`to_wire`](Layout::to_wire) writes. Reading uses the same constructors as building, so a
//! value from the wire has every invariant, and all counts are limited by the length of the
//! input.

mod datatype;
mod layout;

use std::collections::{HashMap, HashSet};
use std::hash::Hash;

use crate::varint::{self, Reader};
use crate::{Layout, WireError};

/// The nodes of a value under construction, each encoded once.
#[derive(Debug)]
struct Table {
    out: Vec<u8>,
    count: u64,
    /// Index by allocation, so that a shared node is visited once.
    visited: HashMap<usize, u64>,
    /// Index by content, so that equal nodes become one.
    known: HashMap<Vec<u8>, u64>,
}

impl Table {
    fn new() -> Self {
        Self {
            out: Vec::new(),
            count: 0,
            visited: HashMap::new(),
            known: HashMap::new(),
        }
    }

    fn visited(&self, address: usize) -> Option<u64> {
        self.visited.get(&address).copied()
    }

    /// Adds an encoded node whose children are already in the table.
    fn add(&mut self, address: usize, node: Vec<u8>) -> u64 {
        let index = match self.known.get(&node) {
            Some(&index) => index,
            None => {
                self.out.extend_from_slice(&node);
                self.count += 1;
                self.known.insert(node, self.count - 1);
                self.count - 1
            }
        };
        self.visited.insert(address, index);
        index
    }

    /// The table, preceded by the format byte.
    fn finish(self, format: u8) -> Vec<u8> {
        let mut out = vec![format];
        varint::put(&mut out, self.count);
        out.extend_from_slice(&self.out);
        out
    }
}

/// Reads the nodes of a table; `node` decodes one, given those before it.
fn read_table<'a, T>(
    reader: &mut Reader<'a>,
    format: u8,
    node: impl Fn(&mut Reader<'a>, &[T]) -> Result<T, WireError>,
) -> Result<Vec<T>, WireError> {
    match reader.byte()? {
        found if found == format => {}
        found => return Err(WireError::Version(found)),
    }
    let count = reader.count(NODE_BYTES_MIN)?;
    let mut nodes = Vec::with_capacity(count);
    let mut seen = HashSet::with_capacity(count);
    for _ in 0..count {
        let before = reader.rest();
        nodes.push(node(reader, &nodes)?);
        // Duplicates could make comparing their parents exponential.
        let encoded = &before[..before.len() - reader.remaining()];
        insert_new(&mut seen, encoded)?;
    }
    Ok(nodes)
}

/// A tag and a field.
const NODE_BYTES_MIN: usize = 2;

fn insert_new<T: Eq + Hash>(seen: &mut HashSet<T>, value: T) -> Result<(), WireError> {
    if seen.insert(value) {
        Ok(())
    } else {
        Err(WireError::NotCanonical)
    }
}

/// The earlier node that an index in the input refers to.
fn earlier<'n, T>(reader: &mut Reader<'_>, nodes: &'n [T]) -> Result<&'n T, WireError> {
    let index = usize::try_from(reader.number()?).ok();
    index
        .and_then(|index| nodes.get(index))
        .ok_or(WireError::Invalid("node reference"))
}

impl Layout {
    /// A content hash: equal layouts have equal hashes in every process.
    pub fn content_hash(&self) -> u128 {
        Layout::hash_of_wire(&self.to_wire())
    }

    /// The content hash of the layout with this wire form.
    pub fn hash_of_wire(wire: &[u8]) -> u128 {
        xxhash_rust::xxh3::xxh3_128(wire)
    }
}
