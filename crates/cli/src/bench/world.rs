//! Ranks: threads of this process or forked processes, on simulated nodes, or the processes
//! of an MPI, of which this one is one.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use pario_mpi::SIMULATED_NODES;
use pario_transport::{Rank, Transport, processes, threads};

use super::mpi::{Mpi, failed};
use super::outcome::{Outcome, RankResult, Stop, decode, encode};
use crate::failure::Failure;
use crate::measure::Scratch;

/// The rank that prints.
const LEADER: Rank = Rank(0);

/// The first byte of a rank's message about its work: success.
const DONE: u8 = 0;

/// What the ranks are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Kind {
    /// Threads of one process
    Threads,
    /// Forked processes
    Processes,
    /// The processes of an MPI
    Mpi,
}

impl Kind {
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
    /// The origin of the clock for ranks that this process creates.
    clock: Instant,
    /// The MPI that this process is a rank of.
    mpi: Option<Mpi>,
}

impl World {
    /// Ranks distributed evenly over nodes, neighbours together.
    pub(crate) fn new(kind: Kind, ranks: u32, nodes: u32) -> Result<World, String> {
        if nodes > ranks {
            return Err(format!("{ranks} ranks cannot occupy {nodes} nodes"));
        }
        let node = |rank: u32| (u64::from(rank) * u64::from(nodes) / u64::from(ranks)) as u32;
        Ok(World {
            kind,
            nodes: (0..ranks).map(node).collect(),
            clock: Instant::now(),
            mpi: None,
        })
    }

    pub(crate) fn of_mpi(mpi: Mpi) -> World {
        World {
            kind: Kind::Mpi,
            nodes: mpi.nodes(),
            clock: Instant::now(),
            mpi: Some(mpi),
        }
    }

    /// Which MPI it is, and how its ranks communicate.
    pub(crate) fn about(&self) -> Option<&str> {
        self.mpi.as_ref().map(|mpi| mpi.about.as_str())
    }

    /// Whether this process holds the memory of a rank. Forked ranks allocate their own: memory
    /// allocated here would be kept in addition to the pages that they modify.
    pub(crate) fn holds(&self, rank: u32) -> bool {
        match &self.mpi {
            None => self.kind == Kind::Threads,
            Some(mpi) => mpi.comm.rank().0 == rank,
        }
    }

    /// Whether a rank is on this machine, as far as is known: with simulated nodes, all are.
    pub(crate) fn is_here(&self, rank: u32) -> bool {
        let node = |rank: u32| self.nodes[rank as usize];
        std::env::var_os(SIMULATED_NODES).is_some()
            || self
                .mpi
                .as_ref()
                .is_none_or(|mpi| node(mpi.comm.rank().0) == node(rank))
    }

    /// Whether this process speaks for all ranks.
    pub(crate) fn leads(&self) -> bool {
        let mpi = self.mpi.as_ref();
        mpi.is_none_or(|mpi| mpi.comm.rank() == LEADER)
    }

    /// Runs an action in one process for all ranks; the others learn whether it failed.
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

    /// Fails everywhere if one process failed, with the reason of the first of them.
    pub(crate) fn agree<T>(&self, done: Result<T, Failure>) -> Result<T, Failure> {
        let Some(mpi) = &self.mpi else { return done };
        let mine = match &done {
            Ok(_) => vec![DONE],
            Err(failure) => [&[failure.code()], failure.to_string().as_bytes()].concat(),
        };
        let all = mpi.comm.all_gather(&mine).map_err(|error| failed(&error))?;
        let failure = |(rank, report): (usize, &Vec<u8>)| match report.split_first()? {
            (&DONE, _) => None,
            (&code, reason) => Some(Failure::Rank {
                rank,
                code,
                reason: String::from_utf8_lossy(reason).into_owned(),
            }),
        };
        all.iter().enumerate().find_map(failure).map_or(done, Err)
    }

    /// One directory for all ranks, created by the leader. Collective.
    pub(crate) fn scratch(&self, parent: Option<&Path>) -> Result<Scratch, Failure> {
        let created = self.lead(|| Scratch::by_driver(parent))?;
        let name = created.as_ref().map(Scratch::name);
        let name = PathBuf::from(self.broadcast(name.unwrap_or_default())?);
        // The others make sure that it is the same directory on their node.
        self.agree(created.map_or_else(|| Scratch::join(&name), Ok))
    }

    /// A text of the leader.
    fn broadcast(&self, text: String) -> Result<String, Failure> {
        let Some(mpi) = &self.mpi else {
            return Ok(text);
        };
        let text = mpi.comm.broadcast(LEADER, text.into_bytes());
        let text = text.map_err(|error| failed(&error))?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    /// The origin of a clock that all ranks share. Collective. For an MPI's ranks it is as exact as
    /// their exit from a barrier: clocks of several nodes have nothing else in common.
    pub(crate) fn clock(&self) -> Result<Instant, Stop> {
        let Some(mpi) = &self.mpi else {
            return Ok(self.clock);
        };
        mpi.comm.barrier().map_err(pario::Error::from)?;
        Ok(Instant::now())
    }

    pub(crate) fn ranks(&self) -> u32 {
        self.nodes.len() as u32
    }

    /// The node of each rank.
    pub(crate) fn nodes(&self) -> &[u32] {
        &self.nodes
    }

    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }

    /// Runs every rank and returns the outcomes by rank, or the first cause of a failure.
    pub(crate) fn run(
        &self,
        rank: impl Fn(Arc<dyn Transport>) -> RankResult + Sync,
    ) -> Result<Vec<Outcome>, Stop> {
        let results: Vec<RankResult> = match (self.kind, &self.mpi) {
            (Kind::Mpi, None) => vec![Err(Stop::Failed("no MPI has been initialised".to_owned()))],
            (_, Some(mpi)) => {
                let mine = encode(&rank(Arc::clone(&mpi.comm)));
                let all = mpi.comm.all_gather(&mine).map_err(pario::Error::from)?;
                all.iter().map(|bytes| decode(bytes)).collect()
            }
            (Kind::Threads, None) => threads::World::new(self.ranks())
                .nodes(&self.nodes)
                .run(rank)
                .into_iter()
                .map(|it| it.unwrap_or_else(|panic| Err(Stop::Failed(panic.to_string()))))
                .collect(),
            (Kind::Processes, None) => processes::World::new(self.ranks())
                .nodes(&self.nodes)
                .run(|comm| encode(&rank(comm)))
                .into_iter()
                .map(|it| match it {
                    Ok(bytes) => decode(&bytes),
                    Err(failure) => Err(Stop::Failed(failure.to_string())),
                })
                .collect(),
        };
        // A rank that lost its peers only reports that another rank failed.
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
    fn ranks_are_distributed_over_nodes() {
        let world = World::new(Kind::Threads, 5, 2).unwrap();
        assert_eq!(world.nodes(), [0, 0, 0, 1, 1]);
        assert!(World::new(Kind::Threads, 2, 3).is_err());
    }

    #[test]
    fn the_first_cause_survives() {
        let world = World::new(Kind::Threads, 3, 1).unwrap();
        let stop = world.run(|comm| match comm.rank().0 {
            0 => Err(Stop::Lost("rank 1 has exited".to_owned())),
            1 => Err(Stop::Wrong("byte 3".to_owned())),
            _ => panic!("no memory"),
        });
        assert_eq!(stop.unwrap_err(), Stop::Wrong("byte 3".to_owned()));
    }
}
