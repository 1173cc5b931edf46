//! Memory that ranks share, and how they wait for each other in it.

mod cores;
mod event;
mod futex;
mod mapping;
mod segment;
mod wait;

pub use event::Event;
pub use segment::Segment;
pub use wait::{Backoff, BackoffState, Waiter};

pub(crate) use mapping::Mapping;
