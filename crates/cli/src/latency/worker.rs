//! One rank of a contender: makes each call many times and reports how long one takes.

use std::ffi::CString;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::time::{Duration, Instant};

use pario_mpi::{Comm, Host};

use super::calls::{self, Form, Row};
use super::functions::{Functions, OpenFile, Requests, Source};
use crate::compare::protocol::{Latency, Line};
use crate::compare::rank::{self, mpi};
use crate::failure::Failure;

/// About as many slices have a figure's time.
const SLICES: f64 = 8.0;
/// As many slices are taken even if they need more than the time, up to so many times as much.
const SLICES_MIN: u32 = 12;
const EXTENSION_MAX: f64 = 10.0;
/// The most batches of a slice: files at a pointer that moves on do not grow much further.
const BATCHES_MAX: u64 = 1 << 12;

/// The subcommand of `pario bench` that starts it.
pub(super) const NAME: &str = "latency-worker";

/// The options of a worker; `pario bench latency` starts it.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    options: rank::Options,
    /// Which calls
    #[arg(long, value_delimiter = ',')]
    call: Vec<String>,
    /// Bytes per rank, per call
    #[arg(long, value_delimiter = ',')]
    size: Vec<u64>,
    /// Time for each figure, in milliseconds
    #[arg(long, default_value_t = 20)]
    time: u64,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, out: &mut impl Write) -> Result<(), Failure> {
    arguments
        .options
        .run(|host, world| measure_all(host, world, arguments, out))
}

fn measure_all(
    host: &'static Host,
    world: Comm,
    arguments: &Arguments,
    out: &mut impl Write,
) -> Result<(), Failure> {
    let source = match &arguments.options.library {
        Some(path) => Source::library(path).map_err(mpi)?,
        None => Source::Host(host),
    };
    let wants_pario = matches!(source, Source::Library(..));
    let calls = calls::named(&arguments.call).map_err(Failure::Arguments)?;
    let path = arguments.options.dir.join("latency.dat");
    let path = CString::new(path.as_os_str().as_bytes()).map_err(mpi)?;
    let worker = Worker {
        functions: Functions::new(host, source).map_err(mpi)?,
        host,
        world,
        rank: host.comm_rank(world).map_err(mpi)? as u64,
        ranks: host.comm_size(world).map_err(mpi)? as u64,
        path,
        time: Duration::from_millis(arguments.time),
    };
    for row in calls::rows(&calls, &arguments.size) {
        let (seconds, is_parios) = worker.measure(row)?;
        let latency = Latency {
            call: row.call.name.to_owned(),
            bytes: row.bytes,
            in_flight: row.in_flight,
            seconds,
            fault: (is_parios != wants_pario)
                .then(|| "the library being measured did not open the file".to_owned()),
        };
        if worker.rank == 0 {
            // At once: it is shown as progress.
            let line = Line::Latency(latency);
            writeln!(out, "{line}")
                .and_then(|()| out.flush())
                .map_err(Failure::Output)?;
        }
    }
    Ok(())
}

/// How long some batches took on the slowest rank, and how long it has been at the figure; the same
/// on all ranks, which decide alike by it.
struct Slice {
    seconds: f64,
    elapsed: f64,
}

struct Worker {
    functions: Functions,
    host: &'static Host,
    world: Comm,
    rank: u64,
    ranks: u64,
    path: CString,
    time: Duration,
}

impl Worker {
    fn barrier(&self) -> Result<(), Failure> {
        self.host.barrier(self.world).map_err(mpi)
    }

    /// Seconds per call, and whose file it was.
    fn measure(&self, row: Row) -> Result<(f64, bool), Failure> {
        let file = self.functions.open(self.world, &self.path).map_err(mpi)?;
        let is_parios = file.is_parios();
        let seconds = self.best_slice(&file, row)?;
        file.close().map_err(mpi)?;
        Ok((seconds / row.in_flight as f64, is_parios))
    }

