//! `pario bench`: methods write and read the workloads of the papers, every byte is checked, and
//! speeds stand next to those of plain POSIX calls in the same folder.

mod beside;
pub(crate) mod buffer;
mod cold;
pub(crate) mod content;
mod fitness;
pub(crate) mod folder;
mod layout;
mod memory;
mod method;
mod mpi;
pub(crate) mod options;
mod outcome;
mod plan;
pub(crate) mod report;
mod room;
mod row;
mod session;
mod share;
mod stored;
#[cfg(test)]
mod tests;
pub(crate) mod timing;
mod trial;
mod world;
pub(crate) mod wrong;

use std::io::{self, Write};

use indicatif::{ProgressBar, ProgressStyle};
use pario_driver::FileSystem;

use beside::Beside;
use fitness::Fitness;
use folder::Folder;
use method::Method;
use mpi::Mpi;
use options::{Format, Options, Target};
use room::Kept;
use row::{Comparison, Row};
use session::{Cache, Session};
use world::{Kind, World};

use crate::failure::Failure;
use crate::workload::WORKLOADS;

/// What to measure.
#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    what: Option<What>,
    #[command(flatten)]
    options: Options,
}

#[derive(clap::Subcommand)]
enum What {
    /// Measure datatypes instead: memory, look-ups, packing and unpacking
    Layout,
    /// Measure plans instead: time and memory as ranks, aggregators and pieces grow
    Plan,
    /// Measure what the machine itself does with one file instead: the most that can be reached
    Limits(crate::limits::Arguments),
    /// List the workloads and what can be chosen about each
    Workloads,
    /// Compare pario with the MPI-IO of every MPI of this machine instead, in MPI processes
    Compare(Box<crate::compare::Arguments>),
    /// A rank of `compare`
    #[command(hide = true)]
    CompareWorker(Box<crate::compare::worker::Arguments>),
    /// Measure how long each call takes instead, beside the MPI-IO of every MPI of this machine
    Latency(Box<crate::latency::Arguments>),
    /// A rank of `latency`
    #[command(hide = true)]
    LatencyWorker(Box<crate::latency::worker::Arguments>),
    /// The second job of --beside: runs until its input ends
    #[command(hide = true)]
    Beside(beside::Arguments),
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, out: &mut impl Write) -> Result<(), Failure> {
    match &arguments.what {
        Some(What::Layout) => layout::run(out).map_err(Failure::Output),
        Some(What::Plan) => plan::run(out).map_err(Failure::Output),
        Some(What::Limits(arguments)) => crate::limits::run(arguments, out),
        Some(What::Workloads) => list_workloads(out).map_err(Failure::Output),
        Some(What::Compare(arguments)) => crate::compare::run(arguments, out),
        Some(What::CompareWorker(arguments)) => crate::compare::worker::run(arguments, out),
        Some(What::Latency(arguments)) => crate::latency::run(arguments, out),
        Some(What::LatencyWorker(arguments)) => crate::latency::worker::run(arguments, out),
        Some(What::Beside(arguments)) => beside::run(arguments, out),
        None => compare(&arguments.options, out),
    }
}

fn list_workloads(out: &mut impl Write) -> io::Result<()> {
    for workload in WORKLOADS {
        writeln!(out, "{:<12}  {}", workload.name(), workload.about())?;
        for parameter in workload.parameters() {
            writeln!(out, "{:<12}    {}: {}", "", parameter.name, parameter.about)?;
        }
    }
    Ok(())
}

/// Measures with the ranks that are asked for. Of an MPI's ranks one prints, and tells what failed.
fn compare(options: &Options, out: &mut impl Write) -> Result<(), Failure> {
    if options.kind() != Kind::Mpi {
        let world = options.own_world().map_err(Failure::Arguments)?;
        return compare_in(&world, options, out);
    }
    let world = World::of_mpi(Mpi::start()?);
    let options = options.for_ranks(world.ranks()).map_err(Failure::Arguments);
    let leads = world.leads();
    let compared = match leads {
        true => options.and_then(|options| compare_in(&world, &options, out)),
        false => options.and_then(|options| compare_in(&world, &options, &mut io::sink())),
    };
    compared.map_err(|failure| match failure {
        // What becomes of our output is for the command to say.
        Failure::Output(error) if leads => Failure::Output(error),
        // Said before the MPI ends: launchers end all ranks with the first one that fails.
        failure => {
            if leads {
                eprintln!("pario: {failure}");
            }
            Failure::Told {
                code: failure.code(),
            }
        }
    })
}

