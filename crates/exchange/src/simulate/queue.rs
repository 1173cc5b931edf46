//! Events by time; those of the same time in the order in which they were
//! put in.

use std::{cmp::Ordering, collections::BinaryHeap};

#[derive(Debug)]
struct Timed<T> {
    at_ns: u64,
    number: u64,
    item: T,
}

impl<T> PartialEq for Timed<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<T> Eq for Timed<T> {}

impl<T> PartialOrd for Timed<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Timed<T> {
    /// The greatest is the first to happen.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at_ns, other.number).cmp(&(self.at_ns, self.number))
    }
}

#[derive(Debug)]
pub(super) struct Queue<T> {
    heap: BinaryHeap<Timed<T>>,
    number: u64,
}

impl<T> Queue<T> {
    pub(super) fn new() -> Queue<T> {
        Queue {
            heap: BinaryHeap::new(),
            number: 0,
        }
    }

    pub(super) fn push(&mut self, at_ns: u64, item: T) {
        let number = self.number;
        self.number += 1;
        self.heap.push(Timed {
            at_ns,
            number,
            item,
        });
    }

    pub(super) fn pop(&mut self) -> Option<(u64, T)> {
        self.heap.pop().map(|timed| (timed.at_ns, timed.item))
    }
}
