//! Planning of collective I/O.
//!
//! Planning is a pure function: the ranks' accesses, facts about the machine
//! and the file system, and hints give a [`Plan`]. All ranks compute it from
//! the same data and get the same result. Nothing here knows about messages or
//! files.

mod access;
pub mod aggregators;
pub mod algorithm;
mod case;
mod cost;
pub mod coverage;
mod display;
pub mod exchange;
mod explain;
mod facts;
mod fitness;
mod hints;
pub mod locks;
mod number;
pub mod partition;
mod pattern;
pub mod picture;
mod plan;
mod realm;
pub mod schedule;
mod select;
#[cfg(test)]
mod testing;

pub use access::Access;
pub use aggregators::requested_aggregators;
pub use case::{Case, GroupLocks, History, PersistentRealms, Rewriting, Tuning};
pub use cost::CostModel;
pub use explain::Explanation;
pub use facts::Facts;
pub use fitness::Fitness;
pub use pario_hints::Exchange;
pub use pario_types::{Client, Direction, LockProtocol, Placement, ServerPart, Stripes, Striping};
pub use pattern::Pattern;
pub use plan::{
    Aggregator, Group, Members, Plan, Rounds, Segments, Signal, Timed, Turn, WindowWriter,
};
pub use realm::{Realm, Window};
pub use schedule::{MemberRanks, Schedule, ScheduledWindow};
pub use select::{Candidates, Decision, Requested, decide};
