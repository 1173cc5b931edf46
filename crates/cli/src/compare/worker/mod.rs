//! One rank of a contender: runs the patterns with an MPI-IO, verifies every byte, reports times.

mod interface;

use std::ffi::{CString, c_int};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Instant;

use pario_layout::Datatype;
use pario_mpi::{Comm, Encoded, Host, Info};

use super::Mode;
use super::patterns::{self, Pattern};
use super::protocol::{Described, Figure, Line};
use super::rank::{self, failed, mpi};
use crate::failure::Failure;
use crate::measure::{DIRECTIONS, Direction, Holes, Memory, Share, Stored};
use crate::workload::Step;
use interface::{Interface, Items, Start};

/// Buffers start where malloc puts large blocks, like those of most programs.
const BUFFER_OFFSET: usize = 16;

/// Bytes per raw call. Its buffer is page-aligned: otherwise the kernel's copies may take twice as
/// long, and contenders would look closer to the machine's limit.
const RAW_CALL_BYTES: u64 = 8 << 20;
const RAW_OFFSET: usize = 0;

/// The subcommand of `pario bench` that starts it.
pub(crate) const NAME: &str = "compare-worker";

/// The options of a worker; `pario bench compare` starts it.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Report which MPI this is, and exit
    #[arg(long)]
    describe: bool,
    #[command(flatten)]
    options: rank::Options,
    /// The patterns
    #[arg(long)]
    workload: Vec<String>,
    /// Factor on the data
    #[arg(long, default_value_t = 1.0)]
    scale: f64,
    /// Kind of calls
    #[arg(long, value_enum, default_value_t = Mode::Coll)]
    mode: Mode,
    /// Hints of every file
    #[arg(long, value_parser = crate::facts::parse_hint)]
    hint: Vec<(String, String)>,
    /// Number of the repeat, which the data depends on
    #[arg(long, default_value_t = 0)]
    round: u64,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, out: &mut impl Write) -> Result<(), Failure> {
    arguments
        .options
        .run(|host, world| match arguments.describe {
            true if rank_of(host, world)? == 0 => report(out, &Line::Mpi(description(host))),
            true => Ok(()),
            false => Worker::new(host, world, arguments)?.run(out),
        })
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

fn report(out: &mut impl Write, line: &Line) -> Result<(), Failure> {
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

/// The arguments of a call.
struct Call<'a> {
    /// The view to set before.
    view: Option<View<'a>>,
    start: Start,
    items: Items<'a>,
}

struct View<'a> {
    displacement: i64,
    etype: Encoded<'a>,
    filetype: Encoded<'a>,
}

