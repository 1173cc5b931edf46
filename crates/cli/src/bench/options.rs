//! The command-line options.

use std::path::PathBuf;

use pario_transport::threads;

use super::method::{self, Method};
use super::ranking::Repeats;
use super::session::Cache;
use super::world::{Kind, World};
use crate::facts;
use crate::measure::PAGE;
use crate::output::JsonOption;
use crate::workload::{self, ALL, Job, Setting, WORKLOADS, Workload};

/// Default number of ranks.
const RANKS: u32 = 4;

/// The maximum number of ranks.
const RANKS_MAX: i64 = threads::World::RANKS_MAX as i64;

/// The default workload.
const MAIN_WORKLOAD: &str = "dist3d";

/// Scale and repeats of `--quick`.
const QUICK_SCALE: f64 = 1.0 / 32.0;
const QUICK_REPEATS: u32 = 2;

/// The largest factor on the data per rank.
const SCALE_MAX: f64 = 4096.0;

/// The workloads and ranks.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Subject {
    /// Workloads, with parameters as in btio,hpio:region=64,spacing=0; `all` for all; may be
    /// repeated [default: dist3d; see `pario bench workloads`]
    #[arg(long, short, value_name = "LIST")]
    workload: Vec<String>,
    /// Number of ranks [default: 4, or that of the MPI]
    #[arg(long, short = 'n', value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=RANKS_MAX))]
    ranks: Option<u32>,
    /// Number of simulated nodes [default: 1, or the nodes of the MPI's ranks]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=RANKS_MAX))]
    nodes: Option<u32>,
    /// Factor on the data per rank, about 8 MiB at 1
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = parse_scale)]
    scale: f64,
    /// Cells of the array of dist3d: one size for a cube, or three, the last varying fastest
    #[arg(long, value_name = "CELLS")]
    size: Option<String>,
    /// A hint passed when the file is opened; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = facts::parse_hint)]
    hint: Vec<(String, String)>,
}

/// The options of `pario bench`.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Options {
    #[command(flatten)]
    subject: Subject,
    /// Methods: words joined by +, as in automatic,two-phase+messages; may be repeated [default:
    /// automatic, every algorithm, and the usual kinds of calls]
    #[arg(
        long,
        short,
        value_name = "LIST",
        alias = "only",
        value_delimiter = ','
    )]
    method: Vec<String>,
    /// What the ranks are [default: mpi under an MPI launcher, otherwise threads]
    #[arg(long, value_enum)]
    transport: Option<Kind>,
    /// Same as --transport mpi, for launchers that are not recognised
    #[arg(long, conflicts_with = "transport")]
    mpi: bool,
    /// Measure each value of a parameter, as in record=64,4K,64K,1M
    #[arg(long, value_name = "CHOICE=VALUES")]
    sweep: Option<String>,
    /// Number of times each method runs; the best counts [default: 5, and the fastest up to 30 times, until a
    /// second repeat confirms the best time of each]
    #[arg(long, value_name = "NUMBER", aliases = ["repeat", "rounds"], value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeats: Option<u32>,
    /// Directory for the files, with its driver if it is not mounted, as in cephfs:/project [default: the system's
    /// temporary directory]
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// Offset of every buffer from the start of a page; malloc's large blocks have 16
    #[arg(long, value_name = "BYTES", default_value_t = 0, value_parser = parse_offset)]
    pub(crate) buffer_offset: usize,
    /// Drop the file from the kernel's cache before each read
    #[arg(long)]
    cold: bool,
    /// Run a second job in the same directory at the same time, with this pause between its calls
    #[arg(long, value_name = "MILLISECONDS", num_args = 0..=1, default_missing_value = "0")]
    pub(crate) beside: Option<u64>,
    /// Little data and two repeats: a test rather than a measurement
    #[arg(long, conflicts_with_all = ["size", "repeats", "scale"])]
    quick: bool,
    /// Print comma-separated values instead of tables
    #[arg(long, conflicts_with = "json")]
    csv: bool,
    #[command(flatten)]
    pub(crate) json: JsonOption,
    /// Plot speeds by method, and by value of a sweep, as SVG files in this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) svg: Option<PathBuf>,
}

/// How results are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Table,
    Csv,
    Json,
}

/// One workload with its parameters.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) workload: &'static Workload,
    /// The parameters, as on the command line.
    pub(crate) choices: String,
    pub(crate) setting: Setting,
    /// The parameter that is swept and its value.
    pub(crate) swept: Option<(String, String)>,
}

impl Options {
    pub(crate) fn kind(&self) -> Kind {
        match (self.transport, self.mpi || pario_mpi::is_launched()) {
            (Some(kind), _) => kind,
            (None, true) => Kind::Mpi,
            (None, false) => Kind::Threads,
        }
    }

    /// Ranks that this process creates.
    pub(crate) fn own_world(&self) -> Result<World, String> {
        World::new(
            self.kind(),
            self.subject.ranks(),
            self.subject.simulated_nodes(),
        )
    }

