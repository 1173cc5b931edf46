//! One rank of a contender: moves the patterns through an MPI-IO, checks every byte, tells times.

mod check;
mod interface;
mod raw;

use std::ffi::CString;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use pario_layout::Datatype;
use pario_mpi::host::loader::{Library, Visibility};
use pario_mpi::{Comm, Encoded, Host, Info, Runtime, Threads};

use super::Mode;
use super::patterns::{self, Pattern};
use super::protocol::{Described, Direction, Figure, Line};
use crate::bench::content;
use crate::failure::Failure;
use crate::workload::{Job, Step};
use interface::{Interface, Memory};

/// What memory holds before a read.
const UNREAD: u8 = 0xa5;

/// What a worker does; `pario bench compare` starts it.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Tell which MPI this is, and end
    #[arg(long)]
    describe: bool,
    /// The MPI's library [default: that of the launcher]
    #[arg(long, value_name = "FILE")]
    mpi_library: Option<PathBuf>,
    /// The library whose MPI-IO is used [default: the MPI's own]
    #[arg(long, value_name = "FILE")]
    library: Option<PathBuf>,
    /// The folder of the files
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    dir: PathBuf,
    /// The patterns
    #[arg(long, value_delimiter = ',')]
    workload: Vec<String>,
    /// Factor on the data
    #[arg(long, default_value_t = 1.0)]
    scale: f64,
    /// Which calls
    #[arg(long, value_enum, default_value_t = Mode::Coll)]
    mode: Mode,
    /// Hints of every file
    #[arg(long, value_parser = crate::facts::parse_hint)]
    hint: Vec<(String, String)>,
    /// Number of the round, which the data depends on
    #[arg(long, default_value_t = 0)]
    round: u64,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, out: &mut impl Write) -> Result<(), Failure> {
    if let Some(library) = &arguments.mpi_library {
        let loaded = Library::load(&library.to_string_lossy(), Visibility::Global);
        loaded.map_err(|reason| failed("cannot load the MPI", &reason))?;
    }
    let runtime = Runtime::start(Threads::Single)
        .map_err(|error| failed("cannot start the MPI", &error.to_string()))?;
    let (host, world) = (runtime.host(), runtime.world());
    if arguments.describe {
        return match rank_of(host, world)? {
            0 => tell(out, &Line::Mpi(description(host))),
            _ => Ok(()),
        };
    }
    let outcome = Worker::new(host, world, arguments).and_then(|worker| worker.run(out));
    if let Err(failure) = &outcome {
        // The others wait for this rank: end them all.
        eprintln!("pario: {failure}");
        let _ = host.abort(world, 1);
    }
    outcome
}

fn failed(what: &str, reason: &dyn std::fmt::Display) -> Failure {
    Failure::Method {
        method: what.to_owned(),
        reason: reason.to_string(),
    }
}

/// A failure of an MPI function, which its text names.
fn mpi(error: impl std::fmt::Display) -> Failure {
    failed("MPI", &error)
}

fn rank_of(host: &Host, comm: Comm) -> Result<usize, Failure> {
    host.comm_rank(comm).map_err(mpi)
}

fn description(host: &Host) -> Described {
    let words: Vec<_> = host.version().split_whitespace().collect();
    Described {
        flavour: host.flavour().name().to_owned(),
        library: host.path().to_owned(),
        version: words.join(" "),
    }
}

fn tell(out: &mut impl Write, line: &Line) -> Result<(), Failure> {
    writeln!(out, "{line}")
        .and_then(|()| out.flush())
        .map_err(Failure::Output)
}

/// A rank.
struct Worker<'a> {
    host: &'static Host,
    world: Comm,
    rank: u32,
    ranks: u32,
    interface: Interface,
    info: Info,
    arguments: &'a Arguments,
}

/// One call, ready to be timed.
struct Call<'a> {
    displacement: i64,
    etype: Encoded<'a>,
    filetype: Encoded<'a>,
    memory: Memory<'a>,
    /// As malloc gives it, which is what programs pass: large blocks begin 16 bytes behind a page.
    buffer: Vec<u8>,
}

