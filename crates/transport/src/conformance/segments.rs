//! Memory that the ranks of a node share.

use std::cell::Cell;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::Case;
use crate::{Backoff, Rank, Result, Tag, Transport, TransportError, Waiter};

pub(super) fn cases() -> Vec<Case> {
    let case = |name, check| Case {
        name,
        ranks: 1..=7,
        check,
    };
    vec![
        case("segments::of_a_node", |setting| setting.run(of_a_node)),
        case("segments::zeroed", |setting| setting.run(zeroed)),
        case("segments::lengths_must_match", |setting| {
            setting.run(lengths_must_match);
        }),
        case("segments::too_large_for_anyone", |setting| {
            setting.run(too_large_for_anyone);
        }),
        case("segments::wake_ups", |setting| {
            setting.run(|transport| wake_ups(transport, Duration::ZERO, 500));
        }),
        case("segments::wake_ups_from_sleep", |setting| {
            setting.run(|transport| wake_ups(transport, Duration::from_millis(2), 10));
        }),
        case("segments::waiting_is_bounded", |setting| {
            setting.run(waiting_is_bounded);
        }),
        case("segments::given_back", |setting| setting.run(given_back)),
    ]
}

/// What segments must do, one after the other.
pub(super) fn all(transport: &Arc<dyn Transport>) -> Result<()> {
    of_a_node(transport)?;
    zeroed(transport)?;
    lengths_must_match(transport)?;
    too_large_for_anyone(transport)?;
    wake_ups(transport, Duration::ZERO, 100)?;
    given_back(transport)
}

/// The ranks of the caller's node, in order.
fn members(transport: &Arc<dyn Transport>) -> Vec<Rank> {
    let node = transport.node_of(transport.rank());
    let ranks = (0..transport.size()).map(Rank);
    ranks
        .filter(|rank| transport.node_of(*rank) == node)
        .collect()
}

/// Each rank writes its mark; it sees those of its node and no other.
fn of_a_node(transport: &Arc<dyn Transport>) -> Result<()> {
    let me = transport.rank();
    let size = transport.size() as usize;
    let Some(segment) = transport.segment(size * 8)? else {
        return Ok(());
    };
    assert_eq!(segment.bytes(), size * 8);
    let mark = |rank: Rank| u64::from(rank.0) + 1;
    segment
        .atomic_u64(me.index() * 8)
        .store(mark(me), Ordering::Relaxed);
    transport.barrier()?;
    for rank in (0..transport.size()).map(Rank) {
        let found = segment.atomic_u64(rank.index() * 8).load(Ordering::Relaxed);
        let is_member = transport.node_of(rank) == transport.node_of(me);
        let expected = if is_member { mark(rank) } else { 0 };
        assert_eq!(found, expected, "the mark of rank {rank}");
    }
    transport.barrier()
}

/// Also when memory has just been given back full of something else.
fn zeroed(transport: &Arc<dyn Transport>) -> Result<()> {
    for bytes in [0, 1, 8, 4096, (1 << 20) + 3, 1 << 20] {
        let Some(segment) = transport.segment(bytes)? else {
            continue;
        };
        assert_eq!(segment.bytes(), bytes);
        assert!(segment.as_ptr().addr().is_multiple_of(64), "{bytes} bytes");
        let words = bytes / 8;
        let mut found = vec![1; words * 8];
        segment.load_bytes(0, &mut found);
        assert!(found.iter().all(|byte| *byte == 0), "{bytes} bytes");
        transport.barrier()?;
        segment.store_bytes(0, &vec![0xff; words * 8]);
        transport.barrier()?;
    }
    Ok(())
}

fn lengths_must_match(transport: &Arc<dyn Transport>) -> Result<()> {
    let members = members(transport);
    let is_last = members.last() == Some(&transport.rank());
    let result = transport.segment(if is_last { 200 } else { 100 });
    if members.len() > 1 {
        let error = result.expect_err("the lengths differ");
        assert!(
            matches!(error, TransportError::Mismatch { .. }),
            "got: {error}"
        );
    }
    transport.barrier()?;
    // Nothing is left of the failure.
    of_a_node(transport)
}

/// A transport that asks the kernel first and thinks later takes the memory of
/// the whole machine here, and the kernel kills whoever it finds.
fn too_large_for_anyone(transport: &Arc<dyn Transport>) -> Result<()> {
    for bytes in [usize::MAX, isize::MAX as usize, 1 << 60] {
        assert!(transport.segment(bytes)?.is_none(), "{bytes} bytes");
    }
    of_a_node(transport)
}

/// A token goes around the node; whoever has it holds it for a while. Sleeps
/// are so long that a wake-up that gets lost is a failure, not a delay.
fn wake_ups(transport: &Arc<dyn Transport>, hold: Duration, rounds: u64) -> Result<()> {
    const TOKEN: usize = 0;
    const EVENT: usize = 64;
    let Some(segment) = transport.segment(128)? else {
        return Ok(());
    };
    let members = members(transport);
    let count = members.len() as u64;
    let mine = members.partition_point(|rank| *rank < transport.rank()) as u64;
    let token = segment.atomic_u64(TOKEN);
    let progress = || transport.progress();
    let long = Duration::from_secs(60);
    let waiter = Waiter::new(&progress).backoff(Backoff {
        looks: 1,
        yield_for: Duration::from_micros(5),
        first_sleep: long,
        longest_sleep: long,
        give_up_after: Some(long / 2),
    });
    for round in 0..rounds {
        let turn = round * count + mine;
        waiter.wait(segment.event(EVENT), || {
            Ok((token.load(Ordering::Acquire) == turn).then_some(()))
        })?;
        std::thread::sleep(hold);
        token.store(turn + 1, Ordering::Release);
        segment.event(EVENT).notify();
    }
    transport.barrier()
}

/// A wait for what never comes calls the progress hook and gives up.
fn waiting_is_bounded(transport: &Arc<dyn Transport>) -> Result<()> {
    let Some(segment) = transport.segment(8)? else {
        return Ok(());
    };
    let visits = Cell::new(0);
    let progress = || {
        visits.set(visits.get() + 1);
        transport.progress()
    };
    let bound = Duration::from_millis(150);
    let waiter = Waiter::new(&progress).backoff(Backoff {
        give_up_after: Some(bound),
        ..Backoff::DEFAULT
    });
    let result = waiter.wait(segment.event(0), || Ok(None::<()>));
    assert_eq!(result, Err(TransportError::Timeout { after: bound }));
    assert!(visits.get() >= 3, "the hook ran {} times", visits.get());
    // The hook takes in messages, so even a sender of long ones gets on.
    transport.send(transport.rank(), Tag(0), &[])?;
    transport.progress()?;
    transport.receive(transport.rank(), Tag(0))?;
    transport.barrier()
}

/// A segment lives as long as its clones, and no longer.
fn given_back(transport: &Arc<dyn Transport>) -> Result<()> {
    const SEGMENTS: usize = 100;
    let mappings = || {
        let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
        let is_shared = |line: &&str| line.contains("rw-s");
        maps.lines().filter(is_shared).count()
    };
    transport.barrier()?;
    let before = mappings();
    for _ in 0..SEGMENTS {
        if let Some(segment) = transport.segment(10_000)? {
            let clone = segment.clone();
            drop(segment);
            clone.atomic_u64(0).store(1, Ordering::Relaxed);
        }
    }
    transport.barrier()?;
    let after = mappings();
    assert!(
        after < before + SEGMENTS / 2,
        "{before} mappings became {after}"
    );
    transport.barrier()
}
