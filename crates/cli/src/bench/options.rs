//! What to measure, as the user asks for it.

use std::path::PathBuf;

use pario::threads;

use super::buffer::PAGE;
use super::method::{self, Method};
use super::session::Cache;
use super::world::{Kind, World};
use crate::facts;
use crate::workload::{self, Job, Parameters, Setting, WORKLOADS, Workload};

/// Ranks where nobody says how many.
const RANKS: u32 = 4;

/// The most ranks that a world may have.
const RANKS_MAX: i64 = threads::World::RANKS_MAX as i64;

/// The workload that is measured when none is asked for.
const MAIN_WORKLOAD: &str = "dist3d";

/// Asks for every workload.
const ALL: &str = "all";

/// Scale and repeats of `--quick`.
const QUICK_SCALE: f64 = 1.0 / 32.0;
const QUICK_REPEAT: u32 = 2;

/// The largest factor on the data of each rank.
const SCALE_MAX: f64 = 4096.0;

/// Which calls of which ranks are meant.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Subject {
    /// What is written and read, with choices as in hpio:region=64,spacing=0; `all` for all; may
    /// be given several times [default: dist3d; see `pario bench workloads`]
    #[arg(long, short, value_name = "NAME[:CHOICES]")]
    workload: Vec<String>,
    /// Number of ranks [default: 4, or as many as the MPI has]
    #[arg(long, short = 'n', value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=RANKS_MAX))]
    ranks: Option<u32>,
    /// Number of nodes that the ranks pretend to be on [default: 1, or where the MPI's ranks are]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=RANKS_MAX))]
    nodes: Option<u32>,
    /// Factor on the data that each rank moves, about 8 MiB at 1
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = parse_scale)]
    scale: f64,
    /// Cells of the array of dist3d: one size for a cube, or three, the last varying fastest
    #[arg(long, value_name = "CELLS")]
    size: Option<String>,
    /// A hint that the file is opened with; may be given several times
    #[arg(long, value_name = "NAME=VALUE", value_parser = facts::parse_hint)]
    hint: Vec<(String, String)>,
}

/// The options of a comparison.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Options {
    #[command(flatten)]
    subject: Subject,
    /// How, as words joined by +, as in two-phase+messages; may be given several times
    /// [default: all that are usual]
    #[arg(
        long,
        short,
        value_name = "WORDS",
        alias = "only",
        value_delimiter = ','
    )]
    method: Vec<String>,
    /// How ranks live and talk [default: mpi under an MPI's launcher, else threads]
    #[arg(long, value_enum)]
    transport: Option<Kind>,
    /// Ranks are the processes of an MPI, whoever started them; the same as --transport mpi
    #[arg(long, conflicts_with = "transport")]
    mpi: bool,
    /// Measures for each value of a choice, as in record=64,4K,64K,1M
    #[arg(long, value_name = "CHOICE=VALUES")]
    sweep: Option<String>,
    /// Times each method is run; the best counts
    #[arg(long, value_name = "TIMES", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeat: u32,
    /// Folder for the files [default: the system's folder for temporary files]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) dir: Option<PathBuf>,
    /// Bytes from the start of a page to that of every buffer; malloc's large blocks have 16
    #[arg(long, value_name = "BYTES", default_value_t = 0, value_parser = parse_offset)]
    pub(crate) buffer_offset: usize,
    /// Drop the file from the kernel's cache before each read
    #[arg(long)]
    cold: bool,
    /// Run a second job in the same folder meanwhile, with this pause between its calls
    #[arg(long, value_name = "MILLISECONDS", num_args = 0..=1, default_missing_value = "0")]
    pub(crate) beside: Option<u64>,
    /// Little data and two repeats: a check that all is well rather than a measurement
    #[arg(long, conflicts_with_all = ["size", "repeat", "scale"])]
    quick: bool,
    /// Print comma-separated values
    #[arg(long, conflicts_with = "json")]
    csv: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Draw speeds by method, and by value of a sweep, into SVG files in this folder
    #[arg(long, value_name = "FOLDER")]
    pub(crate) svg: Option<PathBuf>,
}

/// How results are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// Aligned columns for people.
    Table,
    /// Comma-separated values.
    Csv,
    /// JSON.
    Json,
}

/// One workload with its choices.
pub(crate) struct Target {
    /// The workload.
    pub(crate) workload: &'static dyn Workload,
    /// What was chosen, as text.
    pub(crate) choices: String,
    /// How large it is.
    pub(crate) setting: Setting,
    /// The choice that is swept and its value.
    pub(crate) swept: Option<(String, String)>,
}

impl Options {
    /// How ranks live and talk.
    pub(crate) fn kind(&self) -> Kind {
        match (self.transport, self.mpi || pario_mpi::is_launched()) {
            (Some(kind), _) => kind,
            (None, true) => Kind::Mpi,
            (None, false) => Kind::Threads,
        }
    }

    /// Ranks that this process makes.
    pub(crate) fn own_world(&self) -> Result<World, String> {
        World::new(
            self.kind(),
            self.subject.ranks(),
            self.subject.pretended_nodes(),
        )
    }

    /// The same options for the ranks that an MPI has.
    pub(crate) fn for_ranks(&self, ranks: u32) -> Result<Options, String> {
        if self.subject.ranks.is_some_and(|asked| asked != ranks) {
            return Err(format!(
                "the MPI has {ranks} ranks: leave --ranks out, or give the launcher that number"
            ));
        }
        if self.subject.nodes.is_some() {
            return Err(
                "the ranks of an MPI are where they are: leave --nodes out; PARIO_NODES pretends \
                 nodes there"
                    .to_owned(),
            );
        }
        let mut options = self.clone();
        options.subject.ranks = Some(ranks);
        Ok(options)
    }

