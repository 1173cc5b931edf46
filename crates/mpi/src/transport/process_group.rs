//! What all transports between the same processes share.
//!
//! Programs open files on many communicators, but on few groups of processes:
//! libraries duplicate a communicator for each file. Where the processes run,
//! the memory that they share and the communicator for messages between nodes
//! are found once per group, and [`registry`](super::registry) keeps them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pario_transport::{
    OFFER_BYTES, OfferedSegment, ProgressHook, Rank, Result, Segment, Sent, TransportError,
    attach_offered, generic, node,
};

use super::data_slots::{Context, DataSlots};
use super::host_progress::HostProgress;
use super::mpi_endpoint::{self, MpiEndpoint};
use super::mpi_point_to_point::{MpiPointToPoint, host_error};
use super::placement::Placement;
use super::retired::OwnedGroup;
use super::{MpiTransport, progress};
use crate::{Comm, Group, Host};

/// A number that no group has had whose first process this is.
pub(super) fn take_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// What the processes of a group know about where they run before they meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Nearness {
    /// All on one machine, where they see each other's processes.
    OneMachine,
    /// The MPI has to be asked.
    Unknown,
}

/// Processes in the order of their ranks.
#[derive(Debug)]
pub(super) struct ProcessGroup {
    /// The same on all ranks, and another for each time that the group met.
    pub(super) number: u64,
    pub(super) rank: Rank,
    pub(super) size: u32,
    pub(super) placement: Placement,
    /// Messages over the MPI; none where all ranks share memory.
    pub(super) link: Option<Arc<MpiEndpoint>>,
    /// The communicator that they go over.
    pub(super) comm: Option<Comm>,
    /// The ranks of this node, if they share memory.
    pub(super) node: Option<node::Endpoint>,
    pub(super) progress: HostProgress,
    /// What this rank has sent over the MPI.
    pub(super) sent: Sent,
    /// Contexts are numbered by the first rank, in a row: ranks remember which
    /// they have closed.
    next_context: AtomicU64,
    slots: DataSlots,
    /// None while the ranks of a node look for memory.
    group: Option<OwnedGroup>,
}

impl ProcessGroup {
    /// The processes of a communicator find out about each other. Collective.
    pub(super) fn meet(
        host: &'static Host,
        comm: Comm,
        group: OwnedGroup,
        number: u64,
        nearness: Nearness,
    ) -> Result<ProcessGroup> {
        let rank = Rank(host.comm_rank(comm).map_err(host_error)? as u32);
        let size = host.comm_size(comm).map_err(host_error)? as u32;
        let progress = HostProgress::new(host)?;
        if size == 1 {
            let alone = ProcessGroup {
                number,
                rank,
                size,
                placement: Placement::alone(),
                link: None,
                comm: None,
                node: None,
                progress,
                next_context: AtomicU64::new(0),
                sent: Sent::default(),
                slots: DataSlots::default(),
                group: Some(group),
            };
            // Where there is no memory even for one, messages to oneself do.
            return match Segment::anonymous(node::bytes(size)) {
                Ok(memory) => alone.with_memory(Some(memory)),
                Err(_) => Ok(alone.with_link(host, comm)?),
            };
        }
        let shared = match nearness {
            Nearness::OneMachine => share_with_all(host, comm, rank, size)?,
            Nearness::Unknown => None,
        };
        let (placement, memory) = match shared {
            Some(memory) => (Placement::one_node(size), Some(memory)),
            None => {
                let near = Placement::node_of_this_rank(host, comm, rank, size)?;
                let placement = Placement::find(host, comm, near)?;
                let memory = share_memory(MpiPointToPoint::over(host, near)?, progress)?;
                (placement, memory)
            }
        };
        let met = ProcessGroup {
            number,
            rank,
            size,
            placement,
            link: None,
            comm: None,
            node: None,
            progress,
            next_context: AtomicU64::new(0),
            sent: Sent::default(),
            slots: DataSlots::default(),
            group: Some(group),
        };
        // Without a world there is no other communicator to make progress with.
        let needs_link = met.placement.nodes() > 1 || memory.is_none() || !host.has_world();
        let met = match needs_link {
            true => met.with_link(host, comm)?,
            false => met,
        };
        met.with_memory(memory)
    }

    fn with_link(self, host: &'static Host, comm: Comm) -> Result<ProcessGroup> {
        let point_to_point = MpiPointToPoint::private(host, comm)?;
        let comm = point_to_point.comm();
        let link = MpiEndpoint::new(Box::new(point_to_point), self.progress.callers());
        Ok(ProcessGroup {
            link: Some(Arc::new(link)),
            comm: Some(comm),
            ..self
        })
    }

    /// The ranks of this node join in the memory that they share, if any.
    fn with_memory(self, memory: Option<Segment>) -> Result<ProcessGroup> {
        let Some(memory) = memory else {
            return Ok(self);
        };
        let (ranks, me) = self.placement.on_my_node(self.rank);
        let link = self.link.as_ref().map(Arc::downgrade);
        let progress = self.progress;
        let progress_hook = ProgressHook::new(move || {
            let link = link.as_ref().and_then(std::sync::Weak::upgrade);
            let working = match link {
                Some(link) => {
                    link.progress();
                    link.check()
                }
                None => {
                    progress.make();
                    Ok(())
                }
            };
            progress::progress_registered();
            working
        });
        let backoff = mpi_endpoint::backoff(ranks, self.link.is_some());
        let node = node::join(memory, ranks, me, backoff, progress_hook)?;
        if let Some(link) = &self.link {
            link.wake_also(node.wake_up());
        }
        Ok(ProcessGroup {
            node: Some(node),
            ..self
        })
    }

