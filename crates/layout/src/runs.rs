//! Iteration over strided runs.

use std::ops::Range;

use crate::layout::Row;
use crate::shape::{Kind, Node};

/// `count` pieces of `len` bytes, the first at `offset`, `stride` apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Offset of the first piece.
    pub offset: i64,
    /// Length of each piece, at least one.
    pub len: u64,
    /// Distance between consecutive pieces; zero if there is only one.
    pub stride: i64,
    /// Number of pieces, at least one.
    pub count: u64,
}

impl Run {
    pub(crate) fn single(offset: i64, len: u64) -> Self {
        Self {
            offset,
            len,
            stride: 0,
            count: 1,
        }
    }

    /// `count` pieces, at least one.
    fn strided(offset: i64, len: u64, stride: i64, count: u64) -> Self {
        let stride = if count == 1 { 0 } else { stride };
        Self {
            offset,
            len,
            stride,
            count,
        }
    }

    /// Number of data bytes in the run.
    pub fn bytes(&self) -> u64 {
        self.len * self.count
    }

    /// Offset of the `index`-th piece.
    pub fn piece(&self, index: u64) -> i64 {
        // A row that spans the whole range of offsets is longer than an `i64`, but each of its
        // pieces has an offset that fits.
        let distance = self.stride.wrapping_mul(index.cast_signed());
        self.offset.wrapping_add(distance)
    }

    /// Offset and length of each piece.
    pub fn pieces(self) -> impl Iterator<Item = (i64, u64)> {
        (0..self.count).map(move |index| (self.piece(index), self.len))
    }

    /// End of the last piece. A piece that starts below 0 may be longer than any offset.
    fn tail(&self) -> i64 {
        self.piece(self.count - 1).wrapping_add_unsigned(self.len)
    }

    /// Whether `next` continues this row of equal pieces.
    fn continues_with(&self, next: &Run) -> bool {
        let stride = if self.count > 1 {
            self.stride
        } else {
            next.stride
        };
        (self.count > 1 || next.count > 1)
            && self.len == next.len
            && (next.count == 1 || next.stride == stride)
            && self.piece(self.count - 1).checked_add(stride) == Some(next.offset)
    }

    fn without_first(&self) -> Run {
        Run::strided(self.piece(1), self.len, self.stride, self.count - 1)
    }

    fn without_last(&self) -> Run {
        Run::strided(self.offset, self.len, self.stride, self.count - 1)
    }
}

/// The position of an iteration at one level of the tree.
#[derive(Clone, Copy, Debug)]
struct Frame<'a> {
    node: &'a Node,
    base: i64,
    index: u64,
}

/// Runs as they occur in the tree: one per innermost row, adjacent pieces not joined.
#[derive(Clone, Debug)]
pub(crate) struct RawRuns<'a> {
    row: Option<&'a Row>,
    /// Levels below the row, down to the one whose entries are dense pieces. Empty before the first
    /// step in each copy.
    stack: Vec<Frame<'a>>,
    position: u64,
    end: u64,
    /// Bytes of the current piece already consumed.
    inside: u64,
}

impl<'a> RawRuns<'a> {
    pub(crate) fn new(row: Option<&'a Row>, data: Range<u64>) -> Self {
        let end = row.map_or(0, |row| data.end.min(row.limit));
        Self {
            row,
            stack: Vec::new(),
            position: data.start,
            end,
            inside: 0,
        }
    }

    /// Number of data bytes not yet returned.
    fn remaining(&self) -> u64 {
        self.end.saturating_sub(self.position)
    }

    /// A run of the endless row itself, if its copies are dense.
    fn next_of_row(&mut self, row: &Row) -> Run {
        let len = row.shape.size;
        let (index, inside) = (self.position / len, self.position % len);
        let offset = row.base(index) + inside.cast_signed();
        let run = if row.is_gapless() {
            Run::single(offset, self.remaining())
        } else if inside == 0 && self.remaining() >= len {
            Run::strided(offset, len, row.step, self.remaining() / len)
        } else {
            Run::single(offset, (len - inside).min(self.remaining()))
        };
        self.position += run.bytes();
        run
    }

