//! What depends on the processor: measured once per node, and shared by its ranks.
//!
//! How long a piece must be for a call of its own, how large windows are, and which copies are
//! fast depends on the times of calls, copies and page faults. The first rank of each node
//! measures them when it first opens a file ([`MachineProfile::of_node`]) and sends them with the
//! arguments of `open`; the process keeps them. Plans depend on rank 0's values, which become
//! hints, so that all ranks plan alike; what each rank decides by itself depends on its node's.
//!
//! Thresholds are those that were found best on the machine that the constants here describe,
//! multiplied or divided by how much this machine differs. They are rounded to powers of two,
//! so that measurements which differ by a few percent lead to the same plans, and bounded.

mod measure;

use std::{fmt, sync::OnceLock};

use pario_driver::STORED_PIECES;
use pario_hints::{Hints, StagedCopies};
use pario_transport::{Rank, Transport};

/// The data of one measured copy.
const COPY_BYTES: usize = 32 << 10;

/// The measured copies are in the cache, those of programs are often not, and take longer.
const COPIED_PERCENT: u64 = 80;

/// The bytes that are copied in the time of a call are at least and at most this.
const CALL_BYTES_MIN: u64 = 4 << 10;
const CALL_BYTES_MAX: u64 = 32 << 10;

/// A second copy must save at least this share of the time: it also takes space in the cache.
const GAIN_PERCENT_MIN: u64 = 10;

/// Where preparing a page takes as long as so many percent of a call, storing is faster from
/// [`STORED_PIECES`] pieces per page on.
const PAGE_PERCENT: u64 = 220;
/// The range of pieces per page.
const STORED_PIECES_MIN: u64 = 2;
const STORED_PIECES_MAX: u64 = 16;

/// How many numbers a profile has.
const NUMBERS: usize = 8;

static OF_NODE: OnceLock<MachineProfile> = OnceLock::new();

/// The times of basic operations, in nanoseconds; 0 if they were not measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MachineProfile {
    /// A read of a few bytes.
    call_ns: u32,
    /// A copy of [`COPY_BYTES`] by the kernel, without the call.
    copy_ns: u32,
    /// Such a read to memory that aliases the pages of the file.
    aliased_ns: u32,
    /// The same through another buffer.
    staged_ns: u32,
    /// Mapping a new page of a file.
    stored_page_ns: u32,
    /// The first write to a new page.
    first_write_ns: u32,
    /// Each further write.
    next_write_ns: u32,
    /// The cache of each core in bytes; 0 if it is unknown.
    cache_bytes: u32,
}

impl MachineProfile {
    /// The length of the wire form.
    pub(crate) const WIRE_BYTES: usize = size_of::<[u32; NUMBERS]>();

    /// The profile of this node, measured now unless it is known.
    pub fn of_node() -> MachineProfile {
        *OF_NODE.get_or_init(|| measure::measure().unwrap_or_default())
    }

    /// The profile of this node as far as it is known.
    pub(crate) fn known() -> MachineProfile {
        OF_NODE.get().copied().unwrap_or_default()
    }

    /// What this rank sends when it opens a file: the profile of its node if it is the node's
    /// first rank and hints leave something to the profile, otherwise nothing.
    pub(crate) fn to_send(comm: &dyn Transport, hints: &Hints) -> MachineProfile {
        let is_used = hints.pario_call_bytes.is_none()
            || hints.pario_cache_bytes.is_none()
            || hints.pario_stored_pieces.is_none()
            || hints.pario_staged_copies == StagedCopies::Automatic;
        match is_used && first_of_node(comm, comm.rank()) == comm.rank() {
            true => MachineProfile::of_node(),
            false => MachineProfile::default(),
        }
    }

    /// Keeps the profile of this node and sets hints from that of rank 0's. `sent` is what each
    /// rank has sent.
    pub(crate) fn adopt(
        comm: &dyn Transport,
        sent: impl Fn(Rank) -> MachineProfile,
        hints: &mut Hints,
    ) {
        let own = sent(first_of_node(comm, comm.rank()));
        if own != MachineProfile::default() {
            OF_NODE.get_or_init(|| own);
        }
        sent(Rank(0)).set(hints);
    }

    /// Sets those hints that depend on the machine, unless they have a value.
    pub fn set(&self, hints: &mut Hints) {
        if let Some(bytes) = self.call_bytes() {
            hints.set_measured(bytes, self.cache_bytes());
        }
    }

    pub(crate) fn to_wire(self) -> [u8; Self::WIRE_BYTES] {
        let numbers: [u32; NUMBERS] = [
            self.call_ns,
            self.copy_ns,
            self.aliased_ns,
            self.staged_ns,
            self.stored_page_ns,
            self.first_write_ns,
            self.next_write_ns,
            self.cache_bytes,
        ];
        let mut wire = [0; Self::WIRE_BYTES];
        for (place, number) in wire.as_chunks_mut::<4>().0.iter_mut().zip(numbers) {
            *place = number.to_le_bytes();
        }
        wire
    }

