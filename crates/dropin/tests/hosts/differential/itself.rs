//! The fuzzer finds a library that is broken on purpose, and shrinks what it finds to a small program.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::execute::{Server, preloaded};
use super::findings::Findings;
use super::fuzz::{Extent, search};
use crate::host::Host;
use crate::job::{self, Ended};
use crate::place::{Ground, Place};
use crate::program::Program;
use crate::run::TestResult;

/// Enough for one small program.
const LIMIT: Duration = Duration::from_secs(60);

/// Few cases are enough to see a byte of every longer write come out wrong.
const EXTENT: Extent = Extent {
    seed: 1,
    cases: 30,
    time: Duration::from_secs(60),
    servers: &[Server::Pario],
};

/// Lines of the part of a program that is not the same in all of them.
const LINES: usize = 70;

pub(super) fn finds_a_flipped_bit(host: &Host, library: &Path) -> TestResult {
    let flip = Program::find("differential", "flip")?.compile(host, &[])?;
    let broken = vec![library.to_owned(), flip];
    let (findings, runner): (Findings, _) = search(host, broken.clone(), 2, &EXTENT)?;
    let finding = findings
        .of_pario()
        .ok_or("30 cases with a broken library look right")?;
    let shrunk = finding.program(&runner)?;
    let lines = shrunk.text.lines();
    let lines = lines.skip_while(|line| !line.contains("int main")).count();
    if shrunk.case.ranks != 1 || shrunk.case.steps.len() > 2 || lines > LINES {
        return Err(format!("this is not small:\n{}", shrunk.text));
    }
    let program = Program::at(shrunk.path)?.compile(host, &[])?;
    let bad = run(host, &program, &broken)?;
    if bad.status.success() || !bad.says("  not =") {
        return Err(bad.complaint("the printed program does not show what was found"));
    }
    run(host, &program, &broken[..1])?.success().map(drop)
}

fn run(host: &Host, program: &Path, libraries: &[PathBuf]) -> TestResult<Ended> {
    let place = Place::new(Ground::Memory)?;
    let line = preloaded(host.launch(1), libraries);
    job::run(&line.word(program).word(place.path()), LIMIT)
}
