//! A test program with a single-threaded `main`, which forking ranks need, that
//! talks like the ones cargo makes.
#![allow(unsafe_code)] // alarm has no wrapper in the standard library

use std::io::Write;
use std::panic::{self, AssertUnwindSafe};
use std::process::ExitCode;
use std::time::Instant;

use pario_transport::conformance::{self, Launcher, PLACEMENTS, Setting};

/// A test that takes longer hangs. The alarm ends the program, and with it the
/// ranks it has forked; the last line printed names the test.
const SECONDS_MAX: u32 = 120;

/// A named test, which may be skipped for a reason.
pub(crate) struct Test {
    name: String,
    body: Box<dyn Fn() -> Outcome>,
}

/// The result of a test that did not panic.
pub(crate) enum Outcome {
    Passed,
    #[allow(dead_code)] // not all programs have tests that need privileges
    Skipped(String),
}

impl Test {
    pub(crate) fn new(name: impl Into<String>, body: impl Fn() -> Outcome + 'static) -> Self {
        Test {
            name: name.into(),
            body: Box::new(body),
        }
    }

    #[allow(dead_code)] // for programs that run the suite in several ways
    pub(crate) fn prefixed(self, prefix: &str) -> Self {
        Test {
            name: format!("{prefix}{}", self.name),
            ..self
        }
    }

    #[allow(dead_code)] // for programs that run a part of the suite
    pub(crate) fn name(&self) -> &str {
        &self.name
    }
}

/// The conformance suite: one test for each case and placement.
pub(crate) fn conformance_tests(launcher: &'static dyn Launcher) -> Vec<Test> {
    let mut tests = Vec::new();
    for case in conformance::cases() {
        for nodes in PLACEMENTS {
            let ranks = nodes.len() as u32;
            if !case.ranks.contains(&ranks) {
                continue;
            }
            let name = format!("{} on nodes {nodes:?}", case.name);
            let check = case.check;
            tests.push(Test::new(name, move || {
                check(&Setting::from_environment(launcher, nodes));
                Outcome::Passed
            }));
        }
    }
    tests
}

/// Runs the tests whose names contain the arguments, or lists them.
pub(crate) fn main(tests: Vec<Test>) -> ExitCode {
    let arguments = std::env::args().skip(1).collect::<Vec<_>>();
    let filters = arguments
        .iter()
        .filter(|argument| !argument.starts_with('-'))
        .collect::<Vec<_>>();
    let is_wanted = |test: &Test| {
        filters.is_empty() || filters.iter().any(|filter| test.name.contains(*filter))
    };
    let all = tests.len();
    let wanted = tests.into_iter().filter(is_wanted).collect::<Vec<_>>();
    if arguments.iter().any(|argument| argument == "--list") {
        for test in &wanted {
            println!("{}: test", test.name);
        }
        return ExitCode::SUCCESS;
    }
    run(&wanted, all - wanted.len())
}

fn run(tests: &[Test], filtered: usize) -> ExitCode {
    let start = Instant::now();
    let (mut passed, mut skipped, mut failed) = (0, 0, Vec::new());
    println!("\nrunning {} tests", tests.len());
    for test in tests {
        print!("test {} ... ", test.name);
        let _ = std::io::stdout().flush();
        // SAFETY: sets a timer; the default action of its signal is to end the
        // program.
        unsafe { libc::alarm(SECONDS_MAX) };
        match panic::catch_unwind(AssertUnwindSafe(&test.body)) {
            Ok(Outcome::Passed) => {
                println!("ok");
                passed += 1;
            }
            Ok(Outcome::Skipped(reason)) => {
                println!("ignored, {reason}");
                skipped += 1;
            }
            Err(_) => {
                println!("FAILED");
                failed.push(&test.name);
            }
        }
    }
    for name in &failed {
        println!("failed: {name}");
    }
    let result = if failed.is_empty() { "ok" } else { "FAILED" };
    println!(
        "\ntest result: {result}. {passed} passed; {} failed; {skipped} ignored; \
         0 measured; {filtered} filtered out; finished in {:.2}s\n",
        failed.len(),
        start.elapsed().as_secs_f64()
    );
    ExitCode::from(u8::from(!failed.is_empty()))
}