fn compare_in(world: &World, options: &Options, out: &mut impl Write) -> Result<(), Failure> {
    let methods = options.methods().map_err(Failure::Arguments)?;
    let targets = options.targets().map_err(Failure::Arguments)?;
    let folder = Folder::shared(options.dir.as_deref(), world)?;
    if options.format() == Format::Table {
        world.lead(|| introduce(options, world, &folder, out).map_err(Failure::Output))?;
    }
    let beside = world.lead(|| {
        let pause = options.beside;
        pause
            .map(|pause| Beside::start(folder.path(), world.ranks(), pause))
            .transpose()
    })?;
    let beside = beside.flatten();
    let runs = u64::from(options.repeat() + 1) * (methods.len() + 1) as u64;
    let progress = match world.leads() {
        true => progress_bar(runs * targets.len() as u64),
        false => ProgressBar::hidden(),
    };
    let mut comparisons = Vec::new();
    for target in &targets {
        progress.set_message(target.workload.name());
        let comparison = measure(options, target, &methods, world, &folder, &progress)?;
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

/// What comes after all measurements.
fn finish(
    options: &Options,
    comparisons: &[Comparison],
    beside: Option<Beside>,
    out: &mut impl Write,
) -> Result<(), Failure> {
    match options.format() {
        Format::Table => report::advice(comparisons, out),
        Format::Csv => report::csv(comparisons, out),
        Format::Json => report::json(comparisons, out),
    }
    .map_err(Failure::Output)?;
    if let Some(beside) = beside {
        let said = beside.stop()?;
        if options.format() == Format::Table {
            writeln!(out, "{said}").map_err(Failure::Output)?;
        }
    }
    match &options.svg {
        None => Ok(()),
        Some(folder) => report::svg(comparisons, folder, out),
    }
}

/// Runs all methods on one job.
fn measure(
    options: &Options,
    target: &Target,
    methods: &[Method],
    world: &World,
    folder: &Folder,
    progress: &ProgressBar,
) -> Result<Comparison, Failure> {
    let name = target.workload.name();
    let job = target.job().map_err(Failure::Arguments)?;
    let kept = Kept::of(folder, methods, world);
    let mut session = Session::new(&*job, world, folder.path(), kept, options)?;
    let raw = std::iter::once(Method::raw());
    let mut rows: Vec<_> = raw.chain(methods.iter().cloned()).map(Row::new).collect();
    let fitness = Fitness(pario::plan_facts(folder.facts(), world.nodes().to_vec()));
    session.find_unfit(&mut rows, &fitness);
    for round in 0..u64::from(options.repeat()) {
        session.round(round, &mut rows, || progress.inc(1))?;
    }
    session.phases(u64::from(options.repeat()), &mut rows, || progress.inc(1))?;
    Ok(Comparison {
        workload: name,
        choices: target.choices.clone(),
        swept: target.swept.clone(),
        sizes: job.sizes(),
        ranks: world.ranks(),
        calls: job.calls(),
        bytes: session.bytes(),
        rows,
    })
}

/// How far the runs are.
pub(crate) fn progress_bar(length: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{msg:>12} {wide_bar} {pos}/{len} {eta}");
    ProgressBar::new(length)
        .with_style(style.expect("the template is made of indicatif's own keys"))
}

fn introduce(
    options: &Options,
    world: &World,
    folder: &Folder,
    out: &mut impl Write,
) -> io::Result<()> {
    if let Some(about) = world.about() {
        writeln!(out, "{about}")?;
    }
    let nodes = world.nodes().iter().max().map_or(0, |node| node + 1);
    let nodes = match nodes {
        1 => String::new(),
        nodes if world.kind() == Kind::Mpi => format!(" on {nodes} nodes"),
        nodes => format!(" on {nodes} pretended nodes"),
    };
    let cache = match (options.cache(), &folder.facts().file_system) {
        (Cache::Warm, _) => "",
        (Cache::Cold, FileSystem::Tmpfs) => "; this file system is the cache and cannot be cold",
        (Cache::Cold, _) => ", read with a cold cache",
    };
    writeln!(
        out,
        "{} ranks ({}){nodes} in {} ({}), from open to close, best of {}{cache}",
        world.ranks(),
        world.kind().name(),
        folder.parent().display(),
        folder.facts().file_system,
        options.repeat(),
    )?;
    writeln!(
        out,
        "raw POSIX: one contiguous share a rank; I/O: share of the time in which data moved \
         between memory and file"
    )
}
