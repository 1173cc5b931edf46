//! Ranks that are forked processes of one machine, without MPI.
//!
//! The process that calls [`World::run`] forks one child per rank, supervises
//! them and collects what they return; it is not a rank itself. A child ends with
//! `_exit`: no exit handlers or destructors of the parent run in it. Children
//! are killed when their parent dies.
//!
//! Fork copies the calling thread only. A lock that another thread holds at
//! that moment stays locked in the child for ever, so the caller should be a
//! single-threaded program: tests of this transport have their own `main`.
//!
//! A send waits only if the receiver's queue, which all senders share, is full:
//! 128 packets of 4 KiB for up to 32 ranks, fewer for more ranks (at least 16).

mod child;
mod fork;
mod supervisor;

use std::fmt;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;

use crate::fabric::{self, Kind, ProgressHook};
use crate::sharing::{Backing, NamedDirectory, SHARED_MEMORY_DIRECTORY};
use crate::{Backoff, Loss, Node, Rank, Transport};

use supervisor::Supervisor;

/// Runs `f` as every rank of a world of processes on one node, and returns what
/// each rank returned, by rank.
pub fn run(
    ranks: u32,
    f: impl Fn(Arc<dyn Transport>) -> Vec<u8>,
) -> Vec<Result<Vec<u8>, RankFailure>> {
    World::new(ranks).run(f)
}

/// A rank that panicked, was killed, exited or could not be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RankFailure {
    /// The rank.
    pub rank: Rank,
    /// What became of it.
    pub reason: Loss,
    /// The message of the panic or of the system; may be empty.
    pub message: String,
}

impl fmt::Display for RankFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank {} failed: {}", self.rank, self.reason)?;
        if !self.message.is_empty() {
            write!(f, ": {}", self.message)?;
        }
        Ok(())
    }
}

impl std::error::Error for RankFailure {}

/// What segments are made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SegmentMemory {
    /// Files that never have a name, opened by way of /proc.
    Nameless,
    /// Files in a directory, which lose their names before they are used.
    Directory(PathBuf),
}

/// A world of process ranks to be.
#[derive(Clone, Debug)]
pub struct World {
    nodes: Vec<Node>,
    backoff: Backoff,
    segment_memory: Vec<SegmentMemory>,
}

impl World {
    /// The most ranks that a world may have.
    pub const RANKS_MAX: u32 = fabric::RANKS_MAX;

    /// A world of that many ranks on one node.
    ///
    /// # Panics
    /// For more than [`World::RANKS_MAX`] ranks.
    #[must_use]
    pub fn new(ranks: u32) -> Self {
        World {
            nodes: fabric::one_node(ranks),
            backoff: Backoff::DEFAULT.among(ranks),
            segment_memory: vec![
                SegmentMemory::Nameless,
                SegmentMemory::Directory(SHARED_MEMORY_DIRECTORY.into()),
            ],
        }
    }

    /// Simulates several nodes: `nodes[rank]` is the node of
    /// a rank.
    ///
    /// # Panics
    /// When there is not one entry for each rank.
    #[must_use]
    pub fn nodes(self, nodes: &[u32]) -> Self {
        World {
            nodes: fabric::placement(self.nodes.len(), nodes),
            ..self
        }
    }

    /// How ranks wait in calls of the transport: for example not to yield at all
    /// if each has its own core and power is expensive. A wait never gives up,
    /// whatever the backoff says: the rest of a message that was cut short by
    /// that could not be read.
    #[must_use]
    pub fn backoff(self, backoff: Backoff) -> Self {
        let backoff = Backoff {
            give_up_after: None,
            ..backoff
        };
        World { backoff, ..self }
    }

    /// What to make segments of, in order of preference. By default, nameless
    /// files and then files in /dev/shm.
    #[must_use]
    pub fn segment_memory(self, kinds: &[SegmentMemory]) -> Self {
        World {
            segment_memory: kinds.to_vec(),
            ..self
        }
    }

    /// Forks the ranks, runs `f` in each and returns what each returned, by
    /// rank, when all have ended.
    pub fn run(
        &self,
        f: impl Fn(Arc<dyn Transport>) -> Vec<u8>,
    ) -> Vec<Result<Vec<u8>, RankFailure>> {
        let ranks = (0..self.nodes.len() as u32).map(Rank);
        let not_started = |rank, error: &io::Error| RankFailure {
            rank,
            reason: Loss::NotStarted,
            message: error.to_string(),
        };
        let world = match fabric::World::new(self.nodes.len() as u32) {
            Ok(world) => world,
            Err(error) => return ranks.map(|rank| Err(not_started(rank, &error))).collect(),
        };
        let directories = self.named_directories();
        let kind = Arc::new(Kind {
            name: "processes",
            spans_processes: true,
            nodes: self.nodes.clone(),
            backoff: self.backoff,
            backings: self.backings(&directories),
            direct_receives: None,
            progress_hook: ProgressHook::default(),
        });
        // What stands in this buffer would be printed by every child too.
        let _ = io::stdout().flush();
        let mut supervisor = Supervisor::new(world.clone(), directories);
        for rank in ranks {
            let setup = child::ChildSetup {
                world: world.clone(),
                rank,
                kind: Arc::clone(&kind),
                f: &f,
            };
            match child::start(setup) {
                Ok((child, reader)) => supervisor.adopt(rank, child, reader),
                Err(error) => supervisor.reap(not_started(rank, &error)),
            }
        }
        supervisor.supervise()
    }

    fn named_directories(&self) -> Vec<NamedDirectory> {
        let directories = self.segment_memory.iter().filter_map(|kind| match kind {
            SegmentMemory::Nameless => None,
            SegmentMemory::Directory(path) => Some(NamedDirectory::new(path)),
        });
        directories.collect()
    }

    fn backings(&self, directories: &[NamedDirectory]) -> Vec<Backing> {
        let mut directories = directories.iter();
        let kinds = self.segment_memory.iter();
        let backings = kinds.filter_map(|kind| match kind {
            SegmentMemory::Nameless => Some(Backing::Memfd),
            SegmentMemory::Directory(_) => directories.next().cloned().map(Backing::Named),
        });
        backings.collect()
    }
}
