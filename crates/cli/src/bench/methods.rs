//! Methods: which algorithm and partition the planner chooses for a grid of file systems and
//! access patterns, and why. Nothing is measured and no file is opened.

use std::collections::BTreeMap;
use std::io::{self, Write};

use pario_layout::{Basic, Datatype, TypeError};
use pario_plan::{
    Access, Candidates, Case, Client, Direction, Explanation, Facts, History, LockProtocol, Plan,
    Striping, Tuning,
};

use crate::output::{Align, Table};

/// The options of `pario bench methods`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Print the reason for each choice
    #[arg(long)]
    why: bool,
}

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// Ranks, and pieces per rank.
const RANKS: u32 = 16;
const PIECES: u64 = 64;

/// A machine and a file system.
struct System {
    name: &'static str,
    nodes: u32,
    client: Client,
    striping: Option<Striping>,
    locks: LockProtocol,
}

const fn striped(unit: u64, count: u64) -> Option<Striping> {
    Some(Striping { unit, count })
}

/// The real ones among them have the facts that their drivers report.
const SYSTEMS: &[System] = &[
    System {
        name: "local, 1 node",
        nodes: 1,
        client: Client::Local,
        striping: None,
        locks: LockProtocol::None,
    },
    System {
        name: "nfs, 4 nodes",
        nodes: 4,
        client: Client::Kernel,
        striping: None,
        locks: LockProtocol::None,
    },
    System {
        name: "lustre 4 x 1 MiB, 1 node",
        nodes: 1,
        client: Client::Kernel,
        striping: striped(MIB, 4),
        locks: LockProtocol::Server,
    },
    System {
        name: "lustre 4 x 1 MiB, 4 nodes",
        nodes: 4,
        client: Client::Kernel,
        striping: striped(MIB, 4),
        locks: LockProtocol::Server,
    },
    System {
        name: "lustre 4 x 1 MiB, 16 nodes",
        nodes: 16,
        client: Client::Kernel,
        striping: striped(MIB, 4),
        locks: LockProtocol::Server,
    },
    System {
        name: "gpfs, 4 nodes",
        nodes: 4,
        client: Client::Kernel,
        striping: None,
        locks: LockProtocol::Token,
    },
    System {
        name: "beegfs 4 x 512 KiB, 4 nodes",
        nodes: 4,
        client: Client::Kernel,
        striping: striped(512 * KIB, 4),
        locks: LockProtocol::None,
    },
    System {
        name: "library 8 x 64 KiB, 4 nodes",
        nodes: 4,
        client: Client::Library,
        striping: striped(64 * KIB, 8),
        locks: LockProtocol::None,
    },
    System {
        name: "library 8 x 1 MiB, 4 nodes",
        nodes: 4,
        client: Client::Library,
        striping: striped(MIB, 8),
        locks: LockProtocol::None,
    },
];

impl System {
    fn facts(&self) -> Facts {
        let node = |rank: u32| rank * self.nodes / RANKS;
        Facts {
            nodes: (0..RANKS).map(node).collect(),
            striping: self.striping,
            lock_granularity: match self.locks {
                LockProtocol::None => None,
                LockProtocol::Server => self.striping.map(|it| it.unit),
                LockProtocol::Token => Some(4 * MIB),
            },
            lock_protocol: self.locks,
            client: self.client,
            ..Facts::one_node(RANKS as usize)
        }
    }
}

/// How the ranks' pieces lie in the file.
#[derive(Clone, Copy)]
enum Arrangement {
    /// Pieces of this length, interleaved by rank.
    Interleaved(u64),
    /// The same, with gaps as long as the pieces.
    Gaps(u64),
    /// One piece of this length per rank, in rank order.
    Appended(u64),
    /// The same, in descending rank order.
    Reversed(u64),
    /// Most of the data in the first part of the file, the rest far away.
    Clusters,
}

