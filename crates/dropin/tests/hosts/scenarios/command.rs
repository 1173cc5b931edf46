//! The ways a program comes to the library: the command `pario` under each kind of launcher, its shim,
//! and linking.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use libtest_mimic::Trial;

use crate::host::Host;
use crate::job::{self, Ended, Line};
use crate::library::target_directory;
use crate::matrix::{LIMIT, has_checked, is_served, served_by};
use crate::place::{Ground, Place};
use crate::run::{Run, TestResult, trial};

use super::batch::{self, Batch};

const RANKS: u32 = 2;

/// Enough to make a small file, or to ask which libraries a program needs.
const QUICK: Duration = Duration::from_secs(30);

/// The program that says who serves its file.
const WHO: &str = "who";

/// Hosts of the short form: one for each ABI.
const SHORT_HOSTS: [&str; 3] = ["mpich", "openmpi", "mpich-abi"];

pub(super) fn trials(run: &Arc<Run>) -> Vec<Trial> {
    let mut trials = Vec::new();
    for host in super::hosts(run, &SHORT_HOSTS) {
        trials.push(trial(run, host, "pario-run", "launcher", own_launcher));
        for case in &batch::CASES {
            let detail = format!("{}-{}", case.batch.name(), case.name);
            let through = |run: &Run, host: &Host| through_batch(run, host, case);
            trials.push(trial(run, host, "pario-run", &detail, through));
        }
        for batch in Batch::ALL {
            let detail = format!("{}-alone", batch.name());
            let alone = move |run: &Run, host: &Host| passes_nothing_on(run, host, batch);
            trials.push(trial(run, host, "pario-run", &detail, alone));
        }
        trials.push(trial(run, host, "pario-shim", "linked", linked));
        trials.push(trial(run, host, "pario-shim", "looked-up", looked_up));
        trials.push(trial(run, host, "library", "linked", linked_first));
        trials.push(trial(run, host, "library", "exports", exports));
    }
    trials
}

/// The command, up to what follows its name.
fn pario() -> TestResult<Line> {
    let program = target_directory().join("release/pario");
    if !program.exists() {
        let program = program.display();
        return Err(format!("no {program}: run `cargo build --release` first"));
    }
    Ok(Line::new(program))
}

/// `pario run -v`, up to the launcher.
fn pario_run(run: &Run) -> TestResult<Line> {
    let line = pario()?.words(["run", "--verbose", "--library"]);
    Ok(line.word(run.library()?))
}

/// `pario run -- mpiexec -n 2 ./who`.
fn own_launcher(run: &Run, host: &Host) -> TestResult {
    let place = Place::new(Ground::Memory)?;
    let line = followed_by(pario_run(run)?.word("--"), &host.launch(RANKS));
    let ended = ask(line, host, &place)?;
    is_served(&ended)?;
    served_by(&ended, WHO, "pario")
}

/// `pario run -- srun -n 2 ./who`, and other launchers.
fn through_batch(run: &Run, host: &Host, case: &batch::Case) -> TestResult {
    let place = Place::new(Ground::Memory)?;
    let launcher = case.batch.script(host, place.path())?;
    let mut line = pario_run(run)?.words(case.of_pario);
    line = line.word("--").word(launcher).words(case.options);
    line = line.words(["-n", &RANKS.to_string()]);
    for (name, value) in case.variables {
        line = line.variable(name, value);
    }
    let ended = ask(line, host, &place)?;
    is_served(&ended)?;
    served_by(&ended, WHO, "pario")?;
    match case.printed.iter().find(|text| !ended.says(text)) {
        Some(text) => Err(ended.complaint(&format!("`{text}` is not printed"))),
        None => Ok(()),
    }
}

/// What the trials above rest on: the launcher itself gives ranks nothing of its environment.
fn passes_nothing_on(run: &Run, host: &Host, batch: Batch) -> TestResult {
    let place = Place::new(Ground::Memory)?;
    let launcher = batch.script(host, place.path())?;
    let line = Line::new(launcher)
        .words(["-n", &RANKS.to_string()])
        .variable("LD_PRELOAD", run.library()?)
        .variable("SLURM_EXPORT_ENV", "NONE");
    served_by(&ask(line, host, &place)?, WHO, "the host")
}

