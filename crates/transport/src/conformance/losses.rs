//! Ranks that leave: the others get an error, soon, and never wait for ever.

use std::panic;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use super::{Case, Dice, Outcome, Setting, posted, without_collectives};
use crate::{DataTag, Rank, Result, Segment, Tag, Transport, TransportError, Waiter};

/// By when the others must have noticed: generous, since test machines are
/// busy, but far from for ever.
const NOTICE_WITHIN: Duration = Duration::from_secs(20);

/// More than any queue holds.
const LONG_BYTES: usize = 8 << 20;

pub(super) fn cases() -> Vec<Case> {
    let case = |name, check| Case {
        name,
        ranks: 2..=7,
        check,
    };
    vec![
        case("losses::a_rank_panics", a_rank_panics),
        case("losses::a_rank_returns_early", a_rank_returns_early),
        case("losses::a_rank_is_killed", a_rank_is_killed),
        case("losses::every_call_notices", every_call_notices),
        case("losses::last_words", last_words),
        case("losses::all_sleep", all_sleep),
    ]
}

/// How the victim of a trial leaves.
#[derive(Clone, Copy, Debug)]
enum End {
    /// It panics after so many operations.
    Panic(u32),
    /// It returns after so many operations.
    Return(u32),
    /// It is killed after a time, in the middle of anything.
    Kill(fn(), Duration),
}

fn a_rank_panics(setting: &Setting<'_>) {
    for trial in 0..setting.trials {
        let after = setting.dice(u64::from(trial)).below(30) as u32;
        try_end(setting, trial, End::Panic(after));
    }
}

fn a_rank_returns_early(setting: &Setting<'_>) {
    for trial in 0..setting.trials {
        let after = setting.dice(u64::from(trial)).below(30) as u32;
        try_end(setting, trial, End::Return(after));
    }
}

fn a_rank_is_killed(setting: &Setting<'_>) {
    let Some(kill) = setting.launcher.end_abruptly() else {
        return;
    };
    for trial in 0..setting.trials * 3 {
        let micros = setting.dice(u64::from(trial)).below(8_000);
        try_end(
            setting,
            trial,
            End::Kill(kill, Duration::from_micros(micros)),
        );
    }
}

/// All ranks work until they get an error, which is what they return.
fn try_end(setting: &Setting<'_>, trial: u32, end: End) {
    let stream = u64::from(trial);
    let victim = Rank(setting.dice(stream).below(u64::from(setting.size())) as u32);
    let job = |transport: Arc<dyn Transport>| {
        let mut dice = setting.dice(stream);
        if transport.rank() != victim {
            let error = work(&transport, &mut dice, u32::MAX);
            return error.map_or_else(|error| encode(&error), |()| Vec::new());
        }
        match end {
            End::Panic(operations) => {
                let _ = work(&transport, &mut dice, operations);
                quiet_panic();
            }
            End::Return(operations) => {
                let _ = work(&transport, &mut dice, operations);
            }
            End::Kill(kill, after) => {
                thread::spawn(move || {
                    thread::sleep(after);
                    kill();
                });
                let _ = work(&transport, &mut dice, u32::MAX);
            }
        }
        Vec::new()
    };
    let start = Instant::now();
    let outcomes = setting.launcher.launch(setting.nodes, &job);
    let context = format!("PARIO_SEED={}, trial {trial}, {end:?}", setting.seed);
    assert!(start.elapsed() < NOTICE_WITHIN, "{context}: too late");
    assert_eq!(
        outcomes[victim.index()].is_ok(),
        matches!(end, End::Return(_)),
        "{context}: the victim: {:?}",
        outcomes[victim.index()]
    );
    for (rank, outcome) in outcomes.iter().enumerate() {
        if rank != victim.index() {
            check_survivor(outcome, victim, end, &format!("{context}, rank {rank}"));
        }
    }
}

