//! `pario bench compare`: access patterns from the literature through the C interface of every MPI
//! on this machine, with the MPI's own MPI-IO and with pario.

pub(crate) mod contest;
pub(crate) mod figures;
pub(crate) mod launch;
pub(crate) mod mpis;
pub(crate) mod options;
mod page;
mod patterns;
pub(crate) mod protocol;
pub(crate) mod rank;
mod report;
pub(crate) mod worker;

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use indicatif::ProgressBar;

use crate::failure::Failure;
use crate::machine::Machine;
use crate::measure::capacity::{Kept, file_space};
use crate::measure::{DIRECTIONS, Memory, Need, Scratch, interleave};
use crate::output::{self, check_file, save};
use crate::workload;
use contest::Contest;
use figures::{Contender, Section, Side};
use launch::Launch;
use mpis::Mpi;
use options::Options;
use patterns::Pattern;
use protocol::Line;
use report::Document;

/// The largest factor on the data for which counts still fit the C interface.
const SCALE_MAX: f64 = 32.0;

/// Which calls move the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Mode {
    /// Collective calls
    Coll,
    /// Independent calls
    Indep,
}

impl Mode {
    /// Its name on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Mode::Coll => "coll",
            Mode::Indep => "indep",
        }
    }

    pub(crate) fn words(self) -> &'static str {
        match self {
            Mode::Coll => "collective calls",
            Mode::Indep => "independent calls",
        }
    }
}

/// The options of `pario bench compare`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Access patterns, as in tile,small, or ior for all of IOR's; may be repeated [default: all, with three of IOR's]
    #[arg(long, short, value_name = "LIST")]
    workload: Vec<String>,
    /// Kinds of calls
    #[arg(long, value_enum, value_delimiter = ',', default_value = "coll")]
    mode: Vec<Mode>,
    /// Factor on the data per rank, which is 64 MB for most patterns at 1
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = parse_scale)]
    scale: f64,
    /// Directory for the files; may be repeated [default: the system's temporary directory]
    #[arg(long, value_name = "DIR")]
    dir: Vec<PathBuf>,
    /// A hint for every contender; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = crate::facts::parse_hint)]
    hint: Vec<(String, String)>,
    /// Write an HTML page with tables and plots to this file
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    options: Options,
}

fn parse_scale(text: &str) -> Result<f64, String> {
    workload::parse_scale(text, SCALE_MAX)
}

/// Everything that was measured.
pub(crate) struct Comparison {
    machine: Machine,
    command: String,
    scale: f64,
    repeats: u32,
    mpis: Vec<Mpi>,
    patterns: Vec<&'static Pattern>,
    sections: Vec<Section>,
    /// Launchers that could not be used.
    notes: Vec<String>,
    /// Wrong bytes and runs that failed, each once.
    faults: Vec<String>,
}

impl Comparison {
    fn repeats_in_words(&self) -> String {
        options::runs(self.repeats)
    }

    /// The number of doubtful figures, and what to do.
    fn doubts(&self) -> Option<String> {
        let samples = || self.sections.iter().flat_map(Section::samples);
        let doubtful = samples().filter(|it| it.doubt().is_some()).count();
        (doubtful > 0).then(|| {
            format!(
                "{doubtful} of {} figures are doubtful: their repeats differ widely or are very \
                 short; use an idle machine, or raise --repeats or --scale",
                samples().count()
            )
        })
    }
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, out: &mut impl Write) -> Result<(), Failure> {
    let library = arguments.options.library()?;
    let patterns = patterns::named(&arguments.workload).map_err(Failure::Arguments)?;
    arguments.output.as_deref().map_or(Ok(()), check_file)?;
    arguments.options.json.check()?;
    let directories = arguments.directories()?;
    arguments.check_capacity(&patterns, &directories)?;
    let found = arguments.options.mpis()?;
    let mut comparison = Comparison {
        machine: Machine::this(),
        command: command_line(),
        scale: arguments.scale,
        repeats: arguments.options.repeats,
        mpis: found.mpis,
        patterns,
        sections: Vec::new(),
        notes: found.notes,
        faults: Vec::new(),
    };
    match arguments.options.json.is_printed() {
        true => {
            measure(
                arguments,
                &library,
                &directories,
                &mut comparison,
                &mut io::sink(),
            )?;
            output::json(&Document::from(&comparison), out).map_err(Failure::Output)?;
        }
        false => measure(arguments, &library, &directories, &mut comparison, out)?,
    }
    if let Some(path) = &arguments.output {
        save(path, page::page(&comparison).as_bytes())?;
    }
    arguments.options.json.save(&Document::from(&comparison))?;
    match comparison.faults.len() {
        0 => Ok(()),
        count => Err(Failure::Faults { count }),
    }
}

/// Measures every section and prints it.
fn measure(
    arguments: &Arguments,
    library: &Path,
    directories: &[Scratch],
    comparison: &mut Comparison,
    out: &mut impl Write,
) -> Result<(), Failure> {
    introduce(comparison, out).map_err(Failure::Output)?;
    for directory in directories {
        for &mode in &arguments.mode {
            for &ranks in &arguments.options.ranks {
                let case = Case {
                    arguments,
                    library,
                    directory,
                    mode,
                    ranks,
                };
                let section = case.measure(comparison);
                report::section(comparison, &section, out).map_err(Failure::Output)?;
                comparison.sections.push(section);
            }
        }
    }
    report::end(comparison, out).map_err(Failure::Output)
}

/// The command as it was typed, without the path of the program.
fn command_line() -> String {
    let words: Vec<_> = std::env::args().skip(1).collect();
    format!("pario {}", words.join(" "))
}