/// The library linked before the MPI, and nothing preloaded.
fn linked_first(run: &Run, host: &Host) -> TestResult {
    let place = Place::new(Ground::Memory)?;
    let program = super::program("linked")?;
    let directory = run
        .library()?
        .parent()
        .expect("a library is in a directory");
    let directory = directory.display();
    let flags = [
        format!("-L{directory}"),
        "-lpario".to_owned(),
        format!("-Wl,-rpath,{directory}"),
    ];
    let binary = program.compile(host, &flags)?;
    let line = host.launch(RANKS).words(["env", "PARIO_VERBOSE=1"]);
    let ended = job::run(&line.word(binary).word(place.path()), LIMIT)?.success()?;
    has_checked(&ended, &program.name)?;
    is_served(&ended)?;
    served_by(&ended, WHO, "pario")
}

/// Every function of the standard is there, under both names.
fn exports(run: &Run, host: &Host) -> TestResult {
    let place = Place::new(Ground::Memory)?;
    let program = super::program("exports")?;
    let binary = program.compile(host, &[])?;
    let line = host.launch(1).word(binary).word(place.path());
    let ended = job::run(&line.word(run.library()?), LIMIT)?.success()?;
    has_checked(&ended, &program.name)
}

/// A shim under the name of the MPI's library, which the program finds first.
fn linked(run: &Run, host: &Host) -> TestResult {
    let (place, shims) = (Place::new(Ground::Memory)?, Place::new(Ground::Disk)?);
    let binary = super::program(WHO)?.compile(host, &[])?;
    let mpi = mpi_library(&binary)?;
    let name = mpi.file_name().expect("a library is a file");
    shim(run, &mpi, &shims.path().join(name))?;
    let search = format!("LD_LIBRARY_PATH={}", shims.path().display());
    let line = host.launch(RANKS).words(["env", &search]);
    let ended = ask(line.word("PARIO_VERBOSE=1"), host, &place)?;
    is_served(&ended)?;
    served_by(&ended, WHO, "pario")
}

/// A program that looks functions up in the library that it is told to load.
fn looked_up(run: &Run, host: &Host) -> TestResult {
    let place = Place::new(Ground::Memory)?;
    let program = super::program("looked_up")?;
    let binary = program.compile(host, &[])?;
    let mpi = mpi_library(&binary)?;
    let shim_file = place.path().join("libmpi_pario.so");
    shim(run, &mpi, &shim_file)?;
    for (library, server) in [(&shim_file, "pario"), (&mpi, "the host")] {
        let line = host.launch(RANKS).word(&binary).word(place.path());
        let ended = job::run(&line.word(library), LIMIT)?.success()?;
        has_checked(&ended, &program.name)?;
        served_by(&ended, &program.name, server)?;
    }
    Ok(())
}

fn shim(run: &Run, mpi: &Path, output: &Path) -> TestResult {
    let line = pario()?.words(["shim", "--library"]).word(run.library()?);
    let line = line.word("--mpi").word(mpi).word("--output").word(output);
    job::run(&line, QUICK)?.success().map(drop)
}

/// The MPI's library that a program is linked with.
fn mpi_library(binary: &Path) -> TestResult<PathBuf> {
    const NAMES: [&str; 3] = ["libmpi.so", "libmpich.so", "libmpi_abi.so"];
    let ended = job::run(&Line::new("ldd").word(binary), QUICK)?.success()?;
    let needed = ended.stdout.lines().find_map(|line| {
        let (name, path) = line.trim().split_once(" => ")?;
        let is_mpi = NAMES.iter().any(|known| name.starts_with(known));
        // The file's own name may be longer than the one that programs ask for.
        let directory = Path::new(path.split(" (").next()?).parent()?;
        is_mpi.then(|| directory.join(name))
    });
    needed.ok_or_else(|| ended.complaint("it needs no library of an MPI"))
}

/// Runs the program that says who serves its file behind a launcher.
fn ask(launcher: Line, host: &Host, place: &Place) -> TestResult<Ended> {
    let program = super::program(WHO)?;
    let line = launcher.word(program.compile(host, &[])?);
    let line = line.word(place.path()).word("file.dat");
    let ended = job::run(&line, LIMIT)?.success()?;
    has_checked(&ended, &program.name)?;
    Ok(ended)
}

/// A command that starts another one.
fn followed_by(mut line: Line, other: &Line) -> Line {
    line.variables.extend(other.variables.clone());
    line.words(&other.words)
}

/// Writes a file that can be started.
pub(super) fn write_program(path: &Path, text: &str) -> TestResult {
    let executable = fs::Permissions::from_mode(0o755);
    fs::write(path, text)
        .and_then(|()| fs::set_permissions(path, executable))
        .map_err(|error| format!("cannot write {}: {error}", path.display()))
}
