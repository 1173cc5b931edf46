//! This crate under every MPI that is installed, one process for each test.
//!
//! Without arguments this program starts itself once for each MPI and test; the environment
//! tells the child what to do. `PARIO_SEED` and `PARIO_CASES` reach the random tests.
#![allow(clippy::unwrap_used)] // a test program that cargo does not know as one
#![allow(unsafe_code)] // calls functions of MPI that the crate does not wrap

#[path = "../common/mod.rs"]
mod common;

mod calls;
mod conformance;
mod datatypes;
mod encoded;
mod maker;
mod oracle;
mod ranks;

use std::io::Read;
use std::process::{Child, Command, ExitCode, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use common::{Installed, NO_MPI, installed, skipped};
use libtest_mimic::{Arguments, Failed, Trial};
use pario_mpi::host::loader::{Library, Visibility};
use pario_mpi::{Host, HostError, LIBRARY_VARIABLE, Runtime, SIMULATED_NODES, Threads};
use ranks::{Launcher, RANKS, launchers};

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
    (
        "types that were seen to be made are known",
        datatypes::observed,
    ),
    (
        "sizes are kept until their types are freed",
        datatypes::sizes,
    ),
    ("our datatypes made with the host", encoded::random),
    ("limits of making datatypes", encoded::limits),
];

/// Runs under a launcher.
const RANKS_TEST: &str = "processes of a launcher";
/// The same, with all of the transport.
const CONFORMANCE_TEST: &str = "transport";
/// The same, with one thread that may call the MPI.
const FUNNELED_TEST: &str = "transport of one thread";

/// How a launcher is called.
struct Launch {
    test: &'static str,
    ranks: usize,
    /// The number of simulated nodes.
    nodes: usize,
}

const fn launch(test: &'static str, ranks: usize, nodes: usize) -> Launch {
    Launch { test, ranks, nodes }
}

const LAUNCHES: &[Launch] = &[
    launch(RANKS_TEST, RANKS, 1),
    launch(CONFORMANCE_TEST, 2, 2),
    launch(CONFORMANCE_TEST, 4, 2),
    launch(CONFORMANCE_TEST, 3, 1),
    launch(FUNNELED_TEST, 2, 2),
    launch(FUNNELED_TEST, 4, 2),
];

/// Runs before MPI is started.
const PRIVATE_TEST: &str = "an MPI that is loaded privately";

fn main() -> ExitCode {
    if let Ok(name) = std::env::var(TEST_VARIABLE) {
        child(&name);
        return ExitCode::SUCCESS;
    }
    let (mpis, launchers) = (installed(), launchers());
    if mpis.is_empty() {
        skipped("calls of an MPI", NO_MPI);
    }
    if launchers.is_empty() {
        skipped(RANKS_TEST, NO_MPI);
    }
    let mut trials = Vec::new();
    for mpi in &mpis {
        let names = TESTS.iter().map(|(name, _)| *name).chain([PRIVATE_TEST]);
        trials.extend(names.map(|name| {
            let mpi = mpi.clone();
            Trial::test(format!("{name}: {}", mpi.name), move || alone(&mpi, name))
        }));
    }
    for launcher in launchers {
        for launch in LAUNCHES {
            let name = format!("{}, {} nodes: {}", launch.test, launch.nodes, launcher.name);
            let launcher = launcher.clone();
            trials.push(Trial::test(name, move || launched(&launcher, launch)));
        }
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

fn child(name: &str) {
    if name == PRIVATE_TEST {
        return private();
    }
    let threads = match name {
        FUNNELED_TEST => Threads::Funneled,
        _ => Threads::Multiple,
    };
    let runtime = Runtime::start(threads).expect("the MPI starts");
    // Calls that a host refuses are for the tests to judge.
    let host = runtime.host();
    for comm in [runtime.world(), host.predefined().comm_self] {
        host.comm_return_errors(comm).expect("a predefined handler");
    }
    let known = TESTS.iter().chain(&[
        (RANKS_TEST, ranks::talk as Body),
        (CONFORMANCE_TEST, conformance::threaded),
        (FUNNELED_TEST, conformance::funneled),
    ]);
    let (_, body) = known
        .into_iter()
        .find(|(known, _)| *known == name)
        .expect("a known test");
    body(&runtime);
}

/// Interpreters load an MPI where only their own modules see it.
fn private() {
    assert_eq!(Host::current().map(|_| ()), Err(HostError::NoMpi));
    let path = std::env::var(LIBRARY_VARIABLE).expect("the parent sets it");
    Library::load(&path, Visibility::Local).expect("the library is there");
    let host = Host::current().expect("it is loaded");
    let file = |path: &str| std::fs::canonicalize(path).expect("a file");
    assert_eq!(file(host.path()), file(&path));
    assert!(!host.is_initialized() && !host.is_finalized());
}

/// Runs a test in a child of its own.
fn alone(mpi: &Installed, name: &str) -> Result<(), Failed> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut command = Command::new(program);
    command
        .env(TEST_VARIABLE, name)
        .env(LIBRARY_VARIABLE, &mpi.library);
    run(command)
}

/// Runs a test of several processes under a launcher.
fn launched(launcher: &Launcher, launch: &Launch) -> Result<(), Failed> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut command = Command::new(&launcher.program);
    command
        .args(["-n", &launch.ranks.to_string()])
        .arg(program)
        .env(TEST_VARIABLE, launch.test)
        .env(SIMULATED_NODES, launch.nodes.to_string())
        .env_remove(LIBRARY_VARIABLE);
    run(command)
}

/// Runs a command to its end.
fn run(mut command: Command) -> Result<(), Failed> {
    command
        // Open MPI asks root for the first two and for the rest where cores are few; they mean
        // nothing to others.
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
        .env("OMPI_MCA_rmaps_base_oversubscribe", "1")
        .env("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe")
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
