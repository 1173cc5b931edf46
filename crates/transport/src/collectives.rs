//! Collectives made of messages.
//!
//! A rank that fails inside one goes on with the schedule and passes the error
//! on in place of the data: otherwise a rank that waits for it, and not for the
//! lost one, would wait for ever.

use crate::{Loss, Rank, Result, Tag, Transport, TransportError};

/// Returns when all ranks have called it: in round k, each rank hears from the
/// one 2^k below it.
pub fn barrier<T: Transport + ?Sized>(transport: &T) -> Result<()> {
    let size = transport.size();
    let me = transport.rank().0;
    let mut result = Ok(());
    let mut distance = 1;
    while distance < size {
        let to = Rank((me + distance) % size);
        let from = Rank((me + size - distance) % size);
        let sent = transport.send(to, Tag::BARRIER, &seal(Vec::new(), &result));
        let heard = transport
            .receive(from, Tag::BARRIER)
            .and_then(|message| unseal(message, from, "a barrier"));
        result = result.and(sent).and(heard.map(drop));
        // Doubling past the size would overflow for sizes beyond 2^31.
        distance = distance.saturating_mul(2);
    }
    result
}

/// Returns the bytes that `root` gave, passed on along a binomial tree.
pub fn broadcast<T: Transport + ?Sized>(
    transport: &T,
    root: Rank,
    bytes: Vec<u8>,
) -> Result<Vec<u8>> {
    let size = transport.size();
    if root.0 >= size {
        return Err(TransportError::BadRank { rank: root, size });
    }
    // Positions count from the root; the parent of a position lacks its lowest
    // set bit.
    let position = (transport.rank().0 + size - root.0) % size;
    let rank_at = |position: u32| Rank((position + root.0) % size);
    let mut bit = 1;
    while bit < size && position & bit == 0 {
        bit <<= 1;
    }
    let held = if position == 0 {
        Ok(bytes)
    } else {
        let parent = rank_at(position - bit);
        transport
            .receive(parent, Tag::BROADCAST)
            .and_then(|message| unseal(message, parent, "a broadcast"))
    };
    let result = held.as_ref().map(drop).map_err(Clone::clone);
    let mut message = seal(held.unwrap_or_default(), &result);
    let mut sent = Ok(());
    while bit > 1 {
        bit >>= 1;
        if position + bit < size {
            let to = rank_at(position + bit);
            sent = sent.and(transport.send(to, Tag::BROADCAST, &message));
        }
    }
    result.and(sent)?;
    message.pop();
    Ok(message)
}

/// Returns what each rank gave. Each rank sends to all others directly, so each
/// finds out by itself who is missing.
pub fn all_gather<T: Transport + ?Sized>(transport: &T, mine: &[u8]) -> Result<Vec<Vec<u8>>> {
    let size = transport.size();
    let me = transport.rank().0;
    let mut result = Ok(());
    for distance in 1..size {
        let to = Rank((me + distance) % size);
        result = result.and(transport.send(to, Tag::ALL_GATHER, mine));
    }
    let mut all = vec![Vec::new(); size as usize];
    all[me as usize] = mine.to_vec();
    for distance in 1..size {
        let from = Rank((me + size - distance) % size);
        match transport.receive(from, Tag::ALL_GATHER) {
            Ok(bytes) => all[from.index()] = bytes,
            Err(error) => result = result.and(Err(error)),
        }
    }
    result.map(|()| all)
}

/// The last byte of a sealed message: data comes before it.
const SOUND: u8 = 0;
/// The last byte of a sealed message: a lost rank and its loss come before it.
const LOST: u8 = 1;
/// The last byte of a sealed message: the sender failed in some other way.
const BROKEN: u8 = 2;

fn seal(mut bytes: Vec<u8>, result: &Result<()>) -> Vec<u8> {
    match result {
        Ok(()) => bytes.push(SOUND),
        Err(TransportError::PeerLost { rank, reason }) => {
            bytes.clear();
            bytes.extend(rank.0.to_le_bytes());
            bytes.extend(reason.code().to_le_bytes());
            bytes.push(LOST);
        }
        Err(_) => {
            bytes.clear();
            bytes.push(BROKEN);
        }
    }
    bytes
}

fn unseal(mut bytes: Vec<u8>, from: Rank, operation: &'static str) -> Result<Vec<u8>> {
    let malformed = TransportError::Malformed {
        rank: from,
        operation,
    };
    match bytes.pop() {
        Some(SOUND) => Ok(bytes),
        Some(LOST) => {
            let Some((rank, code)) = bytes.split_first_chunk::<4>() else {
                return Err(malformed);
            };
            let code = code.try_into().map(u32::from_le_bytes);
            match code.ok().and_then(Loss::from_code) {
                Some(reason) => Err(TransportError::PeerLost {
                    rank: Rank(u32::from_le_bytes(*rank)),
                    reason,
                }),
                None => Err(malformed),
            }
        }
        _ => Err(malformed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FROM: Rank = Rank(3);

    #[test]
    fn seals_carry_data_and_errors() {
        let sealed = seal(vec![1, 2], &Ok(()));
        assert_eq!(unseal(sealed, FROM, "a test"), Ok(vec![1, 2]));
        let lost = TransportError::PeerLost {
            rank: Rank(9),
            reason: Loss::Killed { signal: 9 },
        };
        let sealed = seal(vec![1, 2], &Err(lost.clone()));
        assert_eq!(unseal(sealed, FROM, "a test"), Err(lost));
    }

    #[test]
    fn other_errors_and_nonsense_are_malformed() {
        let malformed = TransportError::Malformed {
            rank: FROM,
            operation: "a test",
        };
        let broken = seal(Vec::new(), &Err(TransportError::TooLarge { bytes: 1 }));
        let nonsense = [vec![], vec![7], vec![LOST], vec![0, 0, 0, 0, LOST], broken];
        for message in nonsense {
            let result = unseal(message.clone(), FROM, "a test");
            assert_eq!(result, Err(malformed.clone()), "{message:?}");
        }
    }
}
