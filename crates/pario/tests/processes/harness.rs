//! Runs tests one after the other, in the words of cargo's own programs.
#![allow(unsafe_code)] // alarm has no wrapper in the standard library

use std::{
    io::Write,
    panic::{self, AssertUnwindSafe},
    process::ExitCode,
    sync::Arc,
    time::Instant,
};

use pario::Result;
use pario_transport::{Transport, processes, processes::World};

/// A test that takes longer hangs. The alarm ends the program, and with it
/// the ranks it has forked; the last line printed names the test.
const SECONDS_MAX: u32 = 120;

/// A name and what to do.
pub(crate) type Test = (&'static str, fn());

/// Runs process ranks that must all succeed.
pub(crate) fn ranks(count: u32, work: impl Fn(Arc<dyn Transport>) -> Result<()>) {
    run(&World::new(count), work);
}

/// Runs the ranks of a world, which must all succeed.
pub(crate) fn run(world: &World, work: impl Fn(Arc<dyn Transport>) -> Result<()>) {
    for result in results(world, work) {
        result.unwrap_or_else(|failure| panic!("{failure}"));
    }
}

/// Runs the ranks of a world; an error of the library is a panic of the rank.
pub(crate) fn results(
    world: &World,
    work: impl Fn(Arc<dyn Transport>) -> Result<()>,
) -> Vec<std::result::Result<Vec<u8>, processes::RankFailure>> {
    world.run(|comm| {
        work(comm).unwrap_or_else(|error| panic!("{error}"));
        Vec::new()
    })
}

/// Runs the tests whose names contain an argument, or lists them.
pub(crate) fn main(tests: &[Test]) -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let filters: Vec<&String> = arguments
        .iter()
        .filter(|argument| !argument.starts_with('-'))
        .collect();
    let wanted: Vec<&Test> = tests
        .iter()
        .filter(|(name, _)| filters.is_empty() || filters.iter().any(|part| name.contains(*part)))
        .collect();
    if arguments.iter().any(|argument| argument == "--list") {
        for (name, _) in wanted {
            println!("{name}: test");
        }
        return ExitCode::SUCCESS;
    }
    run_all(&wanted, tests.len() - wanted.len())
}

fn run_all(tests: &[&Test], filtered: usize) -> ExitCode {
    let start = Instant::now();
    let mut failed = Vec::new();
    println!("\nrunning {} tests", tests.len());
    for (name, body) in tests {
        print!("test {name} ... ");
        let _ = std::io::stdout().flush();
        // SAFETY: sets a timer; the default action of its signal is to end
        // the program.
        unsafe { libc::alarm(SECONDS_MAX) };
        match panic::catch_unwind(AssertUnwindSafe(body)) {
            Ok(()) => println!("ok"),
            Err(_) => {
                println!("FAILED");
                failed.push(name);
            }
        }
    }
    for name in &failed {
        println!("failed: {name}");
    }
    println!(
        "\ntest result: {}. {} passed; {} failed; 0 ignored; 0 measured; \
         {filtered} filtered out; finished in {:.2}s\n",
        if failed.is_empty() { "ok" } else { "FAILED" },
        tests.len() - failed.len(),
        failed.len(),
        start.elapsed().as_secs_f64()
    );
    ExitCode::from(u8::from(!failed.is_empty()))
}
