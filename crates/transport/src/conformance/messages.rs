//! Messages between two ranks.

use std::sync::Arc;

use super::{Case, Setting};
use crate::{Rank, Result, Tag, Transport, TransportError};

/// Longer than any buffer that a transport should have.
const LONG_BYTES: usize = 1 << 20;
const EXCHANGE_BYTES: usize = 64 << 20;
const HUGE_BYTES: usize = 200 << 20;

pub(super) fn cases() -> Vec<Case> {
    let case = |name, ranks, check| Case { name, ranks, check };
    vec![
        case("messages::order_of_a_tag", 1..=7, order_of_a_tag),
        case("messages::lengths", 1..=7, lengths),
        case("messages::all_to_all", 1..=7, all_to_all),
        case("messages::exchange_of_64_mib", 2..=2, exchange),
        case("messages::hundreds_of_mib", 2..=2, hundreds_of_mib),
        case("messages::long_to_a_busy_rank", 2..=7, long_to_a_busy_rank),
        case("messages::trying", 1..=7, trying),
        case("messages::wrong_ranks", 1..=7, wrong_ranks),
        case("messages::identity", 1..=7, identity),
    ]
}

fn ranks(transport: &Arc<dyn Transport>) -> Vec<Rank> {
    (0..transport.size()).map(Rank).collect()
}

/// Every rank sends to every rank under several tags, and receives in an order
/// of senders and tags that has nothing to do with the order of sending.
fn order_of_a_tag(setting: &Setting<'_>) {
    const TAGS: u64 = 4;
    const MESSAGES: u32 = 200;
    let sequence = |from: Rank, to: Rank| {
        let mut dice = setting.dice(u64::from(from.0) << 32 | u64::from(to.0));
        let throw = move |_| {
            let tag = Tag(dice.below(TAGS) as u32);
            let length = dice.below(300) as usize;
            (tag, dice.bytes(length))
        };
        (0..MESSAGES).map(throw).collect::<Vec<_>>()
    };
    setting.run(|transport| {
        let me = transport.rank();
        for to in ranks(transport) {
            for (tag, bytes) in sequence(me, to) {
                transport.send(to, tag, &bytes)?;
            }
        }
        let tags = (0..TAGS as u32).map(Tag);
        let mut channels = ranks(transport)
            .into_iter()
            .flat_map(|from| tags.clone().map(move |tag| (from, tag)))
            .collect::<Vec<_>>();
        setting.dice(u64::from(me.0)).shuffle(&mut channels);
        for (from, tag) in channels {
            let expected = sequence(from, me).into_iter().filter(|(of, _)| *of == tag);
            for (_, bytes) in expected {
                assert_eq!(transport.receive(from, tag)?, bytes, "from {from}, {tag:?}");
            }
        }
        transport.barrier()
    });
}

/// Empty messages are messages, and no length is special.
fn lengths(setting: &Setting<'_>) {
    let lengths = [
        0, 1, 7, 8, 9, 4095, 4096, 65_536, 262_143, 262_145, LONG_BYTES, 0,
    ];
    setting.run(|transport| {
        let (me, size) = (transport.rank().0, transport.size());
        let (to, from) = (Rank((me + 1) % size), Rank((me + size - 1) % size));
        let body = |rank: u32, length| setting.dice(u64::from(rank)).bytes(length);
        for length in lengths {
            transport.send(to, Tag(1), &body(me, length))?;
        }
        for length in lengths {
            let bytes = transport.receive(from, Tag(1))?;
            assert!(bytes == body(from.0, length), "{length} bytes from {from}");
        }
        transport.barrier()
    });
}

fn all_to_all(setting: &Setting<'_>) {
    let body = |trial: u32, from: Rank, to: Rank| {
        let stream = (u64::from(trial) << 20) | u64::from(from.0 << 10 | to.0);
        let mut dice = setting.dice(stream);
        let bound = [10, 1000, 500_000][dice.below(3) as usize];
        let length = dice.below(bound) as usize;
        dice.bytes(length)
    };
    setting.run(|transport| {
        let me = transport.rank();
        for trial in 0..setting.trials {
            for to in ranks(transport) {
                transport.send(to, Tag(0), &body(trial, me, to))?;
            }
            for from in ranks(transport) {
                let bytes = transport.receive(from, Tag(0))?;
                assert!(bytes == body(trial, from, me), "trial {trial}, from {from}");
            }
        }
        transport.barrier()
    });
}