    /// Seconds per batch of as many calls as are in flight together: the best of several slices of
    /// the time, because whatever disturbs a slice makes it longer. Slices have twice as many batches
    /// each until one is long enough that its barriers do not matter. The time includes what surrounds
    /// the slices. Where that is most of it, as on a machine that does something else too, a figure
    /// gets more, but not without a bound.
    fn best_slice(&self, file: &OpenFile<'_>, row: Row) -> Result<f64, Failure> {
        let began = Instant::now();
        let time = self.time.as_secs_f64();
        let mut body = self.body(file, row)?;
        let (mut batches, mut best) = (1, f64::INFINITY);
        for slices in 1.. {
            let Slice { seconds, elapsed } = self.slice(file, &mut body, batches, began)?;
            best = best.min(seconds / batches as f64);
            if (elapsed >= time && slices >= SLICES_MIN) || elapsed >= time * EXTENSION_MAX {
                break;
            }
            if seconds < time / SLICES && batches < BATCHES_MAX {
                batches *= 2;
            }
        }
        Ok(best)
    }

    /// Times some batches.
    fn slice(
        &self,
        file: &OpenFile<'_>,
        body: &mut Body<'_>,
        batches: u64,
        began: Instant,
    ) -> Result<Slice, Failure> {
        file.seek(0).map_err(mpi)?;
        file.seek_shared().map_err(mpi)?;
        self.barrier()?;
        let started = Instant::now();
        for batch in 0..batches {
            body(batch).map_err(mpi)?;
        }
        self.barrier()?;
        let nanoseconds = [started, began].map(|since| since.elapsed().as_nanos() as u64);
        let op = self.host.predefined().op_max;
        let slowest = self.host.allreduce(&nanoseconds, op, self.world);
        let slowest = slowest.map_err(mpi)?;
        let [seconds, elapsed] = [slowest[0], slowest[1]].map(|it| it as f64 / 1e9);
        Ok(Slice { seconds, elapsed })
    }

    /// The timed part.
    fn body<'a>(&'a self, file: &'a OpenFile<'_>, row: Row) -> Result<Body<'a>, Failure> {
        let mut buffer = vec![0u8; row.bytes as usize];
        let in_flight = row.in_flight as u64;
        // Ranks write next to each other, over the same megabytes repeatedly.
        let offset = move |rank: u64, ranks: u64, number: u64| {
            (((number % 64) * ranks + rank) * row.bytes).cast_signed()
        };
        let (rank, ranks) = (self.rank, self.ranks);
        Ok(match row.call.form {
            Form::Open => Box::new(|_| self.functions.open(self.world, &self.path)?.close()),
            Form::OpenFresh => Box::new(|_| {
                let fresh = self.host.comm_dup(self.world)?;
                self.functions.open(fresh, &self.path)?.close()?;
                self.host.comm_free(fresh)
            }),
            Form::SetView => Box::new(|batch| file.set_view(8 * batch.cast_signed())),
            Form::Seek => Box::new(|batch| file.seek(batch.cast_signed())),
            Form::Sync => Box::new(|_| file.sync()),
            Form::Size => Box::new(|_| file.size().map(drop)),
            Form::Blocking(_) | Form::Split(_) => {
                let data = self.functions.data(row.call).map_err(mpi)?;
                Box::new(move |batch| file.transfer(data, offset(rank, ranks, batch), &mut buffer))
            }
            Form::Nonblocking(_) => {
                let data = self.functions.data(row.call).map_err(mpi)?;
                let mut requests = Requests::new(self.host, row.in_flight);
                // Memory of operations in flight at the same time must not overlap.
                let mut buffers = vec![buffer; row.in_flight];
                Box::new(move |batch| {
                    for (index, buffer) in buffers.iter_mut().enumerate() {
                        let number = batch * in_flight + index as u64;
                        let at = offset(rank, ranks, number);
                        file.start(data, at, buffer, (&mut requests, index))?;
                    }
                    file.wait(&mut requests)
                })
            }
        })
    }
}

type Body<'a> = Box<dyn FnMut(u64) -> Result<(), pario_mpi::MpiError> + 'a>;
