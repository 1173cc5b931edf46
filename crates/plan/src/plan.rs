//! Plans: what each rank does in a call. A plan is a value that can be printed
//! and compared; one executor runs it.

use crate::Realm;

/// How a call is carried out.
#[derive(Clone, Debug)]
pub enum Plan {
    /// Every rank moves its own data.
    Individual,
    /// Every rank streams the region through a buffer and keeps its own data.
    /// Reads only.
    PrivateSieve {
        /// Buffer size in bytes.
        buffer_bytes: u64,
    },
    /// Aggregators own realms and move them window by window.
    Rounds(Rounds),
    /// Aggregators move the data of groups of ranks, with equal segments per
    /// rank in each cycle.
    Segments(Segments),
    /// Ranks move their own data, group by group.
    Timed(Timed),
    /// Agents request their servers' data first, so that it is cached when every
    /// rank reads its own. Reads only.
    Prefetch(Rounds),
}

/// Realms, windows and participants.
#[derive(Clone, Debug)]
pub struct Rounds {
    /// The aggregators, in realm order.
    pub aggregators: Vec<Aggregator>,
    /// Window size in bytes.
    pub window_bytes: u64,
    /// Who moves windows between buffer and file.
    pub writer: WindowWriter,
}

/// An aggregator and its task.
#[derive(Clone, Debug)]
pub struct Aggregator {
    /// Its rank.
    pub rank: u32,
    /// The part of the file that it moves.
    pub realm: Realm,
    /// Whose data it moves.
    pub members: Members,
    /// Its place among the agents of its server, if there are several (Zhang
    /// 2009, section 3.4).
    pub turn: Option<Turn>,
}

/// Agents that share a server send their requests in the order of the file: one
/// starts a transfer once the others have started all that precede it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// The server, from 0 on.
    pub server: u64,
    /// When an agent lets the others go on.
    pub signal: Signal,
}

/// When the requests of others may follow one's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// So many microseconds after they were started: they then arrive first.
    StartedUs(u64),
    /// Once they are complete, where there is no nonblocking I/O.
    Complete,
}

/// Whose data an aggregator moves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Members {
    /// All ranks, as far as their data lies in the realm.
    All,
    /// These ranks, ascending; other aggregators move the data of other ranks in
    /// the realm.
    Some(Vec<u32>),
}

/// Who moves windows between buffer and file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WindowWriter {
    /// The aggregator that owns the window.
    Aggregator,
    /// Any idle rank, or the first that needs the window: where ranks share
    /// memory and the kernel's view of the file.
    Anyone,
}

/// Static segmentation (Chaarawi 2011): in each cycle every member of a group
/// sends its aggregator the next `segment_bytes` of its data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segments {
    /// The aggregators and their groups, members ascending.
    pub groups: Vec<Group>,
    /// Bytes that a member contributes per cycle.
    pub segment_bytes: u64,
    /// Number of cycles.
    pub cycles: u64,
}

/// An aggregator and the ranks whose data it moves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The aggregator's rank.
    pub aggregator: u32,
    /// The ranks, ascending.
    pub members: Vec<u32>,
}

/// Timed groups (Zhang 2009, section 3.4): the ranks of a group start together,
/// the groups of a set one after another, and sets are independent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timed {
    /// Sets of ranks that share no server. Each is a list of groups in starting
    /// order, ranks ascending.
    pub sets: Vec<Vec<Vec<u32>>>,
    /// When a group lets the next one start.
    pub signal: Signal,
}