    /// A context that is new to the group, as a [word](Context::to_word). Only
    /// its first rank may ask, or all ranks while the group is new.
    pub(super) fn take_context(&self) -> u64 {
        let number = self.next_context.fetch_add(1, Ordering::Relaxed);
        let slot = self.link.as_ref().and_then(|_| self.slots.take());
        Context { number, slot }.to_word()
    }

    /// A context for messages alone, without posted transfers.
    pub(super) fn take_plain_context(&self) -> u64 {
        let number = self.next_context.fetch_add(1, Ordering::Relaxed);
        let slot = None;
        Context { number, slot }.to_word()
    }

    /// Takes back the tags of a context that this rank has dropped.
    pub(super) fn give_back(&self, context: Context) {
        if let Some(slot) = context.slot {
            self.slots.give_back(slot);
        }
    }

    /// Whether all ranks share memory, so that nothing goes over the MPI.
    pub(super) fn is_one_node(&self) -> bool {
        self.node.is_some() && self.placement.nodes() == 1
    }

    /// The host's group of these processes, which stays theirs.
    pub(super) fn group(&self) -> Group {
        let group = self.group.as_ref();
        group.expect("the ranks of a file have met").0
    }

    /// The memory that it holds while no file is open on it.
    pub(super) fn bytes(&self) -> usize {
        let (ranks, _) = self.placement.on_my_node(self.rank);
        self.node.as_ref().map_or(0, |_| node::bytes(ranks))
    }

    /// The rank in the group of a rank of this node.
    pub(super) fn rank_on_node(&self, index: Rank) -> Rank {
        let here = self.placement.node_of(self.rank);
        let rank = self.placement.ranks_of(here).nth(index.index());
        rank.unwrap_or(self.rank)
    }

    /// An error of the ranks of this node, in the ranks of the group. Reports a
    /// lost rank to the other nodes, where nobody would notice.
    pub(super) fn translate(&self, error: TransportError) -> TransportError {
        let TransportError::PeerLost { rank, reason } = error else {
            return error;
        };
        // The node's waits fail with errors of the MPI, too, which name ranks of
        // the group.
        if let Some(Err(error)) = self.link.as_ref().map(|link| link.check()) {
            return error;
        }
        let rank = self.rank_on_node(rank);
        if let Some(link) = &self.link {
            link.announce_loss(rank, reason);
        }
        TransportError::PeerLost { rank, reason }
    }
}

/// Memory of all ranks of a communicator, offered by the first. Nothing is found out about
/// nodes, which takes MPIs longer than the rest of the first `open`: whoever can map the memory
/// is near. `None` on all ranks if one of them cannot. Collective.
fn share_with_all(host: &Host, comm: Comm, rank: Rank, size: u32) -> Result<Option<Segment>> {
    if size > node::RANKS_MAX {
        return Ok(None);
    }
    let bytes = node::bytes(size);
    let offered = match rank {
        Rank(0) => OfferedSegment::create(bytes),
        _ => None,
    };
    let mut message = offered
        .as_ref()
        .map_or([0; OFFER_BYTES], OfferedSegment::message);
    host.bcast(&mut message, 0, comm).map_err(host_error)?;
    let found = match rank {
        Rank(0) => None,
        _ => attach_offered(bytes, &message),
    };
    let is_missing = offered.is_none() && found.is_none();
    let greatest = host.allreduce(&[u64::from(is_missing)], host.predefined().op_max, comm);
    let are_missing = greatest.map_err(host_error)?[0] != 0;
    let memory = offered.map(OfferedSegment::into_segment).or(found);
    Ok(memory.filter(|_| !are_missing))
}

/// Memory of the ranks of a node, which find it by messages.
fn share_memory(
    point_to_point: MpiPointToPoint,
    progress: HostProgress,
) -> Result<Option<Segment>> {
    let link = Arc::new(MpiEndpoint::new(
        Box::new(point_to_point),
        progress.callers(),
    ));
    let ranks = link.size();
    if ranks > node::RANKS_MAX {
        return Ok(None);
    }
    let over_messages = MpiTransport::on_one_node(Arc::clone(&link), progress);
    let memory = generic::segment(&over_messages, node::bytes(ranks))?;
    link.finish_sending()?;
    Ok(memory)
}

impl MpiTransport {
    /// The ranks of a node while they share no memory yet.
    fn on_one_node(link: Arc<MpiEndpoint>, progress: HostProgress) -> MpiTransport {
        let (rank, size) = (link.rank(), link.size());
        let group = ProcessGroup {
            number: 0,
            rank,
            size,
            placement: Placement::one_node(size),
            link: Some(link),
            comm: None,
            node: None,
            progress,
            next_context: AtomicU64::new(0),
            sent: Sent::default(),
            slots: DataSlots::default(),
            group: None,
        };
        let context = group.take_plain_context();
        MpiTransport::numbered(&Arc::new(group), context, node::Reserved::default())
    }
}