impl<'a> Worker<'a> {
    fn new(host: &'static Host, world: Comm, arguments: &'a Arguments) -> Result<Self, Failure> {
        let mode = arguments.mode;
        let interface = match &arguments.options.library {
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
            interface: interface.map_err(|reason| failed("cannot use the library", reason))?,
            info,
            arguments,
        })
    }

    fn run(&self, out: &mut impl Write) -> Result<(), Failure> {
        let patterns = patterns::named(&self.arguments.workload).map_err(Failure::Arguments)?;
        for pattern in patterns {
            for figure in self.measure(pattern)? {
                if self.rank == 0 {
                    report(out, &Line::Figure(figure))?;
                }
            }
        }
        Ok(())
    }

    /// Writes and reads one pattern.
    fn measure(&self, pattern: &Pattern) -> Result<[Figure; 2], Failure> {
        let job = pattern.job(self.ranks, self.arguments.scale);
        let job = job.map_err(Failure::Arguments)?;
        let mut memory = Memory::new(&*job, self.rank, BUFFER_OFFSET)?;
        let calls = memory.steps.iter().map(|step| self.prepare(step));
        let calls = calls.collect::<Result<Vec<_>, _>>()?;
        let mut stored = Stored::new(&*job, self.ranks, Holes::Undefined);
        let round = self.arguments.round;
        let raw_seconds = self.measure_raw(stored.bytes)?;
        memory.allocate()?;
        memory.fill(&*job, round);

        let path = self
            .arguments
            .options
            .dir
            .join(format!("{}.dat", pattern.name));
        self.remove(&path)?;
        let name = CString::new(path.as_os_str().as_bytes())
            .map_err(|error| Failure::Arguments(error.to_string()))?;
        let write = self.timed(|| self.transfer(&name, Direction::Write, &calls, &mut memory))?;
        let write_fault = match self.rank {
            0 => stored.check(&path, round)?,
            _ => None,
        };
        memory.clear();
        let read = self.timed(|| self.transfer(&name, Direction::Read, &calls, &mut memory))?;
        let read_fault = memory.check(&*job, round).err();
        self.remove(&path)?;

        let figure = |direction, seconds, raw_seconds, fault: Option<String>| Figure {
            pattern: pattern.name.to_owned(),
            direction,
            bytes: stored.bytes,
            pieces: stored.pieces,
            seconds,
            raw_seconds,
            fault,
        };
        let write_fault = write_fault.map(|it| it.to_string());
        let read_fault = self.first_fault(read_fault.map(|it| it.to_string()))?;
        Ok([
            figure(Direction::Write, write, raw_seconds[0], write_fault),
            figure(Direction::Read, read, raw_seconds[1], read_fault),
        ])
    }

    /// Writes and reads the same amount with plain POSIX calls.
    fn measure_raw(&self, bytes: u64) -> Result<[f64; 2], Failure> {
        let path = self.arguments.options.dir.join("raw.dat");
        self.remove(&path)?;
        let mut share = Share::with_buffer(self.rank, self.ranks, bytes, RAW_CALL_BYTES);
        share.allocate(RAW_OFFSET)?;
        let mut seconds = [0.0; 2];
        for (seconds, direction) in seconds.iter_mut().zip(DIRECTIONS) {
            *seconds = self.timed(|| {
                let file = Share::open(&path, direction);
                let moved = file.and_then(|file| share.transfer(&file, direction));
                moved.map_err(Failure::storage(direction.name(), &path))
            })?;
        }
        self.remove(&path)?;
        Ok(seconds)
    }

    /// Creates the datatypes of a call with the MPI.
    fn prepare(&self, step: &Step) -> Result<Call<'static>, Failure> {
        let cannot = |error: &dyn std::fmt::Display| failed("cannot create a datatype", error);
        let filetype = filetype(step).map_err(|error| cannot(&error))?;
        // Most programs pass contiguous data as a number of elements, other data as one item.
        let (item, count) = match c_int::try_from(step.count) {
            Ok(count) if count > 0 && step.memory.layout().is_dense() => {
                (step.memory.clone(), count)
            }
            _ => {
                let all = Datatype::contiguous(step.count, &step.memory);
                (all.map_err(|error| cannot(&error))?, 1)
            }
        };
        let encode = |datatype: &Datatype| {
            let encoded = self.host.encode(datatype);
            encoded.map_err(|error| cannot(&error))
        };
        let signed = |bytes: u64| i64::try_from(bytes).map_err(|error| cannot(&error));
        let view = match step.sets_view {
            true => Some(View {
                displacement: signed(step.displacement)?,
                etype: encode(&step.etype)?,
                filetype: encode(&filetype)?,
            }),
            false => None,
        };
        let start = match step.sets_view && step.offset == 0 {
            true => Start::Pointer,
            false => Start::Offset(signed(step.offset)?),
        };
        Ok(Call {
            view,
            start,
            items: Items::new(self.host, encode(&item)?, count)
                .map_err(|reason| cannot(&reason))?,
        })
    }

    /// The timed part: from open to close.
    fn transfer(
        &self,
        path: &CString,
        direction: Direction,
        calls: &[Call<'_>],
        memory: &mut Memory,
    ) -> Result<(), Failure> {
        let file = self.interface.open(self.world, path, direction, self.info);
        let file = file.map_err(mpi)?;
        for (call, buffer) in calls.iter().zip(&mut memory.buffers) {
            if let Some(view) = &call.view {
                let (etype, filetype) = (view.etype.handle(), view.filetype.handle());
                file.set_view(view.displacement, etype, filetype)
                    .map_err(mpi)?;
            }
            file.transfer(call.start, buffer.bytes_mut(), &call.items)
                .map_err(mpi)?;
        }
        file.close().map_err(mpi)
    }

    /// Seconds from the start of all ranks until all have finished.
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

    /// The fault of the first rank that has one.
    fn first_fault(&self, own: Option<String>) -> Result<Option<String>, Failure> {
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
                    return Err(Failure::storage("remove", path)(error));
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
            // Nothing depends on it any longer.
            let _ = self.host.info_free(self.info);
        }
    }
}

/// The filetype as programs pass it: if the view has no gaps, one instance for the whole share
/// rather than one per element.
fn filetype(step: &Step) -> Result<Datatype, pario_layout::TypeError> {
    let elements = step.bytes() / step.etype.size().max(1);
    match step.filetype == step.etype && elements > 0 {
        true => Datatype::contiguous(elements, &step.etype),
        false => Ok(step.filetype.clone()),
    }
}
