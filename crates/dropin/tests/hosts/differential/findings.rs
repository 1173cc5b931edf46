//! What was found, for the reader of the log.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use super::case::Case;
use super::compare::Difference;
use super::execute::{Runner, Server};
use super::fuzz::Extent;
use super::known::known;
use super::record::Values;
use super::seen::Seen;
use super::{model, print, shrink};
use crate::host::Host;
use crate::library::target_directory;
use crate::run::TestResult;

/// Findings past this many say little more.
const ENOUGH: usize = 60;

/// How many are shrunk, of different categories.
const SHRUNK: usize = 3;

pub(super) struct Finding {
    pub(super) server: Server,
    pub(super) case: Case,
    pub(super) difference: Difference,
}

#[derive(Default)]
pub(super) struct Findings {
    /// Cases run under pario and under the host.
    cases: [usize; 2],
    known: BTreeMap<&'static str, usize>,
    found: Vec<Finding>,
}

impl Findings {
    pub(super) fn add(&mut self, finding: Finding) {
        self.found.push(finding);
    }

    pub(super) fn count_cases(&mut self, server: Server, many: usize) {
        match server {
            Server::Pario => self.cases[0] += many,
            Server::Host => self.cases[1] += many,
        }
    }

    pub(super) fn count_known(&mut self, reason: &'static str) {
        *self.known.entry(reason).or_default() += 1;
    }

    pub(super) fn are_enough(&self) -> bool {
        self.found.len() >= ENOUGH
    }

    pub(super) fn summary(&self, host: &Host, ranks: usize, took: Duration) -> String {
        let (name, [ours, theirs]) = (host.name, self.cases);
        let seconds = took.as_secs_f64();
        let mut text = format!(
            "differential: {name}, {ranks} ranks: {ours} cases with pario and {theirs} without it in \
             {seconds:.1} s, {} unexplained differences",
            self.found.len()
        );
        for (reason, many) in &self.known {
            let _ = write!(text, "\n  {many} times known: {reason}");
        }
        text
    }

    /// The first thing that pario does wrong.
    pub(super) fn of_pario(&self) -> Option<&Finding> {
        let mut found = self.found.iter();
        found.find(|finding| finding.server == Server::Pario)
    }

    /// Shrinks the first finding of each category and prints it as a program.
    pub(super) fn result(&self, runner: &Runner<'_>) -> TestResult {
        if self.found.is_empty() {
            return Ok(());
        }
        // How many cases are run depends on the machine: a fault of the host's that nobody has met
        // before must not fail a change of pario's. Long runs ask for it to be looked at.
        if self.of_pario().is_none() && !Extent::is_asked_for() {
            for finding in &self.found {
                let (seed, difference) = (finding.case.seed, &finding.difference);
                eprintln!("differential: the host alone differs with seed {seed}: {difference}");
            }
            return Ok(());
        }
        let mut categories: BTreeMap<(&str, String), Vec<&Finding>> = BTreeMap::new();
        for finding in &self.found {
            // Whatever pario does wrong comes first.
            let who = match finding.server {
                Server::Pario => "pario",
                Server::Host => "the host",
            };
            let category = (who, finding.difference.category());
            categories.entry(category).or_default().push(finding);
        }
        let mut text = String::new();
        let mut ordered: Vec<_> = categories.iter().collect();
        ordered.sort_by_key(|((who, _), _)| *who != "pario");
        for ((who, category), found) in &ordered {
            let seeds: Vec<String> = found.iter().map(|it| it.case.seed.to_string()).collect();
            let seeds = seeds.join(" ");
            let _ = writeln!(text, "{who} differs in {category}, seeds {seeds}");
        }
        let is_shrinking = std::env::var("PARIO_SHRINK").map_or(true, |value| value != "0");
        for (_, found) in ordered.iter().take(SHRUNK) {
            let finding = found[0];
            let _ = match is_shrinking {
                true => {
                    let shrunk = finding.program(runner)?;
                    writeln!(text, "\n{}:\n{}", shrunk.path.display(), shrunk.text)
                }
                false => writeln!(text, "\n{}", finding.difference),
            };
        }
        Err(text)
    }
}

/// A finding made small.
pub(super) struct Shrunk {
    pub(super) case: Case,
    /// The program that runs it, and the file that has it.
    pub(super) text: String,
    pub(super) path: PathBuf,
}

impl Finding {
    /// The smallest case that shows it, as a program.
    pub(super) fn program(&self, runner: &Runner<'_>) -> TestResult<Shrunk> {
        let aspect = self.difference.aspect();
        let is_same = |case: &Case, expected: &[Values], difference: &Difference| {
            let seen = Seen {
                case,
                expected,
                difference,
            };
            difference.aspect() == aspect && known(self.server, runner.host(), &seen).is_none()
        };
        let (case, difference) = shrink::shrink(
            runner,
            self.server,
            self.case.clone(),
            self.difference.clone(),
            &is_same,
        )?;
        let expected = model::outcome(&case).map_err(|rejected| rejected.0.to_owned())?;
        let (host, ranks, seed) = (runner.host().name, self.case.ranks, self.case.seed);
        let who = match self.server {
            Server::Pario => "with libpario.so",
            Server::Host => "without libpario.so",
        };
        let story = format!(
            "Under {host} {who}: {difference}\nFrom PARIO_SEED={seed}, {host}/differential/{ranks}."
        );
        let text = print::program(&case, &expected, &story);
        let directory = target_directory().join("differential");
        let path = directory.join(format!("{host}-{ranks}-{seed}.c"));
        fs::create_dir_all(&directory).map_err(|error| error.to_string())?;
        fs::write(&path, &text).map_err(|error| error.to_string())?;
        Ok(Shrunk { case, text, path })
    }
}
