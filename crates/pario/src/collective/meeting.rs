//! The start of collective calls that move no data.
//!
//! On one node, accesses and other calls start with the same gather, which notices ranks in
//! different calls, and so do independent calls (`independent.rs`). Other accesses between nodes
//! start with the exchange protocol, so calls without data do, too: otherwise a rank in
//! `write_all` and one in `close` would wait for each other.

use pario_exchange::{Failure, Rank, Table};

use super::{
    CollectiveContext,
    entry::{check_same_call, meeting_entry, status},
};
use crate::{Error, Result, collective_call::CollectiveCall, file::Inner};

impl CollectiveContext {
    /// Meets the other ranks at the start of a call, if they are on several nodes: all get an
    /// error if one of them is in another call, or if `mine`, the error of this rank so far,
    /// or that of another rank is one. `None` if accesses start with a gather: then the ranks have
    /// not met. *Collective*.
    pub(crate) fn meet(
        &self,
        file: &Inner,
        call: CollectiveCall,
        mine: Option<&Error>,
    ) -> Option<Result<()>> {
        let comm = &*self.comm;
        let settings = file.settings();
        let mut state = self.state();
        let is_met = state.exchange.spans_nodes(comm)
            && !state.independent_path.is_independent(file, comm, &settings);
        if !is_met {
            return None;
        }
        let me = Rank(comm.rank().0);
        let failure = |error: &Error| Failure {
            rank: me,
            detail: error.to_wire().into(),
        };
        let check = |table: &Table| {
            let mismatch = check_same_call(table).err();
            mismatch.as_ref().map(failure).or_else(|| table.failure())
        };
        let entry = meeting_entry(call, mine.map(failure));
        let met = state.exchange.meet(comm, &settings.hints, entry, &check);
        Some(met.and_then(|progress| {
            // This rank may have found a mismatch, which says more than its error.
            let is_mine = |error: &&Error| {
                let reported = progress.failure.as_ref();
                reported.is_some_and(|it| *it.detail == *error.to_wire())
            };
            let own = mine.filter(is_mine).cloned();
            status(comm, 0, progress.failure.clone(), own).map(drop)
        }))
    }
}
