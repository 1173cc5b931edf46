//! Tools that wrap the same functions, in front of pario and behind it.

use std::ffi::OsString;
use std::sync::Arc;

use libtest_mimic::Trial;

use crate::job::{self, Ended};
use crate::matrix::{LIMIT, has_checked, is_served};
use crate::place::{Ground, Place};
use crate::program::Program;
use crate::run::{Run, TestResult, trial};

const RANKS: u32 = 2;

/// A tool at its place in the list of preloaded libraries, and what it must have seen.
struct Case {
    tool: &'static str,
    is_in_front: bool,
    seen: &'static [&'static str],
}

/// Behind pario a tool sees none of the program's calls, but the writes to the file.
const CASES: [Case; 4] = [
    Case {
        tool: "pmpi_tool",
        is_in_front: true,
        seen: &["file calls"],
    },
    Case {
        tool: "pmpi_tool",
        is_in_front: false,
        seen: &[],
    },
    Case {
        tool: "posix_tool",
        is_in_front: true,
        seen: &["MPI file calls", "POSIX writes"],
    },
    Case {
        tool: "posix_tool",
        is_in_front: false,
        seen: &["POSIX writes"],
    },
];

pub(super) fn trials(run: &Arc<Run>) -> Vec<Trial> {
    let mut trials = Vec::new();
    for host in super::hosts(run, &["mpich", "openmpi"]) {
        for case in &CASES {
            let place = if case.is_in_front { "front" } else { "behind" };
            let detail = format!("{}-{place}", case.tool);
            trials.push(trial(run, host, "tools", &detail, move |run, host| {
                let tool = Program::find("programs", case.tool)?.compile(host, &[])?;
                let program = super::program("exercise")?;
                let binary = program.compile(host, &[])?;
                let directory = Place::new(Ground::Memory)?;
                let library = run.library()?.as_os_str();
                let order = if case.is_in_front {
                    [tool.as_os_str(), library]
                } else {
                    [library, tool.as_os_str()]
                };
                let mut preload = OsString::from("LD_PRELOAD=");
                preload.push(order.join(std::ffi::OsStr::new(":")));
                let line = host.launch(RANKS).word("env").word(preload);
                let line = line
                    .word("PARIO_VERBOSE=1")
                    .word(binary)
                    .word(directory.path());
                let ended = job::run(&line, LIMIT)?.success()?;
                has_checked(&ended, &program.name)?;
                is_served(&ended)?;
                has_seen(&ended, case)
            }));
        }
    }
    trials
}

/// Fails unless the tool's line has a number other than zero before each of the words.
fn has_seen(ended: &Ended, case: &Case) -> TestResult {
    let prefix = format!("{}: ", case.tool);
    let mut lines = ended.stderr.lines().chain(ended.stdout.lines());
    let Some(line) = lines.find_map(|line| line.strip_prefix(&prefix)) else {
        return Err(ended.complaint("the tool says nothing"));
    };
    for what in case.seen {
        let before = line.split(what).next().unwrap_or_default().trim_end();
        let number = before
            .rsplit(' ')
            .next()
            .and_then(|word| word.parse::<u64>().ok());
        if number.unwrap_or(0) == 0 {
            return Err(ended.complaint(&format!("the tool saw no {what}")));
        }
    }
    Ok(())
}
