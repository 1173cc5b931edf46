//! Where ranks live: threads of this process or processes of their own, on pretended nodes, or the
//! processes of an MPI, of which this one is one.

use std::sync::Arc;
use std::time::Instant;

use pario::{Transport, processes, threads};
use pario_mpi::PRETENDED_NODES;

use super::mpi::Mpi;
use super::outcome::{Outcome, Stop};
use crate::failure::Failure;

/// How ranks talk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Kind {
    /// Ranks are threads of one process.
    Threads,
    /// Ranks are forked processes.
    Processes,
    /// Ranks are the processes of an MPI.
    Mpi,
}

impl Kind {
    /// Its name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Threads => "threads",
            Kind::Processes => "processes",
            Kind::Mpi => "MPI",
        }
    }
}

/// The ranks of a run.
#[derive(Debug)]
pub(crate) struct World {
    kind: Kind,
    /// The node of each rank.
    nodes: Vec<u32>,
    /// The start of the clock that ranks share which this process makes.
    clock: Instant,
    /// The MPI that this process is a rank of.
    mpi: Option<Mpi>,
}

impl World {
    /// Ranks shared evenly among nodes, neighbours together.
    pub(crate) fn new(kind: Kind, ranks: u32, nodes: u32) -> Result<World, String> {
        if nodes > ranks {
            return Err(format!("{ranks} ranks cannot be on {nodes} nodes"));
        }
        let node = |rank: u32| (u64::from(rank) * u64::from(nodes) / u64::from(ranks)) as u32;
        Ok(World {
            kind,
            nodes: (0..ranks).map(node).collect(),
            clock: Instant::now(),
            mpi: None,
        })
    }

    /// The ranks of an MPI.
    pub(crate) fn of_mpi(mpi: Mpi) -> World {
        World {
            kind: Kind::Mpi,
            nodes: mpi.nodes(),
            clock: Instant::now(),
            mpi: Some(mpi),
        }
    }

    /// Which MPI it is, and how its ranks talk.
    pub(crate) fn about(&self) -> Option<&str> {
        self.mpi.as_ref().map(Mpi::about)
    }

    /// Whether this process has the memory of a rank. Forked ranks make their own: what this one
    /// had would stay beside what they change.
    pub(crate) fn holds(&self, rank: u32) -> bool {
        match &self.mpi {
            None => self.kind == Kind::Threads,
            Some(mpi) => mpi.rank() == rank,
        }
    }

    /// Whether a rank is on this machine, as far as can be told: where nodes are pretended, all
    /// are.
    pub(crate) fn is_here(&self, rank: u32) -> bool {
        let node = |rank: u32| self.nodes[rank as usize];
        std::env::var_os(PRETENDED_NODES).is_some()
            || self
                .mpi
                .as_ref()
                .is_none_or(|mpi| node(mpi.rank()) == node(rank))
    }

    /// Whether this process speaks for all ranks.
    pub(crate) fn leads(&self) -> bool {
        self.mpi.as_ref().is_none_or(Mpi::leads)
    }

    /// What one process does for all ranks; the others learn how it ended.
    pub(crate) fn lead<T>(
        &self,
        work: impl FnOnce() -> Result<T, Failure>,
    ) -> Result<Option<T>, Failure> {
        let done = match self.leads() {
            true => work().map(Some),
            false => Ok(None),
        };
        self.agree(done)
    }

    /// What every process has done; fails everywhere if one of them failed.
    pub(crate) fn agree<T>(&self, done: Result<T, Failure>) -> Result<T, Failure> {
        match &self.mpi {
            None => done,
            Some(mpi) => mpi.agree(done),
        }
    }

    /// A text of the leader.
    pub(crate) fn tell(&self, text: String) -> Result<String, Failure> {
        match &self.mpi {
            None => Ok(text),
            Some(mpi) => mpi.tell(text),
        }
    }

    /// The start of a clock that all ranks share. Collective.
    pub(crate) fn clock(&self) -> Result<Instant, Stop> {
        match &self.mpi {
            None => Ok(self.clock),
            Some(mpi) => mpi.clock(),
        }
    }

    /// Number of ranks.
    pub(crate) fn ranks(&self) -> u32 {
        self.nodes.len() as u32
    }

    /// The node of each rank.
    pub(crate) fn nodes(&self) -> &[u32] {
        &self.nodes
    }

    /// Whether ranks are processes of their own.
    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }

    /// Runs every rank; what each found, by rank, or the first cause why one stopped.
    pub(crate) fn run(
        &self,
        rank: impl Fn(Arc<dyn Transport>) -> Result<Outcome, Stop> + Sync,
    ) -> Result<Vec<Outcome>, Stop> {
        let results: Vec<Result<Outcome, Stop>> = match (self.kind, &self.mpi) {
            (Kind::Mpi, None) => vec![Err(Stop::Failed("no MPI has been started".to_owned()))],
            (_, Some(mpi)) => mpi.run(rank)?,
            (Kind::Threads, None) => threads::World::new(self.ranks())
                .nodes(&self.nodes)
                .run(rank)
                .into_iter()
                .map(|it| it.unwrap_or_else(|panic| Err(Stop::Failed(panic.to_string()))))
                .collect(),
            (Kind::Processes, None) => processes::World::new(self.ranks())
                .nodes(&self.nodes)
                .run(|comm| Outcome::encode(&rank(comm)))
                .into_iter()
                .map(|it| match it {
                    Ok(bytes) => Outcome::decode(&bytes),
                    Err(failure) => Err(Stop::Failed(failure.to_string())),
                })
                .collect(),
        };
        // A rank that lost its peers only tells that another one failed.
        let mut outcomes = Vec::with_capacity(results.len());
        let mut first: Option<Stop> = None;
        for result in results {
            match (result, &first) {
                (Ok(outcome), _) => outcomes.push(outcome),
                (Err(stop), None | Some(Stop::Lost(_))) => first = Some(stop),
                (Err(_), Some(_)) => {}
            }
        }
        first.map_or(Ok(outcomes), Err)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_shared_among_nodes() {
        let world = World::new(Kind::Threads, 5, 2).unwrap();
        assert_eq!(world.nodes(), [0, 0, 0, 1, 1]);
        assert!(World::new(Kind::Threads, 2, 3).is_err());
    }

    #[test]
    fn the_first_cause_survives() {
        let world = World::new(Kind::Threads, 3, 1).unwrap();
        let stop = world.run(|comm| match comm.rank().0 {
            0 => Err(Stop::Lost("rank 1 has gone".to_owned())),
            1 => Err(Stop::Wrong("byte 3".to_owned())),
            _ => panic!("no memory"),
        });
        assert_eq!(stop.unwrap_err(), Stop::Wrong("byte 3".to_owned()));
    }
}
