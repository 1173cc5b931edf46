//! What depends on the processor is measured.
//!
//! How long a piece must be for a call of its own, how large windows are, and which copies are
//! fast depends on the times of calls, copies and page faults. Plans depend on the first two, so
//! the first rank of each node measures them when it first opens a file
//! ([`MachineProfile::of_node`]) and sends them with the arguments of `open`; the process keeps
//! them. Rank 0's values become hints, so that all ranks plan alike. The rest is measured by the
//! process that first needs it ([`AliasedCopies`], [`pario_driver::stored_pieces`]): most
//! programs never do.
//!
//! Thresholds are those that were found best on the machine that the constants here describe,
//! multiplied or divided by how much this machine differs. They are rounded to powers of two,
//! so that measurements which differ by a few percent lead to the same plans, and bounded.

mod aliased_copies;
mod measure;

use pario_driver::PerProcess;
use pario_hints::Hints;
use pario_transport::{Rank, Transport};

pub use aliased_copies::{AliasedCopies, stages_aliases};

/// The data of one measured copy.
const COPY_BYTES: usize = 32 << 10;

/// The measured copies are in the cache, those of programs are often not, and take longer.
const COPIED_PERCENT: u64 = 80;

/// The bytes that are copied in the time of a call are at least and at most this.
const CALL_BYTES_MIN: u64 = 4 << 10;
const CALL_BYTES_MAX: u64 = 32 << 10;

/// How many numbers a profile has.
const NUMBERS: usize = 3;

static OF_NODE: PerProcess<MachineProfile> = PerProcess::new();

/// The times of basic operations, in nanoseconds; 0 if they were not measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MachineProfile {
    /// A read of a few bytes.
    call_ns: u32,
    /// A copy of [`COPY_BYTES`] by the kernel, without the call.
    copy_ns: u32,
    /// The cache of each core in bytes; 0 if it is unknown.
    cache_bytes: u32,
}

impl MachineProfile {
    /// The length of the wire form.
    pub(crate) const WIRE_BYTES: usize = size_of::<[u32; NUMBERS]>();

    /// The profile of this node, measured now unless it is known.
    pub fn of_node() -> MachineProfile {
        *OF_NODE.get_or_make(|| measure::profile().unwrap_or_default())
    }

    /// What this rank sends when it opens a file: the profile of its node if it is the node's
    /// first rank and hints leave something to the profile, otherwise nothing.
    pub(crate) fn to_send(comm: &dyn Transport, hints: &Hints) -> MachineProfile {
        let is_used = hints.pario_call_bytes.is_none() || hints.pario_cache_bytes.is_none();
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
            OF_NODE.get_or_make(|| own);
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
        let numbers: [u32; NUMBERS] = [self.call_ns, self.copy_ns, self.cache_bytes];
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
            cache_bytes: number(2),
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

    /// The size of the cache that each core has, if it is known.
    pub fn cache_bytes(&self) -> Option<u64> {
        Some(u64::from(self.cache_bytes)).filter(|bytes| *bytes > 0)
    }

    /// What was measured about calls.
    pub fn calls(&self) -> String {
        if self.call_bytes().is_none() {
            return "not measured: no file in memory could be made".to_owned();
        }
        let (call, copy) = (micros(self.call_ns), micros(self.copy_ns));
        format!("a call takes {call} us, copying 32 KiB {copy} us")
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
