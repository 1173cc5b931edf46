//! One method at work: all ranks open the file, move their blocks, close it.

use std::io::{self, Read};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use pario::{
    Basic, Datatype, ErrorKind, File, Info, Mode, Order, Source, Target, Transport, View,
    threads::{self, RankPanic},
};

use super::array::Array;
use super::cells::CELL_BYTES;
use super::memory::Memory;
use super::methods::{Call, Method};
use super::session::wrong_by;
use super::span::{Span, elapsed};
use super::wrong::{Fault, check_file};
use crate::failure::Failure;

/// Nonblocking operations each rank has in flight.
const IN_FLIGHT: u64 = 4;

/// Which way the data goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// From memory to the file.
    Write,
    /// From the file to memory.
    Read,
}

/// A method, the array it moves, and the file it keeps it in.
pub(crate) struct Engine<'a> {
    method: &'a Method,
    array: &'a Array,
    /// The file's name with the driver's prefix.
    name: String,
    info: Info,
}

/// Why a rank stopped.
enum Stop {
    /// A call failed.
    Error(pario::Error),
    /// A call reported what it should not.
    Fault(Fault),
    /// It panicked.
    Panic(RankPanic),
}

impl Stop {
    fn is_consequence(&self) -> bool {
        matches!(self, Stop::Error(error) if error.kind() == ErrorKind::PeerLost)
    }
}

impl From<pario::Error> for Stop {
    fn from(error: pario::Error) -> Self {
        Stop::Error(error)
    }
}

impl<'a> Engine<'a> {
    /// Prepares a method; `path` is the file for drivers that keep one.
    pub(crate) fn new(method: &'a Method, array: &'a Array, path: &Path) -> Self {
        let mut info = Info::new();
        for (key, value) in method.hints {
            info.set(key, value)
                .expect("the hints of methods are short");
        }
        Engine {
            method,
            array,
            name: format!("{}:{}", method.store.prefix(), path.display()),
            info,
        }
    }

    /// Removes the file, so that every run writes to fresh storage.
    pub(crate) fn delete(&self) -> Result<(), Failure> {
        match File::delete(&self.name, &Info::new()) {
            Err(error) if error.kind() != ErrorKind::NoSuchFile => {
                Err(self.failure(Stop::Error(error)))
            }
            _ => Ok(()),
        }
    }

    /// Moves every rank's block, timed from the first open to the last close.
    pub(crate) fn run(
        &self,
        direction: Direction,
        memories: &[Mutex<Memory>],
    ) -> Result<Duration, Failure> {
        let ranks = threads::run(self.array.ranks(), |comm| {
            let memory = memories[comm.rank().index()].lock();
            let mut memory = memory.unwrap_or_else(PoisonError::into_inner);
            self.move_block(&comm, direction, &mut memory)
        });
        let mut spans = Vec::with_capacity(ranks.len());
        let mut failures = Vec::new();
        for rank in ranks {
            match rank {
                Ok(Ok(span)) => spans.push(span),
                Ok(Err(stop)) => failures.push(stop),
                Err(panic) => failures.push(Stop::Panic(panic)),
            }
        }
        // A rank that lost its peers only tells that another one failed.
        match failures.into_iter().min_by_key(Stop::is_consequence) {
            None => Ok(elapsed(&spans)),
            Some(stop) => Err(self.failure(stop)),
        }
    }

    fn move_block(
        &self,
        comm: &Arc<dyn Transport>,
        direction: Direction,
        memory: &mut Memory,
    ) -> Result<Span, Stop> {
        let rank = comm.rank().0;
        let expected = memory.block().cells() * CELL_BYTES;
        let view = self.view(rank)?;
        comm.barrier().map_err(pario::Error::from)?;
        let start = Instant::now();
        let mode = match direction {
            // Sieving reads what lies between the pieces.
            Direction::Write => Mode::CREATE | Mode::READ_WRITE,
            Direction::Read => Mode::READ_ONLY,
        };
        let file = File::open(comm, &self.name, mode, &self.info)?;
        file.set_view(&view)?;
        let found = match self.method.call {
            Call::Nonblocking => nonblocking(&file, direction, memory)?,
            Call::Independent | Call::Collective => {
                blocking(&file, self.method.call, direction, memory)?
            }
        };
        file.close()?;
        let end = Instant::now();
        if found != expected {
            return Err(Stop::Fault(Fault::Count {
                rank,
                expected,
                found,
            }));
        }
        Ok(Span { start, end })
    }

    /// The block of a rank as a part of the file.
    fn view(&self, rank: u32) -> Result<View, pario::Error> {
        let block = self.array.block(rank);
        let cell = Datatype::basic(Basic::Double);
        let shape = self.array.shape().0;
        let filetype = Datatype::subarray(&shape, &block.extent, &block.start, Order::C, &cell)?;
        Ok(View::new(0, &cell, &filetype))
    }

