//! Draws cases, runs them, and judges what comes out.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::case::Case;
use super::compare;
use super::execute::{Runner, Server};
use super::findings::{Finding, Findings};
use super::known::known;
use super::record::Values;
use super::seen::Seen;
use super::{draw, model};
use crate::host::Host;
use crate::run::TestResult;

/// Cases of one job; more would only make a crash cost more.
const BATCH: u64 = 20;

/// How much is run of one host and number of ranks.
#[derive(Clone)]
pub(super) struct Extent {
    /// The first seed; others follow.
    pub(super) seed: u64,
    pub(super) cases: u64,
    pub(super) time: Duration,
    /// Under whom cases are run.
    pub(super) servers: &'static [Server],
}

impl Extent {
    /// What a change must pass: few enough for two minutes over all hosts.
    const CASES: u64 = 40;
    const TIME: Duration = Duration::from_secs(12);

    /// What the environment asks for, of one of `trials` trials.
    pub(super) fn from_environment(trials: u64) -> Self {
        let number = |name| std::env::var(name).ok()?.parse::<u64>().ok();
        // Without the host's own MPI-IO pario is compared with the model alone, and many more cases are
        // seen in the same time.
        let servers: &[Server] = match std::env::var("PARIO_FUZZ_ONLY").as_deref() {
            Ok("pario") => &[Server::Pario],
            _ => &[Server::Pario, Server::Host],
        };
        let (seed, cases) = (number("PARIO_SEED"), number("PARIO_CASES"));
        let (seed, cases, time) = match (number("PARIO_FUZZ_MINUTES"), seed, cases) {
            (Some(minutes), seed, cases) => (
                // Long runs see other cases every time.
                seed.unwrap_or_else(of_clock),
                cases.unwrap_or(u64::MAX),
                Duration::from_secs(60 * minutes / trials.max(1)),
            ),
            (None, Some(seed), cases) => (seed, cases.unwrap_or(1), Duration::MAX),
            (None, None, Some(cases)) => (1, cases, Duration::MAX),
            (None, None, None) => (1, Self::CASES, Self::TIME),
        };
        Extent {
            seed,
            cases,
            time,
            servers,
        }
    }

    /// Whether the environment asks for more than the usual.
    pub(super) fn is_asked_for() -> bool {
        let names = ["PARIO_FUZZ_MINUTES", "PARIO_SEED", "PARIO_CASES"];
        names.iter().any(|name| std::env::var_os(name).is_some())
    }
}

fn of_clock() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(1, |since| since.as_secs() << 16)
}

/// Fails with the programs of what was found.
pub(super) fn fuzz(
    host: &Host,
    preloads: Vec<PathBuf>,
    ranks: usize,
    extent: &Extent,
) -> TestResult {
    let started = Instant::now();
    let (findings, runner) = search(host, preloads, ranks, extent)?;
    println!("{}", findings.summary(host, ranks, started.elapsed()));
    findings.result(&runner)
}

/// Runs cases until there are enough, or enough was found.
pub(super) fn search<'a>(
    host: &'a Host,
    preloads: Vec<PathBuf>,
    ranks: usize,
    extent: &Extent,
) -> TestResult<(Findings, Runner<'a>)> {
    let runner = Runner::new(host, preloads)?;
    let started = Instant::now();
    let mut findings = Findings::default();
    let mut seed = extent.seed;
    let end = extent.seed.saturating_add(extent.cases);
    let until = started.checked_add(extent.time);
    while seed < end && started.elapsed() < extent.time && !findings.are_enough() {
        let next = seed.saturating_add(BATCH).min(end);
        let cases: Vec<(Case, Vec<Values>)> = (seed..next)
            .filter_map(|seed| {
                let case = draw::case(seed, ranks);
                let expected = model::outcome(&case).ok()?;
                Some((case, expected))
            })
            .collect();
        batch(&runner, extent.servers, &cases, until, &mut findings)?;
        seed = next;
    }
    Ok((findings, runner))
}

fn batch(
    runner: &Runner<'_>,
    servers: &[Server],
    cases: &[(Case, Vec<Values>)],
    until: Option<Instant>,
    findings: &mut Findings,
) -> TestResult {
    let only: Vec<&Case> = cases.iter().map(|(case, _)| case).collect();
    if only.is_empty() {
        return Ok(());
    }
    for &server in servers {
        let outcomes = runner.run(&only, server, until)?;
        findings.count_cases(server, outcomes.len());
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
