//! Costs of a machine that do not depend on the clock.

/// Counts of one machine, or of several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Events handled, notes to itself included.
    pub events: u64,
    /// Look-ups in the accesses.
    pub lookups: u64,
    /// Control messages to ranks of other groups.
    pub control_messages: u64,
    /// Their bytes, eager data included.
    pub control_bytes: u64,
    /// Notes to ranks of the same group, through shared memory.
    pub notes: u64,
    /// Data messages.
    pub data_messages: u64,
    /// Their bytes.
    pub data_bytes: u64,
    /// Copies started.
    pub copies: u64,
    /// File transfers started.
    pub transfers: u64,
    /// The peak of the bytes of buffers in use.
    pub memory_bytes_max: u64,
}

impl Counters {
    /// Adds the counts of another machine. The sum of `memory_bytes_max` is a
    /// bound only: machines need not reach theirs at the same time.
    pub fn add(&mut self, other: &Counters) {
        self.merge(other, |a, b| a + b);
    }

    /// Takes the greater of each count.
    pub fn max(&mut self, other: &Counters) {
        self.merge(other, u64::max);
    }

    fn merge(&mut self, other: &Counters, merge: fn(u64, u64) -> u64) {
        let pairs = [
            (&mut self.events, other.events),
            (&mut self.lookups, other.lookups),
            (&mut self.control_messages, other.control_messages),
            (&mut self.control_bytes, other.control_bytes),
            (&mut self.notes, other.notes),
            (&mut self.data_messages, other.data_messages),
            (&mut self.data_bytes, other.data_bytes),
            (&mut self.copies, other.copies),
            (&mut self.transfers, other.transfers),
            (&mut self.memory_bytes_max, other.memory_bytes_max),
        ];
        for (mine, theirs) in pairs {
            *mine = merge(*mine, theirs);
        }
    }
}