    pub(crate) fn from_wire(wire: &[u8; Self::WIRE_BYTES]) -> MachineProfile {
        let number = |index: usize| u32::from_le_bytes(wire.as_chunks::<4>().0[index]);
        MachineProfile {
            call_ns: number(0),
            copy_ns: number(1),
            aliased_ns: number(2),
            staged_ns: number(3),
            stored_page_ns: number(4),
            first_write_ns: number(5),
            next_write_ns: number(6),
            cache_bytes: number(7),
        }
    }

    /// The bytes that are copied in the time of a call, as a power of two; `None` if that was not
    /// measured.
    pub fn call_bytes(&self) -> Option<u64> {
        let bytes = (u64::from(self.call_ns) * COPY_BYTES as u64)
            .checked_div(self.copy_ns.into())
            .filter(|_| self.call_ns > 0)?;
        let bytes = bytes * COPIED_PERCENT / 100;
        Some(nearest_power(bytes).clamp(CALL_BYTES_MIN, CALL_BYTES_MAX))
    }

    /// Whether data that aliases the pages of a file is better copied through a buffer.
    pub fn is_staged_faster(&self) -> bool {
        u64::from(self.staged_ns) * 100 < u64::from(self.aliased_ns) * (100 - GAIN_PERCENT_MIN)
    }

    /// The number of pieces per page from which storing them through a mapping is faster than
    /// calls, as a power of two.
    pub fn stored_pieces(&self) -> u64 {
        let [stored, first, next] = [self.stored_page_ns, self.first_write_ns, self.next_write_ns];
        // Calls would allocate the page, too.
        let page = (u64::from(stored) + u64::from(next)).saturating_sub(first.into());
        match (page * 100).checked_div(next.into()) {
            None => STORED_PIECES,
            Some(percent) => {
                // In sixteenths, so that fractions are rounded.
                let sixteenths = 16 * STORED_PIECES * percent / PAGE_PERCENT;
                let pieces = nearest_power(sixteenths) / 16;
                pieces.clamp(STORED_PIECES_MIN, STORED_PIECES_MAX)
            }
        }
    }

    /// Whether data that aliases is copied through a buffer, by hint or because that is faster.
    pub fn stages_aliases(&self, hints: &Hints) -> bool {
        match hints.pario_staged_copies {
            StagedCopies::Enable => true,
            StagedCopies::Disable => false,
            StagedCopies::Automatic => self.is_staged_faster(),
        }
    }

    /// The number of pieces per page from which files store them, by hint or because that is
    /// faster.
    pub fn stores_from(&self, hints: &Hints) -> u64 {
        let measured = || self.stored_pieces();
        hints.pario_stored_pieces.unwrap_or_else(measured)
    }

    /// The size of the cache that each core has, if it is known.
    pub fn cache_bytes(&self) -> Option<u64> {
        Some(u64::from(self.cache_bytes)).filter(|bytes| *bytes > 0)
    }

    /// What was measured about calls.
    pub fn calls(&self) -> impl fmt::Display {
        let (call, copy) = (micros(self.call_ns), micros(self.copy_ns));
        format!("a call takes {call} us, copying 32 KiB {copy} us")
    }

    /// What was measured about copies to memory that aliases.
    pub fn copies(&self) -> impl fmt::Display {
        let (aliased, staged) = (micros(self.aliased_ns), micros(self.staged_ns));
        format!("32 KiB take {aliased} us directly, {staged} us through a buffer")
    }

    /// What was measured about pages.
    pub fn pages(&self) -> impl fmt::Display {
        let stored = micros(self.stored_page_ns);
        let (first, next) = (micros(self.first_write_ns), micros(self.next_write_ns));
        format!(
            "preparing a new page takes {stored} us, writing to one {first} us, and {next} us again"
        )
    }
}

/// The power of two that is nearest by ratio.
fn nearest_power(number: u64) -> u64 {
    let below = 1 << number.checked_ilog2().unwrap_or(0);
    // The geometric mean of two neighbours is √2 times the lower one.
    match u128::from(number).pow(2) > 2 * u128::from(below).pow(2) {
        true => u64::saturating_mul(below, 2),
        false => below,
    }
}

/// The lowest rank on the node of this one.
fn first_of_node(comm: &dyn Transport, rank: Rank) -> Rank {
    let node = comm.node_of(rank);
    (0..rank.0)
        .map(Rank)
        .find(|it| comm.node_of(*it) == node)
        .unwrap_or(rank)
}

fn micros(nanos: u32) -> String {
    format!("{:.2}", f64::from(nanos) / 1e3)
}

#[cfg(test)]
mod tests;
