//! The command-line options.

use std::path::PathBuf;

use pario_transport::threads;

use crate::bench::method::Method;
use crate::facts;
use crate::failure::Failure;
use crate::output::JsonOption;
use crate::workload::{self, Job, Setting};

/// Default numbers of ranks and nodes: measured, and simulated.
const SIZES: [(u32, u32); 5] = [(8, 2), (32, 4), (128, 8), (512, 16), (1024, 32)];
const SIMULATED: [(u32, u32); 5] = [
    (256, 4),
    (1024, 16),
    (4096, 64),
    (16_384, 256),
    (65_536, 1024),
];

/// Default data per rank, as a fraction of 8 MiB: 1 MiB, and for simulations 128 KiB.
const SCALE: f64 = 0.125;
const SIMULATED_SCALE: f64 = 1.0 / 64.0;

/// The largest factor on the data per rank.
const SCALE_MAX: f64 = 4096.0;

/// The maximum number of simulated ranks.
const SIMULATED_MAX: u32 = 65_536;

/// The options of `pario bench scale`.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Arguments {
    /// Numbers of ranks, one row each [default: 8,32,128,512,1024; with --simulate
    /// 256,1024,4096,16384,65536]
    #[arg(long, short = 'n', value_name = "LIST", value_delimiter = ',')]
    ranks: Vec<u32>,
    /// Numbers of simulated nodes: one for each number of ranks, or one for all [default:
    /// 2,4,8,16,32; with --simulate 64 ranks per node]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    nodes: Vec<u32>,
    /// Workload, with parameters as in strided:record=64K
    #[arg(
        long,
        short,
        value_name = "WORKLOAD",
        default_value = "strided:record=4K"
    )]
    workload: String,
    /// Factor on the data per rank, about 8 MiB at 1 [default: 0.125; with --simulate 0.015625]
    #[arg(long, value_name = "FACTOR", value_parser = parse_scale)]
    scale: Option<f64>,
    /// Method: words joined by +, as in two-phase+messages
    #[arg(
        long,
        short,
        value_name = "METHOD",
        alias = "only",
        default_value = "two-phase"
    )]
    method: String,
    /// A hint passed when the file is opened; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = facts::parse_hint)]
    hint: Vec<(String, String)>,
    /// Number of counted repeats; one more comes first and is not counted
    #[arg(long, value_name = "NUMBER", aliases = ["repeat", "rounds"], default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(super) repeats: u32,
    /// Directory for the file [default: the system's temporary directory]
    #[arg(long, value_name = "DIR")]
    pub(super) dir: Option<PathBuf>,
    /// Run the exchange protocol alone, in virtual time on a model of a cluster, with up to 65536
    /// ranks
    #[arg(long)]
    pub(super) simulate: bool,
    #[command(flatten)]
    pub(super) json: JsonOption,
}

/// The ranks and nodes of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) ranks: u32,
    pub(super) nodes: u32,
}

impl Arguments {
    /// The rows.
    pub(super) fn sizes(&self) -> Result<Vec<Size>, Failure> {
        let (usual, most) = match self.simulate {
            true => (&SIMULATED, SIMULATED_MAX),
            false => (&SIZES, threads::World::RANKS_MAX),
        };
        let sizes = sizes(&self.ranks, &self.nodes, usual)?;
        match sizes.iter().find(|size| size.ranks > most) {
            Some(size) => Err(Failure::Arguments(format!(
                "{} ranks are too many: at most {most}",
                size.ranks
            ))),
            None => Ok(sizes),
        }
    }

    /// The workload, as on the command line.
    pub(super) fn workload(&self) -> &str {
        &self.workload
    }

    fn scale(&self) -> f64 {
        self.scale.unwrap_or(match self.simulate {
            true => SIMULATED_SCALE,
            false => SCALE,
        })
    }

    /// The workload for some ranks.
    pub(super) fn job(&self, ranks: u32) -> Result<Box<dyn Job>, Failure> {
        let job = || {
            let (workload, parameters) = workload::parse(&self.workload)?;
            workload.job(&Setting {
                ranks,
                scale: self.scale(),
                parameters,
            })
        };
        job().map_err(Failure::Arguments)
    }

