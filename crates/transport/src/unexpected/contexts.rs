//! Which private worlds of messages a rank has opened and closed.

use std::collections::{BTreeSet, HashSet};

use crate::BuildNumberHasher;

/// The number of a duplicate of a transport. A number is never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContextId(pub u64);

impl ContextId {
    /// The context that a transport starts with.
    pub const FIRST: ContextId = ContextId(0);

    const FIRST_ASSIGNED: u64 = 1 << 63;

    /// The context of a number that was assigned from outside, as opposed to
    /// those that a transport counts by itself.
    #[must_use]
    pub fn assigned(number: u64) -> ContextId {
        ContextId(Self::FIRST_ASSIGNED + number)
    }

    /// The sequence that the context belongs to, and its number there.
    fn place(self) -> (usize, u64) {
        match self.0.checked_sub(Self::FIRST_ASSIGNED) {
            None => (0, self.0),
            Some(number) => (1, number),
        }
    }
}

/// A context is early until this rank opens it: another rank has made the
/// duplicate already. After that it is open, and at last closed.
#[derive(Debug, Default)]
pub(super) struct Contexts {
    open: HashSet<ContextId, BuildNumberHasher>,
    seen: [Seen; 2],
}

/// The numbers of a sequence that have been opened, most of them in order.
#[derive(Debug, Default)]
struct Seen {
    /// All below this one.
    below: u64,
    /// Those above that have been opened, too.
    beyond: BTreeSet<u64>,
}

impl Contexts {
    pub(super) fn open(&mut self, context: ContextId) {
        self.open.insert(context);
        let (sequence, number) = context.place();
        let seen = &mut self.seen[sequence];
        seen.beyond.insert(number);
        while seen.beyond.remove(&seen.below) {
            seen.below += 1;
        }
    }

    pub(super) fn close(&mut self, context: ContextId) {
        self.open.remove(&context);
    }

    pub(super) fn is_closed(&self, context: ContextId) -> bool {
        let (sequence, number) = context.place();
        let seen = &self.seen[sequence];
        let is_seen = number < seen.below || seen.beyond.contains(&number);
        is_seen && !self.open.contains(&context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contexts_are_early_then_open_then_closed() {
        let mut contexts = Contexts::default();
        contexts.open(ContextId(0));
        // Two threads may open their duplicates in any order.
        contexts.open(ContextId(2));
        assert!(!contexts.is_closed(ContextId(1)), "1 may still come");
        contexts.close(ContextId(2));
        assert!(contexts.is_closed(ContextId(2)));
        assert!(!contexts.is_closed(ContextId(1)));
        contexts.open(ContextId(1));
        assert!(!contexts.is_closed(ContextId(0)));
        assert!(contexts.seen[0].beyond.is_empty(), "nothing to remember");
    }

    #[test]
    fn assigned_numbers_are_a_sequence_of_their_own() {
        let mut contexts = Contexts::default();
        contexts.open(ContextId::assigned(0));
        contexts.close(ContextId::assigned(0));
        assert!(contexts.is_closed(ContextId::assigned(0)));
        assert!(!contexts.is_closed(ContextId::FIRST));
    }
}
