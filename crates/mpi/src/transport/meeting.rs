//! How the ranks of a communicator come to have transports.
//!
//! The first time, they agree by one reduction over the communicator itself
//! whether all of them know their group from an earlier meeting; if not, the
//! group meets ([`ProcessGroup::meet`]). A private world of messages is then
//! kept with the communicator ([`super::attachment`]), and later meetings on it
//! need nothing of the MPI.

use std::sync::Arc;

use pario_transport::{Rank, Result, Transport, TransportError, node::Reserved};

use super::attachment::Attachment;
use super::data_slots::Context;
use super::machine;
use super::mpi_point_to_point::host_error;
use super::permission::InsideCall;
use super::process_group::{Nearness, ProcessGroup, take_number};
use super::retired::{self, OwnedGroup};
use super::{MpiTransport, registry};
use crate::{Comm, Host};

/// What a file needs: for blocking calls, and for those in the background.
const FILE_TRANSPORTS: usize = 2;
/// And what stays with the communicator.
const TRANSPORTS: usize = FILE_TRANSPORTS + 1;

/// What the ranks of a communicator come to share when they meet.
#[derive(Debug)]
pub struct Met {
    /// Two private worlds of messages.
    pub transports: [Arc<MpiTransport>; FILE_TRANSPORTS],
    /// The greatest of the numbers that ranks brought.
    pub greatest: u64,
}

impl MpiTransport {
    /// The ranks of an intracommunicator meet: each brings a number, all learn
    /// the greatest. Collective; what is sent over the communicator itself never
    /// meets pario's messages.
    ///
    /// `bring` is given the number of nodes if it is known from an earlier
    /// meeting.
    ///
    /// `None`, on all ranks, where some belong to another `MPI_COMM_WORLD`
    /// (`MPI_Comm_spawn`, `MPI_Comm_connect`): whether those have pario loaded
    /// cannot be asked without them.
    pub fn meet(
        host: &'static Host,
        comm: Comm,
        bring: impl FnOnce(Option<u32>) -> u64,
    ) -> Result<Option<Met>> {
        // The caller is inside a call, or has promised the same.
        let _inside = InsideCall::enter();
        if let Some(kept) = Attachment::find(host, comm)? {
            return meet_again(&kept, bring(Some(kept.nodes()))).map(Some);
        }
        let group = OwnedGroup(host.comm_group(comm).map_err(host_error)?);
        let found = registry::find(host, group.0)?;
        if found.is_none() && registry::spans_worlds(host, group.0)? {
            return Ok(None);
        }
        let attachment = Attachment::attach(host, comm);
        let brought = bring(found.as_ref().map(|group| group.placement.nodes()));
        let mut proposal = Proposal::new(host, comm, found.as_deref(), brought)?;
        proposal.unattached = u64::from(attachment.is_err());
        let agreed = proposal.reduce(host, comm)?;
        let (met, contexts, reserved) = match &found {
            Some(met) if agreed.is_known_to_all() => {
                (Arc::clone(met), agreed.contexts, agreed.reserved)
            }
            _ => {
                proposal.give_back(found.as_deref());
                let nearness = agreed.nearness();
                let met = ProcessGroup::meet(host, comm, group, agreed.number, nearness)?;
                let reserved = reserve_together(&met)?;
                let contexts = take_contexts(&met);
                (Arc::new(met), contexts, reserved)
            }
        };
        registry::remember(host, &met);
        drop(found);
        retired::free(host);
        let [first, second, kept] = std::array::from_fn(|index| {
            Arc::new(MpiTransport::numbered(
                &met,
                contexts[index],
                reserved[index],
            ))
        });
        if let Ok(attachment) = attachment {
            match agreed.unattached {
                0 => attachment.keep(kept),
                _ => attachment.remove(host, comm)?,
            }
        }
        Ok(Some(Met {
            transports: [first, second],
            greatest: agreed.brought,
        }))
    }

    /// Forgets all groups that no file is open on, and frees what the host has
    /// of them. The calling thread may call the MPI, which is about to end.
    pub fn forget_all(host: &Host) {
        registry::forget_all(host);
        retired::free(host);
    }

    /// Frees what closed files have left. The calling thread may call the MPI.
    pub fn clean_up(host: &Host) {
        retired::free(host);
    }
}

/// A meeting over what an earlier one left with the communicator: one gather.
fn meet_again(kept: &Arc<MpiTransport>, brought: u64) -> Result<Met> {
    let mut message = brought.to_le_bytes().to_vec();
    if kept.rank() == CHOOSER {
        message.extend(kept.offer_duplicates(FILE_TRANSPORTS));
    }
    let all = kept.all_gather(&message)?;
    let malformed = || TransportError::Malformed {
        rank: CHOOSER,
        operation: "a meeting",
    };
    let word = |message: &Vec<u8>| message.first_chunk().map(|word| u64::from_le_bytes(*word));
    let brought: Option<Vec<u64>> = all.iter().map(word).collect();
    let brought = brought.ok_or_else(malformed)?;
    let duplicates = kept.accept_duplicates(FILE_TRANSPORTS, &all[CHOOSER.index()][8..])?;
    Ok(Met {
        transports: duplicates.try_into().map_err(|_| malformed())?,
        greatest: brought.into_iter().max().unwrap_or(0),
    })
}

