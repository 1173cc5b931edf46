//! Collectives over several nodes: together on the node first, then between
//! the first ranks of the nodes, then to the others of the node.

use pario_transport::{Node, Rank, Result, Tag, Transport, TransportError};

use super::MpiTransport;

/// From a rank to the first of its node.
const UP: Tag = Tag(Tag::FIRST_RESERVED.0 + 0x100);
/// Between first ranks.
const ACROSS: Tag = Tag(Tag::FIRST_RESERVED.0 + 0x101);
/// From the first rank of a node to the others.
const DOWN: Tag = Tag(Tag::FIRST_RESERVED.0 + 0x102);

pub(super) fn barrier(transport: &MpiTransport) -> Result<()> {
    all_gather(transport, &[]).map(drop)
}

/// What each rank gave, by rank.
pub(super) fn all_gather(transport: &MpiTransport, mine: &[u8]) -> Result<Vec<Vec<u8>>> {
    let placement = &transport.group.placement;
    let me = transport.rank();
    let here = placement.node_of(me);
    let leader = placement.leader_of(here);
    let mut all = vec![Vec::new(); transport.size() as usize];
    if me != leader {
        transport.send(leader, UP, mine)?;
        let message = transport.receive(leader, DOWN)?;
        let ranks = (0..transport.size()).map(Rank);
        return unpack(&message, ranks, leader, &mut all).map(|()| all);
    }
    all[me.index()] = mine.to_vec();
    for rank in placement.ranks_of(here).filter(|rank| *rank != me) {
        all[rank.index()] = transport.receive(rank, UP)?;
    }
    let message = pack(placement.ranks_of(here), &all);
    let nodes = || {
        (0..placement.nodes())
            .map(Node)
            .filter(|node| *node != here)
    };
    for node in nodes() {
        transport.send(placement.leader_of(node), ACROSS, &message)?;
    }
    for node in nodes() {
        let leader = placement.leader_of(node);
        let message = transport.receive(leader, ACROSS)?;
        unpack(&message, placement.ranks_of(node), leader, &mut all)?;
    }
    let mut others = placement
        .ranks_of(here)
        .filter(|rank| *rank != me)
        .peekable();
    if others.peek().is_some() {
        let message = pack((0..transport.size()).map(Rank), &all);
        for rank in others {
            transport.send(rank, DOWN, &message)?;
        }
    }
    Ok(all)
}

fn pack(ranks: impl Iterator<Item = Rank>, all: &[Vec<u8>]) -> Vec<u8> {
    let mut message = Vec::new();
    for rank in ranks {
        let bytes = &all[rank.index()];
        message.extend((bytes.len() as u64).to_le_bytes());
        message.extend(bytes);
    }
    message
}

fn unpack(
    mut message: &[u8],
    ranks: impl Iterator<Item = Rank>,
    from: Rank,
    all: &mut [Vec<u8>],
) -> Result<()> {
    let malformed = || TransportError::Malformed {
        rank: from,
        operation: "an all-gather",
    };
    for rank in ranks {
        let (length, rest) = message.split_first_chunk::<8>().ok_or_else(malformed)?;
        let length = usize::try_from(u64::from_le_bytes(*length)).map_err(|_| malformed())?;
        let (bytes, rest) = rest.split_at_checked(length).ok_or_else(malformed)?;
        all[rank.index()] = bytes.to_vec();
        message = rest;
    }
    match message {
        [] => Ok(()),
        _ => Err(malformed()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_is_unpacked() {
        let all = vec![b"a".to_vec(), Vec::new(), b"ccc".to_vec()];
        let ranks = || [Rank(0), Rank(2), Rank(1)].into_iter();
        let message = pack(ranks(), &all);
        let mut back = vec![Vec::new(); 3];
        unpack(&message, ranks(), Rank(0), &mut back).unwrap();
        assert_eq!(back, all);
        for cut in 0..message.len() {
            assert!(unpack(&message[..cut], ranks(), Rank(0), &mut back).is_err());
        }
    }
}
