//! Deferred open: which ranks open a file at once, and which when they first need it
//! (Liao 2008).
//!
//! One rank per node opens the file, so that the nodes' mounts can be compared, and
//! so do the aggregators that hints determine. Rank 0 chooses for all.

use std::collections::HashMap;

use pario_driver::{Coherence, FileSystem, Handle};
use pario_hints::{Buffering, Hints};
use pario_plan::requested_aggregators;
use pario_transport::{Rank, Transport};

use super::late_handle::LateHandle;
use crate::{Result, agree};

/// Whether open is deferred, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Choice {
    /// All ranks open the file at once: opening is cheap here.
    Cheap,
    Disabled,
    Requested,
    NoIndependentAccess,
    ParallelFileSystem,
}

impl Choice {
    const ALL: [Choice; 5] = [
        Choice::Cheap,
        Choice::Disabled,
        Choice::Requested,
        Choice::NoIndependentAccess,
        Choice::ParallelFileSystem,
    ];

    /// The choice for a file, from the hints of rank 0 and the file system that it sees.
    pub(super) fn new(
        hints: &Hints,
        comm: &dyn Transport,
        file_system: impl FnOnce() -> Option<FileSystem>,
    ) -> Choice {
        match hints.pario_deferred_open {
            Buffering::Disable => Choice::Disabled,
            _ if comm.size() == 1 => Choice::Cheap,
            Buffering::Enable => Choice::Requested,
            Buffering::Automatic if hints.romio_no_indep_rw => Choice::NoIndependentAccess,
            Buffering::Automatic => {
                match shares_nodes(comm) && file_system().is_some_and(|found| found.is_parallel()) {
                    true => Choice::ParallelFileSystem,
                    false => Choice::Cheap,
                }
            }
        }
    }

    pub(super) fn code(self) -> u8 {
        self as u8
    }

    pub(super) fn from_code(code: u8) -> Choice {
        let found = Self::ALL.into_iter().find(|choice| choice.code() == code);
        found.unwrap_or(Choice::Cheap)
    }

    fn reason(self) -> Option<&'static str> {
        match self {
            Choice::Cheap | Choice::Disabled => None,
            Choice::Requested => Some("the hint pario_deferred_open requests it"),
            Choice::NoIndependentAccess => {
                Some("the hint romio_no_indep_rw excludes independent accesses")
            }
            Choice::ParallelFileSystem => {
                Some("nodes have several ranks, and each open is a request to a server")
            }
        }
    }
}

/// By rank, the first rank of its node.
fn node_openers(comm: &dyn Transport) -> Vec<Rank> {
    let mut firsts = HashMap::new();
    let ranks = (0..comm.size()).map(Rank);
    ranks
        .map(|rank| *firsts.entry(comm.node_of(rank)).or_insert(rank))
        .collect()
}

fn count_nodes(comm: &dyn Transport) -> usize {
    let openers = node_openers(comm);
    let own = |(rank, opener): (u32, &Rank)| opener.0 == rank;
    (0..).zip(&openers).filter(|it| own(*it)).count()
}

/// Whether the ranks are on several nodes, some of which have several.
fn shares_nodes(comm: &dyn Transport) -> bool {
    let nodes = count_nodes(comm);
    nodes > 1 && nodes < comm.size() as usize
}

/// How the ranks of a file open it.
#[derive(Debug)]
pub(super) struct Deferral {
    /// By rank, the rank whose descriptor it may use: itself if it opens the file at once.
    /// `None` if all ranks do.
    openers: Option<Vec<Rank>>,
    explanation: String,
}

impl Deferral {
    /// All ranks open the file at once.
    fn none(explanation: &str) -> Deferral {
        Deferral {
            openers: None,
            explanation: explanation.to_owned(),
        }
    }

    /// The same on all ranks.
    pub(super) fn new(comm: &dyn Transport, hints: &Hints, choice: Choice) -> Deferral {
        let Some(reason) = choice.reason() else {
            return Self::none("by all ranks at once");
        };
        let nodes: Vec<u32> = (0..comm.size())
            .map(|rank| comm.node_of(Rank(rank)).0)
            .collect();
        let aggregators = requested_aggregators(&nodes, hints).unwrap_or_default();
        let mut openers = node_openers(comm);
        for rank in aggregators {
            openers[rank as usize] = Rank(rank);
        }
        let at_once = (0..).zip(&openers).filter(|(rank, it)| it.0 == *rank);
        let explanation = format!(
            "by {} of {} ranks at once, by the others at their first access: {reason}",
            at_once.count(),
            comm.size(),
        );
        Deferral {
            openers: Some(openers),
            explanation,
        }
    }