impl<'a> Worker<'a> {
    fn new(host: &'static Host, world: Comm, arguments: &'a Arguments) -> Result<Self, Failure> {
        let mode = arguments.mode;
        let interface = match &arguments.library {
            Some(path) => Interface::of_library(host, mode, path),
            None => Interface::of_host(host, mode),
        };
        let info = match arguments.hint.is_empty() {
            true => host.predefined().info_null,
            false => {
                let pairs = arguments.hint.iter();
                let pairs = pairs.map(|(name, value)| (name.as_str(), value.as_str()));
                host.info_from_pairs(pairs).map_err(mpi)?
            }
        };
        let ranks = host.comm_size(world).map_err(mpi)?;
        let few = |number: usize| u32::try_from(number).map_err(mpi);
        Ok(Worker {
            host,
            world,
            rank: few(rank_of(host, world)?)?,
            ranks: few(ranks)?,
            interface: interface.map_err(|reason| failed("cannot use the library", &reason))?,
            info,
            arguments,
        })
    }

    fn run(&self, out: &mut impl Write) -> Result<(), Failure> {
        let patterns = patterns::named(&self.arguments.workload).map_err(Failure::Arguments)?;
        for pattern in patterns {
            for figure in self.measure(pattern)? {
                if self.rank == 0 {
                    tell(out, &Line::Figure(figure))?;
                }
            }
        }
        Ok(())
    }

    /// Writes and reads one pattern.
    fn measure(&self, pattern: &Pattern) -> Result<[Figure; 2], Failure> {
        let job = pattern.job(self.ranks, self.arguments.scale);
        let job = job.map_err(Failure::Arguments)?;
        let mut calls = (0..job.calls())
            .map(|call| self.prepare(&*job, call))
            .collect::<Result<Vec<_>, _>>()?;
        let own = check::Extent::of(&*job, self.rank);
        let sums = self.reduce(&[own.bytes], self.host.predefined().op_sum)?;
        let maxima = self.reduce(&[own.pieces, own.end], self.host.predefined().op_max)?;
        let (bytes, pieces, end) = (sums[0], maxima[0], maxima[1]);

        let raw_path = self.arguments.dir.join("raw.dat");
        let path = self.arguments.dir.join(format!("{}.dat", pattern.name));
        self.remove(&raw_path)?;
        self.remove(&path)?;
        let mut raw = raw::Raw::new(&raw_path, self.rank, bytes / u64::from(self.ranks))?;
        let mut raw_seconds = [0.0; 2];
        for (seconds, direction) in raw_seconds.iter_mut().zip(Direction::ALL) {
            *seconds = self.timed(|| raw.run(direction))?;
        }
        self.remove(&raw_path)?;

        let name = CString::new(path.as_os_str().as_bytes())
            .map_err(|error| Failure::Arguments(error.to_string()))?;
        let round = self.arguments.round;
        let write = self.timed(|| self.transfer(&name, Direction::Write, &mut calls))?;
        let write_fault = check::file_fault(&*job, self.rank, &path, end, round)?;
        for call in &mut calls {
            call.buffer.fill(UNREAD);
        }
        let read = self.timed(|| self.transfer(&name, Direction::Read, &mut calls))?;
        let buffers = calls.iter().map(|call| call.buffer.as_slice());
        let read_fault = check::memory_fault(&*job, self.rank, buffers, UNREAD, round);
        self.remove(&path)?;

        let figure = |direction, seconds, raw_seconds, fault: Option<String>| {
            Ok::<_, Failure>(Figure {
                pattern: pattern.name.to_owned(),
                direction,
                bytes,
                pieces,
                seconds,
                raw_seconds,
                fault: self.first_fault(fault)?,
            })
        };
        Ok([
            figure(Direction::Write, write, raw_seconds[0], write_fault)?,
            figure(Direction::Read, read, raw_seconds[1], read_fault)?,
        ])
    }

