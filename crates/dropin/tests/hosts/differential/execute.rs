//! Runs cases under a host, in batches that survive crashes and hangs.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::case::Case;
use super::record::{self, Outcome};
use super::script;
use crate::host::Host;
use crate::job::{self, Line};
use crate::place::{Ground, Place};
use crate::program::Program;
use crate::run::TestResult;

/// Whose MPI-IO serves the files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Server {
    Host,
    Pario,
}

/// How cases are run.
pub(super) struct Runner<'a> {
    host: &'a Host,
    program: PathBuf,
    /// What is preloaded where pario serves, in this order.
    preloads: Vec<PathBuf>,
}

/// Seconds after which a case counts as hung. A host's hang is not worth waiting for long.
fn backoff(server: Server) -> u64 {
    match server {
        Server::Host => 4,
        Server::Pario => 20,
    }
}

/// Enough for the cases of a batch that do not hang.
const BATCH_LIMIT: Duration = Duration::from_secs(300);

/// How much of what a crashed job printed is kept.
const KEPT: usize = 1200;

impl<'a> Runner<'a> {
    pub(super) fn new(host: &'a Host, preloads: Vec<PathBuf>) -> TestResult<Self> {
        let program = Program::find("differential", "cases")?.compile(host, &[])?;
        Ok(Runner {
            host,
            program,
            preloads,
        })
    }

    pub(super) fn host(&self) -> &Host {
        self.host
    }

    /// The outcomes of cases with equal numbers of ranks. Fewer where many crash or hang and the time is
    /// up.
    pub(super) fn run(
        &self,
        cases: &[&Case],
        server: Server,
        until: Option<Instant>,
    ) -> TestResult<Vec<Outcome>> {
        let mut outcomes = Vec::new();
        let is_late = || until.is_some_and(|until| Instant::now() > until);
        while outcomes.len() < cases.len() && (outcomes.is_empty() || !is_late()) {
            let more = self.run_some(&cases[outcomes.len()..], server)?;
            outcomes.extend(more);
        }
        Ok(outcomes)
    }

    /// Runs cases up to the first that does not finish.
    fn run_some(&self, cases: &[&Case], server: Server) -> TestResult<Vec<Outcome>> {
        let ranks = cases[0].ranks;
        debug_assert!(cases.iter().all(|case| case.ranks == ranks));
        let place = Place::new(Ground::Memory)?;
        let [scripts, records, files] =
            ["script", "record", "files"].map(|name| place.path().join(name));
        fs::create_dir(&files).map_err(|error| format!("no directory for files: {error}"))?;
        for rank in 0..ranks {
            let cases = cases.iter().enumerate();
            let text: String = cases
                .map(|(number, case)| script::of_rank(case, number, rank))
                .collect();
            fs::write(with_rank(&scripts, rank), text)
                .map_err(|error| format!("no script: {error}"))?;
        }
        let mut line = self.host.launch(ranks as u32);
        if server == Server::Pario {
            line = preloaded(line, &self.preloads);
        }
        line = line.word(&self.program).word(&files).word(&scripts);
        line = line.word(&records).word(backoff(server).to_string());
        let ended = job::run(&line, BATCH_LIMIT)?;
        let mut ranks_records = Vec::new();
        for rank in 0..ranks {
            let text = fs::read(with_rank(&records, rank)).unwrap_or_default();
            ranks_records.push(record::parse(&String::from_utf8_lossy(&text)));
        }
        let mut outcomes = Vec::new();
        for number in 0..cases.len() {
            let mut values = Vec::new();
            for record in &mut ranks_records {
                values.extend(record.finished.remove(&number));
            }
            if values.len() < ranks {
                break;
            }
            outcomes.push(Outcome::Finished(values));
        }
        if outcomes.len() == cases.len() {
            return Ok(outcomes);
        }
        let steps = ranks_records.iter().map(|record| record.last_step);
        let step = steps.max().unwrap_or(0);
        let has_hung = ranks_records.iter().any(|record| record.has_hung);
        outcomes.push(if has_hung || ended.has_timed_out() {
            Outcome::Hung(step)
        } else {
            Outcome::Crashed(step, tail(&ended.complaint(&ended.status.to_string())))
        });
        Ok(outcomes)
    }
}

/// Lets the words that follow be run with the libraries preloaded.
pub(super) fn preloaded(line: Line, libraries: &[PathBuf]) -> Line {
    let mut preload = std::ffi::OsString::from("LD_PRELOAD=");
    for (at, library) in libraries.iter().enumerate() {
        if at > 0 {
            preload.push(":");
        }
        preload.push(library);
    }
    line.word("env").word(preload)
}

fn with_rank(path: &std::path::Path, rank: usize) -> PathBuf {
    path.with_extension(rank.to_string())
}

/// The end of a text, where the reason for a crash is.
fn tail(text: &str) -> String {
    let mut start = text.len().saturating_sub(KEPT);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    text[start..].to_owned()
}
