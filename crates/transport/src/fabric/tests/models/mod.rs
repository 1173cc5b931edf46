//! Models of the structures in shared memory: loom runs them in every order of
//! their steps, within a bound, and with every value that a load may return.
//!
//! These run with `--cfg loom` only; `cargo xtask test` does that.

mod collective_slots;
mod packet_queue;
mod ring;

use std::sync::atomic::Ordering;

use loom::sync::atomic::{AtomicU64, fence};

use super::super::cells::Word;

impl Word for AtomicU64 {
    fn load(&self, order: Ordering) -> u64 {
        self.load(order)
    }

    fn store(&self, value: u64, order: Ordering) {
        self.store(value, order);
    }

    fn replace(&self, current: u64, new: u64) -> bool {
        let replaced = self.compare_exchange(current, new, Ordering::AcqRel, Ordering::Relaxed);
        replaced.is_ok()
    }

    fn set_bits(&self, bits: u64) {
        self.fetch_or(bits, Ordering::Relaxed);
    }

    fn take_bits(&self) -> u64 {
        self.swap(0, Ordering::Relaxed)
    }

    fn fence() {
        fence(Ordering::SeqCst);
    }
}
