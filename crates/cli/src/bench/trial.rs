//! One run of one method: all ranks open the file, make the calls of the job, close it.

use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use pario::{File, Info, Mode, Owned, Source, Target, View};
use pario_driver::{Log, Operation, WrappedDriver};
use pario_transport::Transport;

use super::method::{Calls, Method};
use super::outcome::{Outcome, Stop};
use crate::measure::{Buffer, Direction, Fault, Memory, Share};
use crate::workload::{Job, Step};

/// Whether transfers are recorded, which itself takes time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Record {
    /// Only the total is timed.
    Whole,
    /// Each transfer is logged.
    Transfers,
}

/// One run.
pub(crate) struct Trial<'a> {
    pub(crate) job: &'a dyn Job,
    pub(crate) method: &'a Method,
    pub(crate) path: &'a Path,
    /// The file's name with its driver.
    pub(crate) name: &'a str,
    pub(crate) direction: Direction,
    pub(crate) record: Record,
    /// The round whose values the data has.
    pub(crate) round: u64,
    /// The origin of the clock that all ranks share.
    pub(crate) clock: Instant,
}

impl Trial<'_> {
    /// One rank's part. Its memory has the round's values before and after; that of a forked
    /// process is allocated here.
    pub(crate) fn rank(
        &self,
        comm: &Arc<dyn Transport>,
        memories: &[Mutex<Memory>],
    ) -> Result<Outcome, Stop> {
        let memory = memories[comm.rank().index()].lock();
        let mut memory = memory.unwrap_or_else(PoisonError::into_inner);
        if !memory.is_allocated() {
            let allocated = memory.allocate();
            allocated.map_err(|failure| Stop::Failed(failure.to_string()))?;
            memory.fill(self.job, self.round);
        }
        let is_read = self.direction == Direction::Read;
        if self.method.calls == Calls::Raw {
            if is_read {
                memory.share.clear();
            }
            let outcome = self.raw(comm, &mut memory.share)?;
            if is_read {
                let rank = comm.rank().0;
                let checked = memory.share.check(self.path, self.round, rank)?;
                checked.map_err(wrong)?;
            }
            return Ok(outcome);
        }
        if is_read {
            memory.clear();
        }
        let outcome = self.calls(comm, &mut memory)?;
        if is_read {
            memory.check(self.job, self.round).map_err(wrong)?;
        }
        Ok(outcome)
    }

    fn now(&self) -> u64 {
        u64::try_from(self.clock.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// One contiguous share per rank, by plain system calls.
    fn raw(&self, comm: &Arc<dyn Transport>, share: &mut Share) -> Result<Outcome, Stop> {
        comm.barrier().map_err(pario::Error::from)?;
        let start = self.now();
        let file = Share::open(self.path, self.direction)?;
        let opened = self.now();
        share.transfer(&file, self.direction)?;
        let moved = self.now();
        drop(file);
        Ok(Outcome {
            span: start..self.now(),
            calls: opened..moved,
            transfers: Vec::new(),
        })
    }

    fn calls(&self, comm: &Arc<dyn Transport>, memory: &mut Memory) -> Result<Outcome, Stop> {
        let info = self.info()?;
        let log = (self.record == Record::Transfers).then(|| (self.now(), Log::new()));
        let views: Vec<_> = memory.steps.iter().map(view).collect();
        comm.barrier().map_err(pario::Error::from)?;
        let start = self.now();
        let file = self.open(comm, &info, log.as_ref().map(|(_, log)| log))?;
        let opened = self.now();
        let mut found = 0;
        for (call, view) in views.iter().enumerate() {
            if memory.steps[call].sets_view {
                file.set_view(view)?;
            }
            found += self.call(&file, &memory.steps[call], &mut memory.buffers[call])?;
        }
        let called = self.now();
        file.close()?;
        let span = start..self.now();
        let expected = memory.bytes();
        if found != expected {
            let fault = Fault::Count {
                rank: comm.rank().0,
                expected,
                found,
            };
            return Err(wrong(fault));
        }
        let transfers = log.map(|(began, log)| transfers(began, &log));
        Ok(Outcome {
            span,
            calls: opened..called,
            transfers: transfers.unwrap_or_default(),
        })
    }

    fn info(&self) -> Result<Info, Stop> {
        let mut info = Info::new();
        for (key, value) in &self.method.hints {
            info.set(key, value)
                .map_err(|error| Stop::Failed(error.to_string()))?;
        }
        Ok(info)
    }

    fn open(
        &self,
        comm: &Arc<dyn Transport>,
        info: &Info,
        log: Option<&Log>,
    ) -> Result<File, Stop> {
        let mode = match self.direction {
            // Sieving reads the gaps between the pieces.
            Direction::Write => Mode::CREATE | Mode::READ_WRITE,
            Direction::Read => Mode::READ_ONLY,
        };
        let Some(log) = log else {
            return Ok(File::open(comm, self.name, mode, info)?);
        };
        let resolved = pario_driver::resolve(self.name, None)?;
        let driver = Arc::new(WrappedDriver::new(resolved.driver, log.clone()));
        Ok(File::open_with(comm, driver, resolved.path, mode, info)?)
    }

    /// Bytes that one call moved.
    fn call(&self, file: &File, step: &Step, buffer: &mut Buffer) -> Result<u64, pario::Error> {
        match self.method.calls {
            Calls::Collective | Calls::Independent | Calls::Raw => {
                self.blocking(file, step, buffer.bytes_mut())
            }
            Calls::Nonblocking | Calls::NonblockingCollective | Calls::Split => {
                let (memory, origin) = buffer.take();
                let owned = Owned::typed_at(memory, origin, step.count, &step.memory)?;
                let (bytes, memory) = self.started(file, step.offset, owned)?;
                buffer.restore(memory);
                Ok(bytes)
            }
        }
    }

    fn blocking(&self, file: &File, step: &Step, buffer: &mut [u8]) -> Result<u64, pario::Error> {
        let is_collective = self.method.calls == Calls::Collective;
        let offset = step.offset;
        let status = match self.direction {
            Direction::Write => {
                let source = Source::typed(buffer, step.count, &step.memory)?;
                match is_collective {
                    true => file.write_at_all(offset, source)?,
                    false => file.write_at(offset, source)?,
                }
            }
            Direction::Read => {
                let target = Target::typed(buffer, step.count, &step.memory)?;
                match is_collective {
                    true => file.read_at_all(offset, target)?,
                    false => file.read_at(offset, target)?,
                }
            }
        };
        Ok(status.bytes())
    }

    /// Starts a call and waits for it: the next one may need another view.
    fn started(
        &self,
        file: &File,
        offset: u64,
        owned: Owned<u8>,
    ) -> Result<(u64, Vec<u8>), pario::Error> {
        let (status, buffer) = match (self.method.calls, self.direction) {
            (Calls::Split, Direction::Write) => file.write_at_all_begin(offset, owned)?.end()?,
            (Calls::Split, Direction::Read) => file.read_at_all_begin(offset, owned)?.end()?,
            (Calls::NonblockingCollective, Direction::Write) => {
                file.iwrite_at_all(offset, owned)?.wait()?
            }
            (Calls::NonblockingCollective, Direction::Read) => {
                file.iread_at_all(offset, owned)?.wait()?
            }
            (_, Direction::Write) => file.iwrite_at(offset, owned)?.wait()?,
            (_, Direction::Read) => file.iread_at(offset, owned)?.wait()?,
        };
        Ok((status.bytes(), buffer))
    }
}

fn wrong(fault: Fault) -> Stop {
    Stop::Wrong(fault.to_string())
}

/// The view of a rank in a call.
fn view(step: &Step) -> View {
    View::new(step.displacement, &step.etype, &step.filetype)
}

/// The times of transfers, on the shared clock.
fn transfers(began: u64, log: &Log) -> Vec<Range<u64>> {
    let nanoseconds = |time: std::time::Duration| time.as_nanos() as u64;
    log.take()
        .iter()
        .filter(|event| Operation::TRANSFERS.contains(&event.operation))
        .map(|event| {
            let start = began + nanoseconds(event.began);
            start..start + nanoseconds(event.took)
        })
        .collect()
}
