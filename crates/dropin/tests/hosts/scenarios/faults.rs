//! Calls of libc that fail under pario: the library `fault_shim` in front of it makes the n-th call of
//! each kind fail, and the program `injected` checks what becomes of it.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use libtest_mimic::Trial;

use crate::host::Host;
use crate::job::{self, Ended, Line};
use crate::matrix::has_checked;
use crate::place::{Ground, Place};
use crate::run::{Effort, Run, TestResult, trial};

/// For one job; the program itself ends rounds that hang.
const LIMIT: Duration = Duration::from_secs(1200);

/// What makes pario take other ways: a name, and hints or other variables.
const SETTINGS: [(&str, &[&str]); 9] = [
    ("plain", &[]),
    ("uring", &["PARIO_HINTS=pario_driver=uring"]),
    ("mapped", &["PARIO_HINTS=pario_driver=mapped"]),
    (
        "direct",
        &["PARIO_HINTS=direct_read=true;direct_write=true"],
    ),
    ("side-file", &["PARIO_HINTS=pario_shared_pointer=file"]),
    ("locked", &["PARIO_HINTS=pario_rmw=locked"]),
    ("pool", &["PARIO_HINTS=pario_async=pool"]),
    (
        "windows",
        &[
            "PARIO_HINTS=cb_buffer_size=8192;pario_slice_bytes=4096;romio_cb_write=enable;romio_cb_read=enable;pario_sync_on_close=true",
        ],
    ),
    ("nodes", &["PARIO_NODES=2"]),
];

/// What a process does once: a kind of call, and an error for it.
const FIRST: [(&str, i32); 12] = [
    ("io_uring_setup", libc::ENOMEM),
    ("io_uring_enter", libc::EBADF),
    ("eventfd", libc::EMFILE),
    ("write to a counter", libc::EAGAIN),
    ("pthread_create", libc::EAGAIN),
    ("memfd_create", libc::EMFILE),
    ("mmap", libc::ENOMEM),
    ("munmap", libc::ENOMEM),
    ("allocate", libc::ENOSPC),
    ("open", libc::EMFILE),
    ("read", libc::EIO),
    ("stat", libc::EIO),
];

/// More calls of a kind than this are not made to fail in a process of their own.
const FIRST_CALLS: [u32; 5] = [1, 2, 3, 6, 9];

pub(super) fn trials(run: &Arc<Run>) -> Vec<Trial> {
    let mut trials = Vec::new();
    for host in super::hosts(
        run,
        &["mpich", "openmpi", "mpich-new", "openmpi-new", "impi"],
    ) {
        let is_main = host == "mpich";
        let ranks: &[u32] = match run.effort {
            Effort::Short if is_main => &[1, 2, 4],
            Effort::Short => &[2],
            Effort::Full => &[1, 2, 4],
        };
        for &ranks in ranks {
            for (setting, variables) in SETTINGS {
                if run.effort == Effort::Short && setting != "plain" && (ranks != 2 || !is_main) {
                    continue;
                }
                let detail = format!("{ranks}+{setting}");
                trials.push(trial(
                    run,
                    host,
                    "injected-faults",
                    &detail,
                    move |run, host| {
                        let how = match run.effort {
                            Effort::Short => "short",
                            Effort::Full => "full",
                        };
                        injected(run, host, ranks, variables, &[how]).map(drop)
                    },
                ));
            }
        }
        if run.effort == Effort::Full || is_main {
            trials.push(trial(
                run,
                host,
                "injected-faults",
                "2+first-use",
                first_use,
            ));
        }
    }
    trials
}

/// Runs the program, which must pass.
fn injected(
    run: &Run,
    host: &Host,
    ranks: u32,
    variables: &[&str],
    arguments: &[&str],
) -> TestResult<Ended> {
    let shim = super::program("fault_shim")?.compile(host, &[])?;
    let program = super::program("injected")?;
    let binary = program.compile(host, &[])?;
    let place = Place::new(Ground::Memory)?;
    let line = behind(run, &shim, host.launch(ranks))?.words(variables);
    let line = line.word(binary).word(place.path()).words(arguments);
    let ended = job::run(&line, LIMIT)?.success()?;
    has_checked(&ended, &program.name)?;
    Ok(ended)
}

/// Preloads the shim in front of the library under test. UCX would put its own `mmap` in front of both.
fn behind(run: &Run, shim: &Path, line: Line) -> TestResult<Line> {
    let mut preload = OsString::from("LD_PRELOAD=");
    preload.push(shim);
    preload.push(":");
    preload.push(run.library()?);
    let line = line.word("env").word(preload);
    Ok(line.word("UCX_MEM_MMAP_HOOK_MODE=none"))
}

/// Calls that a process makes when it uses something for the first time fail, each in a process of its own, up to
/// the first that nothing comes of.
fn first_use(run: &Run, host: &Host) -> TestResult {
    let mut fired = 0;
    for (kind, error) in FIRST {
        for victim in ["0", "1"] {
            for nth in FIRST_CALLS {
                let arguments = ["first", kind, &nth.to_string(), &error.to_string(), victim];
                let ended = injected(run, host, 2, &[], &arguments)?;
                if !ended.says("injected: fired: ") {
                    break;
                }
                fired += 1;
            }
        }
    }
    match fired {
        0 => Err("no call failed: the shim does not see those of the library".into()),
        _ => Ok(()),
    }
}
