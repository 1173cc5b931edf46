//! Memory that ranks share, and how they wait for each other in it.

mod cores;
mod event;
mod futex;
mod looks;
mod mapping;
#[cfg(test)]
#[cfg(loom)]
pub(crate) mod models;
mod segment;
mod sleepers;
mod wait;

pub use event::Event;
pub use looks::{look_time, request_looks};
pub use segment::Segment;
pub use wait::{Backoff, BackoffState, Waiter};

pub(crate) use mapping::Mapping;
#[cfg(all(test, loom))]
pub(crate) use sleepers::Sleepers;
