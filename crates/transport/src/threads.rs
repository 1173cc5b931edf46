//! Ranks that are threads of one process.
//!
//! A send waits only if the receiver's queue, which all senders share, is full:
//! 128 packets of 4 KiB for up to 32 ranks, fewer for more ranks (at least 16).

use std::any::Any;
use std::fmt;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::thread;

use crate::fabric::{self, DirectReceives, Endpoint, Kind, ProgressHook};
use crate::sharing::{Backing, Registry};
use crate::{Backoff, Loss, Node, Rank, Transport};

/// Runs `f` as every rank of a world of threads on one node, and returns what
/// each rank returned, by rank.
pub fn run<R: Send>(
    ranks: u32,
    f: impl Fn(Arc<dyn Transport>) -> R + Sync,
) -> Vec<Result<R, RankPanic>> {
    World::new(ranks).run(f)
}

/// A rank that panicked, or could not be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RankPanic {
    /// The rank.
    pub rank: Rank,
    /// Its message.
    pub message: String,
}

impl fmt::Display for RankPanic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank {} panicked: {}", self.rank, self.message)
    }
}

impl std::error::Error for RankPanic {}

/// A world of thread ranks to be.
#[derive(Clone, Debug)]
pub struct World {
    nodes: Vec<Node>,
    backoff: Backoff,
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

    /// Runs `f` as every rank and returns what each returned, by rank.
    pub fn run<R: Send>(
        &self,
        f: impl Fn(Arc<dyn Transport>) -> R + Sync,
    ) -> Vec<Result<R, RankPanic>> {
        let ranks = (0..self.nodes.len() as u32).map(Rank);
        let world = match fabric::World::new(self.nodes.len() as u32) {
            Ok(world) => world,
            Err(error) => {
                let message = format!("no shared memory for the world: {error}");
                return ranks
                    .map(|rank| Err(RankPanic::new(rank, message.clone())))
                    .collect();
            }
        };
        let kind = Arc::new(Kind {
            name: "threads",
            spans_processes: false,
            nodes: self.nodes.clone(),
            backoff: self.backoff,
            backings: vec![Backing::Process(Arc::new(Registry::default()))],
            direct_receives: Some(DirectReceives::default()),
            progress_hook: ProgressHook::default(),
        });
        let (world, f) = (&world, &f);
        thread::scope(|scope| {
            let spawned = ranks.map(|rank| {
                let kind = Arc::clone(&kind);
                let thread = thread::Builder::new()
                    .name(format!("rank {rank}"))
                    .spawn_scoped(scope, move || live(world, rank, kind, f));
                if thread.is_err() {
                    world.leave(rank, Loss::NotStarted);
                }
                (rank, thread)
            });
            let spawned = spawned.collect::<Vec<_>>();
            let results = spawned.into_iter().map(|(rank, thread)| match thread {
                Ok(thread) => thread.join().unwrap_or_else(|payload| {
                    Err(RankPanic::new(rank, panic_message(payload.as_ref())))
                }),
                Err(error) => Err(RankPanic::new(
                    rank,
                    format!("its thread could not be started: {error}"),
                )),
            });
            results.collect()
        })
    }
}

impl RankPanic {
    fn new(rank: Rank, message: String) -> Self {
        RankPanic { rank, message }
    }
}

/// The life of a rank.
fn live<R>(
    world: &fabric::World,
    rank: Rank,
    kind: Arc<Kind>,
    f: &impl Fn(Arc<dyn Transport>) -> R,
) -> Result<R, RankPanic> {
    let endpoint = Arc::new(Endpoint::join(world.clone(), rank, kind));
    // What `f` captured may be left half changed by a panic; its caller learns
    // of the panic before it can look.
    let result = panic::catch_unwind(AssertUnwindSafe(|| f(endpoint)));
    let loss = match &result {
        Ok(_) => Loss::Returned,
        Err(_) => Loss::Panicked,
    };
    world.leave(rank, loss);
    result.map_err(|payload| RankPanic::new(rank, panic_message(payload.as_ref())))
}

/// The message of a panic.
pub(crate) fn panic_message(payload: &(dyn Any + Send)) -> String {
    if let Some(message) = payload.downcast_ref::<&str>() {
        (*message).to_owned()
    } else if let Some(message) = payload.downcast_ref::<String>() {
        message.clone()
    } else {
        "a value that is not text".to_owned()
    }
}
