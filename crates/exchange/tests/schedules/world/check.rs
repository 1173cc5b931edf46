//! What must hold at the end, and on the way to it.

use std::ops::Range;

use pario_exchange::{Accesses, Direction, Finished, Progress, Rank, Realm};

use super::{Item, NOTHING, OF_FILE, World};
use crate::case::Fault;

impl World<'_> {
    /// Windows end at a multiple of the unit, where there is one.
    pub(super) fn check_cut(&self, realm: Realm, file: &Range<u64>) {
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
            let is_over = self.finished[rank.index()].is_some() || self.gone == Some(rank);
            assert!(
                is_over,
                "{rank:?} hangs: {:#?}",
                self.machines[rank.index()]
            );
        }
        if self.gone.is_some() {
            return;
        }
        assert_eq!(self.arrived, 0, "payloads are released");
        assert!(
            self.extra.iter().all(|extra| *extra == 0),
            "buffers are given back"
        );
        assert!(self.transits.iter().all(|it| it.sent && it.received));
        let expected = match self.case.fault {
            Fault::Argument(rank) => Progress {
                stop: 0,
                failure: self.entry(rank).failure,
            },
            _ => self.failed.clone(),
        };
        for finished in self.finished.iter().flatten() {
            assert_eq!(
                *finished,
                Finished::Agreed(expected.clone()),
                "all ranks agree"
            );
        }
        self.check_data(expected.stop);
    }

    /// Every byte below the stop was moved.
    pub(super) fn check_data(&self, stop: u64) {
        for (rank, offsets) in self.case.accesses.offsets.iter().enumerate() {
            for (index, offset) in offsets.iter().enumerate() {
                let token = self.memory[rank][index];
                let moved = match self.case.setting.direction {
                    Direction::Write => self.file[*offset as usize] != NOTHING,
                    Direction::Read => token == OF_FILE | offset,
                };
                assert!(
                    moved || *offset >= stop,
                    "byte {index} of rank {rank} is lost"
                );
                let is_read = self.case.setting.direction == Direction::Read;
                assert!(
                    !is_read || moved || token == NOTHING,
                    "a rank gets a wrong byte"
                );
            }
        }
    }
}
