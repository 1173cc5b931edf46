//! Two jobs, each with a handle of its own, that write to each other's holes.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
    sync::Arc,
    thread,
    time::Duration,
};

use pario::{Basic, Datatype, File, Info, Result, View};
use pario_driver::Posix;
use pario_transport::Transport;

use crate::{
    NEW, begin_case,
    careless::{Careless, Locks},
    directories::{directories, with_leases},
    neighbour, run,
};

/// The argument with which this program is the second job: the file, its driver and the hints follow.
pub(crate) const ROLE: &str = "job";

/// The ranks of a job.
const RANKS: u32 = 2;
const PIECE: u64 = 64;
/// Enough for a lease to pay off.
const PIECES: u64 = 4096;
const STRIDE: u64 = PIECE * 2 * RANKS as u64;
const BYTES: usize = (PIECE * PIECES) as usize;
const ROUNDS: u8 = 16;

/// The driver that forges leases; others are prefixes of names.
const FORGING: &str = "forging";
/// Hints: none, or those with which pieces are rewritten on any machine.
const AUTOMATIC: &str = "automatic";
const REWRITING: &str = "rewriting";

/// One of the two.
#[derive(Clone, Copy)]
struct Job<'a> {
    number: u32,
    path: &'a Path,
    driver: &'a str,
    hints: &'a str,
}

impl Job<'_> {
    /// Runs its ranks; returns what they lost.
    fn complaints(&self) -> Vec<String> {
        let complaints = run(RANKS, |comm| self.work(comm));
        // The other one may wait for it, even if this one has failed.
        self.report().unwrap();
        complaints
    }

    /// Rounds in which the file is opened, written and closed, so that both have leases. All but the
    /// first are rounds of both jobs.
    fn work(&self, comm: &Arc<dyn Transport>) -> Result<Option<String>> {
        let mut wrong = None;
        for round in 1..=ROUNDS {
            wrong = wrong.or(self.round(comm, round)?);
            self.report().unwrap();
            while !self.sign(1 - self.number).exists() {
                thread::sleep(Duration::from_micros(100));
            }
        }
        Ok(wrong)
    }

    fn round(&self, comm: &Arc<dyn Transport>, round: u8) -> Result<Option<String>> {
        let file = self.open(comm)?;
        file.set_view(&self.view(comm.rank().0)?)?;
        let data = vec![round; BYTES];
        neighbour::write_by_turns(&file, round, data)?;
        comm.barrier()?;
        let mut found = vec![0; BYTES];
        file.read_at(0, &mut found)?;
        file.close()?;
        let wrong = found.iter().position(|byte| *byte != round);
        let job = self.number;
        Ok(wrong.map(|at| format!("byte {at} of job {job} in round {round}")))
    }

    fn open(&self, comm: &Arc<dyn Transport>) -> Result<File> {
        let info = match self.hints {
            AUTOMATIC => Info::new(),
            _ => neighbour::info(),
        };
        if self.driver == FORGING {
            let driver = Careless::over(Posix::new(), Locks::Ignored);
            return File::open_with(comm, driver, self.path, NEW, &info);
        }
        let name = format!("{}{}", self.driver, self.path.display());
        File::open(comm, name, NEW, &info)
    }

    fn view(&self, rank: u32) -> Result<View> {
        let byte = Datatype::basic(Basic::Byte);
        let piece = Datatype::contiguous(PIECE, &byte)?;
        let tile = Datatype::resized(&piece, 0, STRIDE as i64)?;
        // The ranks of the jobs take turns.
        let place = u64::from(2 * rank + self.number);
        Ok(View::new(place * PIECE, &byte, &tile))
    }

    /// The file by which a job says that it has written a round.
    fn sign(&self, job: u32) -> PathBuf {
        self.path.with_extension(job.to_string())
    }

    fn report(&self) -> io::Result<()> {
        fs::write(self.sign(self.number), [])
    }
}

/// What the second job does.
pub(crate) fn be_job(arguments: &[&str]) -> ExitCode {
    let [path, driver, hints] = arguments else {
        return ExitCode::FAILURE;
    };
    begin_case();
    let job = Job {
        number: 1,
        path: Path::new(path),
        driver,
        hints,
    };
    let complaints = job.complaints();
    print!("{}", complaints.join("\n"));
    ExitCode::SUCCESS
}

/// What two jobs lose.
fn lost(path: &Path, driver: &str, hints: &str) -> Vec<String> {
    begin_case();
    let other = Command::new(std::env::current_exe().unwrap())
        .args([ROLE, path.to_str().unwrap(), driver, hints])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let job = Job {
        number: 0,
        path,
        driver,
        hints,
    };
    let mut complaints = job.complaints();
    let other = other.wait_with_output().unwrap();
    if !other.status.success() {
        complaints.push(format!("the second job: {}", other.status));
    }
    let said = String::from_utf8_lossy(&other.stdout);
    complaints.extend(said.lines().map(str::to_owned));
    let found = fs::read(path).unwrap();
    if found.len() as u64 != STRIDE * PIECES || found.iter().any(|byte| *byte != ROUNDS) {
        complaints.push("the file is not as both have left it".to_owned());
    }
    complaints
}

pub(crate) fn lose_nothing(seed: u64, prefix: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    for directory in directories() {
        for hints in [AUTOMATIC, REWRITING] {
            let path = directory.path().join(format!("{hints} {seed}"));
            let lost = lost(&path, prefix, hints);
            complaints.extend(
                lost.into_iter()
                    .map(|it| format!("{hints}, {path:?}: {it}")),
            );
        }
    }
    complaints
}

/// Jobs that forge leases lose bytes.
pub(crate) fn can_fail(_seed: u64, _variant: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    for directory in with_leases() {
        let path = |attempt: u32| directory.path().join(attempt.to_string());
        if !(0..20).any(|attempt| !lost(&path(attempt), FORGING, REWRITING).is_empty()) {
            complaints.push(format!("{directory:?}: nothing was lost"));
        }
    }
    complaints
}
