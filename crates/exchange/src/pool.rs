//! The buffers of one kind: one is reserved, more are acquired if possible.

use crate::{Action, Buffer, Kind, Rank};

/// Whether to request more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asking {
    May,
    Asked,
    Refused,
}

/// Buffers of one kind. The first is reserved, so that progress needs no
/// more; others are asked for without waiting (a machine that waits for a
/// buffer while it holds one could wait for itself).
#[derive(Debug)]
pub(crate) struct Pool {
    owner: Rank,
    kind: Kind,
    bytes: u64,
    max: u32,
    held: u32,
    free: Vec<u32>,
    asking: Asking,
}

impl Pool {
    pub(crate) fn new(owner: Rank, kind: Kind, bytes: u64, max: u32) -> Pool {
        Pool {
            owner,
            kind,
            bytes,
            max,
            held: 1,
            free: vec![0],
            asking: Asking::May,
        }
    }

    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// A free buffer; if there is none, one more is asked for.
    pub(crate) fn take(&mut self, out: &mut Vec<Action>) -> Option<Buffer> {
        let index = self.free.pop();
        if index.is_none() && self.held < self.max && self.asking == Asking::May {
            self.asking = Asking::Asked;
            out.push(Action::TryAcquire(self.kind));
        }
        index.map(|index| self.buffer(index))
    }

    fn buffer(&self, index: u32) -> Buffer {
        Buffer {
            owner: self.owner,
            kind: self.kind,
            index,
        }
    }

    pub(crate) fn put(&mut self, buffer: Buffer) {
        debug_assert!(buffer.kind == self.kind && !self.free.contains(&buffer.index));
        self.free.push(buffer.index);
    }

    pub(crate) fn acquired(&mut self) {
        self.asking = Asking::May;
        self.free.push(self.held);
        self.held += 1;
    }

    pub(crate) fn refused(&mut self) {
        self.asking = Asking::Refused;
    }

    pub(crate) fn space_freed(&mut self) {
        if self.asking == Asking::Refused {
            self.asking = Asking::May;
        }
    }

    /// Whether a request has not been answered.
    pub(crate) fn is_asking(&self) -> bool {
        self.asking == Asking::Asked
    }

    /// At the end: releases acquired buffers, and returns those in use.
    pub(crate) fn close(&mut self, out: &mut Vec<Action>) -> Vec<Buffer> {
        let (free, used): (Vec<u32>, Vec<u32>) =
            (0..self.held).partition(|index| self.free.contains(index));
        let acquired = free.into_iter().filter(|index| *index > 0);
        out.extend(acquired.map(|index| Action::Release(self.buffer(index))));
        used.into_iter().map(|index| self.buffer(index)).collect()
    }
}
