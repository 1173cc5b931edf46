//! Merging what the ranks have logged instead of writing it at the shared pointer: the records go
//! to the file in the order of time, by collective writes.

use std::{ops::Range, sync::Arc};

use pario_layout::{Basic, Datatype};

use super::{
    Inner,
    rank_views::{self, Hinting},
};
use crate::{
    Error, Result, agree,
    buffer::Memory,
    collective,
    collective_call::CollectiveCall,
    operation::{Call, Position},
    shared_pointer::{Log, Record},
    view::{FlattenedView, Use, View},
};

/// Records that the ranks exchange at once, all together.
const EXCHANGED_RECORDS: usize = 1 << 16;
/// What a rank writes in one collective call, unless a record is longer.
const WRITE_BYTES: u64 = 16 << 20;

impl Inner {
    /// Writes all logs to the file, if there are logs. *Collective*, within `call`: one that needs
    /// the data in the file, or the position of the shared pointer.
    pub(crate) fn merge_logs(self: &Arc<Self>, call: CollectiveCall) -> Result<()> {
        let Some(log) = self.shared_pointer.log() else {
            return Ok(());
        };
        self.collectively(call, || self.merge(log, call))
            .map_err(|error| self.name_error(error, call.name()))
    }

    fn merge(self: &Arc<Self>, log: &Log, call: CollectiveCall) -> Result<()> {
        let view = self.view();
        let ready = self
            .check_open()
            .and_then(|()| self.check_no_split())
            .and_then(|()| match call {
                CollectiveCall::Close | CollectiveCall::Sync => self.check_idle(),
                _ => self.wait_for_operations(),
            })
            .and_then(|()| view.whole_etypes(log.bytes()));
        let all = self.begin_with(call, ready.map(|own| own.to_le_bytes().to_vec()))?;
        let total = all.iter().map(|message| word(message, 0)).sum();
        if total == 0 {
            return Ok(());
        }
        let base = view.data_byte(self.advance_for_all(&*self.comm, total)?)?;
        let own = self.place(&log.records(), base)?;
        let written = self.write_placed(log, &view, &own);
        // Not again, even if it failed: the error says that data is missing.
        let cleared = log.clear().map_err(Error::from);
        agree::agree(&*self.comm, written.and(cleared))
    }

    /// Where the data of this rank's records goes, as data bytes of the view, in the order of its
    /// log. The records of all ranks follow each other in the order of time, from `base` on.
    fn place(&self, records: &[Record], base: u64) -> Result<Vec<Range<u64>>> {
        let comm = &*self.comm;
        let most = (EXCHANGED_RECORDS / comm.size() as usize).max(16);
        let (mut rest, mut next) = (records, base);
        let mut own: Vec<Range<u64>> = Vec::new();
        loop {
            let (sent, left) = rest.split_at(most.min(rest.len()));
            let mut message = vec![u8::from(!left.is_empty())];
            for record in sent {
                message.extend(record.time.to_le_bytes());
                message.extend(record.bytes.to_le_bytes());
            }
            let all = agree::gather(comm, Ok(message))?;
            // Whoever has more to send may have records after the last one that was sent.
            let has_more = |message: &&Vec<u8>| message.first() == Some(&1);
            let horizon = all.iter().filter(has_more).map(|it| last_time(it)).min();
            let horizon = horizon.unwrap_or(u64::MAX);
            let mut merged: Vec<(u64, usize, u64)> = Vec::new();
            for (rank, message) in all.iter().enumerate() {
                let records = message[1..].chunks_exact(16);
                let records = records.map(|record| (word(record, 0), rank, word(record, 8)));
                merged.extend(records.take_while(|(time, ..)| *time <= horizon));
            }
            merged.sort_unstable();
            let mut placed = 0;
            for (_, rank, bytes) in merged {
                if rank == comm.rank().index() {
                    placed += 1;
                    match own.last_mut() {
                        Some(last) if last.end == next => last.end += bytes,
                        _ => own.push(next..next + bytes),
                    }
                }
                next += bytes;
            }
            rest = &rest[placed..];
            if horizon == u64::MAX {
                return Ok(own);
            }
        }
    }