const ARRANGEMENTS: &[(&str, Arrangement)] = &[
    ("interleaved 64 B", Arrangement::Interleaved(64)),
    ("interleaved 64 KiB", Arrangement::Interleaved(64 * KIB)),
    ("interleaved 2 MiB", Arrangement::Interleaved(2 * MIB)),
    ("with gaps 256 B", Arrangement::Gaps(256)),
    ("appended 128 KiB", Arrangement::Appended(128 * KIB)),
    ("appended 4 MiB", Arrangement::Appended(4 * MIB)),
    (
        "appended 4 MiB + 1 KiB",
        Arrangement::Appended(4 * MIB + KIB),
    ),
    ("reversed 128 KiB", Arrangement::Reversed(128 * KIB)),
    ("clusters", Arrangement::Clusters),
];

impl Arrangement {
    fn access(self, rank: u64) -> Result<Access, TypeError> {
        let ranks = u64::from(RANKS);
        let byte = Datatype::basic(Basic::Byte);
        let (at, layout, len) = match self {
            Arrangement::Interleaved(len) | Arrangement::Gaps(len) => {
                let step = match self {
                    Arrangement::Gaps(_) => 2 * len,
                    _ => len,
                };
                let block = Datatype::contiguous(len, &byte)?;
                let tile = Datatype::resized(&block, 0, (step * ranks).cast_signed())?;
                (rank * step, tile.layout().clone(), len * PIECES)
            }
            Arrangement::Appended(len) => (rank * len, byte.layout().clone(), len),
            Arrangement::Reversed(len) => ((ranks - rank) * len, byte.layout().clone(), len),
            Arrangement::Clusters => {
                let far = if rank.is_multiple_of(8) { 1 << 40 } else { 0 };
                (far + rank * 100, byte.layout().clone(), 100)
            }
        };
        Ok(Access::new(at, layout, 0, len).expect("a simulated file ends below 2^63"))
    }
}

/// How near a method came to being chosen: where, and what was chosen instead.
struct Nearest {
    behind: u8,
    place: String,
    chosen: &'static str,
    reason: String,
}

