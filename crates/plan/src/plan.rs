//! Plans: what each rank does in a call. A plan is a value: it prints,
//! compares, and one executor runs it.

use crate::Realm;

/// How a call is carried out.
#[derive(Clone, Debug)]
pub enum Plan {
    /// Every rank for itself.
    Individual,
    /// Every rank streams the region through a buffer and keeps what is its
    /// own. Reads only.
    PrivateSieve {
        /// The size of the buffer.
        buffer_bytes: u64,
    },
    /// Aggregators own realms and move them window by window.
    Rounds(Rounds),
    /// Aggregators serve groups of ranks, each rank an equal share a cycle.
    Segments(Segments),
    /// Ranks move their own data, taking turns.
    Timed(Timed),
    /// Agents ask for their servers' data first, so that it is cached when
    /// every rank then reads its own. Reads only.
    Prefetch(Rounds),
}

/// Realms, windows and who takes part.
#[derive(Clone, Debug)]
pub struct Rounds {
    /// One entry an aggregator, in realm order.
    pub aggregators: Vec<Aggregator>,
    /// The size of a window.
    pub window_bytes: u64,
    /// Who moves a window between buffer and file.
    pub writer: WindowWriter,
}

/// An aggregator and what it serves.
#[derive(Clone, Debug)]
pub struct Aggregator {
    /// Its rank.
    pub rank: u32,
    /// The part of the file that it moves.
    pub realm: Realm,
    /// Whose data it moves.
    pub members: Members,
    /// Pause before each of its transfers, in microseconds: agents of one
    /// server that take turns (Zhang 2009, section 3.4).
    pub delay_us: u64,
}

/// Whose data an aggregator moves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Members {
    /// Every rank's, as far as it lies in the realm.
    All,
    /// That of some ranks, ascending: others' data in the realm is served by
    /// other aggregators.
    Some(Vec<u32>),
}

/// Who moves a window between buffer and file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WindowWriter {
    /// The aggregator that owns it.
    Aggregator,
    /// Whichever rank has nothing else to do (or is the first to need it): where
    /// ranks share memory and the kernel's view of the file.
    Anyone,
}

/// Static segmentation (Chaarawi 2011): in each cycle every member of a group
/// sends its aggregator the next `segment_bytes` of its data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segments {
    /// The aggregators and their groups, members ascending.
    pub groups: Vec<Group>,
    /// What a member contributes to a cycle.
    pub segment_bytes: u64,
    /// How many cycles there are.
    pub cycles: u64,
}

/// An aggregator and the ranks it serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The aggregator's rank.
    pub aggregator: u32,
    /// The ranks it serves, ascending.
    pub members: Vec<u32>,
}

/// Turns (Zhang 2009, section 3.4): ranks of one group go together, groups of
/// a set one after the other, sets independently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timed {
    /// The sets of ranks that share no server; each a list of groups, in the
    /// order of their turns, ranks ascending.
    pub sets: Vec<Vec<Vec<u32>>>,
    /// Pause between the start of a group's requests and its word to the
    /// next, in microseconds.
    pub delay_us: u64,
}