fn check_survivor(outcome: &Outcome, victim: Rank, end: End, context: &str) {
    let error = match outcome {
        Ok(bytes) => String::from_utf8_lossy(bytes),
        Err(failure) => panic!("{context} did not survive: {failure}"),
    };
    let lost = match end {
        // Others return because of the first one, and may be noticed before.
        End::Return(_) => "PeerLost".to_owned(),
        End::Panic(_) | End::Kill(..) => format!("PeerLost {{ rank: {victim:?}"),
    };
    assert!(error.starts_with(&lost), "{context} got: {error}");
}

fn encode(error: &TransportError) -> Vec<u8> {
    format!("{error:?}").into_bytes()
}

/// A panic that prints nothing: it is part of the test.
fn quiet_panic() -> ! {
    panic::resume_unwind(Box::new("on purpose"))
}

/// A mix of everything that ranks do together, in an order that all know.
fn work(transport: &Arc<dyn Transport>, dice: &mut Dice, operations: u32) -> Result<()> {
    let size = transport.size();
    let me = transport.rank().0;
    let mut kept = Vec::new();
    for operation in 0..operations {
        let length = [0, 16, 3_000, 600_000][dice.below(4) as usize];
        let body = vec![operation as u8; length];
        let root = Rank(dice.below(u64::from(size)) as u32);
        match dice.below(10) {
            0 => transport.barrier()?,
            1 => drop(transport.all_gather(&body)?),
            2 => drop(transport.broadcast(root, body)?),
            3 => {
                transport.send(Rank((me + 1) % size), Tag(operation), &body)?;
                transport.receive(Rank((me + size - 1) % size), Tag(operation))?;
            }
            4 => kept.push(transport.duplicate()?),
            5 => kept.clear(),
            6 => pass_token(transport)?,
            7 => exchange_posted(transport, length)?,
            8 => without_collectives::wrap(transport).barrier()?,
            _ => drop(without_collectives::wrap(transport).broadcast(root, body)?),
        }
    }
    Ok(())
}

/// Everyone sends to the next one.
fn exchange_posted(transport: &Arc<dyn Transport>, length: usize) -> Result<()> {
    let (me, size) = (transport.rank().0, transport.size());
    let (to, from) = (Rank((me + 1) % size), Rank((me + size - 1) % size));
    let memory = Segment::anonymous(2 * length).expect("memory for a test");
    let incoming = transport.post_receive(from, DataTag(7), &memory, 0..length)?;
    transport.barrier()?;
    let outgoing = transport.post_send(to, DataTag(7), &memory, length..2 * length)?;
    posted::complete(transport.as_ref(), vec![incoming, outgoing])
}

/// Ranks of a node wait for each other by words in a segment.
fn pass_token(transport: &Arc<dyn Transport>) -> Result<()> {
    const EVENT: usize = 64;
    let Some(segment) = transport.segment(128)? else {
        return Ok(());
    };
    let node = transport.node_of(transport.rank());
    let members = (0..transport.size()).filter(|rank| transport.node_of(Rank(*rank)) == node);
    let members = members.map(Rank).collect::<Vec<_>>();
    let everyone = members.len() as u64;
    let arrived = segment.atomic_u64(0);
    let progress = || {
        transport.progress()?;
        members.iter().try_for_each(|rank| transport.check(*rank))
    };
    arrived.fetch_add(1, Ordering::AcqRel);
    segment.event(EVENT).notify();
    Waiter::new(&progress).wait(segment.event(EVENT), || {
        Ok((arrived.load(Ordering::Acquire) == everyone).then_some(()))
    })
}

