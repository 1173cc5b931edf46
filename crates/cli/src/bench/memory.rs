//! A rank's memory: a buffer for each call, and what must be in it.

use super::buffer::Buffer;
use super::content::{self, WrongByte};
use super::wrong::{Fault, Place};
use crate::failure::Failure;
use crate::workload::{Job, Step};

/// What bytes hold that no one asked to fill; reading must leave them so.
const GAP: u8 = 0xa5;

/// What a rank needs for its calls, made before the clock starts.
pub(crate) struct Memory {
    rank: u32,
    /// What it gives to each call.
    pub(crate) steps: Vec<Step>,
    /// The buffer of each call.
    pub(crate) buffers: Vec<Buffer>,
    /// What each buffer must be after a read.
    images: Vec<Buffer>,
    /// The contiguous share that plain POSIX calls move, and where it starts.
    pub(crate) share: Buffer,
    /// Where the share starts in the file.
    pub(crate) share_start: u64,
    /// Distance of buffers from the start of a page.
    offset: usize,
}

impl Memory {
    /// Memory for a rank, touched once so that page faults stay out of the timing.
    pub(crate) fn new(job: &dyn Job, rank: u32, offset: usize) -> Result<Self, Failure> {
        let steps = steps(job, rank)?;
        let buffers = || {
            steps
                .iter()
                .map(|step| Buffer::new(step.memory_bytes, GAP, offset))
                .collect::<Result<Vec<_>, _>>()
        };
        Ok(Memory {
            rank,
            buffers: buffers()?,
            images: buffers()?,
            share: Buffer::default(),
            share_start: 0,
            offset,
            steps,
        })
    }

    /// What is known of a rank whose memory another process has: its calls.
    pub(crate) fn elsewhere(job: &dyn Job, rank: u32) -> Result<Self, Failure> {
        Ok(Memory {
            rank,
            steps: steps(job, rank)?,
            buffers: Vec::new(),
            images: Vec::new(),
            share: Buffer::default(),
            share_start: 0,
            offset: 0,
        })
    }

    /// Data bytes of all calls.
    pub(crate) fn bytes(&self) -> u64 {
        self.steps.iter().map(Step::bytes).sum()
    }

    /// Makes room for the share that plain POSIX calls move.
    pub(crate) fn share(&mut self, start: u64, bytes: u64) -> Result<(), Failure> {
        self.share_start = start;
        self.share = Buffer::new(bytes, GAP, self.offset)?;
        Ok(())
    }

    /// Gives all data the values of a round.
    pub(crate) fn fill(&mut self, job: &dyn Job, round: u64) {
        for (call, image) in (0..).zip(&mut self.images) {
            job.pieces(self.rank, call, &mut |piece| {
                let memory = piece.memory as usize..(piece.memory + piece.bytes) as usize;
                content::fill(&mut image.bytes_mut()[memory], piece.file, round);
            });
        }
        for (buffer, image) in self.buffers.iter_mut().zip(&self.images) {
            buffer.bytes_mut().copy_from_slice(image.bytes());
        }
        content::fill(self.share.bytes_mut(), self.share_start, round);
    }

    /// Forgets the data of the calls, so that a read that moves nothing is found out.
    pub(crate) fn clear(&mut self) {
        for buffer in &mut self.buffers {
            buffer.bytes_mut().fill(GAP);
        }
    }

    /// Forgets the share.
    pub(crate) fn clear_share(&mut self) {
        self.share.bytes_mut().fill(GAP);
    }

    /// Fails unless all buffers are what they must be.
    pub(crate) fn check(&self, job: &dyn Job) -> Result<(), Fault> {
        for ((call, buffer), image) in (0..).zip(&self.buffers).zip(&self.images) {
            if buffer.bytes() != image.bytes() {
                return Err(self.first_fault(job, call, buffer.bytes(), image.bytes()));
            }
        }
        Ok(())
    }

    /// Fails unless the share has the values of a round.
    pub(crate) fn check_share(&self, round: u64) -> Result<(), Fault> {
        match content::first_wrong(self.share.bytes(), self.share_start, round) {
            None => Ok(()),
            Some(byte) => Err(Fault::Byte {
                place: Place::Memory { rank: self.rank },
                byte,
            }),
        }
    }

    fn first_fault(&self, job: &dyn Job, call: u64, buffer: &[u8], image: &[u8]) -> Fault {
        let rank = self.rank;
        let at = buffer
            .iter()
            .zip(image)
            .position(|(found, right)| found != right)
            .unwrap_or(image.len().min(buffer.len()).saturating_sub(1));
        let mut offset = None;
        job.pieces(rank, call, &mut |piece| {
            if (piece.memory..piece.memory + piece.bytes).contains(&(at as u64)) {
                offset = Some(piece.file + at as u64 - piece.memory);
            }
        });
        let (expected, found) = (image[at], buffer[at]);
        let (place, offset) = match offset {
            Some(offset) => (Place::Memory { rank }, offset),
            None => (Place::Gap { rank, call }, at as u64),
        };
        let byte = WrongByte {
            offset,
            expected,
            found,
        };
        Fault::Byte { place, byte }
    }
}

/// What a rank gives to each call.
fn steps(job: &dyn Job, rank: u32) -> Result<Vec<Step>, Failure> {
    let steps = (0..job.calls()).map(|call| job.step(rank, call));
    steps
        .collect::<Result<_, _>>()
        .map_err(|error| Failure::Arguments(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{Parameters, Setting, by_name};

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

    #[test]
    fn filled_memory_passes_and_cleared_memory_does_not() {
        let job = job();
        let mut memory = Memory::new(&*job, 1, 16).unwrap();
        memory.share(100, 50).unwrap();
        memory.fill(&*job, 3);
        assert_eq!(
            (memory.check(&*job), memory.check_share(3)),
            (Ok(()), Ok(()))
        );
        assert!(memory.check_share(4).is_err());
        memory.clear();
        memory.clear_share();
        assert!(memory.check(&*job).is_err() && memory.check_share(3).is_err());
    }

    #[test]
    fn any_changed_byte_is_found() {
        let job = job();
        let mut memory = Memory::new(&*job, 1, 16).unwrap();
        memory.fill(&*job, 0);
        let mut gaps = 0;
        for byte in 0..memory.buffers[5].bytes().len() {
            memory.buffers[5].bytes_mut()[byte] ^= 1;
            match memory.check(&*job) {
                Err(Fault::Byte {
                    place: Place::Gap { rank: 1, call: 5 },
                    ..
                }) => gaps += 1,
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
}