    /// The same options for the ranks of an MPI.
    pub(crate) fn for_ranks(&self, ranks: u32) -> Result<Options, String> {
        if self.subject.ranks.is_some_and(|asked| asked != ranks) {
            return Err(format!(
                "the MPI has {ranks} ranks: omit --ranks, or pass that number to the launcher"
            ));
        }
        if self.subject.nodes.is_some() {
            return Err(
                "--nodes does not apply to the ranks of an MPI: omit it, or simulate nodes with \
                 PARIO_NODES"
                    .to_owned(),
            );
        }
        let mut options = self.clone();
        options.subject.ranks = Some(ranks);
        Ok(options)
    }

    pub(crate) fn format(&self) -> Format {
        match (self.csv, self.json.is_printed()) {
            (true, _) => Format::Csv,
            (_, true) => Format::Json,
            _ => Format::Table,
        }
    }

    /// Whether caches are emptied before reads.
    pub(crate) fn cache(&self) -> Cache {
        if self.cold { Cache::Cold } else { Cache::Warm }
    }

    /// How often each method runs.
    pub(crate) fn repeats(&self) -> Repeats {
        match self.repeats {
            _ if self.quick => Repeats::Exactly(QUICK_REPEATS),
            Some(repeats) => Repeats::Exactly(repeats),
            None => Repeats::UntilRanked,
        }
    }

    /// Factor on the data per rank.
    fn scale(&self) -> f64 {
        if self.quick {
            QUICK_SCALE
        } else {
            self.subject.scale
        }
    }

    /// The requested methods, with all hints. Those that hints turn into another one are omitted.
    pub(crate) fn methods(&self) -> Result<Vec<Method>, String> {
        let asked = match self.method.as_slice() {
            [] => method::usual(),
            names => names
                .iter()
                .map(|name| Method::parse(name))
                .collect::<Result<_, _>>()?,
        };
        let mut methods: Vec<Method> = Vec::new();
        for method in asked {
            let method = method.with_hints(&self.subject.hint)?;
            if !methods.iter().any(|it| it.name == method.name) {
                methods.push(method);
            }
        }
        Ok(methods)
    }

    /// The requested workloads, once per value of a sweep.
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
        let world = World::new(Kind::Threads, self.ranks(), self.simulated_nodes())?;
        Ok(world.nodes().to_vec())
    }

    fn ranks(&self) -> u32 {
        self.ranks.unwrap_or(RANKS)
    }

    fn simulated_nodes(&self) -> u32 {
        self.nodes.unwrap_or(1)
    }

    /// Hints passed when the file is opened.
    pub(crate) fn hints(&self) -> &[(String, String)] {
        &self.hint
    }

    /// The requested workloads.
    pub(crate) fn targets(&self) -> Result<Vec<Target>, String> {
        let mut names = workload::split_list(&self.workload);
        if names.is_empty() {
            names.push(MAIN_WORKLOAD.to_owned());
        }
        if names.iter().any(|name| name == ALL) {
            names = WORKLOADS.iter().map(|it| it.name.to_owned()).collect();
        }
        let is_main = |name: &String| name.split(':').next() == Some(MAIN_WORKLOAD);
        if self.size.is_some() && !names.iter().any(is_main) {
            return Err(format!(
                "--size is for {MAIN_WORKLOAD}; other workloads have --scale and their own \
                 parameters, see `pario bench workloads`"
            ));
        }
        names.iter().map(|name| self.target(name)).collect()
    }

    fn target(&self, text: &str) -> Result<Target, String> {
        let (workload, mut parameters) = workload::parse(text)?;
        if let (Some(size), MAIN_WORKLOAD) = (&self.size, workload.name) {
            parameters.set("size", size, workload.parameters)?;
        }
        let (_, choices) = text.split_once(':').unwrap_or_default();
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

    /// The same for each value of a parameter, `name=value,value`.
    fn swept_over(&self, sweep: &str) -> Result<Vec<Target>, String> {
        let (choice, values) = sweep.split_once('=').ok_or_else(|| {
            format!("`{sweep}` is not a sweep: write name=values, as in record=64,4K")
        })?;
        let target = |value: &str| {
            let mut target = self.clone();
            let (parameters, known) = (&mut target.setting.parameters, self.workload.parameters);
            let set = parameters.set(choice, value, known);
            set.map_err(|reason| format!("{}: {reason}", self.workload.name))?;
            target.swept = Some((choice.to_owned(), value.to_owned()));
            Ok(target)
        };
        values.split(',').map(target).collect()
    }

    pub(crate) fn job(&self) -> Result<Box<dyn Job>, String> {
        self.workload.job(&self.setting)
    }
}

fn parse_scale(text: &str) -> Result<f64, String> {
    workload::parse_scale(text, SCALE_MAX)
}

fn parse_offset(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(offset) if offset < PAGE => Ok(offset),
        _ => Err(format!("must be a number below {PAGE}")),
    }
}