/// One kind of call at a time, with a rank that never takes part.
fn every_call_notices(setting: &Setting<'_>) {
    type Call = fn(&Arc<dyn Transport>, Rank) -> Result<()>;
    let calls: [(&str, Call); 13] = [
        ("receive", |transport, gone| {
            transport.receive(gone, Tag(0)).map(drop)
        }),
        ("try_receive", |transport, gone| {
            loop {
                transport.try_receive(gone, Tag(0))?;
                thread::yield_now();
            }
        }),
        ("posted receive", |transport, gone| {
            let memory = Segment::anonymous(64).expect("a page of memory");
            let posted = transport.post_receive(gone, DataTag(0), &memory, 0..64)?;
            transport.wait_until(&mut || transport.is_complete(posted))
        }),
        ("posted send", |transport, gone| {
            let memory = Segment::anonymous(LONG_BYTES).expect("memory for a test");
            let posted = transport.post_send(gone, DataTag(0), &memory, 0..LONG_BYTES)?;
            loop {
                transport.is_complete(posted)?;
                thread::yield_now();
            }
        }),
        ("wait_until", |transport, gone| {
            transport.wait_until(&mut || transport.check(gone).map(|()| false))
        }),
        ("long send", |transport, gone| {
            loop {
                transport.send(gone, Tag(0), &[0; 100_000])?;
            }
        }),
        ("barrier", |transport, _| transport.barrier()),
        ("all_gather", |transport, _| {
            transport.all_gather(&[1]).map(drop)
        }),
        ("broadcast", |transport, gone| {
            transport.broadcast(gone, vec![1]).map(drop)
        }),
        ("duplicate and barrier", |transport, _| {
            transport.duplicate()?.barrier()
        }),
        ("wait in a segment", |transport, gone| {
            let segment = Segment::anonymous(8).expect("a page of memory");
            let progress = || transport.progress().and_then(|()| transport.check(gone));
            Waiter::new(&progress).wait(segment.event(0), || Ok(None))
        }),
        ("generic barrier", |transport, _| {
            without_collectives::wrap(transport).barrier()
        }),
        ("generic all_gather", |transport, _| {
            let transport = without_collectives::wrap(transport);
            transport.all_gather(&[1]).map(drop)
        }),
    ];
    let gone = Rank(setting.size() - 1);
    for panics in [End::Return(0), End::Panic(0)] {
        for (name, call) in calls {
            let outcomes = setting.launcher.launch(setting.nodes, &|transport| {
                if transport.rank() == gone {
                    match panics {
                        End::Panic(_) => quiet_panic(),
                        _ => return Vec::new(),
                    }
                }
                // The second time as well, and the third: ranks that failed once
                // are not in step any more.
                let results = [(); 3].map(|()| call(&transport, gone));
                let mut failures = results.iter().filter_map(|result| result.as_ref().err());
                assert_eq!(failures.clone().count(), results.len(), "{name}");
                failures.next_back().map(encode).unwrap_or_default()
            });
            for outcome in &outcomes[..gone.index()] {
                check_survivor(outcome, gone, panics, name);
            }
        }
    }
}

/// What a rank sent before it left can be received, all of it.
fn last_words(setting: &Setting<'_>) {
    const MESSAGES: u32 = 100;
    setting.run(|transport| {
        let gone = Rank(setting.size() - 1);
        if transport.rank() == gone {
            for to in 0..gone.0 {
                for i in 0..MESSAGES {
                    transport.send(Rank(to), Tag(i % 3), &vec![i as u8; i as usize * 20])?;
                }
            }
            return Ok(());
        }
        thread::sleep(Duration::from_millis(5));
        for i in 0..MESSAGES {
            let bytes = transport.receive(gone, Tag(i % 3))?;
            assert_eq!(bytes, vec![i as u8; i as usize * 20]);
        }
        let error = transport.receive(gone, Tag(0));
        assert!(matches!(error, Err(TransportError::PeerLost { .. })));
        Ok(())
    });
}

/// Ranks that have long been asleep are woken by the end of one of them.
fn all_sleep(setting: &Setting<'_>) {
    let gone = Rank(0);
    let end: Box<dyn Fn() + Sync> = match setting.launcher.end_abruptly() {
        Some(kill) => Box::new(kill),
        None => Box::new(|| quiet_panic()),
    };
    let outcomes = setting.launcher.launch(setting.nodes, &|transport| {
        if transport.rank() == gone {
            thread::sleep(Duration::from_millis(60));
            end();
        }
        let start = Instant::now();
        let error = transport.receive(gone, Tag(0));
        assert!(start.elapsed() < NOTICE_WITHIN);
        error.map_or_else(|error| encode(&error), |_| Vec::new())
    });
    for outcome in &outcomes[1..] {
        check_survivor(outcome, gone, End::Panic(0), "a sleeper");
    }
}