    /// Compares a file that no other program can see with the array.
    pub(crate) fn check_stored(&self, round: u64) -> Result<(), Failure> {
        let checked = threads::run(
            1,
            |comm| -> Result<io::Result<Result<(), Fault>>, pario::Error> {
                let file = File::open(&comm, &self.name, Mode::READ_ONLY, &Info::new())?;
                let checked = check_file(
                    self.array,
                    round,
                    Stored {
                        file: &file,
                        offset: 0,
                    },
                );
                file.close()?;
                Ok(checked)
            },
        );
        for rank in checked {
            rank.map_err(|panic| self.failure(Stop::Panic(panic)))?
                .map_err(|error| self.failure(Stop::Error(error)))?
                .map_err(|error| self.failed(error.to_string()))?
                .map_err(|fault| self.failure(Stop::Fault(fault)))?;
        }
        Ok(())
    }

    fn failure(&self, stop: Stop) -> Failure {
        match stop {
            Stop::Fault(fault) => wrong_by(&self.method.label())(fault),
            Stop::Panic(panic) => self.failed(panic.to_string()),
            Stop::Error(error) if error.kind() == ErrorKind::UnsupportedOperation => {
                Failure::Unavailable {
                    method: self.method.label(),
                    reason: error.to_string(),
                }
            }
            Stop::Error(error) => self.failed(error.to_string()),
        }
    }

    fn failed(&self, reason: String) -> Failure {
        Failure::Method {
            method: self.method.label(),
            reason,
        }
    }
}

/// The block within its memory, as a datatype.
fn memory_type(memory: &Memory) -> Result<Datatype, pario::Error> {
    let cell = Datatype::basic(Basic::Double);
    let start = [memory.frame().width(); 3];
    let extent = memory.block().extent;
    Ok(Datatype::subarray(
        &memory.sizes(),
        &extent,
        &start,
        Order::C,
        &cell,
    )?)
}

/// Bytes that one blocking call moved.
fn blocking(
    file: &File,
    call: Call,
    direction: Direction,
    memory: &mut Memory,
) -> Result<u64, pario::Error> {
    let datatype = memory_type(memory)?;
    let status = match direction {
        Direction::Write => {
            let source = Source::typed(memory.bytes(), 1, &datatype)?;
            match call {
                Call::Collective => file.write_at_all(0, source)?,
                _ => file.write_at(0, source)?,
            }
        }
        Direction::Read => {
            let target = Target::typed(memory.bytes_mut(), 1, &datatype)?;
            match call {
                Call::Collective => file.read_at_all(0, target)?,
                _ => file.read_at(0, target)?,
            }
        }
    };
    Ok(status.bytes())
}

/// Bytes that several operations moved, all in flight at once. For blocks without a frame.
fn nonblocking(
    file: &File,
    direction: Direction,
    memory: &mut Memory,
) -> Result<u64, pario::Error> {
    let cell = Datatype::basic(Basic::Double);
    let cells = memory.block().cells().div_ceil(IN_FLIGHT);
    let part = usize::try_from(cells * CELL_BYTES).expect("a part of what lies in memory");
    let offsets = (0..).step_by(usize::try_from(cells).expect("a part of what lies in memory"));
    pario::scope(|scope| {
        let requests = match direction {
            Direction::Write => memory
                .bytes()
                .chunks(part)
                .zip(offsets)
                .map(|(bytes, offset)| {
                    let source = Source::typed(bytes, bytes.len() as u64 / CELL_BYTES, &cell)?;
                    scope.iwrite_at(file, offset, source)
                })
                .collect::<Result<Vec<_>, _>>()?,
            Direction::Read => memory
                .bytes_mut()
                .chunks_mut(part)
                .zip(offsets)
                .map(|(bytes, offset)| {
                    let count = bytes.len() as u64 / CELL_BYTES;
                    scope.iread_at(file, offset, Target::typed(bytes, count, &cell)?)
                })
                .collect::<Result<Vec<_>, _>>()?,
        };
        requests
            .into_iter()
            .try_fold(0, |bytes, request| Ok(bytes + request.wait()?.bytes()))
    })
}

/// A file, read from its start.
struct Stored<'a> {
    file: &'a File,
    offset: u64,
}

impl Read for Stored<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let status = self
            .file
            .read_at(self.offset, buffer)
            .map_err(io::Error::other)?;
        self.offset += status.bytes();
        Ok(usize::try_from(status.bytes()).expect("no more than the buffer was filled"))
    }
}
