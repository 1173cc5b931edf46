//! Measures one row in a process of its own, and prints it as one line of JSON.

use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use pario::{File, Info, Mode, Overlap, Source, Target, View};
use pario_transport::{Traffic, Transport};
use pario_types::Direction;

use super::meter::Meter;
use super::options::{self, Size};
use super::row::{Repeat, Row};
use crate::bench::method::Method;
use crate::bench::outcome::{Outcome, Stop};
use crate::bench::world::{Kind, World};
use crate::failure::Failure;
use crate::measure::allocations::Allocations;
use crate::measure::resident::ResidentPeak;
use crate::measure::{DIRECTIONS, Holes, Memory, Stored};
use crate::workload::{Job, Step};

/// The options of the process.
#[derive(clap::Args)]
#[group(skip)]
pub(crate) struct Arguments {
    #[command(flatten)]
    options: options::Arguments,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, out: &mut impl Write) -> Result<(), Failure> {
    let options = &arguments.options;
    for size in options.sizes()? {
        let row = measure(options, size)?;
        serde_json::to_writer(&mut *out, &row)
            .map_err(Into::into)
            .and_then(|()| writeln!(out))
            .map_err(Failure::Output)?;
    }
    Ok(())
}

fn measure(options: &options::Arguments, size: Size) -> Result<Row, Failure> {
    let (method, job) = (options.method()?, options.job(size.ranks)?);
    let world = World::new(Kind::Threads, size.ranks, size.nodes).map_err(Failure::Arguments)?;
    let path = options.dir.clone().unwrap_or_else(std::env::temp_dir);
    let run = Run {
        job: &*job,
        method: &method,
        path: path.join("data"),
        rounds: u64::from(options.repeats) + 1,
        meter: Mutex::new(Meter::new()),
        resident: OnceLock::new(),
        traffic: Default::default(),
        overlap: Default::default(),
    };
    Allocations::start();
    let ran = world.run(|comm| run.rank(&comm));
    ran.map_err(|stop| run.failure(stop))?;
    let stored = run.check_stored(size.ranks)?;
    Ok(run.row(size, stored))
}

/// What the ranks share.
struct Run<'a> {
    job: &'a dyn Job,
    method: &'a Method,
    path: PathBuf,
    /// The first is not counted.
    rounds: u64,
    meter: Mutex<Meter>,
    resident: OnceLock<ResidentPeak>,
    /// What the ranks sent in this repeat.
    traffic: [AtomicU64; 4],
    /// What they exchanged, and how much of it during file transfers.
    overlap: [AtomicU64; 2],
}