    /// How results are printed.
    pub(crate) fn format(&self) -> Format {
        match (self.csv, self.json) {
            (true, _) => Format::Csv,
            (_, true) => Format::Json,
            _ => Format::Table,
        }
    }

    /// Whether caches are emptied before reads.
    pub(crate) fn cache(&self) -> Cache {
        if self.cold { Cache::Cold } else { Cache::Warm }
    }

    /// Times each method is run.
    pub(crate) fn repeat(&self) -> u32 {
        if self.quick {
            QUICK_REPEAT
        } else {
            self.repeat
        }
    }

    /// Factor on the data of each rank.
    fn scale(&self) -> f64 {
        if self.quick {
            QUICK_SCALE
        } else {
            self.subject.scale
        }
    }

    /// The methods asked for, with all hints.
    pub(crate) fn methods(&self) -> Result<Vec<Method>, String> {
        let mut methods = match self.method.as_slice() {
            [] => method::usual(),
            names => names
                .iter()
                .map(|name| Method::parse(name))
                .collect::<Result<_, _>>()?,
        };
        for method in &mut methods {
            for (name, value) in &self.subject.hint {
                method.hint(name, value);
            }
            if let Some(name) = method.unknown_hint() {
                return Err(format!("`{name}` is no hint; see `pario hints`"));
            }
        }
        Ok(methods)
    }

    /// The workloads asked for, once for each value of a sweep.
    pub(crate) fn targets(&self) -> Result<Vec<Target>, String> {
        let mut targets = Vec::new();
        for target in self.subject.targets()? {
            let target = target.scaled(self.scale());
            match &self.sweep {
                None => targets.push(target),
                Some(sweep) => targets.extend(target.swept_over(sweep)?),
            }
        }
        Ok(targets)
    }
}

impl Subject {
    /// The node of each rank.
    pub(crate) fn nodes(&self) -> Result<Vec<u32>, String> {
        let world = World::new(Kind::Threads, self.ranks(), self.pretended_nodes())?;
        Ok(world.nodes().to_vec())
    }

    fn ranks(&self) -> u32 {
        self.ranks.unwrap_or(RANKS)
    }

    fn pretended_nodes(&self) -> u32 {
        self.nodes.unwrap_or(1)
    }

    /// Hints that the file is opened with.
    pub(crate) fn hints(&self) -> &[(String, String)] {
        &self.hint
    }

    /// The workloads asked for.
    pub(crate) fn targets(&self) -> Result<Vec<Target>, String> {
        let names: Vec<&str> = match self.workload.as_slice() {
            [] => vec![MAIN_WORKLOAD],
            names if names.iter().any(|name| name == ALL) => {
                WORKLOADS.iter().map(|it| it.name()).collect()
            }
            names => names.iter().map(String::as_str).collect(),
        };
        let is_main = |name: &&str| name.split(':').next() == Some(MAIN_WORKLOAD);
        if self.size.is_some() && !names.iter().any(is_main) {
            return Err(format!(
                "--size is for {MAIN_WORKLOAD}; other workloads have choices of their own, see \
                 `pario bench workloads`, and --scale"
            ));
        }
        names.into_iter().map(|name| self.target(name)).collect()
    }

    fn target(&self, text: &str) -> Result<Target, String> {
        let (name, choices) = text.split_once(':').unwrap_or((text, ""));
        let workload = workload::by_name(name).ok_or_else(|| unknown(name))?;
        let known = workload.parameters();
        let about = |reason: String| format!("{name}: {reason}");
        let mut parameters = Parameters::parse(choices, known).map_err(about)?;
        if let (Some(size), MAIN_WORKLOAD) = (&self.size, name) {
            parameters.set("size", size, known).map_err(about)?;
        }
        Ok(Target {
            workload,
            choices: choices.to_owned(),
            setting: Setting {
                ranks: self.ranks(),
                scale: self.scale,
                parameters,
            },
            swept: None,
        })
    }
}

impl Target {
    /// The same with another scale.
    fn scaled(mut self, scale: f64) -> Target {
        self.setting.scale = scale;
        self
    }

    /// The same once for each value of a choice, `choice=value,value`.
    fn swept_over(&self, sweep: &str) -> Result<Vec<Target>, String> {
        let (choice, values) = sweep.split_once('=').ok_or_else(|| {
            format!("`{sweep}` is no sweep; write choice=values, as in record=64,4K")
        })?;
        let target = |value: &str| {
            let mut setting = self.setting.clone();
            let known = self.workload.parameters();
            let set = setting.parameters.set(choice, value, known);
            set.map_err(|reason| format!("{}: {reason}", self.workload.name()))?;
            Ok(Target {
                workload: self.workload,
                choices: self.choices.clone(),
                setting,
                swept: Some((choice.to_owned(), value.to_owned())),
            })
        };
        values.split(',').map(target).collect()
    }

    /// The job.
    pub(crate) fn job(&self) -> Result<Box<dyn Job>, String> {
        let job = self.workload.job(&self.setting);
        job.map_err(|reason| format!("{}: {reason}", self.workload.name()))
    }
}

fn unknown(name: &str) -> String {
    let names: Vec<_> = WORKLOADS.iter().map(|it| it.name()).collect();
    format!("`{name}` is no workload; there are {}", names.join(", "))
}

fn parse_scale(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(scale) if scale > 0.0 && scale <= SCALE_MAX => Ok(scale),
        _ => Err(format!("a scale is a number above 0, at most {SCALE_MAX}")),
    }
}

fn parse_offset(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(offset) if offset < PAGE => Ok(offset),
        _ => Err(format!("an offset is a number below {PAGE}")),
    }
}