    /// Makes the datatypes of a call with the MPI, and its data. Every call has a buffer of its
    /// own, which keeps what is timed free of filling them.
    fn prepare(&self, job: &dyn Job, number: u64) -> Result<Call<'static>, Failure> {
        let cannot = |error: &dyn std::fmt::Display| failed("cannot make a datatype", error);
        let step = job
            .step(self.rank, number)
            .map_err(|error| cannot(&error))?;
        let filetype = filetype(&step).map_err(|error| cannot(&error))?;
        let item =
            Datatype::contiguous(step.count, &step.memory).map_err(|error| cannot(&error))?;
        let encode = |datatype: &Datatype| {
            let encoded = self.host.encode(datatype);
            encoded.map_err(|error| cannot(&error))
        };
        let mut buffer = zeroes(step.memory_bytes)?;
        job.pieces(self.rank, number, &mut |piece| {
            let memory = &mut buffer[piece.memory as usize..][..piece.bytes as usize];
            content::fill(memory, piece.file, self.arguments.round);
        });
        Ok(Call {
            displacement: i64::try_from(step.displacement).map_err(|error| cannot(&error))?,
            etype: encode(&step.etype)?,
            filetype: encode(&filetype)?,
            memory: Memory::new(self.host, encode(&item)?).map_err(|reason| cannot(&reason))?,
            buffer,
        })
    }

    /// What is timed: from open to close.
    fn transfer(
        &self,
        path: &CString,
        direction: Direction,
        calls: &mut [Call<'_>],
    ) -> Result<(), Failure> {
        let file = self.interface.open(self.world, path, direction, self.info);
        let file = file.map_err(mpi)?;
        for call in calls {
            file.set_view(
                call.displacement,
                call.etype.handle(),
                call.filetype.handle(),
            )
            .map_err(mpi)?;
            file.transfer(&mut call.buffer, &call.memory).map_err(mpi)?;
        }
        file.close().map_err(mpi)
    }

    /// Seconds from when all ranks begin until all have ended.
    fn timed(&self, body: impl FnOnce() -> Result<(), Failure>) -> Result<f64, Failure> {
        self.barrier()?;
        let started = Instant::now();
        body()?;
        self.barrier()?;
        Ok(started.elapsed().as_secs_f64())
    }

    fn barrier(&self) -> Result<(), Failure> {
        self.host.barrier(self.world).map_err(mpi)
    }

    fn reduce(&self, numbers: &[u64], op: pario_mpi::Op) -> Result<Vec<u64>, Failure> {
        let reduced = self.host.allreduce(numbers, op, self.world);
        reduced.map_err(mpi)
    }

    /// The fault of the first rank that has one.
    fn first_fault(&self, own: Option<String>) -> Result<Option<String>, Failure> {
        let own = own.map(|fault| format!("rank {}: {fault}", self.rank));
        let text = own.unwrap_or_default();
        let all = self.host.allgatherv(text.as_bytes(), self.world);
        let first = all.map_err(mpi)?.into_iter().find(|text| !text.is_empty());
        Ok(first.map(|text| String::from_utf8_lossy(&text).into_owned()))
    }

    /// Removes a file once every rank is done with it.
    fn remove(&self, path: &Path) -> Result<(), Failure> {
        self.barrier()?;
        if self.rank == 0 {
            match std::fs::remove_file(path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(Failure::Storage {
                        action: "remove",
                        path: path.to_owned(),
                        source: error,
                    });
                }
                _ => {}
            }
        }
        self.barrier()
    }
}

impl Drop for Worker<'_> {
    fn drop(&mut self) {
        if self.info != self.host.predefined().info_null {
            // Nothing depends on it any more.
            let _ = self.host.info_free(self.info);
        }
    }
}

/// Memory of so many bytes; at least one, so that its address is one of malloc's.
fn zeroes(bytes: u64) -> Result<Vec<u8>, Failure> {
    let mut memory = Vec::new();
    let length = usize::try_from(bytes.max(1)).unwrap_or(usize::MAX);
    memory.try_reserve_exact(length).map_err(|_| {
        Failure::Arguments(format!("there is no memory for a buffer of {bytes} bytes"))
    })?;
    memory.resize(length, 0);
    Ok(memory)
}

/// The filetype as programs give it: where the view has no gaps, one instance for the whole share
/// rather than one an element.
fn filetype(step: &Step) -> Result<Datatype, pario_layout::TypeError> {
    let elements = step.bytes() / step.etype.size().max(1);
    match step.filetype == step.etype && elements > 0 {
        true => Datatype::contiguous(elements, &step.etype),
        false => Ok(step.filetype.clone()),
    }
}
