//! A checker of atomic mode: is there a serial order of all accesses, each
//! rank's in the order it made them, that explains what every read saw and
//! what the file holds in the end?
//!
//! The search is complete, so `None` proves that there is no such order. It
//! walks over how far each rank has come and what the cells hold then, never
//! through the same situation twice. A read that fits is taken at once: it
//! changes nothing, so taking it later could not help.

use std::collections::HashSet;

/// What a cell holds: unique to the write that put it there.
pub(crate) type Stamp = u64;

/// One access of one rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Put one stamp into all these cells.
    Write { cells: Vec<usize>, stamp: Stamp },
    /// Found these stamps in these cells.
    Read { cells: Vec<usize>, seen: Vec<Stamp> },
}

/// What happened between two moments at which no access was under way.
#[derive(Clone, Debug)]
pub(crate) struct History {
    /// What the cells held at first.
    pub(crate) before: Vec<Stamp>,
    /// What each rank did, in order.
    pub(crate) ranks: Vec<Vec<Access>>,
    /// What the cells held at last.
    pub(crate) after: Vec<Stamp>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Situation {
    /// How many accesses of each rank are done.
    done: Vec<usize>,
    cells: Vec<Stamp>,
}

impl History {
    /// The ranks whose turn it is, one after the other, in an order that
    /// explains everything; `None` if nothing does.
    pub(crate) fn serial_order(&self) -> Option<Vec<usize>> {
        let start = Situation {
            done: vec![0; self.ranks.len()],
            cells: self.before.clone(),
        };
        let mut order = Vec::new();
        self.search(start, &mut order, &mut HashSet::new())
            .then_some(order)
    }

    fn search(
        &self,
        mut now: Situation,
        order: &mut Vec<usize>,
        tried: &mut HashSet<Situation>,
    ) -> bool {
        let mark = order.len();
        while let Some(rank) = self.fitting_read(&now) {
            now.done[rank] += 1;
            order.push(rank);
        }
        if tried.insert(now.clone()) {
            if self.is_end(&now) {
                return true;
            }
            for rank in 0..self.ranks.len() {
                if let Some(Access::Write { cells, stamp }) = self.next(&now, rank) {
                    let mut then = now.clone();
                    then.done[rank] += 1;
                    cells.iter().for_each(|cell| then.cells[*cell] = *stamp);
                    order.push(rank);
                    if self.search(then, order, tried) {
                        return true;
                    }
                    order.pop();
                }
            }
        }
        order.truncate(mark);
        false
    }

    fn next(&self, now: &Situation, rank: usize) -> Option<&Access> {
        self.ranks[rank].get(now.done[rank])
    }

    fn fitting_read(&self, now: &Situation) -> Option<usize> {
        (0..self.ranks.len()).find(|rank| match self.next(now, *rank) {
            Some(Access::Read { cells, seen }) => cells
                .iter()
                .zip(seen)
                .all(|(cell, stamp)| now.cells[*cell] == *stamp),
            _ => false,
        })
    }

    fn is_end(&self, now: &Situation) -> bool {
        (0..self.ranks.len()).all(|rank| self.next(now, rank).is_none()) && now.cells == self.after
    }
}

/// The wire form, for ranks that show each other what they did: numbers of
/// eight bytes. Kind, how many cells, the cells, the stamps.
pub(crate) fn to_wire(accesses: &[Access]) -> Vec<u8> {
    let mut numbers = Vec::new();
    for access in accesses {
        let (kind, cells, stamps) = match access {
            Access::Write { cells, stamp } => (0, cells, std::slice::from_ref(stamp)),
            Access::Read { cells, seen } => (1, cells, seen.as_slice()),
        };
        numbers.extend([kind, cells.len() as u64]);
        numbers.extend(cells.iter().map(|cell| *cell as u64));
        numbers.extend(stamps);
    }
    numbers.into_iter().flat_map(u64::to_le_bytes).collect()
}

/// The accesses that [`to_wire`] wrote.
pub(crate) fn from_wire(wire: &[u8]) -> Vec<Access> {
    let mut numbers = stamps(wire).into_iter();
    let mut accesses = Vec::new();
    while let Some(kind) = numbers.next() {
        let count = numbers.next().expect("a kind is followed by a count") as usize;
        let cells = numbers.by_ref().take(count).map(|cell| cell as usize);
        let cells = cells.collect();
        accesses.push(match kind {
            0 => Access::Write {
                cells,
                stamp: numbers.next().expect("a write has a stamp"),
            },
            _ => Access::Read {
                cells,
                seen: numbers.by_ref().take(count).collect(),
            },
        });
    }
    accesses
}

/// The stamps that bytes of cells make.
pub(crate) fn stamps(bytes: &[u8]) -> Vec<Stamp> {
    let (cells, rest) = bytes.as_chunks::<8>();
    assert!(rest.is_empty(), "cells are whole");
    cells
        .iter()
        .map(|cell| Stamp::from_le_bytes(*cell))
        .collect()
}
