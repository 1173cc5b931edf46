//! Types that several crates of pario need and that need none of them: the
//! direction of a transfer, facts about file systems, and processes.

mod direction;
mod file_system;
mod placement;
mod process;
mod stripes;
mod striping;

pub use direction::Direction;
pub use file_system::{Client, Coherence, LockProtocol};
pub use placement::{Component, PlacedPart, Placement, Server, Storage};
pub use process::Process;
pub use stripes::Stripes;
pub use striping::{ServerPart, Striping};
