//! Starts workers and listens to them.

use std::collections::VecDeque;
use std::env;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use super::protocol::Line;
use crate::run::program_folders;

/// A rank that tells its MPI takes no longer.
pub(super) const DESCRIBE_TIME_MAX: Duration = Duration::from_secs(60);

/// How long a launcher may take to end its ranks when it is told to.
const MERCY: Duration = Duration::from_secs(5);

/// How often an ending launcher is looked at.
const PAUSE: Duration = Duration::from_millis(20);

/// Lines of complaint that are kept.
const COMPLAINTS_MAX: usize = 40;

/// Lets Open MPI run as root: its files are in a folder of our own.
const AS_ROOT: [(&str, &str); 2] = [
    ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
    ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
];

/// Lets Open MPI 4 and 5 start more ranks than there are processors.
const OVERSUBSCRIBED: [(&str, &str); 2] = [
    ("OMPI_MCA_rmaps_base_oversubscribe", "1"),
    ("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe"),
];

/// What the ranks of a run do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WorkerCommand {
    /// `pario bench compare-worker`.
    Compare,
    /// `pario bench latency-worker`.
    Latency,
}

impl WorkerCommand {
    fn name(self) -> &'static str {
        match self {
            WorkerCommand::Compare => "compare-worker",
            WorkerCommand::Latency => "latency-worker",
        }
    }
}

/// One run of workers.
pub(crate) struct Launch<'a> {
    pub(crate) launcher: &'a Path,
    pub(crate) ranks: u32,
    pub(crate) worker: WorkerCommand,
    pub(crate) arguments: Vec<OsString>,
    pub(crate) time_max: Duration,
}

/// What comes from a run.
enum Event {
    Said(String),
    Complained(String),
}

impl Launch<'_> {
    /// Runs to the end and hands over every line that is a worker's; fails with the reason if the
    /// launcher does, or takes too long.
    pub(crate) fn run(&self, each: &mut dyn FnMut(Line)) -> Result<(), String> {
        let mut child = self.start()?;
        let deadline = Instant::now() + self.time_max;
        let (sender, events) = mpsc::channel();
        listen(child.stdout.take(), Event::Said, sender.clone());
        listen(child.stderr.take(), Event::Complained, sender);
        let mut complaints = VecDeque::new();
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match events.recv_timeout(left) {
                Ok(Event::Said(text)) => {
                    if let Some(line) = Line::parse(&text) {
                        each(line);
                    }
                }
                Ok(Event::Complained(text)) => {
                    complaints.push_back(text);
                    if complaints.len() > COMPLAINTS_MAX {
                        complaints.pop_front();
                    }
                }
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    end(&mut child);
                    return Err(format!("took longer than {} s", self.time_max.as_secs()));
                }
            }
        }
        let status = child.wait().map_err(|error| error.to_string())?;
        match status.success() {
            true => Ok(()),
            false => Err(reason(&complaints, status)),
        }
    }

    fn start(&self) -> Result<Child, String> {
        let program = env::current_exe().map_err(|error| error.to_string())?;
        let mut command = Command::new(self.launcher);
        command
            .arg("-n")
            .arg(self.ranks.to_string())
            .arg(program)
            .args(["bench", self.worker.name()])
            .args(&self.arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let as_root = match rustix::process::geteuid().is_root() {
            true => &AS_ROOT[..],
            false => &[],
        };
        for (name, value) in as_root.iter().chain(&OVERSUBSCRIBED) {
            if env::var_os(name).is_none() {
                command.env(name, value);
            }
        }
        // Some launchers are scripts that start other programs of their MPI by name.
        let own = self.launcher.parent().map(Path::to_owned);
        let folders = own.into_iter().chain(program_folders());
        if let Ok(path) = env::join_paths(folders) {
            command.env("PATH", path);
        }
        command
            .spawn()
            .map_err(|error| format!("cannot start {}: {error}", self.launcher.display()))
    }
}

/// Sends every line of a pipe on, until it ends or nobody listens.
fn listen(
    pipe: Option<impl Read + Send + 'static>,
    event: fn(String) -> Event,
    sender: Sender<Event>,
) {
    let Some(pipe) = pipe else { return };
    thread::spawn(move || {
        for line in BufReader::new(pipe).split(b'\n') {
            let Ok(line) = line else { return };
            let text = String::from_utf8_lossy(&line).into_owned();
            if sender.send(event(text)).is_err() {
                return;
            }
        }
    });
}

/// Ends a launcher: politely, so that it ends its ranks, then for certain.
fn end(child: &mut Child) {
    let pid = i32::try_from(child.id())
        .ok()
        .and_then(rustix::process::Pid::from_raw);
    if let Some(pid) = pid {
        // It may have ended by itself just now.
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
    }
    let told = Instant::now();
    while told.elapsed() < MERCY {
        if matches!(child.try_wait(), Ok(Some(_))) {
            return;
        }
        thread::sleep(PAUSE);
    }
    let _ = child.kill();
    let _ = child.wait();
}

/// The worker's own words if it said any, otherwise the launcher's last ones.
fn reason(complaints: &VecDeque<String>, status: ExitStatus) -> String {
    let own = complaints
        .iter()
        .find_map(|line| line.strip_prefix("pario: "));
    let last = || {
        let mut lines = complaints.iter().rev().map(|line| line.trim());
        lines.find(|line| line.chars().any(char::is_alphanumeric))
    };
    match own.or_else(last) {
        Some(words) => format!("{status}: {words}"),
        None => status.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    #[test]
    fn the_workers_words_are_told_first() {
        let said = |lines: &[&str]| {
            let lines = lines.iter().map(|line| (*line).to_owned()).collect();
            reason(&lines, ExitStatus::from_raw(256))
        };
        assert_eq!(said(&[]), "exit status: 1");
        assert_eq!(said(&["noise", "-----"]), "exit status: 1: noise");
        assert_eq!(
            said(&["pario: no space", "noise"]),
            "exit status: 1: no space"
        );
    }

    #[test]
    fn a_launcher_that_hangs_is_ended() {
        let folder = tempfile::tempdir().unwrap();
        let launcher = folder.path().join("mpirun");
        std::fs::write(&launcher, "#!/bin/sh\nexec sleep 100\n").unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&launcher, mode).unwrap();
        let launch = Launch {
            launcher: &launcher,
            ranks: 1,
            worker: WorkerCommand::Compare,
            arguments: Vec::new(),
            time_max: Duration::from_millis(100),
        };
        let started = Instant::now();
        let error = launch.run(&mut |_| ()).unwrap_err();
        assert!(error.contains("took longer"), "{error}");
        assert!(started.elapsed() < MERCY);
    }
}
