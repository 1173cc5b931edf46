//! A rank's memory: a buffer per call, and its expected contents.

use std::ops::Range;

use pario_plan::Access;

use super::{Buffer, Fault, Place, Share, content};
use crate::failure::Failure;
use crate::workload::{Job, Step};

/// The value of bytes between pieces, which reads must not change.
pub(super) const GAP: u8 = 0xa5;

/// The memory of a rank's calls, allocated before the clock starts.
pub(crate) struct Memory {
    rank: u32,
    /// The arguments of each call.
    pub(crate) steps: Vec<Step>,
    /// The buffer of each call, once allocated.
    pub(crate) buffers: Vec<Buffer>,
    /// The contiguous share that plain POSIX calls move.
    pub(crate) share: Share,
    /// Offset of buffers from the start of a page.
    offset: usize,
}

impl Memory {
    /// The calls of a rank, in any process, without buffers.
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

    /// Memory that it needs once allocated.
    pub(crate) fn footprint(&self) -> u64 {
        let buffers = self
            .steps
            .iter()
            .map(|it| Buffer::footprint(it.memory_bytes));
        buffers.fold(self.share.footprint(), u64::saturating_add)
    }

    /// Allocates all buffers and touches them, so that page faults are not timed.
    pub(crate) fn allocate(&mut self) -> Result<(), Failure> {
        let buffer = |step: &Step| Buffer::new(step.memory_bytes, GAP, self.offset);
        self.buffers = self.steps.iter().map(buffer).collect::<Result<_, _>>()?;
        self.share.allocate(self.offset)
    }

    /// Whether it is allocated, in this process.
    pub(crate) fn is_allocated(&self) -> bool {
        self.buffers.len() == self.steps.len()
    }

    /// Fills all data with the values of a round.
    pub(crate) fn fill(&mut self, job: &dyn Job, round: u64) {
        for (call, buffer) in (0..).zip(&mut self.buffers) {
            job.pieces(self.rank, call, &mut |piece| {
                let memory = piece.memory as usize..(piece.memory + piece.bytes) as usize;
                content::fill(&mut buffer.bytes_mut()[memory], piece.file, round);
            });
        }
        self.share.fill(round);
    }

    /// Overwrites the data of the calls, so that a read that moves nothing is detected.
    pub(crate) fn clear(&mut self) {
        for buffer in &mut self.buffers {
            buffer.bytes_mut().fill(GAP);
        }
    }

    /// Fails unless all buffers have the values of a round, with the bytes between pieces
    /// unchanged.
    pub(crate) fn check(&self, job: &dyn Job, round: u64) -> Result<(), Fault> {
        let calls = (0..).zip(&self.buffers);
        let mut faults =
            calls.filter_map(|(call, buffer)| self.first_fault(job, round, call, buffer.bytes()));
        faults.next().map_or(Ok(()), Err)
    }

    /// The first fault in the buffer of a call.
    fn first_fault(&self, job: &dyn Job, round: u64, call: u64, buffer: &[u8]) -> Option<Fault> {
        let rank = self.rank;
        let in_gap = |gap: Range<usize>| {
            let byte = content::first_unlike(&buffer[gap.clone()], GAP, gap.start as u64);
            byte.map(|byte| Place::Gap { rank, call }.wrong(byte))
        };
        let (mut first, mut done) = (None, 0);
        // Pieces ascend in memory, so everything between them is a gap.
        job.pieces(rank, call, &mut |piece| {
            let memory = piece.memory as usize..(piece.memory + piece.bytes) as usize;
            first = first.or_else(|| in_gap(done..memory.start)).or_else(|| {
                let byte = content::first_wrong(&buffer[memory.clone()], piece.file, round);
                byte.map(|byte| Place::Memory { rank }.wrong(byte))
            });
            done = memory.end;
        });
        first.or_else(|| in_gap(done..buffer.len()))
    }
}

/// What all ranks move in a call, `steps` being the calls by rank; `None` if it reaches beyond the
/// largest file offset.
pub(crate) fn accesses(steps: &[&[Step]], call: usize) -> Option<Vec<Access>> {
    steps
        .iter()
        .map(|steps| steps.get(call)?.access())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{WORKLOADS, test_job};

    fn job() -> Box<dyn Job> {
        test_job("flash:edge=3,blocks=1", 2, 1.0)
    }

    /// The memory of rank 1 with the values of a round.
    fn filled(job: &dyn Job, round: u64) -> Memory {
        let mut memory = Memory::new(job, 1, 16).unwrap();
        memory.share = Share::new(1, 2, 100);
        assert!(!memory.is_allocated());
        memory.allocate().unwrap();
        assert!(memory.is_allocated());
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
            let job = test_job(workload.name, ranks, 0.002);
            for (rank, call) in (0..ranks).flat_map(|it| (0..job.calls()).map(move |c| (it, c))) {
                let mut done = 0;
                job.pieces(rank, call, &mut |piece| {
                    assert!(piece.memory >= done, "{}", workload.name);
                    done = piece.memory + piece.bytes;
                });
            }
        }
    }
}
