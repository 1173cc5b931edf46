//! Posted transfers, messages from any rank, and waits for both.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::{Case, Setting};
use crate::{DataTag, Posted, Rank, Result, Segment, Tag, Transport};

/// The tag by which a receiver says that its receives are posted.
const GRANT: Tag = Tag(1);
/// The tag of messages in between.
const CHATTER: Tag = Tag(2);

const LONG_BYTES: usize = 8 << 20;

pub(super) fn cases() -> Vec<Case> {
    let case = |name, ranks, check| Case { name, ranks, check };
    vec![
        case("posted::any_rank", 1..=7, |setting| setting.run(any_rank)),
        case("posted::many", 1..=7, |setting| {
            setting.run(|transport| many(transport, setting));
        }),
        case("posted::long", 1..=4, |setting| {
            setting.run(|transport| long(transport, setting));
        }),
        case("posted::one_tag", 2..=2, |setting| setting.run(one_tag)),
        case("posted::duplicates_do_not_mix", 1..=4, |setting| {
            setting.run(|transport| duplicates_do_not_mix(transport, setting));
        }),
        case("posted::unequal_pace", 2..=4, |setting| {
            setting.run(|transport| unequal_pace(transport, setting));
        }),
        case("posted::dropped_while_under_way", 2..=4, |setting| {
            setting.run(dropped_while_under_way);
        }),
        case("posted::woken", 1..=4, |setting| setting.run(woken)),
        case("posted::traffic", 2..=7, |setting| setting.run(traffic)),
    ]
}

fn ranks(transport: &dyn Transport) -> impl DoubleEndedIterator<Item = Rank> + use<> {
    (0..transport.size()).map(Rank)
}

fn memory(bytes: usize) -> Segment {
    Segment::anonymous(bytes).expect("memory for a test")
}

/// Waits until all of the transfers are complete.
pub(super) fn complete(transport: &dyn Transport, mut posted: Vec<Posted>) -> Result<()> {
    transport.wait_until(&mut || {
        let mut left = Vec::new();
        for transfer in posted.drain(..) {
            if !transport.is_complete(transfer)? {
                left.push(transfer);
            }
        }
        posted = left;
        Ok(posted.is_empty())
    })
}

/// Messages of all ranks, in each sender's order.
fn any_rank(transport: &Arc<dyn Transport>) -> Result<()> {
    const MESSAGES: u32 = 50;
    for i in 0..MESSAGES {
        for to in ranks(transport.as_ref()) {
            transport.send(to, Tag(0), &i.to_le_bytes())?;
            transport.send(to, Tag(1), b"another tag")?;
        }
    }
    let mut next = vec![0_u32; transport.size() as usize];
    for _ in 0..MESSAGES * transport.size() {
        let mut found = None;
        transport.wait_until(&mut || {
            found = transport.try_receive_any(Tag(0))?;
            Ok(found.is_some())
        })?;
        let (from, bytes) = found.expect("the wait is over");
        assert_eq!(bytes, next[from.index()].to_le_bytes(), "from {from}");
        next[from.index()] += 1;
    }
    assert_eq!(transport.try_receive_any(Tag(0))?, None);
    for from in ranks(transport.as_ref()) {
        for _ in 0..MESSAGES {
            assert_eq!(transport.receive(from, Tag(1))?, b"another tag");
        }
    }
    assert_eq!(transport.try_receive_any(Tag(1))?, None);
    transport.barrier()
}

/// Where a transfer lies in the memory of sender or receiver, if there are
/// `tags` for each peer: lengths from none to many packets.
fn place(peer: Rank, tag: u16, tags: u16) -> std::ops::Range<usize> {
    const LENGTHS: [usize; 8] = [0, 1, 8, 100, 4096, 20_000, 65_536, 0];
    const STRIDE: usize = 65_536;
    let start = (peer.index() * usize::from(tags) + usize::from(tag)) * STRIDE;
    start..start + LENGTHS[usize::from(tag) % LENGTHS.len()]
}

/// The bytes of a transfer.
fn body(setting: &Setting<'_>, from: Rank, to: Rank, tag: u16, bytes: usize) -> Vec<u8> {
    let stream = (u64::from(from.0) << 40) | (u64::from(to.0) << 20) | u64::from(tag);
    setting.dice(stream).bytes(bytes)
}

