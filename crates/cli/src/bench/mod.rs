//! `pario bench`: methods write and read workloads from the literature, every byte is verified, and
//! speeds are compared with those of plain POSIX calls in the same directory.

mod cold;
mod fitness;
mod layout;
pub(crate) mod method;
mod methods;
mod mpi;
pub(crate) mod options;
pub(crate) mod outcome;
mod plan;
mod ranking;
mod report;
mod row;
mod second_job;
mod session;
#[cfg(test)]
mod tests;
mod trial;
pub(crate) mod world;

use std::io::{self, Write};

use indicatif::ProgressBar;
use pario_driver::FileSystem;

use fitness::MethodFitness;
use method::Method;
use mpi::Mpi;
use options::{Format, Options, Target};
use ranking::{REPEATS_MIN, Repeats};
use row::{Comparison, Row};
use second_job::SecondJob;
use session::{Cache, Session};
use trial::Record;
use world::{Kind, World};

use crate::failure::Failure;
use crate::measure::capacity::Kept;
use crate::measure::{Samples, Scratch, print_doubts, progress_bar};
use crate::output::{self, check_directory};
use crate::workload::WORKLOADS;

/// The command line of `pario bench`.
#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    what: Option<Benchmark>,
    #[command(flatten)]
    options: Options,
}

#[derive(clap::Subcommand)]
enum Benchmark {
    /// Measure datatypes: memory, look-ups, packing and unpacking
    Layout,
    /// Measure planning: time and memory as ranks, aggregators and pieces grow
    Plan,
    /// Print which methods are chosen on which file systems for which access patterns
    Methods(methods::Arguments),
    /// Count the requests that each server of a striped file gets from each method, and their order
    ServerOrder(Box<crate::servers::Arguments>),
    /// Measure how fast the machine itself writes and reads one file, without MPI-IO
    Limits(crate::limits::Arguments),
    /// List the workloads and their parameters
    Workloads,
    /// Compare pario with the MPI-IO of every MPI on this machine
    Compare(Box<crate::compare::Arguments>),
    /// A rank of `compare`
    #[command(hide = true)]
    CompareWorker(Box<crate::compare::worker::Arguments>),
    /// Measure microseconds per call, with pario and with the MPI-IO of every MPI on this machine
    Latency(Box<crate::latency::Arguments>),
    /// A rank of `latency`
    #[command(hide = true)]
    LatencyWorker(Box<crate::latency::worker::Arguments>),
    /// Measure how costs per rank grow with ranks and nodes: processor time, messages, memory
    Scale(Box<crate::scale::Arguments>),
    /// One row of `scale`
    #[command(hide = true)]
    ScaleWorker(Box<crate::scale::worker::Arguments>),
    /// The second job of --beside: runs until its input ends
    #[command(hide = true)]
    SecondJob(second_job::Arguments),
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, out: &mut impl Write) -> Result<(), Failure> {
    match &arguments.what {
        Some(Benchmark::Layout) => layout::run(out),
        Some(Benchmark::Plan) => plan::run(out).map_err(Failure::Output),
        Some(Benchmark::Methods(arguments)) => {
            methods::run(arguments, out).map_err(Failure::Output)
        }
        Some(Benchmark::ServerOrder(arguments)) => crate::servers::run(arguments, out),
        Some(Benchmark::Limits(arguments)) => crate::limits::run(arguments, out),
        Some(Benchmark::Workloads) => list_workloads(out).map_err(Failure::Output),
        Some(Benchmark::Compare(arguments)) => crate::compare::run(arguments, out),
        Some(Benchmark::CompareWorker(arguments)) => crate::compare::worker::run(arguments, out),
        Some(Benchmark::Latency(arguments)) => crate::latency::run(arguments, out),
        Some(Benchmark::LatencyWorker(arguments)) => crate::latency::worker::run(arguments, out),
        Some(Benchmark::Scale(arguments)) => crate::scale::run(arguments, out),
        Some(Benchmark::ScaleWorker(arguments)) => crate::scale::worker::run(arguments, out),
        Some(Benchmark::SecondJob(arguments)) => second_job::run(arguments, out),
        None => measure(&arguments.options, out),
    }
}

