//! Lists of dense pieces.

use super::build::peaks;
use super::{Kind, Node, Placed, SearchIndex, Shape};
use crate::TypeError;

/// Collects dense pieces in data order and joins adjacent ones. Properties of the shape are
/// computed on the way, so that a million blocks are walked only once.
#[derive(Debug)]
pub(crate) struct BlockList {
    /// Offset of the first piece; the others are relative to it.
    at: i64,
    offsets: Vec<i64>,
    starts: Vec<u64>,
    size: u64,
    low: i64,
    high: i64,
    /// End of the last piece.
    tail: i64,
    /// End of the piece before the last.
    tail_before: i64,
    /// Each piece lies after the previous one.
    increasing: bool,
    /// Ends never decrease from piece to piece.
    rising: bool,
    /// All completed pieces have the length of the first.
    uniform: bool,
}

impl BlockList {
    pub(crate) fn with_capacity(blocks: usize) -> Self {
        Self {
            at: 0,
            offsets: Vec::with_capacity(blocks),
            starts: Vec::with_capacity(blocks),
            size: 0,
            low: 0,
            high: 0,
            tail: 0,
            tail_before: 0,
            increasing: true,
            rising: true,
            uniform: true,
        }
    }

    /// Adds `len` bytes at `at`. Does nothing if `len` is zero.
    pub(crate) fn push(&mut self, at: i64, len: u64) -> Result<(), TypeError> {
        if len == 0 {
            return Ok(());
        }
        let too_far = || TypeError::overflow("the true extent");
        let too_large = || TypeError::overflow("the size");
        if self.offsets.is_empty() {
            self.at = at;
        }
        let offset = at.checked_sub(self.at).ok_or_else(too_far)?;
        let length = i64::try_from(len).map_err(|_| too_large())?;
        let end = offset.checked_add(length).ok_or_else(too_far)?;
        let size = self.size + len;
        if i64::try_from(size).is_err() {
            return Err(too_large());
        }
        if self.offsets.is_empty() {
            self.open(offset);
        } else if offset != self.tail {
            self.close();
            self.increasing &= offset > self.tail;
            self.open(offset);
        }
        self.low = self.low.min(offset);
        self.high = self.high.max(end);
        self.tail = end;
        self.size = size;
        Ok(())
    }

    fn open(&mut self, offset: i64) {
        self.offsets.push(offset);
        self.starts.push(self.size);
    }

    /// Completes the last piece.
    fn close(&mut self) {
        self.rising &= self.tail >= self.tail_before;
        self.tail_before = self.tail;
        let started = self.starts.last().copied().unwrap_or(0);
        let first = self.starts.get(1).copied().unwrap_or(self.size);
        self.uniform &= self.size - started == first;
    }

    /// The lowest offset and the end of the highest byte, if there are any.
    pub(crate) fn bounds(&self) -> Option<(i128, i128)> {
        let absolute = |offset: i64| i128::from(self.at) + i128::from(offset);
        (self.size > 0).then(|| (absolute(self.low), absolute(self.high)))
    }

    /// The shape of all pieces; `None` if there are none.
    pub(crate) fn finish(mut self) -> Result<Option<Placed>, TypeError> {
        if self.offsets.is_empty() {
            return Ok(None);
        }
        self.close();
        let at = self.at;
        let shape = match self.starts.get(1) {
            None => Shape::dense(self.size)?,
            Some(&len) if self.uniform => Shape::copies(self.offsets, &Shape::dense(len)?)?,
            Some(_) => self.irregular(),
        };
        Ok(Some(Placed { at, shape }))
    }

    fn irregular(self) -> Shape {
        let ends = || {
            let stops = self.starts[1..].iter().copied().chain([self.size]);
            let lengths = stops.zip(&self.starts).map(|(stop, start)| stop - start);
            let places = self.offsets.iter().zip(lengths);
            places.map(|(at, len)| at + len.cast_signed())
        };
        let peaks = if self.rising { None } else { peaks(ends()) };
        let to_ladder = if self.increasing {
            SearchIndex::sorted
        } else {
            SearchIndex::unsorted
        };
        Node {
            size: self.size,
            low: self.low,
            high: self.high,
            tail: self.tail,
            pieces: self.offsets.len() as u64,
            depth: 1,
            increasing: self.increasing,
            kind: Kind::Blocks {
                peaks,
                offsets: to_ladder(self.offsets),
                starts: SearchIndex::sorted(self.starts),
            },
        }
        .share()
    }
}