    /// How files are written and read.
    pub(super) fn method(&self) -> Result<Method, Failure> {
        let method = Method::parse(&self.method).and_then(|it| it.with_hints(&self.hint));
        let method = method.map_err(Failure::Arguments)?;
        match method.calls.is_blocking_collective() {
            true => Ok(method),
            false => Err(Failure::Arguments(format!(
                "method `{}`: scale measures blocking collective calls only",
                self.method
            ))),
        }
    }

    /// The same options for the process that measures one row.
    pub(super) fn for_worker(&self, size: &Size) -> Vec<String> {
        let mut words = vec![
            format!("--ranks={}", size.ranks),
            format!("--nodes={}", size.nodes),
            format!("--workload={}", self.workload),
            format!("--scale={}", self.scale()),
            format!("--method={}", self.method),
            format!("--repeats={}", self.repeats),
        ];
        let hints = self.hint.iter();
        words.extend(hints.map(|(name, value)| format!("--hint={name}={value}")));
        words
    }
}

/// Pairs of ranks and nodes. Missing numbers of nodes are about those of the usual rows.
fn sizes(ranks: &[u32], nodes: &[u32], usual: &[(u32, u32)]) -> Result<Vec<Size>, Failure> {
    let ranks: Vec<u32> = match ranks {
        [] => usual.iter().map(|it| it.0).collect(),
        ranks => ranks.to_vec(),
    };
    let nodes: Vec<u32> = match nodes {
        [] => ranks.iter().map(|it| usual_nodes(*it, usual)).collect(),
        [one] => vec![*one; ranks.len()],
        nodes if nodes.len() == ranks.len() => nodes.to_vec(),
        nodes => {
            return Err(Failure::Arguments(format!(
                "--nodes has {} values and --ranks {}: give one for each, or one for all",
                nodes.len(),
                ranks.len()
            )));
        }
    };
    let sizes = ranks.into_iter().zip(nodes);
    let sizes = sizes.map(|(ranks, nodes)| match (1..=ranks).contains(&nodes) {
        true => Ok(Size { ranks, nodes }),
        false => Err(Failure::Arguments(format!(
            "{ranks} ranks cannot occupy {nodes} nodes"
        ))),
    });
    sizes.collect()
}

/// The nodes of the last usual row that has no more ranks.
fn usual_nodes(ranks: u32, usual: &[(u32, u32)]) -> u32 {
    let row = usual.iter().rev().find(|row| row.0 <= ranks);
    row.map_or(ranks.min(2), |row| row.1)
}

fn parse_scale(text: &str) -> Result<f64, String> {
    workload::parse_scale(text, SCALE_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(ranks: &[u32], nodes: &[u32]) -> Result<Vec<(u32, u32)>, String> {
        let sizes = sizes(ranks, nodes, &SIZES).map_err(|failure| failure.to_string())?;
        Ok(sizes.iter().map(|it| (it.ranks, it.nodes)).collect())
    }

    #[test]
    fn every_number_of_ranks_has_nodes() {
        assert_eq!(pairs(&[], &[]).unwrap(), SIZES);
        assert_eq!(pairs(&[1, 8, 40], &[]).unwrap(), [(1, 1), (8, 2), (40, 4)]);
        assert_eq!(pairs(&[8, 64], &[4]).unwrap(), [(8, 4), (64, 4)]);
        assert_eq!(pairs(&[8, 64], &[1, 64]).unwrap(), [(8, 1), (64, 64)]);
        for (ranks, nodes, reason) in [
            (&[8, 64][..], &[1, 2, 3][..], "one for each"),
            (&[8], &[9], "cannot occupy"),
            (&[8], &[0], "cannot occupy"),
            (&[0], &[], "cannot occupy"),
        ] {
            let rejected = pairs(ranks, nodes).unwrap_err();
            assert!(rejected.contains(reason), "{rejected}");
        }
    }
}