/// All ranks send to all at the same time, itself too, under many tags, with
/// messages in between.
fn many(transport: &Arc<dyn Transport>, setting: &Setting<'_>) -> Result<()> {
    const TAGS: u16 = 16;
    let me = transport.rank();
    let transport = transport.as_ref();
    let bytes = place(Rank(transport.size()), 0, TAGS).start;
    let (outgoing, incoming) = (memory(bytes), memory(bytes));
    let mut posted = Vec::new();
    for from in ranks(transport) {
        for tag in (0..TAGS).rev() {
            let range = place(from, tag, TAGS);
            posted.push(transport.post_receive(from, data_tag(tag), &incoming, range)?);
        }
        transport.send(from, GRANT, &[])?;
    }
    let mut granted = 0;
    let mut heard = 0;
    while granted < transport.size() {
        let mut grant = None;
        transport.wait_until(&mut || {
            grant = transport.try_receive_any(GRANT)?;
            Ok(grant.is_some())
        })?;
        let (to, _) = grant.expect("the wait is over");
        for tag in 0..TAGS {
            let range = place(to, tag, TAGS);
            outgoing.store_bytes(range.start, &body(setting, me, to, tag, range.len()));
            posted.push(transport.post_send(to, data_tag(tag), &outgoing, range)?);
            transport.send(to, CHATTER, &[tag as u8; 300])?;
        }
        granted += 1;
        while transport.try_receive_any(CHATTER)?.is_some() {
            heard += 1;
        }
    }
    complete(transport, posted)?;
    for from in ranks(transport) {
        for tag in 0..TAGS {
            let range = place(from, tag, TAGS);
            let mut bytes = vec![0; range.len()];
            incoming.load_bytes(range.start, &mut bytes);
            let expected = body(setting, from, me, tag, range.len());
            assert!(bytes == expected, "from {from}, tag {tag}");
        }
    }
    transport.wait_until(&mut || {
        while transport.try_receive_any(CHATTER)?.is_some() {
            heard += 1;
        }
        Ok(heard >= u32::from(TAGS) * transport.size())
    })?;
    transport.barrier()?;
    assert_eq!(transport.try_receive_any(CHATTER)?, None);
    transport.barrier()
}

/// The greatest tags are used, too.
fn data_tag(tag: u16) -> DataTag {
    match tag % 2 {
        0 => DataTag(tag),
        _ => DataTag(DataTag::BOUND - tag),
    }
}

/// Everyone to the next one, in both directions, more than any queue holds.
fn long(transport: &Arc<dyn Transport>, setting: &Setting<'_>) -> Result<()> {
    let (me, size) = (transport.rank(), transport.size());
    let peers = [Rank((me.0 + 1) % size), Rank((me.0 + size - 1) % size)];
    let outgoing = memory(LONG_BYTES);
    outgoing.store_bytes(0, &body(setting, me, me, 0, LONG_BYTES));
    let incoming = peers.map(|_| memory(LONG_BYTES));
    let mut posted = Vec::new();
    for (way, from) in peers.into_iter().enumerate() {
        // What comes from the next one was sent by it to the one before.
        let tag = DataTag(1 - way as u16);
        posted.push(transport.post_receive(from, tag, &incoming[way], 0..LONG_BYTES)?);
    }
    transport.barrier()?;
    for (way, to) in peers.into_iter().enumerate() {
        posted.push(transport.post_send(to, DataTag(way as u16), &outgoing, 0..LONG_BYTES)?);
    }
    complete(transport.as_ref(), posted)?;
    for (from, incoming) in peers.into_iter().zip(&incoming) {
        let mut bytes = vec![0; LONG_BYTES];
        incoming.load_bytes(0, &mut bytes);
        assert!(bytes == body(setting, from, from, 0, LONG_BYTES));
    }
    transport.barrier()
}

/// Transfers with the same tag are matched in order.
fn one_tag(transport: &Arc<dyn Transport>) -> Result<()> {
    const TRANSFERS: usize = 20;
    const BYTES: usize = 20_000;
    let other = Rank(1 - transport.rank().0);
    let (outgoing, incoming) = (memory(TRANSFERS * BYTES), memory(TRANSFERS * BYTES));
    let mut posted = Vec::new();
    for i in 0..TRANSFERS {
        let range = i * BYTES..(i + 1) * BYTES;
        posted.push(transport.post_receive(other, DataTag(3), &incoming, range)?);
    }
    transport.barrier()?;
    for i in 0..TRANSFERS {
        let range = i * BYTES..(i + 1) * BYTES;
        outgoing.store_bytes(range.start, &vec![i as u8; BYTES]);
        posted.push(transport.post_send(other, DataTag(3), &outgoing, range)?);
    }
    complete(transport.as_ref(), posted)?;
    let mut bytes = vec![0; TRANSFERS * BYTES];
    incoming.load_bytes(0, &mut bytes);
    for (i, bytes) in bytes.chunks(BYTES).enumerate() {
        assert!(bytes.iter().all(|byte| *byte == i as u8), "transfer {i}");
    }
    transport.barrier()
}

