//! `pario bench compare`: the field's access patterns through the C interface of every MPI of a
//! machine, with the MPI's own MPI-IO and with pario.

pub(crate) mod figures;
mod json;
pub(crate) mod launch;
pub(crate) mod machine;
pub(crate) mod mpis;
mod page;
mod patterns;
pub(crate) mod protocol;
mod table;
pub(crate) mod worker;

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use crate::bench::folder::Folder;
use crate::failure::Failure;
use crate::run::library;
use figures::{Contender, Section, Side};
use launch::{Launch, WorkerCommand};
use machine::Machine;
use mpis::{Mpi, Search};
use patterns::Pattern;
use protocol::{Direction, Line};

/// The largest factor on the data, where counts still fit the C interface.
const SCALE_MAX: f64 = 32.0;

/// Which calls carry the data.
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

    /// What it means.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Mode::Coll => "collective calls",
            Mode::Indep => "independent calls",
        }
    }
}

/// What to compare.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Numbers of ranks
    #[arg(long, short = 'n', value_name = "NUMBERS", value_delimiter = ',', default_value = "2", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    ranks: Vec<u32>,
    /// Patterns, as in tile,small [default: all of them]
    #[arg(long, short, value_name = "NAMES", value_delimiter = ',')]
    workload: Vec<String>,
    /// Which calls
    #[arg(long, value_enum, value_delimiter = ',', default_value = "coll")]
    mode: Vec<Mode>,
    /// Factor on the data of a rank, which is 64 MB for most patterns at 1
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = parse_scale)]
    scale: f64,
    /// Times each contender is run; its best counts
    #[arg(long, value_name = "TIMES", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// Folder for the files; may be given several times [default: the system's folder for temporary
    /// files]
    #[arg(long, value_name = "FOLDER")]
    dir: Vec<PathBuf>,
    /// One more MPI: a folder that has bin/mpirun, or a launcher; may be given several times
    #[arg(long, value_name = "PREFIX")]
    mpi: Vec<OsString>,
    /// Do not look for MPIs: only those of --mpi
    #[arg(long, requires = "mpi")]
    no_search: bool,
    /// A hint that every contender opens files with; may be given several times
    #[arg(long, value_name = "NAME=VALUE", value_parser = crate::facts::parse_hint)]
    hint: Vec<(String, String)>,
    /// The drop-in library [default: libpario.so of this installation, or what the environment
    /// variable PARIO_LIBRARY names]
    #[arg(long, value_name = "FILE")]
    library: Option<PathBuf>,
    /// A run of all patterns that takes longer has failed
    #[arg(long, value_name = "SECONDS", default_value_t = 1800)]
    time_max: u64,
    /// Write a page with tables and plots
    #[arg(long, short, value_name = "PAGE.HTML")]
    output: Option<PathBuf>,
    /// Write the figures as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

fn parse_scale(text: &str) -> Result<f64, String> {
    let scale: f64 = text.parse().map_err(|_| format!("`{text}` is no number"))?;
    match scale > 0.0 && scale <= SCALE_MAX {
        true => Ok(scale),
        false => Err(format!("it is more than 0 and at most {SCALE_MAX}")),
    }
}

/// Everything that was measured.
pub(crate) struct Comparison {
    machine: Machine,
    /// As it was typed.
    command: String,
    scale: f64,
    rounds: u32,
    mpis: Vec<Mpi>,
    patterns: Vec<&'static Pattern>,
    sections: Vec<Section>,
    /// What could not be used.
    notes: Vec<String>,
    /// Wrong bytes and runs that failed, each once.
    faults: Vec<String>,
}

impl Comparison {
    fn rounds_in_words(&self) -> String {
        match self.rounds {
            1 => "one round".to_owned(),
            rounds => format!("{rounds} rounds"),
        }
    }

    /// What to think of figures whose rounds differ, and what to do.
    fn doubt(&self) -> Option<String> {
        let sections = self.sections.iter().map(Section::doubtful);
        let (doubtful, all) = sections.fold((0, 0), |sum, it| (sum.0 + it.0, sum.1 + it.1));
        let percent = figures::DOUBTFUL_SPREAD * 100.0;
        (doubtful > 0).then(|| {
            format!(
                "{doubtful} of {all} figures are in doubt: their best and median round differ by \
                 more than {percent:.0} %; quiet the machine, or raise --rounds or --scale"
            )
        })
    }
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, out: &mut impl Write) -> Result<(), Failure> {
    let library = library::find(arguments.library.as_deref())?;
    let patterns = patterns::named(&arguments.workload).map_err(Failure::Arguments)?;
    let folders = arguments.folders()?;
    let search = match arguments.no_search {
        true => Search::Named,
        false => Search::Machine,
    };
    let found = mpis::find(&arguments.mpi, search)?;
    let mut comparison = Comparison {
        machine: Machine::this(),
        command: command_line(),
        scale: arguments.scale,
        rounds: arguments.rounds,
        mpis: found.mpis,
        patterns,
        sections: Vec::new(),
        notes: found.notes,
        faults: Vec::new(),
    };
    introduce(&comparison, out).map_err(Failure::Output)?;
    for folder in &folders {
        for &mode in &arguments.mode {
            for &ranks in &arguments.ranks {
                let case = Case {
                    arguments,
                    library: &library,
                    folder,
                    mode,
                    ranks,
                };
                let section = case.measure(&mut comparison);
                table::section(&comparison, &section, out).map_err(Failure::Output)?;
                comparison.sections.push(section);
            }
        }
    }
    table::end(&comparison, out).map_err(Failure::Output)?;
    let outputs: [(_, Writer<'_>); 2] = [
        (&arguments.output, &|out| page::write(&comparison, out)),
        (&arguments.json, &|out| json::write(&comparison, out)),
    ];
    for (path, write) in outputs {
        if let Some(path) = path {
            save(path, write)?;
        }
    }
    match comparison.faults.len() {
        0 => Ok(()),
        count => Err(Failure::Faults { count }),
    }
}

type Writer<'a> = &'a dyn Fn(&mut BufWriter<File>) -> io::Result<()>;

fn save(path: &Path, write: Writer<'_>) -> Result<(), Failure> {
    let save = || {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let mut file = BufWriter::new(File::create(path)?);
        write(&mut file)?;
        file.flush()
    };
    save().map_err(|source| Failure::Storage {
        action: "write",
        path: path.to_owned(),
        source,
    })
}

/// The command as it was typed, without the folder of the program.
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
    /// A folder of our own in each folder that is measured.
    fn folders(&self) -> Result<Vec<Folder>, Failure> {
        match self.dir.is_empty() {
            true => Ok(vec![Folder::new(None)?]),
            false => self.dir.iter().map(|it| Folder::new(Some(it))).collect(),
        }
    }
}