fn introduce(comparison: &Comparison, out: &mut impl Write) -> io::Result<()> {
    for (name, value) in &comparison.machine.facts {
        writeln!(out, "{name}: {value}")?;
    }
    for mpi in &comparison.mpis {
        let (library, launcher) = (&mpi.described.library, mpi.launcher.display());
        writeln!(out, "{}: {library}, started by {launcher}", mpi.name)?;
    }
    out.flush()
}

impl Arguments {
    /// A scratch directory in each directory that is measured.
    fn directories(&self) -> Result<Vec<Scratch>, Failure> {
        match self.dir.is_empty() {
            true => Ok(vec![Scratch::new(None)?]),
            false => self.dir.iter().map(|it| Scratch::new(Some(it))).collect(),
        }
    }

    /// Fails unless memory and directories suffice for every pattern. The need of all ranks on this
    /// machine is estimated from the first and the last rank: in some patterns only the first ones
    /// have data.
    fn check_capacity(
        &self,
        patterns: &[&Pattern],
        directories: &[Scratch],
    ) -> Result<(), Failure> {
        let cases = patterns
            .iter()
            .flat_map(|it| self.options.ranks.iter().map(move |n| (it, *n)));
        for (pattern, ranks) in cases {
            let job = pattern.job(ranks, self.scale).map_err(Failure::Arguments)?;
            let first = Memory::new(&*job, 0, 0)?;
            let last = [Memory::new(&*job, ranks - 1, 0)?];
            let all = |bytes: fn(&Memory) -> u64| {
                (bytes(&first) + bytes(&last[0])).saturating_mul(u64::from(ranks)) / 2
            };
            for directory in directories {
                let need = Need {
                    memory: all(Memory::footprint),
                    files: all(Memory::bytes).max(file_space(&last)),
                    kept: Kept::of(directory),
                    size_option: "--scale",
                };
                need.check(directory.path())?;
            }
        }
        Ok(())
    }
}

/// One section to be measured.
struct Case<'a> {
    arguments: &'a Arguments,
    library: &'a Path,
    directory: &'a Scratch,
    mode: Mode,
    ranks: u32,
}

impl Case<'_> {
    /// Runs all contenders, interleaved.
    fn measure(&self, comparison: &mut Comparison) -> Section {
        let place = (
            self.directory.parent().display().to_string(),
            self.directory.facts().file_system.to_string(),
        );
        let mpis = comparison.mpis.len();
        let patterns = comparison.patterns.iter().map(|it| it.name);
        let mut section = Section::new(place, self.ranks, self.mode, patterns, mpis);
        let contenders: Vec<_> = Contender::all(mpis).collect();
        let (repeats, figures) = (self.arguments.options.repeats, section.rows.len());
        interleave(
            repeats,
            contenders.len(),
            figures,
            |place, repeat, progress| {
                let contender = contenders[place];
                let name = full_name(&comparison.mpis[contender.mpi], contender.side);
                progress.set_message(format!("{} ranks, {name}", self.ranks));
                self.run(contender, repeat, comparison, &mut section, progress);
            },
        );
        section
    }

    /// One run of one contender.
    fn run(
        &self,
        contender: Contender,
        repeat: u32,
        comparison: &mut Comparison,
        section: &mut Section,
        progress: &ProgressBar,
    ) {
        let mpi = &comparison.mpis[contender.mpi];
        let context = format!("{}: {}", section.title(), full_name(mpi, contender.side));
        let launch = Launch {
            launcher: &mpi.launcher,
            ranks: self.ranks,
            worker: worker::NAME,
            arguments: self.worker_arguments(mpi, contender.side, repeat),
            time_max: self.arguments.options.time_max(),
            scratch: Some(self.directory),
        };
        let contest = Contest {
            launch,
            context,
            expected: comparison.patterns.len() * DIRECTIONS.len(),
        };
        let patterns = &comparison.patterns;
        let place = |figure: usize| Some(patterns.get(figure / DIRECTIONS.len())?.name);
        contest.run(&mut comparison.faults, place, &mut |line| {
            let Line::Figure(figure) = line else {
                return None;
            };
            progress.inc(1);
            Some(match &figure.fault {
                None => {
                    section.add(contender, &figure);
                    Ok(())
                }
                Some(fault) => Err(format!(
                    "{} {}: wrong bytes: {fault}",
                    figure.pattern,
                    figure.direction.name()
                )),
            })
        });
    }

    fn worker_arguments(&self, mpi: &Mpi, side: Side, repeat: u32) -> Vec<OsString> {
        let mut arguments: Vec<OsString> = vec![
            "--dir".into(),
            self.directory.path().into(),
            "--mode".into(),
            self.mode.name().into(),
            "--scale".into(),
            self.arguments.scale.to_string().into(),
            "--round".into(),
            repeat.to_string().into(),
        ];
        let mut option = |name: &str, value: OsString| arguments.extend([name.into(), value]);
        if !self.arguments.workload.is_empty() {
            option("--workload", self.arguments.workload.join(",").into());
        }
        for (name, value) in &self.arguments.hint {
            option("--hint", format!("{name}={value}").into());
        }
        arguments.extend(options::libraries(mpi, side, self.library));
        arguments
    }
}

fn full_name(mpi: &Mpi, side: Side) -> String {
    match side {
        Side::Own => format!("MPI-IO of {}", mpi.name),
        Side::Pario => format!("pario under {}", mpi.name),
    }
}

#[cfg(test)]
mod tests;