/// Both send first, far more than any buffer holds.
fn exchange(setting: &Setting<'_>) {
    setting.run(|transport| {
        let (me, size) = (transport.rank().0, transport.size());
        let mine = setting.dice(u64::from(me)).bytes(EXCHANGE_BYTES);
        let others = (1..size).map(|distance| Rank((me + distance) % size));
        for to in others.clone() {
            transport.send(to, Tag(0), &mine)?;
        }
        for from in others {
            let bytes = transport.receive(from, Tag(0))?;
            let expected = setting.dice(u64::from(from.0)).bytes(EXCHANGE_BYTES);
            assert!(bytes == expected, "from {from}");
        }
        transport.barrier()
    });
}

fn hundreds_of_mib(setting: &Setting<'_>) {
    setting.run(|transport| {
        if transport.rank() == Rank(0) {
            transport.send(Rank(1), Tag(0), &vec![7; HUGE_BYTES])?;
        } else {
            let bytes = transport.receive(Rank(0), Tag(0))?;
            assert_eq!(bytes.len(), HUGE_BYTES);
            assert!(bytes.iter().all(|byte| *byte == 7));
        }
        transport.barrier()
    });
}

/// A rank that waits for something else takes in what is sent to it.
fn long_to_a_busy_rank(setting: &Setting<'_>) {
    setting.run(|transport| {
        let bytes = vec![3; LONG_BYTES];
        if transport.rank() == Rank(0) {
            for to in ranks(transport).into_iter().skip(1) {
                transport.send(to, Tag(9), &bytes)?;
            }
        }
        transport.barrier()?;
        if transport.rank() != Rank(0) {
            assert!(transport.receive(Rank(0), Tag(9))? == bytes);
        }
        transport.barrier()
    });
}

fn trying(setting: &Setting<'_>) {
    setting.run(|transport| {
        let (me, size) = (transport.rank().0, transport.size());
        let (to, from) = (Rank((me + 1) % size), Rank((me + size - 1) % size));
        assert_eq!(transport.try_receive(from, Tag(0))?, None);
        transport.barrier()?;
        transport.send(to, Tag(1), &[1])?;
        transport.send(to, Tag(0), &[0])?;
        let zero = try_until_some(transport, from, Tag(0))?;
        let one = try_until_some(transport, from, Tag(1))?;
        assert_eq!((zero, one), (vec![0], vec![1]));
        assert_eq!(transport.try_receive(from, Tag(0))?, None);
        transport.barrier()
    });
}

fn try_until_some(transport: &Arc<dyn Transport>, from: Rank, tag: Tag) -> Result<Vec<u8>> {
    loop {
        if let Some(bytes) = transport.try_receive(from, tag)? {
            return Ok(bytes);
        }
        std::thread::yield_now();
    }
}

fn wrong_ranks(setting: &Setting<'_>) {
    setting.run(|transport| {
        let size = transport.size();
        for rank in [Rank(size), Rank(u32::MAX)] {
            let wrong = TransportError::BadRank { rank, size };
            assert_eq!(transport.send(rank, Tag(0), &[]), Err(wrong.clone()));
            assert_eq!(transport.receive(rank, Tag(0)), Err(wrong.clone()));
            assert_eq!(transport.try_receive(rank, Tag(0)), Err(wrong.clone()));
            assert_eq!(transport.broadcast(rank, Vec::new()), Err(wrong));
        }
        transport.barrier()
    });
}

fn identity(setting: &Setting<'_>) {
    setting.run(|transport| {
        assert_eq!(transport.name(), setting.launcher.name());
        assert_eq!(transport.size(), setting.size());
        for (rank, node) in ranks(transport).into_iter().zip(setting.nodes) {
            assert_eq!(transport.node_of(rank).0, *node);
        }
        let me = transport.rank().0.to_le_bytes();
        let all = transport.all_gather(&me)?;
        let expected = ranks(transport)
            .into_iter()
            .map(|rank| rank.0.to_le_bytes());
        assert!(all.into_iter().eq(expected), "ranks are numbered");
        Ok(())
    });
}
