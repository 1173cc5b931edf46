//! The data of small calls, which travels with the messages that start and end
//! them.

use pario_exchange::{Buffer, Entry, Kind, Rank, Span, Table};
use pario_plan::Access;

use super::packed::PackedPart;
use crate::{Error, Result, access::WindowBuffer, operation::Operation};

/// The buffers of eager calls. They stay in this rank's memory: messages carry
/// copies.
#[derive(Debug, Default)]
pub(super) struct EagerBuffers {
    /// This rank's data.
    own: Vec<u8>,
    /// What the root reads.
    window: Vec<u8>,
    arrivals: Vec<Option<Vec<u8>>>,
}

impl EagerBuffers {
    /// Keeps the payload of a message.
    pub(super) fn arrive(&mut self, owner: Rank, payload: &[u8]) -> Vec<Span> {
        if payload.is_empty() {
            return Vec::new();
        }
        let free = self.arrivals.iter().position(Option::is_none);
        let index = free.unwrap_or(self.arrivals.len());
        if free.is_none() {
            self.arrivals.push(None);
        }
        self.arrivals[index] = Some(payload.to_vec());
        let buffer = Buffer {
            owner,
            kind: Kind::Arrival,
            index: index as u32,
        };
        let range = 0..payload.len() as u64;
        vec![Span { buffer, range }]
    }

    /// A buffer is free again.
    pub(super) fn release(&mut self, buffer: Buffer) {
        if buffer.kind == Kind::Arrival {
            self.arrivals[buffer.index as usize] = None;
        }
    }

    /// Forgets what an unfinished call has left.
    pub(super) fn reset(&mut self) {
        self.arrivals.clear();
    }

    /// This rank's buffer, with room for all its data.
    pub(super) fn own(&mut self, bytes: u64) -> WindowBuffer<'_> {
        self.own.resize(bytes as usize, 0);
        WindowBuffer::new(&mut self.own)
    }

    pub(super) fn bytes(&self, span: &Span) -> &[u8] {
        let buffer = match span.buffer.kind {
            Kind::Eager => &self.own,
            Kind::EagerWindow => &self.window,
            Kind::Arrival => {
                let arrival = self.arrivals[span.buffer.index as usize].as_ref();
                arrival.expect("a payload is kept until it is released")
            }
            Kind::Window(_) | Kind::Staging(_) | Kind::Node(_) => {
                unreachable!("only eager data travels with control messages")
            }
        };
        &buffer[span.range.start as usize..span.range.end as usize]
    }

    /// The data of all ranks, for the root's transfer. `accesses` are those of
    /// the ranks in `parts`.
    pub(super) fn parts<'a>(
        &'a mut self,
        accesses: &'a [Access],
        parts: &[(Rank, Vec<Span>)],
        table: &Table,
    ) -> Vec<PackedPart<'a>> {
        self.window.resize(table.bytes() as usize, 0);
        let own = WindowBuffer::new(&mut self.own);
        let window = WindowBuffer::new(&mut self.window);
        let arrivals: Vec<Option<WindowBuffer<'a>>> = self
            .arrivals
            .iter_mut()
            .map(|arrival| arrival.as_mut().map(|bytes| WindowBuffer::new(bytes)))
            .collect();
        let mut packed = Vec::new();
        for ((_, spans), access) in parts.iter().zip(accesses) {
            let mut at = 0;
            for span in spans {
                let buffer = match span.buffer.kind {
                    Kind::Eager => own,
                    Kind::EagerWindow => window,
                    _ => arrivals[span.buffer.index as usize]
                        .expect("a payload is kept until it is released"),
                };
                packed.push(PackedPart {
                    access,
                    data: at..at + span.bytes(),
                    buffer: buffer.part(span.range.start as usize..span.range.end as usize),
                });
                at += span.bytes();
            }
        }
        packed
    }
}

/// What a rank moves, from its view and its entry.
pub(super) fn access_of(operation: &Operation, rank: Rank, entry: &Entry) -> Result<Access> {
    let views = operation.view().rank_views();
    let layout = views.shapes[rank.index()].layout()?.clone();
    let displacement = views.displacements[rank.index()];
    Access::new(displacement, layout, entry.first, entry.len)
        .ok_or_else(|| Error::argument("an access extends past the last possible byte of a file"))
}