fn list_workloads(out: &mut impl Write) -> io::Result<()> {
    for workload in WORKLOADS {
        writeln!(out, "{:<12}  {}", workload.name, workload.about)?;
        for (name, about) in workload.parameters {
            writeln!(out, "{:<12}    {name}: {about}", "")?;
        }
    }
    Ok(())
}

/// Measures with the requested ranks. Of an MPI's ranks, one prints and reports failures.
fn measure(options: &Options, out: &mut impl Write) -> Result<(), Failure> {
    if options.kind() != Kind::Mpi {
        let world = options.own_world().map_err(Failure::Arguments)?;
        return measure_in(&world, options, out);
    }
    let world = World::of_mpi(Mpi::start()?);
    let options = options.for_ranks(world.ranks()).map_err(Failure::Arguments);
    let leads = world.leads();
    let measured = match leads {
        true => options.and_then(|options| measure_in(&world, &options, out)),
        false => options.and_then(|options| measure_in(&world, &options, &mut io::sink())),
    };
    measured.map_err(|failure| match failure {
        // The command itself handles output that cannot be written.
        Failure::Output(error) if leads => Failure::Output(error),
        // Reported before the MPI ends: launchers end all ranks with the first one that fails.
        failure => {
            if leads {
                eprintln!("pario: {failure}");
            }
            Failure::Reported {
                code: failure.code(),
            }
        }
    })
}

fn measure_in(world: &World, options: &Options, out: &mut impl Write) -> Result<(), Failure> {
    let methods = options.methods().map_err(Failure::Arguments)?;
    let targets = options.targets().map_err(Failure::Arguments)?;
    world.lead(|| check_outputs(options, &targets))?;
    let scratch = world.scratch(options.dir.as_deref())?;
    world.lead(|| check_mounted(options, &scratch))?;
    if options.format() == Format::Table {
        world.lead(|| introduce(options, world, &scratch, out).map_err(Failure::Output))?;
    }
    let beside = world.lead(|| {
        let pause = options.beside;
        pause
            .map(|pause| SecondJob::start(scratch.path(), world.ranks(), pause))
            .transpose()
    })?;
    let beside = beside.flatten();
    let runs = u64::from(options.repeats().of_all() + 1) * (methods.len() + 1) as u64;
    let progress = match world.leads() {
        true => progress_bar(runs * targets.len() as u64),
        false => ProgressBar::hidden(),
    };
    let mut comparisons = Vec::new();
    for target in &targets {
        progress.set_message(target.workload.name);
        let comparison = compare(options, target, &methods, world, &scratch, &progress)?;
        if options.format() == Format::Table {
            world.lead(|| {
                let printed = progress.suspend(|| report::table(&comparison, out));
                printed.map_err(Failure::Output)
            })?;
        }
        comparisons.push(comparison);
    }
    progress.finish_and_clear();
    world
        .lead(|| finish(options, &comparisons, beside, out))
        .map(drop)
}

/// Fails if a requested output file cannot be written.
fn check_outputs(options: &Options, targets: &[Target]) -> Result<(), Failure> {
    options.json.check()?;
    let names: Vec<_> = targets.iter().map(report::plot_name).collect();
    let directory = options.svg.as_deref();
    directory.map_or(Ok(()), |directory| check_directory(directory, &names))
}

/// Fails if an option acts on files of the kernel and the directory has none.
fn check_mounted(options: &Options, scratch: &Scratch) -> Result<(), Failure> {
    let asked = [
        (options.cache() == Cache::Cold, "--cold"),
        (options.beside.is_some(), "--beside"),
    ];
    let asked = asked.iter().find(|(is_asked, _)| *is_asked);
    match asked.filter(|_| !scratch.is_mounted()) {
        None => Ok(()),
        Some((_, option)) => Err(Failure::Arguments(format!(
            "{option} needs a mounted directory, which {} is not",
            scratch.parent().display()
        ))),
    }
}