/// The same peers and tags at once on three duplicates.
fn duplicates_do_not_mix(transport: &Arc<dyn Transport>, setting: &Setting<'_>) -> Result<()> {
    const BYTES: usize = 100_000;
    let duplicates = transport.duplicates(2)?;
    let worlds = [transport, &duplicates[0], &duplicates[1]];
    let (me, size) = (transport.rank(), transport.size());
    let (to, from) = (Rank((me.0 + 1) % size), Rank((me.0 + size - 1) % size));
    let incoming = worlds.map(|_| memory(BYTES));
    let outgoing = worlds.map(|_| memory(BYTES));
    let mut posted = Vec::new();
    for (world, incoming) in worlds.iter().zip(&incoming) {
        posted.push(vec![world.post_receive(
            from,
            DataTag(9),
            incoming,
            0..BYTES,
        )?]);
    }
    transport.barrier()?;
    for (i, world) in worlds.iter().enumerate().rev() {
        outgoing[i].store_bytes(0, &body(setting, me, to, i as u16, BYTES));
        posted[i].push(world.post_send(to, DataTag(9), &outgoing[i], 0..BYTES)?);
    }
    for (world, posted) in worlds.iter().zip(posted) {
        complete(world.as_ref(), posted)?;
    }
    for (i, incoming) in incoming.iter().enumerate() {
        let mut bytes = vec![0; BYTES];
        incoming.load_bytes(0, &mut bytes);
        assert!(bytes == body(setting, from, me, i as u16, BYTES), "{i}");
    }
    transport.barrier()
}

/// A receiver that rarely looks: posting does not wait for it, and a sender
/// that waits for something else pushes its transfers on.
fn unequal_pace(transport: &Arc<dyn Transport>, setting: &Setting<'_>) -> Result<()> {
    let (me, last) = (transport.rank(), Rank(transport.size() - 1));
    let (outgoing, incoming) = (memory(LONG_BYTES), memory(LONG_BYTES));
    if me == last {
        let posted = transport.post_receive(Rank(0), DataTag(0), &incoming, 0..LONG_BYTES)?;
        transport.send(Rank(0), GRANT, &[])?;
        thread::sleep(Duration::from_millis(20));
        complete(transport.as_ref(), vec![posted])?;
        let mut bytes = vec![0; LONG_BYTES];
        incoming.load_bytes(0, &mut bytes);
        assert!(bytes == body(setting, Rank(0), last, 0, LONG_BYTES));
        transport.send(Rank(0), GRANT, &[])?;
    } else if me == Rank(0) {
        outgoing.store_bytes(0, &body(setting, me, last, 0, LONG_BYTES));
        transport.receive(last, GRANT)?;
        let posted = transport.post_send(last, DataTag(0), &outgoing, 0..LONG_BYTES)?;
        transport.wait_until(&mut || Ok(transport.try_receive(last, GRANT)?.is_some()))?;
        complete(transport.as_ref(), vec![posted])?;
    }
    transport.barrier()
}

/// A duplicate that is dropped with a receive under way, whose memory lives on
/// with the transport.
fn dropped_while_under_way(transport: &Arc<dyn Transport>) -> Result<()> {
    let me = transport.rank();
    let duplicate = transport.duplicate()?;
    let incoming = memory(LONG_BYTES);
    let next = Rank((me.0 + 1) % transport.size());
    duplicate.post_receive(next, DataTag(0), &incoming, 0..LONG_BYTES)?;
    drop(duplicate);
    transport.barrier()
}

/// `wake` ends a sleep, from another thread and before the sleep begins.
fn woken(transport: &Arc<dyn Transport>) -> Result<()> {
    for nap in [0, 0, 1, 30] {
        let is_ready = AtomicBool::new(false);
        let start = Instant::now();
        thread::scope(|scope| {
            scope.spawn(|| {
                thread::sleep(Duration::from_millis(nap));
                is_ready.store(true, Ordering::Release);
                transport.wake();
            });
            transport.wait_until(&mut || Ok(is_ready.load(Ordering::Acquire)))
        })?;
        assert!(start.elapsed() < Duration::from_secs(20), "woken too late");
    }
    transport.barrier()
}

/// Messages are counted by where they go.
fn traffic(transport: &Arc<dyn Transport>) -> Result<()> {
    const BYTES: usize = 1000;
    let me = transport.rank();
    let here = transport.node_of(me);
    let before = transport.traffic();
    let mut expected = before;
    for to in ranks(transport.as_ref()).filter(|to| *to != me) {
        transport.send(to, Tag(0), &[0; BYTES])?;
        let (messages, bytes) = match transport.node_of(to) == here {
            true => (
                &mut expected.messages_within_node,
                &mut expected.bytes_within_node,
            ),
            false => (
                &mut expected.messages_between_nodes,
                &mut expected.bytes_between_nodes,
            ),
        };
        *messages += 1;
        *bytes += BYTES as u64;
    }
    assert_eq!(transport.traffic(), expected, "before: {before:?}");
    for from in ranks(transport.as_ref()).filter(|from| *from != me) {
        transport.receive(from, Tag(0))?;
    }
    transport.barrier()
}
