//! Programs compiled for MPICH that run with Intel's library in the place of MPICH's: the two have
//! one ABI. MPICH's Fortran library comes along, and with it the module mpi_f08, of which Intel's
//! package has procedures for Intel's compiler only.

use std::os::unix::fs::symlink;
use std::sync::Arc;

use libtest_mimic::Trial;

use crate::host::Host;
use crate::job;
use crate::matrix::{LIMIT, has_checked, is_served, preloaded};
use crate::place::{Ground, Place};
use crate::program::Program;
use crate::run::{Effort, Run, TestResult, trial};

/// Whose programs are run, and what their library is called.
const COMPILED_FOR: (&str, &str) = ("mpich", "libmpich.so.12");

/// Whose library is put in its place, and what it is called.
const RUN_UNDER: (&str, &str) = ("impi", "libmpi.so.12");

const PROGRAMS: [&str; 5] = [
    "fortran_f08.f90",
    "fortran_datarep_f08.f90",
    "fortran_mpif.f90",
    "views.c",
    "nonblocking.c",
];

pub(super) fn trials(run: &Arc<Run>) -> Vec<Trial> {
    let (programs, ranks): (&[_], &[u32]) = match run.effort {
        Effort::Short => (&PROGRAMS[..2], &[2]),
        Effort::Full => (&PROGRAMS, &[1, 2, 3, 4]),
    };
    let mut trials = Vec::new();
    for &file in programs {
        for &ranks in ranks {
            let detail = format!("{file}-{ranks}");
            let body = move |run: &Run, host: &Host| swapped(run, host, file, ranks);
            trials.push(trial(run, RUN_UNDER.0, "swapped-library", &detail, body));
        }
    }
    trials
}

fn swapped(run: &Run, host: &Host, file: &str, ranks: u32) -> TestResult {
    let original = run.host(COMPILED_FOR.0);
    original.check()?;
    let program = Program::find_file("programs", file)?;
    let binary = program.compile(original, &[])?;
    let (place, links) = (Place::new(program.ground())?, Place::new(Ground::Disk)?);
    let libraries = host.libraries().ok_or("it has no directory of its own")?;
    symlink(
        libraries.join(RUN_UNDER.1),
        links.path().join(COMPILED_FOR.1),
    )
    .map_err(|error| format!("no link to the library: {error}"))?;
    let search = format!(
        "LD_LIBRARY_PATH={}:{}",
        links.path().display(),
        libraries.display()
    );
    let line = preloaded(run, host.launch(ranks))?.word(search);
    let ended = job::run(&line.word(binary).word(place.path()), LIMIT)?.success()?;
    has_checked(&ended, &program.name)?;
    if !ended.says("MPI: Intel") {
        return Err(ended.complaint("it did not run under Intel's library"));
    }
    is_served(&ended)
}