/// Prints what follows all measurements.
fn finish(
    options: &Options,
    comparisons: &[Comparison],
    beside: Option<SecondJob>,
    out: &mut impl Write,
) -> Result<(), Failure> {
    match options.format() {
        Format::Table => {
            let samples = comparisons.iter().flat_map(Comparison::samples);
            let mut doubts = samples.filter_map(Samples::doubt).peekable();
            let gap = if doubts.peek().is_some() { "\n" } else { "" };
            write!(out, "{gap}").and_then(|()| print_doubts(doubts, "--scale", out))
        }
        Format::Csv => report::csv(comparisons, out),
        Format::Json => output::json(&report::documents(comparisons), out),
    }
    .map_err(Failure::Output)?;
    if let Some(beside) = beside {
        let report = beside.stop()?;
        if options.format() == Format::Table {
            writeln!(out, "{report}").map_err(Failure::Output)?;
        }
    }
    options.json.save(&report::documents(comparisons))?;
    match &options.svg {
        None => Ok(()),
        Some(directory) => report::plots(comparisons, directory, out),
    }
}

/// Runs all methods on one job.
fn compare(
    options: &Options,
    target: &Target,
    methods: &[Method],
    world: &World,
    scratch: &Scratch,
    progress: &ProgressBar,
) -> Result<Comparison, Failure> {
    let job = target.job().map_err(Failure::Arguments)?;
    let is_own = |method: &Method| method.driver == method::MEMORY && world.kind() == Kind::Threads;
    let kept = match methods.iter().any(is_own) {
        true => Kept::InMemory,
        false => Kept::of(scratch),
    };
    let mut session = Session::new(&*job, world, scratch, kept, options)?;
    let raw = std::iter::once(Method::raw());
    let mut rows: Vec<_> = raw.chain(methods.iter().cloned()).map(Row::new).collect();
    let fitness = MethodFitness(pario::internal::plan_facts(
        scratch.facts(),
        world.nodes().to_vec(),
    ));
    session.find_unfit(&mut rows, &fitness);
    let all: Vec<_> = (0..rows.len()).collect();
    let mut round = 0;
    while round < options.repeats().of_all() {
        session.round(round, &mut rows, &all, Record::Whole, || progress.inc(1))?;
        round += 1;
    }
    // Every rank has the times of all, so all of them repeat the same methods.
    while round < options.repeats().of_fastest() {
        let fastest = ranking::unsettled(&rows);
        if fastest.is_empty() {
            break;
        }
        progress.inc_length(fastest.len() as u64);
        session.round(round, &mut rows, &fastest, Record::Whole, || {
            progress.inc(1)
        })?;
        round += 1;
    }
    // One more round finds the share of the time in which data moved.
    session.round(round, &mut rows, &all, Record::Transfers, || {
        progress.inc(1)
    })?;
    Ok(Comparison {
        target: target.clone(),
        sizes: job.sizes(),
        calls: job.calls(),
        bytes: session.bytes(),
        rows,
    })
}

fn introduce(
    options: &Options,
    world: &World,
    scratch: &Scratch,
    out: &mut impl Write,
) -> io::Result<()> {
    if let Some(about) = world.about() {
        writeln!(out, "{about}")?;
    }
    let nodes = world.nodes().iter().max().map_or(0, |node| node + 1);
    let nodes = match nodes {
        1 => String::new(),
        nodes if world.kind() == Kind::Mpi => format!(" on {nodes} nodes"),
        nodes => format!(" on {nodes} simulated nodes"),
    };
    let cache = match (options.cache(), &scratch.facts().file_system) {
        (Cache::Warm, _) => "",
        (Cache::Cold, FileSystem::Tmpfs) => "; tmpfs is itself the cache and cannot be cold",
        (Cache::Cold, _) => ", read with a cold cache",
    };
    let repeats = match options.repeats() {
        Repeats::Exactly(repeats) => repeats.to_string(),
        Repeats::UntilRanked => format!("{REPEATS_MIN} or more"),
    };
    writeln!(
        out,
        "{} ranks ({}){nodes} in {} ({}), from open to close, best of {repeats}{cache}",
        world.ranks(),
        world.kind().name(),
        scratch.parent().display(),
        scratch.facts().file_system,
    )?;
    writeln!(
        out,
        "raw POSIX: one contiguous share per rank; I/O: share of the time in which data moved \
         between memory and file"
    )
}
