//! A rank's memory: a buffer for each call, and what must be in it.

use std::ops::Range;

use super::buffer::Buffer;
use super::content::{self, WrongByte};
use super::share::Share;
use super::wrong::{Fault, Place};
use crate::failure::Failure;
use crate::workload::{Job, Step};

/// What bytes hold that no one asked to fill; reading must leave them so.
pub(crate) const GAP: u8 = 0xa5;

/// What a rank needs for its calls, made before the clock starts.
pub(crate) struct Memory {
    rank: u32,
    /// What it gives to each call.
    pub(crate) steps: Vec<Step>,
    /// The buffer of each call, once they are made.
    pub(crate) buffers: Vec<Buffer>,
    /// The contiguous share that plain POSIX calls move.
    pub(crate) share: Share,
    /// Distance of buffers from the start of a page.
    offset: usize,
}

impl Memory {
    /// What is known of a rank, in any process: its calls. They have no buffers yet.
    pub(crate) fn new(job: &dyn Job, rank: u32, offset: usize) -> Result<Self, Failure> {
        let steps = (0..job.calls()).map(|call| job.step(rank, call));
        let steps = steps.collect::<Result<_, _>>();
        Ok(Memory {
            rank,
            steps: steps.map_err(|error| Failure::Arguments(error.to_string()))?,
            buffers: Vec::new(),
            share: Share::default(),
            offset,
        })
    }

    /// Data bytes of all calls.
    pub(crate) fn bytes(&self) -> u64 {
        self.steps.iter().map(Step::bytes).sum()
    }

    /// Memory that it takes when it is made.
    pub(crate) fn footprint(&self) -> u64 {
        let buffers = self
            .steps
            .iter()
            .map(|it| Buffer::footprint(it.memory_bytes));
        buffers.fold(self.share.footprint(), u64::saturating_add)
    }

    /// Makes all buffers, touched once so that page faults stay out of the timing.
    pub(crate) fn make(&mut self) -> Result<(), Failure> {
        let buffer = |step: &Step| Buffer::new(step.memory_bytes, GAP, self.offset);
        self.buffers = self.steps.iter().map(buffer).collect::<Result<_, _>>()?;
        self.share.make(self.offset)
    }

    /// Whether it is made, in this process.
    pub(crate) fn is_made(&self) -> bool {
        self.buffers.len() == self.steps.len()
    }

    /// Gives all data the values of a round.
    pub(crate) fn fill(&mut self, job: &dyn Job, round: u64) {
        for (call, buffer) in (0..).zip(&mut self.buffers) {
            job.pieces(self.rank, call, &mut |piece| {
                let memory = piece.memory as usize..(piece.memory + piece.bytes) as usize;
                content::fill(&mut buffer.bytes_mut()[memory], piece.file, round);
            });
        }
        self.share.fill(round);
    }

    /// Forgets the data of the calls, so that a read that moves nothing is found out.
    pub(crate) fn clear(&mut self) {
        for buffer in &mut self.buffers {
            buffer.bytes_mut().fill(GAP);
        }
    }

    /// Fails unless all buffers have the values of a round, and gaps between them what they had.
    pub(crate) fn check(&self, job: &dyn Job, round: u64) -> Result<(), Fault> {
        let calls = (0..).zip(&self.buffers);
        let mut faults =
            calls.filter_map(|(call, buffer)| self.first_fault(job, round, call, buffer.bytes()));
        faults.next().map_or(Ok(()), Err)
    }

    /// What is wrong first in the buffer of a call.
    fn first_fault(&self, job: &dyn Job, round: u64, call: u64, buffer: &[u8]) -> Option<Fault> {
        let rank = self.rank;
        let fault = |place: Place| move |byte: WrongByte| Fault::Byte { place, byte };
        let in_gap = |gap: Range<usize>| {
            let byte = content::first_unlike(&buffer[gap.clone()], GAP, gap.start as u64);
            byte.map(fault(Place::Gap { rank, call }))
        };
        let (mut first, mut done) = (None, 0);
        // Pieces ascend in memory, so that what lies between them is a gap.
        job.pieces(rank, call, &mut |piece| {
            let memory = piece.memory as usize..(piece.memory + piece.bytes) as usize;
            first = first.or_else(|| in_gap(done..memory.start)).or_else(|| {
                let byte = content::first_wrong(&buffer[memory.clone()], piece.file, round);
                byte.map(fault(Place::Memory { rank }))
            });
            done = memory.end;
        });
        first.or_else(|| in_gap(done..buffer.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{Parameters, Setting, WORKLOADS, by_name};

    fn job() -> Box<dyn Job> {
        let workload = by_name("flash").unwrap();
        let parameters = Parameters::parse("edge=3,blocks=1", workload.parameters()).unwrap();
        let setting = Setting {
            ranks: 2,
            scale: 1.0,
            parameters,
        };
        workload.job(&setting).unwrap()
    }

    /// The memory of rank 1 with the values of a round.
    fn filled(job: &dyn Job, round: u64) -> Memory {
        let mut memory = Memory::new(job, 1, 16).unwrap();
        memory.share = Share::new(1, 2, 100);
        assert!(!memory.is_made());
        memory.make().unwrap();
        assert!(memory.is_made());
        memory.fill(job, round);
        memory
    }

    #[test]
    fn filled_memory_passes_and_cleared_memory_does_not() {
        let job = job();
        let mut memory = filled(&*job, 3);
        assert_eq!(memory.check(&*job, 3), Ok(()));
        assert!(memory.check(&*job, 4).is_err());
        memory.clear();
        assert!(memory.check(&*job, 3).is_err());
    }

    #[test]
    fn any_changed_byte_is_found() {
        let job = job();
        let mut memory = filled(&*job, 0);
        let mut gaps = 0;
        for byte in 0..memory.buffers[5].bytes().len() {
            memory.buffers[5].bytes_mut()[byte] ^= 1;
            match memory.check(&*job, 0) {
                Err(Fault::Byte {
                    place: Place::Gap { rank: 1, call: 5 },
                    byte: wrong,
                }) => {
                    assert_eq!((wrong.offset, wrong.expected), (byte as u64, GAP));
                    gaps += 1;
                }
                Err(Fault::Byte {
                    place: Place::Memory { rank: 1 },
                    ..
                }) => {}
                other => panic!("byte {byte}: {other:?}"),
            }
            memory.buffers[5].bytes_mut()[byte] ^= 1;
        }
        assert_eq!(gaps, memory.buffers[5].bytes().len() - 2 * 27 * 8);
    }

    #[test]
    fn pieces_of_all_workloads_ascend_in_memory() {
        for (workload, ranks) in WORKLOADS.iter().flat_map(|it| [(it, 1), (it, 3), (it, 4)]) {
            let setting = Setting {
                ranks,
                scale: 0.002,
                parameters: Parameters::default(),
            };
            let job = workload.job(&setting).unwrap();
            for (rank, call) in (0..ranks).flat_map(|it| (0..job.calls()).map(move |c| (it, c))) {
                let mut done = 0;
                job.pieces(rank, call, &mut |piece| {
                    assert!(piece.memory >= done, "{}", workload.name());
                    done = piece.memory + piece.bytes;
                });
            }
        }
    }
}
