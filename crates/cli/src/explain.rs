//! `pario explain`: how a collective call would be carried out, and why.

use std::io::Write;
use std::path::PathBuf;

use pario::internal::{MachineProfile, rewriting};
use pario_driver::FileSystem;
use pario_hints::{Hints, Source};
use pario_plan::{Access, Case, Client, Explanation, Facts, History, Rewriting, Tuning, picture};

use crate::bench::options::{Subject, Target};
use crate::facts;
use crate::failure::Failure;
use crate::measure::{DIRECTIONS, Direction};
use crate::output::{check_directory, save};

/// The options of `pario explain`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    subject: Subject,
    /// Writes, reads or both
    #[arg(long, value_enum, default_value_t = Directions::Both)]
    direction: Directions,
    /// Number of the call in the workload, from 0
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    call: u64,
    /// Directory whose file system to plan for [default: a local file system; hints named
    /// pario_assume_… simulate others]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Plot which rank's bytes go to which aggregator in which round, as SVG files in this
    /// directory
    #[arg(long, value_name = "DIR")]
    svg: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Directions {
    Write,
    Read,
    Both,
}

impl Directions {
    fn all(self) -> &'static [Direction] {
        match self {
            Directions::Write => &[Direction::Write],
            Directions::Read => &[Direction::Read],
            Directions::Both => &DIRECTIONS,
        }
    }
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, out: &mut impl Write) -> Result<(), Failure> {
    let subject = &arguments.subject;
    let (mut hints, warnings) = facts::hints(subject.hints()).map_err(Failure::Arguments)?;
    if let Some(warning) = warnings.first() {
        return Err(Failure::Arguments(warning.clone()));
    }
    let profile = MachineProfile::of_node();
    profile.set(&mut hints);
    let nodes = subject.nodes().map_err(Failure::Arguments)?;
    let (facts, file_system) = match &arguments.dir {
        None => {
            let facts = Facts {
                nodes: nodes.clone(),
                ..Facts::one_node(nodes.len())
            };
            (facts, FileSystem::Ext)
        }
        Some(directory) => facts::of_directory(directory, &nodes)?,
    };
    let is_local = facts.client == Client::Local;
    let facts = facts.with_assumptions(&hints);
    // A client of servers may be assumed in its place.
    let file_system = match is_local && facts.client != Client::Local {
        true => FileSystem::Other("assumed".to_owned()),
        false => file_system,
    };
    let gaps = rewriting(&hints, &file_system, facts.node_count());
    let directory = arguments.svg.as_deref();
    directory.map_or(Ok(()), |directory| check_directory(directory, &[]))?;
    let call = arguments.call;
    for target in subject.targets().map_err(Failure::Arguments)? {
        let (sizes, accesses) = accesses(&target, call).map_err(Failure::Arguments)?;
        let name = target.workload.name;
        for direction in arguments.direction.all() {
            let mut tuning = Tuning::from_hints(&hints, *direction);
            let mut circumstances = machine(&hints, &profile);
            if *direction == Direction::Write {
                tuning.rewriting = gaps;
                circumstances += &format!("\n{}", treatment(gaps, &hints, &file_system));
            }
            let history = History::default();
            let case = Case::new(*direction, &accesses, &facts, &tuning, &history);
            let explanation = Explanation::of(&case);
            writeln!(
                out,
                "{name}, call {call}: {sizes}\n{circumstances}\n{explanation}\n"
            )
            .map_err(Failure::Output)?;
            if let Some(directory) = &arguments.svg {
                let path = directory.join(format!("{name}-{call}-{}.svg", direction.name()));
                save(&path, picture::svg(&case, explanation.plan()).as_bytes())?;
                writeln!(out, "plot: {}", path.display()).map_err(Failure::Output)?;
            }
        }
    }
    Ok(())
}

/// What the plan depends on that depends on the processor.
fn machine(hints: &Hints, profile: &MachineProfile) -> String {
    let source = |name: &str| facts::source(hints, name);
    let measured = match hints.source("pario_call_bytes") {
        Some(Source::Measured) => format!(": {}", profile.calls()),
        _ => String::new(),
    };
    let window = match hints.pario_slice_bytes {
        Some(bytes) => format!(
            "{bytes} bytes (pario_slice_bytes, {})",
            source("pario_slice_bytes")
        ),
        None => format!(
            "{} bytes stay in a core's cache (pario_cache_bytes, {})",
            hints.cached_window_bytes(),
            source("pario_cache_bytes")
        ),
    };
    format!(
        "machine: a call counts as much as copying {} bytes (pario_call_bytes, {}{measured}); windows of {window}",
        hints.call_bytes(),
        source("pario_call_bytes"),
    )
}

/// What is done with the gaps between pieces that are written.
fn treatment(gaps: Rewriting, hints: &Hints, file_system: &FileSystem) -> String {
    let rewritten = match gaps {
        Rewriting::Allowed => "rewritten along with the pieces, under locks",
        Rewriting::WithLease => {
            "rewritten along with the pieces if the kernel grants a lease, that is, if nobody else \
             has the file open"
        }
        Rewriting::Forbidden => "not written",
    };
    let stored = match file_system.refuses_stores() {
        true => format!(
            "; pieces that are written by themselves are stored through a mapping {}",
            facts::stored_pieces(hints)
        ),
        false => String::new(),
    };
    format!(
        "gaps: {rewritten} (pario_rmw, {}; file open for reading and writing){stored}",
        facts::source(hints, "pario_rmw")
    )
}

/// The accesses of all ranks in a call of a workload.
fn accesses(target: &Target, call: u64) -> Result<(String, Vec<Access>), String> {
    let job = target.job()?;
    let calls = job.calls();
    if call >= calls {
        let name = target.workload.name;
        return Err(format!(
            "{name} has only {calls} calls: there is no call {call}"
        ));
    }
    let access = |rank| {
        let step = job.step(rank, call).map_err(|error| error.to_string())?;
        step.access()
            .ok_or_else(|| format!("rank {rank} reaches beyond the largest file offset"))
    };
    let accesses = (0..target.setting.ranks)
        .map(access)
        .collect::<Result<_, _>>()?;
    Ok((job.sizes(), accesses))
}
