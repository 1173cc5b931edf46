//! The measuring core that `bench` and its subcommands share: contenders are
//! interleaved, every repeat is kept, the best one counts, and doubtful figures are marked. What a
//! run needs is compared with what the machine has before anything is written, and its files are
//! removed however it ends.

pub(crate) mod allocations;
pub(crate) mod buffer;
pub(crate) mod capacity;
pub(crate) mod content;
pub(crate) mod direction;
mod fault;
mod guard;
mod memory;
mod order;
pub(crate) mod resident;
mod samples;
mod scratch;
mod share;
mod stored;

pub(crate) use buffer::{Buffer, PAGE};
pub(crate) use capacity::Need;
pub(crate) use direction::DIRECTIONS;
pub(crate) use fault::{Fault, Place};
pub(crate) use memory::{Memory, accesses};
pub(crate) use order::{alternating, interleave, progress_bar};
pub(crate) use pario_types::Direction;
pub(crate) use samples::{Doubt, Samples, print_doubts};
pub(crate) use scratch::Scratch;
pub(crate) use share::Share;
pub(crate) use stored::{Holes, Stored};