    /// All ranks open the file, because they gave different names, each of which must be
    /// valid.
    pub(super) fn of_different_names() -> Deferral {
        Self::none("by all ranks at once: they gave different names")
    }

    /// All ranks open the file, because each node has a cache of its own to bypass.
    pub(super) fn of_several_caches() -> Deferral {
        Self::none("by all ranks at once: the file system is not coherent between nodes")
    }

    pub(super) fn is_used(&self) -> bool {
        self.openers.is_some()
    }

    /// The rank that opens the file for this one.
    pub(super) fn opener(&self, rank: Rank) -> Rank {
        let openers = self.openers.as_ref();
        openers.map_or(rank, |openers| openers[rank.index()])
    }

    pub(super) fn into_explanation(self) -> String {
        self.explanation
    }

    /// Opens the file after all where a rank could not do so later: if its node's descriptor
    /// is out of reach, or if the file system is not coherent, so that every rank has to take
    /// part in keeping it so. *Collective*.
    pub(super) fn settle(
        &mut self,
        comm: &dyn Transport,
        late: &LateHandle,
        shared: &dyn Handle,
    ) -> Result<()> {
        let is_coherent = !comm.spans_nodes() || shared.facts().coherence == Coherence::Everywhere;
        if !is_coherent {
            let kind = &shared.facts().file_system;
            self.explanation =
                format!("by all ranks at once: {kind} is not known to be coherent between nodes");
        }
        let opened = match late.is_open() || is_coherent && late.is_reachable() {
            true => Ok(()),
            false => late.open(),
        };
        agree::agree(comm, opened.map_err(Into::into))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pario_hints::{Info, Sources};
    use pario_transport::threads::World;

    fn choices(nodes: &'static [u32], pairs: &[(&str, &str)], kind: &FileSystem) -> Choice {
        let info = Info::from_pairs(pairs.iter().copied()).unwrap();
        let hints = Hints::resolve(&info, &Sources::none()).hints;
        let results = World::new(nodes.len() as u32).nodes(nodes).run(|comm| {
            let choice = Choice::new(&hints, &*comm, || Some(kind.clone()));
            assert_eq!(Choice::from_code(choice.code()), choice);
            choice
        });
        let mut results = results.into_iter().map(std::result::Result::unwrap);
        results.next().unwrap()
    }

    #[test]
    fn open_is_deferred_where_opening_is_expensive_or_on_request() {
        let lustre = &FileSystem::Lustre;
        let two = &[0, 0, 1, 1];
        assert_eq!(choices(two, &[], lustre), Choice::ParallelFileSystem);
        assert_eq!(choices(two, &[], &FileSystem::Ext), Choice::Cheap);
        assert_eq!(choices(two, &[], &FileSystem::Nfs), Choice::Cheap);
        assert_eq!(choices(&[0, 1, 2], &[], lustre), Choice::Cheap);
        assert_eq!(choices(&[0, 0, 0], &[], lustre), Choice::Cheap);
        let ext = &FileSystem::Ext;
        let collective = &[("romio_no_indep_rw", "true")];
        assert_eq!(
            choices(&[0, 0], collective, ext),
            Choice::NoIndependentAccess
        );
        assert_eq!(choices(&[0], collective, ext), Choice::Cheap);
        let requested = &[("pario_deferred_open", "enable")];
        assert_eq!(choices(&[0, 0], requested, ext), Choice::Requested);
        let disabled = &[
            ("pario_deferred_open", "disable"),
            ("romio_no_indep_rw", "true"),
        ];
        assert_eq!(choices(two, disabled, lustre), Choice::Disabled);
    }

    #[test]
    fn one_rank_per_node_and_the_aggregators_open_at_once() {
        let info = Info::from_pairs([("cb_config_list", "*:2")]).unwrap();
        let hints = Hints::resolve(&info, &Sources::none()).hints;
        let results = World::new(6).nodes(&[0, 0, 0, 1, 1, 1]).run(|comm| {
            let opener_of = |hints: &Hints| {
                let deferral = Deferral::new(&*comm, hints, Choice::Requested);
                let ranks = (0..6).map(|rank| deferral.opener(Rank(rank)).0);
                ranks.collect::<Vec<_>>()
            };
            (opener_of(&Hints::default()), opener_of(&hints))
        });
        for result in results {
            let (without, with) = result.unwrap();
            assert_eq!(without, [0, 0, 0, 3, 3, 3]);
            assert_eq!(with, [0, 1, 0, 3, 4, 3]);
        }
    }
}
