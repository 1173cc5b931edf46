//! This crate under every MPI that is installed, one process for each test.
//!
//! Without arguments this program starts itself once for each MPI and test; the environment
//! tells the child what to do. `PARIO_SEED` and `PARIO_CASES` reach the random tests.
#![allow(clippy::unwrap_used)] // a test program that cargo does not know as one
#![allow(unsafe_code)] // calls functions of MPI that the crate does not wrap

#[path = "../common/mod.rs"]
mod common;

mod calls;
mod datatypes;
mod maker;
mod oracle;

use std::io::Read;
use std::process::{Child, Command, ExitCode, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use common::{Installed, installed};
use libtest_mimic::{Arguments, Failed, Trial};
use pario_mpi::{LIBRARY_VARIABLE, Runtime, Threads};

/// Tells a child which test it runs.
const TEST_VARIABLE: &str = "PARIO_MPI_TEST";

/// A child that takes longer hangs.
const TIME_MAX: Duration = Duration::from_secs(120);

/// What a child runs.
type Body = fn(&Runtime);

const TESTS: &[(&str, Body)] = &[
    ("environment and communicators", calls::environment),
    ("messages and requests", calls::messages),
    ("collective calls", calls::collectives),
    ("info objects", calls::infos),
    ("statuses and generalized requests", calls::statuses),
    ("errors", calls::errors),
    ("attributes and Fortran's handles", calls::attributes),
    ("predefined datatypes", datatypes::predefined),
    ("random datatypes pack as the host packs", datatypes::random),
    ("datatypes of other constructors", datatypes::others),
    ("large datatypes", datatypes::large),
    ("decoded datatypes are kept and dropped", datatypes::kept),
];

fn main() -> ExitCode {
    if let Ok(name) = std::env::var(TEST_VARIABLE) {
        let (_, body) = TESTS
            .iter()
            .find(|(known, _)| *known == name)
            .expect("a known test");
        let runtime = Runtime::start(Threads::Multiple).expect("the MPI starts");
        // Calls that a host refuses are for the tests to judge.
        let host = runtime.host();
        for comm in [runtime.world(), host.predefined().comm_self] {
            host.comm_return_errors(comm).expect("a predefined handler");
        }
        body(&runtime);
        return ExitCode::SUCCESS;
    }
    let mpis = installed();
    if mpis.is_empty() {
        println!("skipped: no MPI is installed");
    }
    let trial = |mpi: &Installed, name: &'static str| {
        let mpi = mpi.clone();
        Trial::test(format!("{name}: {}", mpi.name), move || run(&mpi, name))
    };
    let trials = mpis
        .iter()
        .flat_map(|mpi| TESTS.iter().map(move |(name, _)| trial(mpi, name)));
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit_code()
}

/// Runs a test in a child of its own.
fn run(mpi: &Installed, name: &str) -> Result<(), Failed> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut command = Command::new(program);
    command
        .env(TEST_VARIABLE, name)
        .env(LIBRARY_VARIABLE, &mpi.library)
        // Open MPI asks root for these; they mean nothing to others.
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let child = command.spawn().map_err(|error| error.to_string())?;
    let output = wait(child)?;
    match output.status.success() {
        true => Ok(()),
        false => Err(Failed::from(format!(
            "{}\n{}{}",
            output.status,
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        ))),
    }
}

/// Waits for a child, but not for ever.
fn wait(mut child: Child) -> Result<Output, Failed> {
    let mut pipes = (child.stdout.take(), child.stderr.take());
    let reader = thread::spawn(move || {
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        // What cannot be read is not shown.
        let _ = pipes.0.as_mut().map(|pipe| pipe.read_to_end(&mut stdout));
        let _ = pipes.1.as_mut().map(|pipe| pipe.read_to_end(&mut stderr));
        (stdout, stderr)
    });
    let started = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if started.elapsed() > TIME_MAX {
            child.kill()?;
            return Err(Failed::from(format!("took longer than {TIME_MAX:?}")));
        }
        thread::sleep(Duration::from_millis(5));
    };
    let (stdout, stderr) = reader.join().expect("reading does not panic");
    Ok(Output {
        status,
        stdout,
        stderr,
    })
}
