//! Ranks that are the processes of an MPI: each runs the same measurements, and they exchange results,
//! so that all proceed alike.

use std::sync::Arc;
use std::time::Instant;

use pario::{Rank, Transport};
use pario_mpi::{InsideCall, MpiTransport, Runtime, Threads};

use super::outcome::{RankResult, Stop, decode, encode};
use crate::failure::Failure;

/// The rank that prints.
const LEADER: Rank = Rank(0);

/// The first byte of what ranks exchange about their work: it is done.
const DONE: u8 = 0;

/// The MPI that this process is a rank of.
#[derive(Debug)]
pub(crate) struct Mpi {
    comm: Arc<dyn Transport>,
    /// This thread is the only one that calls the MPI where it has no more than one.
    _inside: InsideCall,
    /// What it is, for the report.
    about: String,
    /// Dropped last: ends the MPI.
    _runtime: Runtime,
}

impl Mpi {
    /// Starts the MPI. Collective.
    pub(crate) fn start() -> Result<Mpi, Failure> {
        let runtime = Runtime::start(Threads::Multiple).map_err(|error| failed(&error))?;
        let inside = InsideCall::enter();
        let host = runtime.host();
        let transport = MpiTransport::new(host, runtime.world()).map_err(|error| failed(&error))?;
        let version = host.version().lines().next().unwrap_or_default().trim();
        Ok(Mpi {
            about: format!("{version}; {}", transport.describe()),
            comm: transport,
            _inside: inside,
            _runtime: runtime,
        })
    }

    /// Which MPI, and how its ranks communicate.
    pub(crate) fn about(&self) -> &str {
        &self.about
    }

    pub(crate) fn rank(&self) -> u32 {
        self.comm.rank().0
    }

    /// Whether this process speaks for all.
    pub(crate) fn leads(&self) -> bool {
        self.comm.rank() == LEADER
    }

    pub(crate) fn nodes(&self) -> Vec<u32> {
        let ranks = 0..self.comm.size();
        ranks.map(|rank| self.comm.node_of(Rank(rank)).0).collect()
    }

    /// Runs this rank; the results of all, by rank.
    pub(crate) fn run(
        &self,
        rank: impl Fn(Arc<dyn Transport>) -> RankResult,
    ) -> Result<Vec<RankResult>, Stop> {
        let mine = encode(&rank(Arc::clone(&self.comm)));
        let all = self.comm.all_gather(&mine).map_err(pario::Error::from)?;
        Ok(all.iter().map(|bytes| decode(bytes)).collect())
    }

    /// Fails on every rank if one failed, with the reason of the first of them.
    pub(crate) fn agree<T>(&self, done: Result<T, Failure>) -> Result<T, Failure> {
        let mine = match &done {
            Ok(_) => vec![DONE],
            Err(failure) => [&[failure.code()], failure.to_string().as_bytes()].concat(),
        };
        let all = self
            .comm
            .all_gather(&mine)
            .map_err(|error| failed(&error))?;
        let first = all
            .iter()
            .enumerate()
            .find_map(|(rank, said)| match said.split_first() {
                None | Some((&DONE, _)) => None,
                Some((&code, text)) => Some((rank, code, text)),
            });
        match (first, done) {
            (None, done) => done,
            (Some((rank, code, text)), _) => Err(Failure::Rank {
                rank,
                code,
                reason: String::from_utf8_lossy(text).into_owned(),
            }),
        }
    }

    /// The leader's text, on every rank.
    pub(crate) fn broadcast(&self, text: String) -> Result<String, Failure> {
        let text = self.comm.broadcast(LEADER, text.into_bytes());
        let text = text.map_err(|error| failed(&error))?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    /// A clock that starts on all ranks at once, as exactly as they leave a barrier: clocks of
    /// several nodes have nothing else in common.
    pub(crate) fn clock(&self) -> Result<Instant, Stop> {
        self.comm.barrier().map_err(pario::Error::from)?;
        Ok(Instant::now())
    }
}

fn failed(error: &dyn std::error::Error) -> Failure {
    Failure::Method {
        method: "MPI".to_owned(),
        reason: error.to_string(),
    }
}