    /// Writes this rank's data, which is in the log in that order, to these data bytes of a view.
    fn write_placed(
        self: &Arc<Self>,
        log: &Log,
        view: &FlattenedView,
        own: &[Range<u64>],
    ) -> Result<()> {
        let mut calls = calls_of(own);
        let count = (calls.len() as u64).to_le_bytes().to_vec();
        let all = agree::gather(&*self.comm, Ok(count))?;
        let most = all.iter().map(|message| word(message, 0)).max();
        let mut start = 0;
        let mut result = Ok(());
        for _ in 0..most.unwrap_or(0) {
            let parts = calls.pop_front().unwrap_or_default();
            let bytes: u64 = parts.iter().map(|part| part.end - part.start).sum();
            let mut data = vec![0; bytes as usize];
            let read = log.read(start, &mut data).map_err(Error::from);
            start += bytes;
            // Ranks that cannot read their logs take part in the call with no data.
            let (parts, data) = match &read {
                Ok(()) => (&parts[..], &mut data[..]),
                Err(_) => (&[][..], &mut [][..]),
            };
            let written = self.write_parts(log, view, parts, data);
            result = result.and(read).and(written);
        }
        result
    }

    /// One collective write.
    fn write_parts(
        self: &Arc<Self>,
        log: &Log,
        view: &FlattenedView,
        parts: &[Range<u64>],
        data: &mut [u8],
    ) -> Result<()> {
        let runs = scattered(view, parts).and_then(|runs| {
            let byte = Datatype::basic(Basic::Byte);
            let filetype = Datatype::hindexed(&runs, &byte)?;
            FlattenedView::new(&View::new(0, &byte, &filetype), 0, Use::Writable, None)
        });
        let (mut rank_views, _) = rank_views::exchange(&*self.comm, &runs, Hinting::None, view)?;
        rank_views.family = log.next_family();
        let mut settings = (*self.settings()).clone();
        settings.set_view(Arc::new(runs?.with_rank_views(rank_views)));
        let call = Call::write("write_at_all", Position::At(0));
        let memory = Memory::of_bytes(data);
        collective::run_with(self, &self.context, call, &Arc::new(settings), memory).map(drop)
    }
}

/// The parts that each collective call writes.
fn calls_of(own: &[Range<u64>]) -> std::collections::VecDeque<Vec<Range<u64>>> {
    let mut calls = std::collections::VecDeque::new();
    let (mut parts, mut bytes) = (Vec::new(), 0);
    for part in own {
        let mut start = part.start;
        while start < part.end {
            let end = part.end.min(start + (WRITE_BYTES - bytes));
            parts.push(start..end);
            bytes += end - start;
            start = end;
            if bytes == WRITE_BYTES {
                calls.push_back(std::mem::take(&mut parts));
                bytes = 0;
            }
        }
    }
    if !parts.is_empty() {
        calls.push_back(parts);
    }
    calls
}

/// Where data bytes of a view are in the file: lengths and offsets.
fn scattered(view: &FlattenedView, parts: &[Range<u64>]) -> Result<Vec<(u64, i64)>> {
    let mut runs: Vec<(u64, i64)> = Vec::new();
    for part in parts {
        for run in view.layout().runs(part.clone()) {
            for (offset, len) in run.pieces() {
                let start = offset.checked_add_unsigned(view.displacement());
                let start = start.ok_or_else(|| {
                    Error::argument(
                        "the logs together reach past the last byte of a file, 2^63 - 1",
                    )
                })?;
                match runs.last_mut() {
                    Some((bytes, at)) if *at + *bytes as i64 == start => *bytes += len,
                    _ => runs.push((len, start)),
                }
            }
        }
    }
    Ok(runs)
}

/// The time of the last record in a message.
fn last_time(message: &[u8]) -> u64 {
    match message.len().checked_sub(16) {
        Some(at) => word(message, at),
        None => 0,
    }
}

fn word(bytes: &[u8], at: usize) -> u64 {
    let word = bytes.get(at..at + 8).and_then(|it| it.try_into().ok());
    word.map_or(0, u64::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_write_a_bounded_amount() {
        assert!(calls_of(&[]).is_empty());
        let calls = calls_of(&[0..10, 20..20 + 2 * WRITE_BYTES]);
        let bytes = |call: &Vec<Range<u64>>| call.iter().map(|it| it.end - it.start).sum::<u64>();
        assert_eq!(
            calls.iter().map(bytes).collect::<Vec<_>>(),
            [WRITE_BYTES, WRITE_BYTES, 10]
        );
        assert_eq!(calls[0][..], [0..10, 20..10 + WRITE_BYTES]);
        assert_eq!(calls[2][0].start, 10 + 2 * WRITE_BYTES);
    }
}
