//! The exchange protocol alone, with all ranks of a cluster in one process and in virtual time.
//! The accesses, the plan and the protocol are those of a real call; links, copies and file servers
//! are a model. What is counted is exact, what takes time is as good as the model.

use std::io::Write;
use std::sync::Arc;

use pario::internal::{EAGER_BYTES, limits};
use pario_exchange::simulate::{self, Model, Report};
use pario_exchange::{Groups, Packing, Planned, Rank, Setting};
use pario_plan::{
    Access, Case, Client, Explanation, Facts, History, Plan, Rounds, Striping, Tuning,
};
use pario_types::Direction;
use serde::Serialize;

use super::options::Size;
use super::{Arguments, print, report};
use crate::facts;
use crate::failure::Failure;
use crate::measure::direction;
use crate::measure::{DIRECTIONS, progress_bar};

/// One direction of one number of ranks.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    pub(super) ranks: u32,
    pub(super) nodes: u32,
    pub(super) aggregators: usize,
    #[serde(with = "direction")]
    pub(super) direction: Direction,
    /// Bytes that all ranks move.
    pub(super) bytes: u64,
    /// From the first rank's entry to the last one's return.
    pub(super) virtual_ns: u64,
    /// Messages between nodes, control and data, of all ranks.
    pub(super) messages: u64,
    /// The most of any rank.
    pub(super) messages_max: u64,
    /// Bytes between nodes, control and data, of all ranks.
    pub(super) bytes_sent: u64,
    /// Notes between ranks of a node.
    pub(super) notes: u64,
    /// Events that a rank without a realm handled, at most.
    pub(super) events_max: u64,
    /// Questions about accesses by a rank without a realm, and by any rank, at most.
    pub(super) lookups_max: u64,
    pub(super) aggregator_lookups_max: u64,
    /// The most memory that a rank's buffers took.
    pub(super) memory_max_bytes: u64,
    /// The share of the exchanged bytes that moved during a file transfer of the same aggregator.
    pub(super) overlap: Option<f64>,
}

/// Runs every number of ranks in both directions.
pub(super) fn run(arguments: &Arguments, out: &mut impl Write) -> Result<(), Failure> {
    let method = arguments.method()?;
    let sizes = arguments.sizes()?;
    let progress = progress_bar(2 * sizes.len() as u64);
    let mut rows = Vec::new();
    for size in &sizes {
        let accesses = accesses(arguments, size.ranks)?;
        for direction in DIRECTIONS {
            progress.set_message(format!("{} ranks", size.ranks));
            let call = Call::plan(&method.hints, &accesses, *size, direction)?;
            rows.push(call.run(accesses.clone()));
            progress.inc(1);
        }
    }
    progress.finish_and_clear();
    let result = report::Simulated {
        workload: arguments.workload(),
        rows,
    };
    print(
        arguments,
        &result,
        |out| report::simulated(&result, out),
        out,
    )
}

/// The first call of the workload.
fn accesses(arguments: &Arguments, ranks: u32) -> Result<Vec<Access>, Failure> {
    let job = arguments.job(ranks)?;
    let access = |rank| {
        let step = job.step(rank, 0).map_err(|error| error.to_string())?;
        step.access()
            .ok_or_else(|| format!("rank {rank} reaches beyond the largest file offset"))
    };
    let accesses = (0..ranks).map(access).collect::<Result<_, _>>();
    accesses.map_err(Failure::Arguments)
}

/// A call that is ready to run.
struct Call {
    size: Size,
    nodes: Vec<u32>,
    direction: Direction,
    rounds: Rounds,
    unit: u64,
    model: Model,
}

impl Call {
    /// Plans the call for the cluster of the model.
    fn plan(
        hints: &[(String, String)],
        accesses: &[Access],
        size: Size,
        direction: Direction,
    ) -> Result<Call, Failure> {
        let (hints, _) = facts::hints(hints).map_err(Failure::Arguments)?;
        let model = Model::default();
        let node =
            |rank: u32| (u64::from(rank) * u64::from(size.nodes) / u64::from(size.ranks)) as u32;
        let nodes: Vec<u32> = (0..size.ranks).map(node).collect();
        let facts = Facts {
            nodes: nodes.clone(),
            striping: Some(Striping {
                unit: model.stripe_bytes,
                count: model.servers,
            }),
            client: Client::Kernel,
            ..Facts::one_node(nodes.len())
        };
        let facts = facts.with_assumptions(&hints);
        let tuning = Tuning::from_hints(&hints, direction);
        let history = History::default();
        let case = Case::new(direction, accesses, &facts, &tuning, &history);
        let explanation = Explanation::of(&case);
        match explanation.plan() {
            Plan::Rounds(rounds) => Ok(Call {
                size,
                nodes,
                direction,
                rounds: rounds.clone(),
                unit: facts.boundary(),
                model,
            }),
            plan => Err(Failure::Arguments(format!(
                "this call needs no exchange ({plan}): choose another --workload or --method"
            ))),
        }
    }

    fn run(self, accesses: Vec<Access>) -> Row {
        let bytes: Vec<u64> = accesses.iter().map(Access::len).collect();
        let aggregators = self.rounds.aggregators.len();
        let setting = Arc::new(self.setting());
        let planned = Arc::new(Planned::new(self.rounds, accesses.into(), Packing::Sparse));
        let of_rank = |rank: Rank| bytes[rank.index()];
        let report = simulate::run(&setting, &planned, of_rank, &self.model);
        let Report {
            total,
            most,
            most_member,
            ..
        } = report;
        Row {
            ranks: self.size.ranks,
            nodes: self.size.nodes,
            aggregators,
            direction: self.direction,
            bytes: bytes.iter().sum(),
            virtual_ns: report.makespan_ns,
            messages: total.control_messages + total.data_messages,
            messages_max: most.control_messages + most.data_messages,
            bytes_sent: total.control_bytes + total.data_bytes,
            notes: total.notes,
            events_max: most_member.events,
            lookups_max: most_member.lookups,
            aggregator_lookups_max: most.lookups,
            memory_max_bytes: most.memory_bytes_max,
            overlap: (total.data_bytes > 0)
                .then(|| report.overlapped_bytes as f64 / total.data_bytes as f64),
        }
    }

    fn setting(&self) -> Setting {
        let groups = Arc::new(Groups::by_node(&self.nodes));
        Setting {
            direction: self.direction,
            root: Rank(0),
            limits: limits(&groups, self.rounds.window_bytes, self.unit, EAGER_BYTES),
            groups,
        }
    }
}
