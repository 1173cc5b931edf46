//! Ranks as threads, driven through the trait.

#[cfg(loom)]
mod models;

use std::time::Duration;

use crate::{Loss, Rank, Tag, TransportError, threads};

#[test]
fn messages_keep_their_order() {
    let results = threads::run(3, |transport| {
        let me = transport.rank().0;
        for to in 0..3 {
            for i in 0..100_u32 {
                transport.send(Rank(to), Tag(i % 2), &i.to_le_bytes())?;
            }
        }
        for from in (0..3).rev() {
            for tag in [1, 0] {
                for i in (tag..100).step_by(2) {
                    let message = transport.receive(Rank(from), Tag(tag))?;
                    assert_eq!(message, i.to_le_bytes(), "rank {me} from {from}");
                }
            }
        }
        transport.barrier()
    });
    assert!(results.into_iter().all(|result| result == Ok(Ok(()))));
}

#[test]
fn long_messages_cross() {
    let results = threads::run(2, |transport| {
        let me = transport.rank().0;
        let mine = vec![me as u8 + 1; 10 << 20];
        transport.send(Rank(1 - me), Tag(0), &mine)?;
        let theirs = transport.receive(Rank(1 - me), Tag(0))?;
        assert_eq!(theirs, vec![2 - me as u8; 10 << 20]);
        let segment = transport.segment(100)?.expect("threads share memory");
        assert_eq!(segment.bytes(), 100);
        transport.barrier()
    });
    assert!(results.into_iter().all(|result| result == Ok(Ok(()))));
}

#[test]
fn a_panic_reaches_the_others() {
    let results = threads::run(3, |transport| {
        if transport.rank() == Rank(1) {
            std::thread::sleep(Duration::from_millis(5));
            panic!("on purpose");
        }
        transport.receive(Rank(2 - transport.rank().0), Tag(0))
    });
    let lost = TransportError::PeerLost {
        rank: Rank(1),
        reason: Loss::Panicked,
    };
    assert_eq!(results[0], Ok(Err(lost.clone())));
    assert_eq!(results[2], Ok(Err(lost)));
    assert!(results[1].is_err());
}

/// A rank whose collective failed had not entered the next one, and the others
/// waited for it there, and it for itself, for ever.
#[test]
fn once_a_rank_has_returned_every_later_collective_fails() {
    let results = threads::run(3, |transport| {
        if transport.rank() == Rank(1) {
            return Vec::new();
        }
        (0..5).map(|_| transport.barrier()).collect::<Vec<_>>()
    });
    for rank in [0, 2] {
        let outcomes = results[rank].as_ref().expect("no rank panics");
        let is_lost = |outcome| matches!(outcome, &Err(TransportError::PeerLost { .. }));
        assert!(outcomes.iter().all(is_lost), "{outcomes:?}");
    }
}

#[test]
#[should_panic(expected = "1025 ranks are too many: a world has at most 1024")]
fn worlds_have_a_largest_size() {
    let _ = threads::World::new(threads::World::RANKS_MAX + 1);
}

#[test]
#[should_panic(expected = "a placement names the node of each rank")]
fn placements_name_every_rank() {
    let _ = threads::World::new(2).nodes(&[0, 0, 0]);
}

#[test]
fn scratch_memory_is_shared_and_zeroed_for_its_next_users() {
    let results = threads::run(3, |transport| {
        for round in 0..200_u64 {
            let own = transport.duplicate()?;
            let scratch = own.scratch().expect("duplicates have slots, one at a time");
            let word = scratch.atomic_u64(128);
            word.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            own.barrier()?;
            let seen = word.load(std::sync::atomic::Ordering::Relaxed);
            assert_eq!(seen, 3, "round {round}");
            own.barrier()?;
        }
        Ok::<(), TransportError>(())
    });
    assert!(results.into_iter().all(|result| result == Ok(Ok(()))));
}
