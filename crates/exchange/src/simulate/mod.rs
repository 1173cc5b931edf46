//! All ranks of a call in one process and in virtual time.
//!
//! Links, copies and file servers have a fixed latency and bandwidth and do
//! one thing after the other; there is no congestion between them and no
//! noise. What it counts (messages, bytes, look-ups, memory) is exact; the
//! time is that of this model.

mod model;
mod pattern;
mod queue;
mod world;

pub use model::Model;
pub use pattern::Pattern;
pub use world::{Report, run};
