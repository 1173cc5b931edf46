//! `pario explain`: how a collective call would be carried out, and why not otherwise.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use pario_plan::{Access, Case, Explanation, Facts, History, Tuning, picture};

use crate::bench::options::{Subject, Target};
use crate::facts;
use crate::failure::Failure;

/// Which call to explain.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    subject: Subject,
    /// Which way the data goes
    #[arg(long, value_enum, default_value_t = Way::Both)]
    direction: Way,
    /// Which call of the workload, from 0 on
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    call: u64,
    /// Take the file system's facts from this folder [default: a local file system; hints named
    /// pario_mimic_… stand for others]
    #[arg(long, value_name = "FOLDER")]
    dir: Option<PathBuf>,
    /// Draw which rank's bytes go to which aggregator in which round, into SVG files in this
    /// folder
    #[arg(long, value_name = "FOLDER")]
    svg: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Way {
    Write,
    Read,
    Both,
}

impl Way {
    fn directions(self) -> &'static [pario_plan::Direction] {
        use pario_plan::Direction::{Read, Write};
        match self {
            Way::Write => &[Write],
            Way::Read => &[Read],
            Way::Both => &[Write, Read],
        }
    }
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, out: &mut impl Write) -> Result<(), Failure> {
    let subject = &arguments.subject;
    let (hints, warnings) = facts::hints(subject.hints()).map_err(Failure::Arguments)?;
    if let Some(warning) = warnings.first() {
        return Err(Failure::Arguments(warning.clone()));
    }
    let nodes = subject.nodes().map_err(Failure::Arguments)?;
    let facts = match &arguments.dir {
        None => Facts {
            nodes: nodes.clone(),
            ..Facts::one_node(nodes.len())
        },
        Some(folder) => facts::of_folder(folder, &nodes)?,
    };
    let facts = facts.mimicking(&hints);
    for target in subject.targets().map_err(Failure::Arguments)? {
        let (sizes, accesses) = accesses(&target, arguments.call).map_err(Failure::Arguments)?;
        let name = target.workload.name();
        for direction in arguments.direction.directions() {
            let tuning = Tuning::from_hints(&hints, *direction);
            let history = History::default();
            let case = Case::new(*direction, &accesses, &facts, &tuning, &history);
            let explanation = Explanation::of(&case);
            let call = arguments.call;
            writeln!(out, "{name}, call {call}: {sizes}\n{explanation}\n")
                .map_err(Failure::Output)?;
            if let Some(folder) = &arguments.svg {
                let way = format!("{direction:?}").to_lowercase();
                let path = folder.join(format!("{name}-{call}-{way}.svg"));
                draw(&path, &picture::svg(&case, explanation.plan()), out)?;
            }
        }
    }
    Ok(())
}

/// Writes a picture, and says where.
fn draw(path: &Path, picture: &str, out: &mut impl Write) -> Result<(), Failure> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)
        .and_then(|()| fs::write(path, picture))
        .map_err(|source| Failure::Storage {
            action: "write",
            path: path.to_owned(),
            source,
        })?;
    writeln!(out, "drawn: {}", path.display()).map_err(Failure::Output)
}

/// What the ranks of a workload move in a call.
fn accesses(target: &Target, call: u64) -> Result<(String, Vec<Access>), String> {
    let job = target.job()?;
    let calls = job.calls();
    if call >= calls {
        let name = target.workload.name();
        return Err(format!(
            "{name} has {calls} calls, so there is no call {call}"
        ));
    }
    let access = |rank| {
        let step = job.step(rank, call).map_err(|error| error.to_string())?;
        let layout = step.filetype.layout().clone();
        Access::new(step.displacement, layout, 0, step.bytes())
            .ok_or_else(|| format!("rank {rank} reaches past the last byte of any file"))
    };
    let accesses = (0..target.setting.ranks)
        .map(access)
        .collect::<Result<_, _>>()?;
    Ok((job.sizes(), accesses))
}
