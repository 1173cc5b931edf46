//! Private worlds of messages between the same ranks.

use std::sync::Arc;

use super::{Case, Setting, collectives};
use crate::{Rank, Result, Tag, Transport, TransportError};

pub(super) fn cases() -> Vec<Case> {
    let case = |name, check| Case {
        name,
        ranks: 1..=7,
        check,
    };
    vec![
        case("duplicates::do_not_mix", |setting| setting.run(do_not_mix)),
        case("duplicates::many", |setting| setting.run(many)),
        case("duplicates::come_and_go", |setting| {
            setting.run(come_and_go)
        }),
        case("duplicates::early_messages", |setting| {
            setting.run(early_messages);
        }),
        case("duplicates::threads_of_a_rank", |setting| {
            setting.run(|transport| threads_of_a_rank(transport, setting));
        }),
    ]
}

fn neighbours(transport: &Arc<dyn Transport>) -> (Rank, Rank) {
    let (me, size) = (transport.rank().0, transport.size());
    (Rank((me + 1) % size), Rank((me + size - 1) % size))
}

/// The same sender and tag in three worlds, received in another order.
fn do_not_mix(transport: &Arc<dyn Transport>) -> Result<()> {
    let (to, from) = neighbours(transport);
    let first = transport.duplicate()?;
    let second = first.duplicate()?;
    let worlds = [transport, &first, &second];
    for (i, world) in worlds.iter().enumerate() {
        assert_eq!(world.rank(), transport.rank());
        assert_eq!(world.size(), transport.size());
        world.send(to, Tag(0), &[i as u8])?;
    }
    for (i, world) in worlds.iter().enumerate().rev() {
        assert_eq!(world.receive(from, Tag(0))?, [i as u8]);
        assert_eq!(world.try_receive(from, Tag(0))?, None);
    }
    // A duplicate outlives its origin.
    drop(first);
    second.barrier()?;
    transport.barrier()
}

/// More at once than a transport may have collective slots for.
fn many(transport: &Arc<dyn Transport>) -> Result<()> {
    let me = transport.rank().0;
    let mut duplicates = transport.duplicates(60)?;
    for _ in 0..40 {
        duplicates.push(transport.duplicate()?);
    }
    for (i, duplicate) in (0..).zip(&duplicates) {
        let all = duplicate.all_gather(&(me + i).to_le_bytes())?;
        let expected = (0..transport.size()).map(|rank| (rank + i).to_le_bytes());
        assert!(all.into_iter().eq(expected), "duplicate {i}");
        let root = Rank(i % transport.size());
        let bytes = duplicate.broadcast(root, vec![me as u8; 300])?;
        assert_eq!(bytes, vec![root.0 as u8; 300]);
        duplicate.barrier()?;
    }
    Ok(())
}

/// What was not received goes with the duplicate.
fn come_and_go(transport: &Arc<dyn Transport>) -> Result<()> {
    let (to, from) = neighbours(transport);
    for round in 0..300_u32 {
        let duplicate = transport.duplicate()?;
        duplicate.send(to, Tag(0), &round.to_le_bytes())?;
        duplicate.send(to, Tag(1), b"never received")?;
        assert_eq!(duplicate.receive(from, Tag(0))?, round.to_le_bytes());
        duplicate.barrier()?;
    }
    Ok(())
}

/// A message may arrive before its receiver has the duplicate.
fn early_messages(transport: &Arc<dyn Transport>) -> Result<()> {
    let (to, from) = neighbours(transport);
    for round in 0..50_u32 {
        let duplicate = transport.duplicate()?;
        duplicate.send(to, Tag(0), &round.to_le_bytes())?;
        duplicate.send(to, Tag(0), &vec![1; 400_000])?;
        assert_eq!(duplicate.receive(from, Tag(0))?, round.to_le_bytes());
        assert_eq!(duplicate.receive(from, Tag(0))?.len(), 400_000);
    }
    Ok(())
}

/// Each thread of a rank has its own duplicate, and all are busy at once.
fn threads_of_a_rank(transport: &Arc<dyn Transport>, setting: &Setting<'_>) -> Result<()> {
    const THREADS: usize = 3;
    let duplicates = (0..THREADS)
        .map(|_| transport.duplicate())
        .collect::<Result<Vec<_>>>()?;
    std::thread::scope(|scope| {
        let spawn = |duplicate| scope.spawn(move || busy(duplicate, setting));
        let threads = duplicates.iter().map(spawn).collect::<Vec<_>>();
        for thread in threads {
            thread.join().expect("no assertion fails in a thread")?;
        }
        Ok::<_, TransportError>(())
    })?;
    transport.barrier()
}

fn busy(duplicate: &Arc<dyn Transport>, setting: &Setting<'_>) -> Result<()> {
    let (to, from) = neighbours(duplicate);
    for round in 0..20_u32 {
        let length = [10, 700_000][round as usize % 2];
        duplicate.send(to, Tag(0), &vec![round as u8; length])?;
        duplicate.send(to, Tag(1), &round.to_le_bytes())?;
        assert_eq!(duplicate.receive(from, Tag(1))?, round.to_le_bytes());
        assert!(duplicate.receive(from, Tag(0))? == vec![round as u8; length]);
    }
    collectives::random_mix(duplicate, setting)
}
