//! Draws cases, runs them, and judges what comes out.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::case::Case;
use super::compare;
use super::execute::{Runner, Server};
use super::findings::{Finding, Findings};
use super::known::{Seen, known};
use super::record::Values;
use super::{draw, model};
use crate::host::Host;
use crate::run::Verdict;

/// Cases of one job; more would only make a crash cost more.
const BATCH: u64 = 40;

/// How much is run of one host and number of ranks.
#[derive(Clone)]
pub(super) struct Extent {
    /// The first seed; others follow.
    pub(super) seed: u64,
    pub(super) cases: u64,
    pub(super) time: Duration,
}

impl Extent {
    /// What a change must pass: few enough for minutes over all hosts.
    const CASES: u64 = 40;
    const TIME: Duration = Duration::from_secs(20);

    pub(super) fn from_environment() -> Self {
        let number = |name| std::env::var(name).ok()?.parse::<u64>().ok();
        let minutes = number("PARIO_FUZZ_MINUTES");
        let repeated = number("PARIO_SEED");
        let cases = match (number("PARIO_CASES"), minutes, repeated) {
            (Some(cases), ..) => cases,
            (None, _, Some(_)) => 1,
            (None, Some(_), None) => u64::MAX,
            (None, None, None) => Self::CASES,
        };
        let asked = number("PARIO_CASES").or(repeated);
        Extent {
            // Long runs see other cases every time.
            seed: repeated.unwrap_or_else(|| minutes.map_or(1, |_| of_clock())),
            cases,
            time: match (minutes, asked) {
                (Some(minutes), _) => Duration::from_secs(60 * minutes),
                (None, Some(_)) => Duration::MAX,
                (None, None) => Self::TIME,
            },
        }
    }
}

fn of_clock() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(1, |since| since.as_secs() << 16)
}

/// Fails with the programs of what was found.
pub(super) fn fuzz(host: &Host, preloads: Vec<PathBuf>, ranks: usize, extent: &Extent) -> Verdict {
    let started = Instant::now();
    let (findings, runner) = search(host, preloads, ranks, extent)?;
    println!("{}", findings.summary(host, ranks, started.elapsed()));
    findings.verdict(&runner)
}

/// Runs cases until there are enough, or enough was found.
pub(super) fn search<'a>(
    host: &'a Host,
    preloads: Vec<PathBuf>,
    ranks: usize,
    extent: &Extent,
) -> Verdict<(Findings, Runner<'a>)> {
    let runner = Runner::new(host, preloads)?;
    let started = Instant::now();
    let mut findings = Findings::default();
    let mut seed = extent.seed;
    let end = extent.seed.saturating_add(extent.cases);
    while seed < end && started.elapsed() < extent.time && !findings.are_enough() {
        let next = seed.saturating_add(BATCH).min(end);
        let cases: Vec<(Case, Vec<Values>)> = (seed..next)
            .filter_map(|seed| {
                let case = draw::case(seed, ranks);
                let expected = model::outcome(&case).ok()?;
                Some((case, expected))
            })
            .collect();
        batch(&runner, &cases, &mut findings)?;
        seed = next;
    }
    Ok((findings, runner))
}

/// `PARIO_FUZZ_ONLY=pario` leaves the host's own MPI-IO out: pario is compared with the model alone,
/// and many more cases are seen in the same time.
fn servers() -> &'static [Server] {
    match std::env::var("PARIO_FUZZ_ONLY").as_deref() {
        Ok("pario") => &[Server::Pario],
        _ => &[Server::Pario, Server::Host],
    }
}

fn batch(runner: &Runner<'_>, cases: &[(Case, Vec<Values>)], findings: &mut Findings) -> Verdict {
    let only: Vec<&Case> = cases.iter().map(|(case, _)| case).collect();
    if only.is_empty() {
        return Ok(());
    }
    findings.cases += only.len();
    findings.steps += only.iter().map(|case| case.steps.len()).sum::<usize>();
    for &server in servers() {
        let outcomes = runner.run(&only, server)?;
        for ((case, expected), outcome) in cases.iter().zip(&outcomes) {
            let Some(difference) = compare::difference(case, expected, outcome) else {
                continue;
            };
            let seen = Seen {
                case,
                expected,
                difference: &difference,
            };
            match known(server, runner.host(), &seen) {
                Some(known) => findings.count_known(known.reason),
                None => findings.add(Finding {
                    server,
                    case: case.clone(),
                    difference,
                }),
            }
        }
    }
    Ok(())
}
