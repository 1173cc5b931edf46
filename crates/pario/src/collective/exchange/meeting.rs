//! Calls that move no data: the ranks meet as they do in accesses, so that a rank
//! in another call is noticed by all.

use std::sync::{Arc, OnceLock};

use pario_exchange::{Direction, Entry, Event, Failure, Progress, Setting, Table};
use pario_hints::Hints;
use pario_transport::Transport;

use super::{Environment, ExchangeState, Step};
use crate::Result;

impl ExchangeState {
    /// Exchanges entries without data. `check` is asked if they differ. Collective.
    pub(in super::super) fn meet(
        &mut self,
        comm: &dyn Transport,
        hints: &Arc<Hints>,
        entry: Entry,
        check: &dyn Fn(&Table) -> Option<Failure>,
    ) -> Result<Progress> {
        let environment = Environment {
            comm,
            operation: None,
            planned: OnceLock::new(),
            done: Default::default(),
        };
        let mut planner = |_: &mut ExchangeState, table: &Table| {
            Ok(Step::Alone(Progress {
                failure: check(table),
                ..Progress::ALL
            }))
        };
        // Explanations are of the last access.
        let last = (self.was_eager, self.setting.take());
        let setting = self.meeting_setting(comm, hints);
        let result = self.run(&environment, setting, Event::Entered(entry), &mut planner);
        (self.was_eager, self.setting) = last;
        result
    }

    /// The setting of reads with these hints, if there is one: the tree of ranks is the same in
    /// all calls, and nothing else is used.
    fn meeting_setting(&mut self, comm: &dyn Transport, hints: &Arc<Hints>) -> Arc<Setting> {
        match &self.entered[Direction::Read as usize] {
            Some((known, setting)) if Arc::ptr_eq(known, hints) => setting.clone(),
            _ => self.entered_setting(comm, hints, Direction::Read, 1),
        }
    }
}
