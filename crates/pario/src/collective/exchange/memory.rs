//! The buffers of an exchange: the memory behind the names that the machine
//! uses.
//!
//! `unsafe` is needed because the ranks of a node copy into and out of the same
//! segment. The protocol keeps them apart: a buffer belongs to one slice or
//! window at a time, and a rank is asked for its own bytes only.
#![allow(unsafe_code)]

use std::ops::Range;
use std::sync::atomic::Ordering;

use pario_exchange::{Accesses, Buffer, Groups, Kind, Layer, Limits, Planned, Rank, Realm};
use pario_transport::{Segment, Transport};

use crate::{Result, access::WindowBuffer, agree::GatherBuffers};

/// Buffers start at page boundaries.
const PAGE: u64 = 4096;

/// Counters of different buffers are not in each other's cache lines.
const COUNTER_BYTES: usize = 64;

/// How many bytes an exchange needs. The same on all ranks, so that they make
/// memory in the same call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Need {
    /// Filled by the ranks of a node.
    common: u64,
    /// Used by one rank.
    private: u64,
    /// Counters of ranks, one per buffer in common memory.
    counters: u64,
    /// Whether ranks fill each other's buffers.
    is_shared: bool,
}

impl Need {
    /// Whether memory that was made for another exchange will do.
    fn is_met_by(self, made_for: Need) -> bool {
        self.common <= made_for.common
            && self.private <= made_for.private
            && self.counters <= made_for.counters
            && self.is_shared == made_for.is_shared
    }
}

/// Where the buffers of a plan are.
#[derive(Debug)]
pub(super) struct Addresses {
    me: Rank,
    layer: Layer,
    depth: u64,
    staging: u64,
    node_buffers: u64,
    /// The distance between windows, and between slices.
    window_bytes: u64,
    slice_bytes: u64,
    /// The place of each realm among those that ranks of one group aggregate.
    places: Vec<u32>,
    /// The realms that this rank aggregates.
    own: Vec<Realm>,
    /// Where the node buffers start.
    after_windows: u64,
    after_staging: u64,
    /// The number of windows.
    windows: u64,
    need: Need,
}

impl Addresses {
    pub(super) fn new(planned: &Planned, groups: &Groups, limits: &Limits, me: Rank) -> Addresses {
        let realms = u64::from(planned.realms());
        let mut in_group = vec![0_u32; groups.count() as usize];
        let mut of_rank = vec![0_u64; groups.ranks() as usize];
        let mut longest = 0;
        let places = (0..planned.realms()).map(Realm).map(|realm| {
            let aggregator = planned.aggregator(realm);
            longest = longest.max(planned.realm(realm).bytes());
            of_rank[aggregator.index()] += 1;
            let count = &mut in_group[groups.of(aggregator) as usize];
            *count += 1;
            *count - 1
        });
        let places = places.collect();
        let window_bytes = limits.window_of(planned);
        let window_bytes = window_bytes.min(longest).next_multiple_of(PAGE);
        // A slice holds no more than a window has for all ranks of a group.
        let slice_bytes = limits.slice_bytes.next_multiple_of(PAGE);
        let (depth, staging) = (limits.depth.into(), limits.staging.into());
        let node_buffers = u64::from(limits.node_buffers);
        let per_group = u64::from(in_group.into_iter().max().unwrap_or(0));
        let per_rank = of_rank.into_iter().max().unwrap_or(0);
        let windows = per_group * depth;
        let after_windows = windows * window_bytes;
        let after_staging = per_rank * staging * slice_bytes;
        let node = realms * node_buffers * slice_bytes;
        let layer = groups.layer();
        let (common, private) = match layer {
            Layer::Node => (after_windows + node, after_staging),
            Layer::Rank => (after_windows, after_staging + node),
        };
        let need = Need {
            common,
            private,
            counters: windows + realms * node_buffers,
            is_shared: groups.count() < groups.ranks(),
        };
        Addresses {
            me,
            layer,
            depth,
            staging,
            node_buffers,
            window_bytes,
            slice_bytes,
            places,
            own: planned.realms_of(me),
            after_windows,
            after_staging,
            windows,
            need,
        }
    }

    /// The number of a buffer that ranks of a group fill or empty together.
    fn number(&self, buffer: Buffer) -> u64 {
        let nth = |place: u64, count: u64| place * count + u64::from(buffer.index);
        match buffer.kind {
            Kind::Window(realm) => nth(self.places[realm.0 as usize].into(), self.depth),
            Kind::Node(realm) => self.windows + nth(realm.0.into(), self.node_buffers),
            Kind::Staging(_) | Kind::Eager | Kind::EagerWindow | Kind::Arrival => {
                unreachable!("one rank uses these alone")
            }
        }
    }