/// One section to be measured.
struct Case<'a> {
    arguments: &'a Arguments,
    library: &'a Path,
    folder: &'a Folder,
    mode: Mode,
    ranks: u32,
}

impl Case<'_> {
    /// Lets all contenders run in turn, round by round, in the other order every second time: what
    /// disturbs the machine meets all of them alike.
    fn measure(&self, comparison: &mut Comparison) -> Section {
        let patterns: Vec<_> = comparison.patterns.iter().map(|it| it.name).collect();
        let place = (
            self.folder.parent().display().to_string(),
            self.folder.facts().file_system.to_string(),
        );
        let mpis = comparison.mpis.len();
        let mut section = Section::new(place, self.ranks, self.mode, &patterns, mpis);
        let mut contenders: Vec<_> = (0..mpis)
            .flat_map(|mpi| Side::ALL.map(|side| Contender { mpi, side }))
            .collect();
        let figures = (patterns.len() * Direction::ALL.len()) as u64;
        let runs = u64::from(self.arguments.rounds) * contenders.len() as u64;
        let progress = progress_bar(runs * figures);
        let mut done = 0;
        for round in 0..self.arguments.rounds {
            for &contender in &contenders {
                let name = full_name(&comparison.mpis[contender.mpi], contender.side);
                progress.set_message(format!("{} ranks, {name}", self.ranks));
                self.run(contender, round, comparison, &mut section, &progress);
                // Runs that fail tell less.
                done += figures;
                progress.set_position(done);
            }
            contenders.reverse();
        }
        progress.finish_and_clear();
        section
    }

    /// One run of one contender.
    fn run(
        &self,
        contender: Contender,
        round: u32,
        comparison: &mut Comparison,
        section: &mut Section,
        progress: &ProgressBar,
    ) {
        let mpi = &comparison.mpis[contender.mpi];
        let context = format!("{}: {}", section.title(), full_name(mpi, contender.side));
        let launch = Launch {
            launcher: &mpi.launcher,
            ranks: self.ranks,
            worker: WorkerCommand::Compare,
            arguments: self.worker_arguments(mpi, contender.side, round),
            time_max: Duration::from_secs(self.arguments.time_max),
        };
        let mut faults = Vec::new();
        let mut told = 0;
        let outcome = launch.run(&mut |line| {
            let Line::Figure(figure) = line else { return };
            progress.inc(1);
            told += 1;
            match &figure.fault {
                None => section.add(contender, &figure),
                Some(fault) => faults.push(format!(
                    "{context}: {} {}: wrong bytes: {fault}",
                    figure.pattern,
                    figure.direction.name()
                )),
            }
        });
        let expected = comparison.patterns.len() * Direction::ALL.len();
        match outcome {
            Ok(()) if told < expected => {
                faults.push(format!(
                    "{context}: told {told} figures instead of {expected}"
                ));
            }
            Ok(()) => {}
            Err(reason) => {
                let pattern = comparison.patterns.get(told / Direction::ALL.len());
                let place = pattern.map_or("at its end", |pattern| pattern.name);
                faults.push(format!("{context}: {place}: {reason}"));
            }
        }
        for fault in faults {
            if !comparison.faults.contains(&fault) {
                comparison.faults.push(fault);
            }
        }
    }

    fn worker_arguments(&self, mpi: &Mpi, side: Side, round: u32) -> Vec<OsString> {
        let mut arguments: Vec<OsString> = vec![
            "--dir".into(),
            self.folder.path().into(),
            "--mode".into(),
            self.mode.name().into(),
            "--scale".into(),
            self.arguments.scale.to_string().into(),
            "--round".into(),
            round.to_string().into(),
        ];
        let mut option = |name: &str, value: OsString| arguments.extend([name.into(), value]);
        if !self.arguments.workload.is_empty() {
            option("--workload", self.arguments.workload.join(",").into());
        }
        for (name, value) in &self.arguments.hint {
            option("--hint", format!("{name}={value}").into());
        }
        if let Some(library) = &mpi.named_library {
            option("--mpi-library", library.into());
        }
        if side == Side::Pario {
            option("--library", self.library.into());
        }
        arguments
    }
}

fn full_name(mpi: &Mpi, side: Side) -> String {
    match side {
        Side::Own => format!("{}'s own", mpi.name),
        Side::Pario => format!("pario under {}", mpi.name),
    }
}

fn progress_bar(length: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{msg:>40} {wide_bar} {pos}/{len} {eta}");
    ProgressBar::new(length)
        .with_style(style.expect("the template is made of indicatif's own keys"))
}

#[cfg(test)]
mod tests;
