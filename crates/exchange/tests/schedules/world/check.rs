//! What must hold at the end, and on the way to it.

use std::ops::Range;

use pario_exchange::{
    Accesses, Action, Buffer, Direction, Finished, Kind, Message, Progress, Rank, Realm, Span,
};

use super::{Item, NOTHING, OF_FILE, World};
use crate::case::Fault;

impl World<'_> {
    /// Windows are cut where they may be, slices are granted in ascending
    /// order, and all actions are counted.
    pub(super) fn check_action(&mut self, rank: Rank, action: &Action) {
        let counted = &mut self.counted[rank.index()];
        match action {
            Action::Control {
                message, payload, ..
            } => {
                counted.control_messages += 1;
                counted.control_bytes += message.to_wire().len() as u64;
                counted.control_bytes += payload.iter().map(Span::bytes).sum::<u64>();
            }
            Action::Notify { .. } => counted.notes += 1,
            Action::Send { span, .. } => {
                counted.data_messages += 1;
                counted.data_bytes += span.bytes();
            }
            Action::Copy { .. }
            | Action::Arrange { .. }
            | Action::Pack { .. }
            | Action::Unpack { .. } => counted.copies += 1,
            Action::Transfer { .. } | Action::TransferEager { .. } => counted.transfers += 1,
            _ => {}
        }
        if let Action::Control { to, message, .. } | Action::Notify { to, message, .. } = action {
            self.check_message(*to, message);
        }
        match action {
            Action::Transfer { realm, file, .. } => self.check_cut(*realm, file),
            Action::Control {
                to,
                message: Message::Grant { slice, .. },
                ..
            } => {
                let end = self.granted.insert((slice.realm, *to), slice.file.end);
                let is_next = end.is_none_or(|end| end <= slice.file.start);
                assert!(is_next, "{slice:?} is granted out of order");
            }
            _ => {}
        }
    }

    /// Ranks are asked about ranges in which they have data, and no others.
    fn check_message(&self, to: Rank, message: &Message) {
        let bytes = |rank, realm, file: &Range<u64>| {
            let part = self.case.accesses.part(rank, realm, file.clone());
            part.len() as u64
        };
        match message {
            Message::Move { realm, file, .. } | Message::Skip { realm, file } => {
                assert!(bytes(to, *realm, file) > 0, "{to:?} gets {message:?}");
            }
            Message::Discard { realm, file, ranks } => {
                let is_concerned = |rank: &Rank| bytes(*rank, *realm, file) > 0;
                assert!(ranks.iter().all(is_concerned), "{to:?} gets {message:?}");
            }
            Message::Grant { slice, .. } | Message::Offer { slice, .. } => {
                for part in &slice.parts {
                    let own = bytes(part.rank, slice.realm, &slice.file);
                    assert!(part.bytes == own && own > 0, "{part:?} of {message:?}");
                }
            }
            _ => {}
        }
    }

    /// Windows end at a multiple of the unit, where there is one.
    fn check_cut(&self, realm: Realm, file: &Range<u64>) {
        let unit = self.case.setting.limits.unit;
        let is_cut = file.end.is_multiple_of(unit) || file.end / unit * unit <= file.start;
        let is_end = file.end >= self.case.accesses.hull(realm).end;
        assert!(
            is_cut || is_end,
            "window {file:?} is cut within a unit of {unit}"
        );
    }

    pub(super) fn finish(&mut self, rank: Rank, finished: Finished) {
        let pending = self
            .items
            .iter()
            .find(|item| matches!(item, Item::Complete(other, _) if *other == rank));
        assert!(pending.is_none(), "{rank:?} finishes before {pending:?}");
        let counters = self.machines[rank.index()].counters();
        assert!(counters.memory_bytes_max <= self.machines[rank.index()].memory_max());
        for it in &self.transits {
            let own = [
                (it.to, it.received, Some(&it.receive)),
                (it.from, it.sent, it.send.as_ref()),
            ];
            for (_, _, request) in own.iter().filter(|it| it.0 == rank && !it.1) {
                let Some((_, span)) = request else {
                    continue;
                };
                match &finished {
                    Finished::Lost { parked, .. } if parked.contains(&span.buffer) => {}
                    _ => panic!("{rank:?} finishes while {span:?} is under a request"),
                }
            }
        }
        assert!(self.finished[rank.index()].replace(finished).is_none());
    }

    /// After the last event.
    pub(crate) fn check(&self) {
        for rank in (0..self.machines.len() as u32).map(Rank) {
            if self.gone != Some(rank) {
                self.check_rank(rank);
            }
            let mut counters = self.machines[rank.index()].counters();
            (counters.events, counters.lookups, counters.memory_bytes_max) = (0, 0, 0);
            assert_eq!(counters, self.counted[rank.index()], "{rank:?} counts");
        }
        let is_lost = self.gone.is_some();
        assert!(is_lost || self.transits.iter().all(|it| it.sent && it.received));
        let expected = match self.case.fault {
            Fault::Argument(rank) => Progress {
                stop: 0,
                failure: self.entry(rank).failure,
            },
            _ => self.failed.clone(),
        };
        let mut is_agreed = false;
        for finished in self.finished.iter().flatten() {
            if let Finished::Agreed(progress) = finished {
                assert_eq!(*progress, expected, "all ranks agree");
                is_agreed = true;
            }
        }
        if is_agreed {
            self.check_data(expected.stop);
        }
    }

    /// One rank's call is over, and its buffers are given back or parked.
    fn check_rank(&self, rank: Rank) {
        let parked = match &self.finished[rank.index()] {
            Some(Finished::Lost { parked, .. }) => {
                assert!(self.gone.is_some(), "{rank:?} misses a rank that is there");
                parked.as_slice()
            }
            Some(Finished::Agreed(_)) => &[],
            None => panic!("{rank:?} hangs: {:#?}", self.machines[rank.index()]),
        };
        let count = |is: fn(&Buffer) -> bool| parked.iter().filter(|it| is(it)).count() as i64;
        let arrived = count(|it| it.kind == Kind::Arrival);
        assert_eq!(self.arrived[rank.index()], arrived, "payloads are released");
        let extra = count(|it| match it.kind {
            Kind::Window(_) | Kind::Staging(_) | Kind::Node(_) => it.index > 0,
            Kind::Eager | Kind::EagerWindow | Kind::Arrival => false,
        });
        assert_eq!(self.extra[rank.index()], extra, "buffers are given back");
    }

    /// Shared buffers that did not come back.
    pub(crate) fn kept(&self) -> u32 {
        self.extra.iter().sum::<i64>() as u32
    }

    /// Every byte below the stop was moved.
    fn check_data(&self, stop: u64) {
        for (rank, offsets) in self.case.accesses.offsets.iter().enumerate() {
            let is_read = self.case.setting.direction == Direction::Read;
            let is_agreed = matches!(self.finished[rank], Some(Finished::Agreed(_)));
            for (index, offset) in offsets.iter().enumerate() {
                let token = self.memory[rank][index];
                let moved = match self.case.setting.direction {
                    Direction::Write => self.file[*offset as usize] != NOTHING,
                    Direction::Read => token == OF_FILE | offset,
                };
                assert!(
                    moved || *offset >= stop || (is_read && !is_agreed),
                    "byte {index} of rank {rank} is lost"
                );
                assert!(
                    !is_read || moved || token == NOTHING,
                    "a rank gets a wrong byte"
                );
            }
        }
    }
}