    /// Which memory a buffer is in, and where.
    fn of(&self, buffer: Buffer) -> (Memory, Range<u64>) {
        let nth = |place: u64, count: u64, bytes: u64| {
            let start = (place * count + u64::from(buffer.index)) * bytes;
            start..start + bytes
        };
        let shift = |range: Range<u64>, by| range.start + by..range.end + by;
        match buffer.kind {
            Kind::Window(realm) => {
                let place = self.places[realm.0 as usize].into();
                (Memory::Common, nth(place, self.depth, self.window_bytes))
            }
            Kind::Node(realm) => {
                let range = nth(realm.0.into(), self.node_buffers, self.slice_bytes);
                match self.layer {
                    Layer::Node => (Memory::Common, shift(range, self.after_windows)),
                    Layer::Rank => (Memory::Private, shift(range, self.after_staging)),
                }
            }
            Kind::Staging(realm) => {
                debug_assert_eq!(buffer.owner, self.me);
                let place = self.own.iter().position(|own| *own == realm);
                let place = place.expect("staging is for realms of this rank") as u64;
                (Memory::Private, nth(place, self.staging, self.slice_bytes))
            }
            Kind::Eager | Kind::EagerWindow | Kind::Arrival => {
                unreachable!("eager data is not kept in segments")
            }
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Memory {
    Common,
    Private,
}

/// The memory of a collective context's exchanges. Pages that no call touches
/// take no memory.
#[derive(Debug)]
pub(super) struct ExchangeMemory {
    made_for: Need,
    common: Segment,
    private: Segment,
    /// How many ranks have filled or emptied each buffer of the common memory; zero
    /// between uses. Memory of its own: what earlier exchanges left in the other
    /// does not matter.
    counters: Segment,
}

impl ExchangeMemory {
    /// Whether an exchange can use what an earlier one has left.
    pub(super) fn suffices(&self, addresses: &Addresses) -> bool {
        addresses.need.is_met_by(self.made_for)
    }

    /// Makes memory. Collective. `None` on all ranks if those of some node share
    /// none.
    pub(super) fn make(
        comm: &dyn Transport,
        groups: &Groups,
        addresses: &Addresses,
    ) -> Result<Option<ExchangeMemory>> {
        let Need {
            common,
            private,
            counters,
            ..
        } = addresses.need;
        let counters = counters as usize * COUNTER_BYTES;
        let me = Rank(comm.rank().0);
        let is_alone = groups.members(groups.of(me)).len() == 1;
        let common = match is_alone {
            true => (|| Ok(Some((unshared(common)?, unshared(counters as u64)?))))(),
            false => share(comm, common as usize, counters),
        };
        let made = common.and_then(|common| Ok((common, unshared(private)?)));
        let is_shared = made.as_ref().map(|(common, _)| u8::from(common.is_some()));
        let is_shared = {
            let mine = is_shared.as_ref().map(std::slice::from_ref);
            let mut buffers = GatherBuffers::default();
            let mut all = buffers.gather(comm, mine.map_err(|error| *error))?;
            all.all(|shared| shared == [1])
        };
        let (common, private) = made?;
        let common = common.filter(|_| is_shared);
        Ok(common.map(|(common, counters)| ExchangeMemory {
            made_for: addresses.need,
            common,
            private,
            counters,
        }))
    }

    /// Counts a rank that has filled or emptied its part of a buffer; whether it is
    /// the last of so many. What the others have copied is visible to that one.
    pub(super) fn count(&self, addresses: &Addresses, buffer: Buffer, among: u32) -> bool {
        if among == 1 {
            return true;
        }
        let at = addresses.number(buffer) as usize * COUNTER_BYTES;
        let counter = self.counters.atomic_u32(at);
        let is_last = counter.fetch_add(1, Ordering::AcqRel) + 1 == among;
        if is_last {
            counter.store(0, Ordering::Relaxed);
        }
        is_last
    }

    /// The segment that a buffer is in, and where.
    pub(super) fn segment(&self, addresses: &Addresses, buffer: Buffer) -> (&Segment, Range<u64>) {
        let (memory, range) = addresses.of(buffer);
        match memory {
            Memory::Common => (&self.common, range),
            Memory::Private => (&self.private, range),
        }
    }

    /// A buffer's bytes.
    pub(super) fn buffer(&self, addresses: &Addresses, buffer: Buffer) -> WindowBuffer<'_> {
        let (segment, range) = self.segment(addresses, buffer);
        assert!(range.end <= segment.bytes() as u64);
        let len = (range.end - range.start) as usize;
        let start = segment.as_ptr().wrapping_add(range.start as usize);
        // SAFETY: the range lies within the segment, which `self` keeps; the
        // protocol keeps ranks and the I/O thread apart, see above.
        unsafe { WindowBuffer::from_raw(start, len) }
    }
}

/// Memory for the ranks of a node, and counters, if they share any. Collective.
fn share(
    comm: &dyn Transport,
    bytes: usize,
    counters: usize,
) -> Result<Option<(Segment, Segment)>> {
    let (common, counters) = (comm.segment(bytes)?, comm.segment(counters)?);
    Ok(common.zip(counters))
}

/// Memory for one rank.
fn unshared(bytes: u64) -> Result<Segment> {
    Ok(Segment::private(bytes as usize)?)
}
