//! Models of the structures in shared memory: loom runs them in every order of
//! their steps, within a bound, and with every value that a load may return.
//!
//! These run with `--cfg loom` only; `cargo xtask test` does that.

mod collective_slots;
mod packet_queue;
mod ring;

use std::sync::atomic::Ordering;

use loom::sync::atomic::{AtomicU64, fence};

use super::super::cells::impl_word;

impl_word!(AtomicU64, fence);