    /// Points the stack at the current position.
    fn descend(&mut self, row: &'a Row) {
        let mut rest = self.position % row.shape.size;
        let mut node: &'a Node = &row.shape;
        let mut base = row.base(self.position / row.shape.size);
        while let Some(entry) = node.entry_of(rest) {
            self.stack.push(Frame {
                node,
                base,
                index: entry.index,
            });
            rest -= entry.start;
            base += entry.offset;
            let Some(shape) = entry.shape else { break };
            node = shape;
        }
        self.inside = rest;
    }

    /// Moves to the first piece after the current one, which is exhausted.
    fn advance(&mut self, pieces: u64) {
        self.inside = 0;
        let mut steps = pieces;
        while let Some(frame) = self.stack.last_mut() {
            frame.index += steps;
            steps = 1;
            let Some(entry) = frame.node.entry(frame.index) else {
                self.stack.pop();
                continue;
            };
            let mut base = frame.base + entry.offset;
            let mut shape = entry.shape;
            while let Some(inner) = shape.filter(|shape| !shape.is_dense()) {
                self.stack.push(Frame {
                    node: inner,
                    base,
                    index: 0,
                });
                let first = inner.entry(0);
                base += first.map_or(0, |entry| entry.offset);
                shape = first.and_then(|entry| entry.shape);
            }
            return;
        }
    }
}

impl Iterator for RawRuns<'_> {
    type Item = Run;

    fn next(&mut self) -> Option<Run> {
        if self.remaining() == 0 {
            return None;
        }
        let row = self.row?;
        if row.shape.is_dense() {
            return Some(self.next_of_row(row));
        }
        if self.stack.is_empty() {
            self.descend(row);
        }
        let frame = *self.stack.last()?;
        let entry = frame.node.entry(frame.index)?;
        let offset = frame.base + entry.offset + self.inside.cast_signed();
        let whole = self.remaining() / entry.size;
        let run = match &frame.node.kind {
            Kind::Repeat { count, stride, .. } if self.inside == 0 && whole > 0 => {
                Run::strided(offset, entry.size, *stride, whole.min(count - frame.index))
            }
            _ => Run::single(offset, (entry.size - self.inside).min(self.remaining())),
        };
        self.position += run.bytes();
        if run.count > 1 || self.inside + run.len == entry.size {
            self.advance(run.count);
        } else {
            self.inside += run.len;
        }
        Some(run)
    }
}

/// Strided runs in data order, with adjacent pieces joined; see
/// [`Layout::runs`](crate::Layout::runs).
#[derive(Clone, Debug)]
pub struct Runs<'a> {
    raw: RawRuns<'a>,
    /// The last run, which the next one may still extend.
    held: Option<Run>,
    /// A completed run that precedes the held one.
    ready: Option<Run>,
}

impl<'a> Runs<'a> {
    pub(crate) fn new(raw: RawRuns<'a>) -> Self {
        Self {
            raw,
            held: None,
            ready: None,
        }
    }

    /// Joins the last piece of `held` with the first of `next`, which starts where it ends; returns
    /// what can no longer change.
    fn join(&mut self, held: Run, next: Run) -> Option<Run> {
        let joined = Run::single(held.piece(held.count - 1), held.len + next.len);
        let before = (held.count > 1).then(|| held.without_last());
        if next.count == 1 {
            self.held = Some(joined);
            return before;
        }
        self.held = Some(next.without_first());
        match before {
            Some(_) => {
                self.ready = Some(joined);
                before
            }
            None => Some(joined),
        }
    }
}

impl Iterator for Runs<'_> {
    type Item = Run;

    fn next(&mut self) -> Option<Run> {
        if self.ready.is_some() {
            return self.ready.take();
        }
        loop {
            let Some(next) = self.raw.next() else {
                return self.held.take();
            };
            let Some(held) = self.held.take() else {
                self.held = Some(next);
                continue;
            };
            if held.tail() == next.offset {
                if let Some(run) = self.join(held, next) {
                    return Some(run);
                }
            } else if held.continues_with(&next) {
                let stride = if held.count > 1 {
                    held.stride
                } else {
                    next.stride
                };
                self.held = Some(Run {
                    stride,
                    count: held.count + next.count,
                    ..held
                });
            } else {
                self.held = Some(next);
                return Some(held);
            }
        }
    }
}
