//! Which accesses of a step could disturb each other.

/// Files of the model end here: a step that goes further is not taken.
pub(crate) const FILE_BYTES_MAX: u64 = 4 << 20;

/// Who touches what within a step. Accesses of one sequence are ordered; sequences
/// run at the same time.
pub(crate) struct Traffic {
    size_before: u64,
    sequence: u32,
    /// Of each byte, the sequences that read it and those that write it.
    readers: Vec<u32>,
    writers: Vec<u32>,
    growing: u32,
    seeing_the_end: u32,
    too_many_sequences: bool,
}

impl Traffic {
    pub(crate) fn new(size_before: u64) -> Traffic {
        Traffic {
            size_before,
            sequence: 0,
            readers: Vec::new(),
            writers: Vec::new(),
            growing: 0,
            seeing_the_end: 0,
            too_many_sequences: false,
        }
    }

    pub(crate) fn next_sequence(&mut self) {
        self.too_many_sequences |= self.sequence == 1 << 31;
        self.sequence = match self.sequence {
            0 => 1,
            sequence => sequence << 1,
        };
    }

    fn mark(sequences: &mut Vec<u32>, offset: u64, sequence: u32) {
        let index = offset as usize;
        if index >= sequences.len() {
            sequences.resize(index + 1, 0);
        }
        sequences[index] |= sequence;
    }

    pub(crate) fn read(&mut self, offset: u64) {
        if offset >= self.size_before {
            self.sees_the_end();
        }
        if offset < FILE_BYTES_MAX {
            Traffic::mark(&mut self.readers, offset, self.sequence);
        }
    }

    pub(crate) fn write(&mut self, offset: u64) {
        if offset >= self.size_before {
            self.growing |= self.sequence;
        }
        Traffic::mark(&mut self.writers, offset, self.sequence);
    }

    pub(crate) fn sees_the_end(&mut self) {
        self.seeing_the_end |= self.sequence;
    }

    /// Of each byte, whether someone writes it.
    pub(crate) fn written(&self) -> Vec<bool> {
        self.writers
            .iter()
            .map(|sequences| *sequences != 0)
            .collect()
    }

    /// Whether every order of the sequences gives the same.
    pub(crate) fn is_orderly(&self) -> bool {
        let others = |sequences: u32, of: u32| sequences & !of != 0;
        let end_is_sure = self.growing == 0
            || self.seeing_the_end == 0
            || (self.growing.is_power_of_two() && !others(self.seeing_the_end, self.growing));
        let alone = |(index, writers): (usize, &u32)| {
            let readers = self.readers.get(index).copied().unwrap_or(0);
            *writers == 0 || (writers.is_power_of_two() && !others(readers, *writers))
        };
        !self.too_many_sequences && end_is_sure && self.writers.iter().enumerate().all(alone)
    }
}