/// Who chooses numbers for all ranks.
pub(super) const CHOOSER: Rank = Rank(0);

/// What a rank brings to a meeting, and what all agree on: the greatest of each
/// number.
#[derive(Clone, Copy, Debug)]
struct Proposal {
    /// The number of the group as this rank knows it, or 0.
    known: u64,
    /// Its complement, whose greatest tells the least.
    complement: u64,
    brought: u64,
    /// From rank 0: for the group, if it is new.
    number: u64,
    /// From rank 0: the contexts of the transports, if it is not.
    contexts: [u64; TRANSPORTS],
    /// Whether a rank cannot keep anything with the communicator.
    unattached: u64,
    /// The machine of this rank, or 0 if it is not known; and its complement.
    machine: u64,
    machine_complement: u64,
    /// From rank 0, for the transports, where all ranks share memory.
    reserved: [Reserved; TRANSPORTS],
}

impl Proposal {
    fn new(
        host: &Host,
        comm: Comm,
        found: Option<&ProcessGroup>,
        brought: u64,
    ) -> Result<Proposal> {
        let known = found.map_or(0, |group| group.number);
        let mut proposal = Proposal {
            known,
            complement: !known,
            brought,
            number: 0,
            contexts: [0; TRANSPORTS],
            unattached: 0,
            machine: machine::number(),
            machine_complement: !machine::number(),
            reserved: [Reserved::default(); TRANSPORTS],
        };
        if host.comm_rank(comm).map_err(host_error)? == 0 {
            proposal.number = take_number();
            if let Some(group) = found {
                proposal.contexts = take_contexts(group);
                proposal.reserved = reserve(group);
            }
        }
        Ok(proposal)
    }

    /// The greatest of all ranks' numbers. Collective.
    fn reduce(&self, host: &Host, comm: Comm) -> Result<Proposal> {
        let mut words = vec![
            self.known,
            self.complement,
            self.brought,
            self.number,
            self.unattached,
            self.machine,
            self.machine_complement,
        ];
        words.extend(self.contexts);
        words.extend(self.reserved.iter().map(|reserved| reserved.0));
        let greatest = host.allreduce(&words, host.predefined().op_max, comm);
        let greatest = greatest.map_err(host_error)?;
        Ok(Proposal {
            known: greatest[0],
            complement: greatest[1],
            brought: greatest[2],
            number: greatest[3],
            unattached: greatest[4],
            machine: greatest[5],
            machine_complement: greatest[6],
            contexts: std::array::from_fn(|index| greatest[7 + index]),
            reserved: std::array::from_fn(|index| Reserved(greatest[7 + TRANSPORTS + index])),
        })
    }

    fn is_known_to_all(&self) -> bool {
        self.known != 0 && self.known == !self.complement
    }

    fn nearness(&self) -> Nearness {
        match self.machine != 0 && self.machine == !self.machine_complement {
            true => Nearness::OneMachine,
            false => Nearness::Unknown,
        }
    }

    /// Undoes what this rank has reserved.
    fn give_back(&self, found: Option<&ProcessGroup>) {
        let Some(group) = found else { return };
        if let Some(node) = &group.node {
            self.reserved.iter().for_each(|it| node.give_back(*it));
        }
        for context in self.contexts {
            group.give_back(Context::from_word(context));
        }
    }
}

/// Contexts for the transports of a file, and for what stays with the
/// communicator, which only exchanges messages.
fn take_contexts(group: &ProcessGroup) -> [u64; TRANSPORTS] {
    std::array::from_fn(|index| match index < FILE_TRANSPORTS {
        true => group.take_context(),
        false => group.take_plain_context(),
    })
}

/// What makes the collectives of transports fast where all ranks share memory.
/// Of several ranks, the first one reserves.
fn reserve(group: &ProcessGroup) -> [Reserved; TRANSPORTS] {
    match &group.node {
        Some(node) if group.is_one_node() => std::array::from_fn(|_| node.reserve()),
        _ => [Reserved::default(); TRANSPORTS],
    }
}

/// The same for a group that has just met: nobody else uses its first context
/// yet. Collective.
fn reserve_together(group: &ProcessGroup) -> Result<[Reserved; TRANSPORTS]> {
    let Some(node) = group.node.as_ref().filter(|_| group.is_one_node()) else {
        return Ok([Reserved::default(); TRANSPORTS]);
    };
    let offer = match group.rank {
        Rank(0) => reserve(group)
            .iter()
            .flat_map(|it| it.0.to_le_bytes())
            .collect(),
        _ => Vec::new(),
    };
    let offer = node.broadcast(Rank(0), offer)?;
    let (words, _) = offer.as_chunks::<8>();
    Ok(std::array::from_fn(|index| {
        words.get(index).map_or_else(Reserved::default, |word| {
            Reserved(u64::from_le_bytes(*word))
        })
    }))
}
