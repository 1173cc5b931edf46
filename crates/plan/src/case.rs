//! What a plan is made from: data that all ranks agree on.

use std::{cell::OnceCell, ops::Range};

use pario_hints::ConfigList;

use crate::{Access, Client, Direction, Facts, Pattern, WindowWriter};

/// Whether holes between the ranks' pieces may be read and written back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rewriting {
    /// They may.
    Allowed,
    /// They stay as they are: windows are written piece by piece.
    Forbidden,
}

/// Numbers and names that a user or a tuning profile gave. `None` leaves the
/// choice to the planner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tuning {
    /// The most bytes that an aggregator gathers before it moves them.
    pub buffer_bytes: u64,
    /// The slice that is copied at once where ranks share memory: small
    /// enough to stay in the cache.
    pub slice_bytes: u64,
    /// How many aggregators (`cb_nodes`).
    pub aggregators: Option<u32>,
    /// How many aggregators each node may have (`cb_config_list`).
    pub config_list: Option<ConfigList>,
    /// Boundary that realms are aligned to (`romio_cb_fr_alignment`).
    pub realm_alignment: Option<u64>,
    /// Bytes with which one process saturates its path to the file system.
    pub saturation_bytes: u64,
    /// A partition by name.
    pub partition: Option<String>,
    /// An algorithm by name.
    pub algorithm: Option<String>,
    /// An exchange by name.
    pub exchange: Option<String>,
    /// Pause between timed groups (Zhang 2009), in microseconds.
    pub timed_delay_us: u64,
    /// Agents a server (Zhang 2009).
    pub agents_per_server: u32,
    /// Stripes in a block of the partition `stripe-multiple` (Liao 2008).
    pub stripe_multiple: u64,
    /// What writes may do about holes.
    pub rewriting: Rewriting,
}

impl Default for Tuning {
    fn default() -> Tuning {
        Tuning {
            buffer_bytes: 16 << 20,
            slice_bytes: 256 << 10,
            aggregators: None,
            config_list: None,
            realm_alignment: None,
            saturation_bytes: 1 << 20,
            partition: None,
            algorithm: None,
            exchange: None,
            timed_delay_us: 500,
            agents_per_server: 1,
            stripe_multiple: 2,
            rewriting: Rewriting::Forbidden,
        }
    }
}

/// What earlier calls on the file left for later ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// Persistent realms, from the first call that used them.
    pub persistent: Option<PersistentRealms>,
}

/// Realms that stay: blocks of the file, from byte 0 on, dealt out in turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PersistentRealms {
    /// Bytes of a block; not zero.
    pub block: u64,
    /// The ranks that own blocks, in turn.
    pub owners: Vec<u32>,
}

/// One collective call, as all ranks see it.
#[derive(Clone, Debug)]
pub struct Case<'a> {
    /// Which way.
    pub direction: Direction,
    /// What each rank moves.
    pub accesses: &'a [Access],
    /// The machine and the file system.
    pub facts: &'a Facts,
    /// What was asked for.
    pub tuning: &'a Tuning,
    /// What earlier calls decided.
    pub history: &'a History,
    /// Found out when first asked for.
    pattern: OnceCell<Pattern>,
}

impl<'a> Case<'a> {
    /// A call.
    pub fn new(
        direction: Direction,
        accesses: &'a [Access],
        facts: &'a Facts,
        tuning: &'a Tuning,
        history: &'a History,
    ) -> Case<'a> {
        Case {
            direction,
            accesses,
            facts,
            tuning,
            history,
            pattern: OnceCell::new(),
        }
    }

    /// What the ranks do together.
    pub fn pattern(&self) -> &Pattern {
        self.pattern.get_or_init(|| Pattern::of(self))
    }

    /// How many ranks there are.
    pub fn ranks(&self) -> u32 {
        self.accesses.len() as u32
    }

    /// The aggregate access region: from the lowest byte that any rank moves
    /// to the end of the highest.
    pub fn region(&self) -> Range<u64> {
        let spans = || {
            self.accesses
                .iter()
                .filter(|a| !a.is_empty())
                .map(Access::span)
        };
        let start = spans().map(|span| span.start).min();
        let end = spans().map(|span| span.end).max();
        start.unwrap_or(0)..end.unwrap_or(0)
    }

    /// Data bytes of all ranks.
    pub fn bytes(&self) -> u64 {
        self.accesses
            .iter()
            .fold(0, |sum, access| sum.saturating_add(access.len()))
    }

    /// The boundary that realms should meet at: what was asked for, else what
    /// the facts suggest.
    pub fn boundary(&self) -> u64 {
        self.tuning
            .realm_alignment
            .unwrap_or_else(|| self.facts.boundary())
            .max(1)
    }

    /// Who moves windows, and how long they are: what stays in the cache
    /// where ranks share memory, what the file system likes elsewhere.
    pub(crate) fn windows(&self) -> (WindowWriter, u64) {
        let nodes = &self.facts.nodes;
        let one_node = nodes.windows(2).all(|pair| pair[0] == pair[1]);
        let (writer, bytes) = match (one_node, self.facts.client) {
            (true, Client::Kernel) => (WindowWriter::Anyone, self.tuning.slice_bytes),
            _ => (WindowWriter::Aggregator, self.tuning.buffer_bytes),
        };
        (writer, bytes.max(1))
    }

    /// Whether windows can be used at all: every rank's bytes ascend.
    pub fn is_increasing(&self) -> bool {
        self.accesses.iter().all(Access::is_increasing)
    }
}