impl Run<'_> {
    /// One rank's part: all repeats on one open file.
    fn rank(&self, comm: &Arc<dyn Transport>) -> Result<Outcome, Stop> {
        let failed = |error: &dyn std::fmt::Display| Stop::Failed(error.to_string());
        let mut memory = Memory::new(self.job, comm.rank().0, 0).map_err(|error| failed(&error))?;
        memory.allocate().map_err(|error| failed(&error))?;
        self.alone(comm, || {
            let started = ResidentPeak::start().map_err(|error| failed(&error))?;
            self.resident.get_or_init(|| started);
            Ok(())
        })?;
        let info = Info::from_pairs(
            self.method
                .hints
                .iter()
                .map(|(k, v)| (k.as_str(), v.as_str())),
        );
        let info = info.map_err(|error| failed(&error))?;
        let name = format!("{}:{}", self.method.driver, self.path.display());
        let file = File::open(comm, name, Mode::CREATE | Mode::READ_WRITE, &info)?;
        for round in 0..self.rounds {
            memory.fill(self.job, round);
            for direction in DIRECTIONS {
                if direction == Direction::Read {
                    memory.clear();
                }
                self.repeat(comm, &file, &mut memory, direction, round)?;
            }
            let checked = memory.check(self.job, round);
            checked.map_err(|fault| Stop::Wrong(fault.to_string()))?;
        }
        self.alone(comm, || {
            let growth = self.resident.get().map(ResidentPeak::growth);
            self.meter().memory_bytes = growth.unwrap_or(0);
            Ok(())
        })?;
        file.close()?;
        Ok(Outcome::default())
    }

    /// All calls of the job in one direction.
    fn repeat(
        &self,
        comm: &Arc<dyn Transport>,
        file: &File,
        memory: &mut Memory,
        direction: Direction,
        round: u64,
    ) -> Result<(), Stop> {
        self.alone(comm, || {
            self.meter().start(self.sampling());
            Ok(())
        })?;
        let before = comm.traffic();
        for (step, buffer) in memory.steps.iter().zip(&mut memory.buffers) {
            call(file, step, buffer.bytes_mut(), direction)?;
        }
        self.count(before, comm.traffic());
        self.count_overlap(file.overlap_last_all());
        self.alone(comm, || {
            let mut repeat = self.meter().stop(self.sampling());
            self.take_traffic(&mut repeat);
            if round > 0 {
                let plan = file.explain_last_all();
                self.meter().keep(direction, repeat, plan);
            }
            Ok(())
        })
    }

    /// Lets one rank do something while the others wait.
    fn alone(
        &self,
        comm: &Arc<dyn Transport>,
        work: impl FnOnce() -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        comm.barrier().map_err(pario::Error::from)?;
        if comm.rank().0 == 0 {
            work()?;
        }
        Ok(comm.barrier().map_err(pario::Error::from)?)
    }

    fn meter(&self) -> MutexGuard<'_, Meter> {
        self.meter.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Processor time of sampling.
    fn sampling(&self) -> Duration {
        self.resident
            .get()
            .map_or(Duration::ZERO, ResidentPeak::cpu)
    }

    /// Adds what a rank sent.
    fn count(&self, before: Traffic, after: Traffic) {
        for ((sum, after), before) in self.traffic.iter().zip(counts(after)).zip(counts(before)) {
            sum.fetch_add(after - before, Ordering::Relaxed);
        }
    }

    fn count_overlap(&self, overlap: Overlap) {
        let [exchanged, during_transfers] = &self.overlap;
        exchanged.fetch_add(overlap.exchanged, Ordering::Relaxed);
        during_transfers.fetch_add(overlap.during_transfers, Ordering::Relaxed);
    }

    fn take_traffic(&self, repeat: &mut Repeat) {
        [repeat.exchanged_bytes, repeat.overlapped_bytes] = self
            .overlap
            .each_ref()
            .map(|it| it.swap(0, Ordering::Relaxed));
        [
            repeat.messages_between_nodes,
            repeat.bytes_between_nodes,
            repeat.messages_within_node,
            repeat.bytes_within_node,
        ] = self
            .traffic
            .each_ref()
            .map(|it| it.swap(0, Ordering::Relaxed));
    }

    /// Compares the file with what the last repeat wrote, and returns its bytes.
    fn check_stored(&self, ranks: u32) -> Result<u64, Failure> {
        let mut stored = Stored::new(self.job, ranks, Holes::Zero);
        // No other program can read the files of the driver `mem`; every rank has read its own
        // data back.
        let fault = match self.method.driver.as_str() {
            "mem" => None,
            _ => stored.check(&self.path, self.rounds - 1)?,
        };
        match fault {
            None => Ok(stored.bytes),
            Some(fault) => Err(self.failure(Stop::Wrong(fault.to_string()))),
        }
    }

    fn failure(&self, stop: Stop) -> Failure {
        let method = self.method.name.clone();
        match stop {
            Stop::Wrong(fault) => Failure::Wrong { method, fault },
            Stop::Unavailable(reason) | Stop::Lost(reason) | Stop::Failed(reason) => {
                Failure::Method { method, reason }
            }
        }
    }

    fn row(&self, size: Size, bytes: u64) -> Row {
        let meter = self.meter();
        Row {
            ranks: size.ranks,
            nodes: size.nodes,
            bytes,
            memory_bytes: meter.memory_bytes,
            write: meter.write.clone(),
            read: meter.read.clone(),
        }
    }
}

fn counts(traffic: Traffic) -> [u64; 4] {
    [
        traffic.messages_between_nodes,
        traffic.bytes_between_nodes,
        traffic.messages_within_node,
        traffic.bytes_within_node,
    ]
}

/// One collective call, in its view.
fn call(file: &File, step: &Step, buffer: &mut [u8], direction: Direction) -> Result<(), Stop> {
    if step.sets_view {
        file.set_view(&View::new(step.displacement, &step.etype, &step.filetype))?;
    }
    let status = match direction {
        Direction::Write => {
            let source = Source::typed(buffer, step.count, &step.memory)?;
            file.write_at_all(step.offset, source)?
        }
        Direction::Read => {
            let target = Target::typed(buffer, step.count, &step.memory)?;
            file.read_at_all(step.offset, target)?
        }
    };
    match status.bytes() == step.bytes() {
        true => Ok(()),
        false => Err(Stop::Wrong(format!(
            "a rank moved {} of {} bytes",
            status.bytes(),
            step.bytes()
        ))),
    }
}
