//! An MPI library, looked at in a process of its own: two MPIs do not fit one, and a library that
//! cannot be loaded must not end us.

use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use pario_mpi::host::loader::{Library, Visibility};
use pario_mpi::{Flavour, Host};

use crate::failure::Failure;

/// A library that takes longer to load hangs.
const TIME_MAX: Duration = Duration::from_secs(20);

/// How often the child is looked at.
const PAUSE: Duration = Duration::from_millis(5);

/// What an MPI library is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Probed {
    /// Its binary interface in words.
    pub(super) flavour: String,
    /// The version of the standard that it claims.
    pub(super) standard: String,
    /// How background operations between nodes go on while the program computes.
    pub(super) progress: String,
    /// What it calls itself, one line.
    pub(super) version: String,
}

/// In the child: loads the library and prints what it is, a line each.
pub(super) fn tell(library: &str, out: &mut impl Write) -> Result<(), Failure> {
    let failed = |reason: String| Failure::Method {
        method: library.to_owned(),
        reason,
    };
    Library::load(library, Visibility::Global).map_err(failed)?;
    let host = Host::current().map_err(|error| failed(error.to_string()))?;
    let (major, minor) = host
        .standard_version()
        .map_err(|error| failed(error.to_string()))?;
    // Later lines are how it was configured.
    let version = host.version().lines().next().unwrap_or_default();
    let version = version.split_whitespace().collect::<Vec<_>>().join(" ");
    let flavour = host.flavour().name();
    let progress = progress(host);
    writeln!(out, "{flavour}\n{major}.{minor}\n{progress}\n{version}").map_err(Failure::Output)
}

fn progress(host: &Host) -> &'static str {
    match host.flavour() {
        Flavour::OpenMpi if host.symbol("opal_progress_register").is_some() => {
            "in all of the MPI's functions (Open MPI's progress hook)"
        }
        Flavour::Mpich if host.symbol("MPIX_Async_start").is_some() => {
            "in all of the MPI's functions (MPIX_Async_start)"
        }
        _ => {
            "in file functions and completion calls; everywhere with MPI_THREAD_MULTIPLE, which \
              PARIO_THREADS=multiple asks for"
        }
    }
}

/// Looks at a library, or tells why it cannot be used.
pub(super) fn probe(library: &Path) -> Result<Probed, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let child = Command::new(program)
        .args(["doctor", "--probe"])
        .arg(library)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| error.to_string())?;
    let said = listen(child)?;
    let mut lines = said.lines();
    let mut line = || lines.next().map(str::to_owned);
    let probed = (|| {
        Some(Probed {
            flavour: line()?,
            standard: line()?,
            progress: line()?,
            version: line()?,
        })
    })();
    probed.ok_or_else(|| "it could be loaded but said nothing of itself".to_owned())
}

/// What a child prints, unless it fails or takes too long.
fn listen(mut child: Child) -> Result<String, String> {
    let started = Instant::now();
    let status = loop {
        match child.try_wait().map_err(|error| error.to_string())? {
            Some(status) => break status,
            None if started.elapsed() > TIME_MAX => {
                // It is ours, and has nothing to lose.
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("loading it took longer than {TIME_MAX:?}"));
            }
            None => thread::sleep(PAUSE),
        }
    };
    let read = |pipe: Option<&mut dyn Read>| -> io::Result<String> {
        let mut text = Vec::new();
        if let Some(pipe) = pipe {
            pipe.read_to_end(&mut text)?;
        }
        Ok(String::from_utf8_lossy(&text).into_owned())
    };
    let said = read(child.stdout.as_mut().map(|it| it as &mut dyn Read));
    let complained = read(child.stderr.as_mut().map(|it| it as &mut dyn Read));
    match status.success() {
        true => said.map_err(|error| error.to_string()),
        false => Err(reason(&complained.unwrap_or_default(), &status.to_string())),
    }
}

/// The last line of a complaint, without our own name in front.
fn reason(complaint: &str, status: &str) -> String {
    let line = complaint.lines().rev().find(|line| !line.trim().is_empty());
    let line = line.map(|line| line.strip_prefix("pario: ").unwrap_or(line));
    line.map_or_else(|| format!("loading it ended with {status}"), str::to_owned)
}