/// How near each method came; those with a distance of 0 are chosen somewhere.
#[derive(Default)]
struct Chosen(BTreeMap<&'static str, Option<Nearest>>);

impl Chosen {
    fn note(&mut self, candidates: &Candidates, chosen: &'static str, place: &str) {
        let priority = |name: &str| {
            let known = candidates.candidates.iter().find(|it| it.0 == name);
            known.and_then(|it| it.1.priority()).unwrap_or(0)
        };
        let highest = priority(chosen);
        for (name, fitness) in &candidates.candidates {
            let nearest = self.0.entry(name).or_default();
            let behind = match fitness.priority() {
                _ if *name == chosen => 0,
                // The first of equals is chosen.
                Some(priority) => (highest - priority).max(1),
                None => continue,
            };
            if nearest.as_ref().is_none_or(|it| behind < it.behind) {
                *nearest = Some(Nearest {
                    behind,
                    place: place.to_owned(),
                    chosen,
                    reason: fitness.reason().to_owned(),
                });
            }
        }
    }

    /// Prints the methods that are chosen nowhere, and why not where they come nearest.
    fn print_rest(&self, out: &mut impl Write) -> io::Result<()> {
        for (name, nearest) in &self.0 {
            match nearest {
                Some(Nearest { behind: 0, .. }) => {}
                Some(Nearest {
                    behind,
                    place,
                    chosen,
                    reason,
                }) => writeln!(
                    out,
                    "  {name}: {reason} ({behind} behind {chosen} on {place})"
                )?,
                None => writeln!(out, "  {name}: cannot be used in any of these cases")?,
            }
        }
        Ok(())
    }
}

/// Prints the grid, and the methods that are chosen nowhere.
pub(super) fn run(arguments: &Arguments, out: &mut impl Write) -> io::Result<()> {
    writeln!(
        out,
        "{RANKS} ranks; the algorithm that is chosen, its partition and number of aggregators; \
         locks requested\nwhere servers manage them"
    )?;
    let (mut algorithms, mut partitions) = (Chosen::default(), Chosen::default());
    for system in SYSTEMS {
        let facts = system.facts();
        let mut table = Table::new(
            [(system.name, Align::Left), ("write", Align::Left)]
                .into_iter()
                .chain([("read", Align::Left)]),
        );
        for (name, arrangement) in ARRANGEMENTS {
            let accesses = (0..u64::from(RANKS)).map(|rank| arrangement.access(rank));
            let accesses: Vec<_> = accesses
                .collect::<Result<_, _>>()
                .map_err(io::Error::other)?;
            let mut row = vec![(*name).to_owned()];
            for direction in [Direction::Write, Direction::Read] {
                let (tuning, history) = (Tuning::default(), History::default());
                let case = Case::new(direction, &accesses, &facts, &tuning, &history);
                let explanation = Explanation::of(&case);
                let decision = explanation.decision();
                let verb = match direction {
                    Direction::Read => "read",
                    Direction::Write => "write",
                };
                let place = format!("{}; {verb}, {name}", system.name);
                algorithms.note(&decision.algorithms, decision.algorithm.name(), &place);
                if uses_partition(explanation.plan()) {
                    partitions.note(&decision.partitions, decision.partition.name(), &place);
                }
                row.push(cell(&explanation, arguments.why));
            }
            table.push(row);
        }
        writeln!(out)?;
        table.print(out)?;
    }
    writeln!(out, "\nchosen nowhere, and where they come nearest:")?;
    algorithms.print_rest(out)?;
    partitions.print_rest(out)
}

fn uses_partition(plan: &Plan) -> bool {
    matches!(plan, Plan::Rounds(_))
}

/// What was chosen, and why if wanted.
fn cell(explanation: &Explanation<'_>, why: bool) -> String {
    let decision = explanation.decision();
    let algorithm = decision.algorithm.name();
    let mut text = match uses_partition(explanation.plan()) {
        true => format!(
            "{algorithm} {} {}",
            decision.partition.name(),
            decision.aggregators.ranks.len()
        ),
        false => algorithm.to_owned(),
    };
    if let Some(locks) = explanation.locks() {
        text.push_str(&format!(" (locks: {})", locks.requests));
    }
    if why {
        let fitness = decision.algorithms.candidates.iter();
        let reason = fitness
            .filter(|(name, _)| *name == algorithm)
            .map(|it| it.1.reason());
        text.push_str(&reason.fold(String::new(), |_, reason| format!(": {reason}")));
        if uses_partition(explanation.plan()) {
            text.push_str(&format!("; aggregators: {}", decision.aggregators.reason));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_system_has_a_table_and_the_choices_follow_the_locks() {
        let mut text = Vec::new();
        run(&Arguments { why: false }, &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert!(SYSTEMS.iter().all(|system| text.contains(system.name)));
        assert!(
            text.contains("two-phase group-cyclic 4 (locks: 4)"),
            "{text}"
        );
        let rest = text.split("chosen nowhere").nth(1).unwrap();
        assert!(rest.contains("\n  static-cyclic: "), "{text}");
        assert!(!rest.contains("\n  group-cyclic: "), "{text}");
        assert!(rest.contains(" behind group-cyclic on lustre"), "{text}");
        let mut reasons = Vec::new();
        run(&Arguments { why: true }, &mut reasons).unwrap();
        assert!(reasons.len() > 2 * text.len());
        let reasons = String::from_utf8(reasons).unwrap();
        assert!(reasons.contains("more aggregators than the file's 4 objects"));
    }
    /// The page on parallel file systems says why.
    #[test]
    fn methods_that_are_chosen_nowhere_are_explained() {
        let page = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../docs/filesystems-parallel.md"
        );
        let page = std::fs::read_to_string(page).unwrap();
        let explained = page
            .split("Some methods are chosen nowhere")
            .nth(1)
            .unwrap();
        let explained: Vec<&str> = explained
            .lines()
            .filter_map(|line| line.strip_prefix("- "))
            .filter_map(|line| Some(line.split_once(": ")?.0))
            .flat_map(|names| names.split(", "))
            .map(|name| name.trim_matches('`'))
            .collect();
        let mut text = Vec::new();
        run(&Arguments { why: false }, &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        let rest = text.split("chosen nowhere").nth(1).unwrap();
        let mut unchosen: Vec<&str> = rest
            .lines()
            .filter_map(|line| Some(line.strip_prefix("  ")?.split_once(':')?.0))
            .collect();
        let mut explained = explained;
        explained.sort_unstable();
        unchosen.sort_unstable();
        assert_eq!(unchosen, explained);
    }
}
