//! What can happen to ranks that are processes, beyond the conformance suite.

mod harness;
mod namespaces;
mod processes_launcher;

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use harness::{Outcome, Test};
use pario_transport::processes::{self, World};
use pario_transport::{Loss, Rank, Tag, TransportError};
use processes_launcher::{NAMED, fork_a_sleeper, names_in_shared_memory};

/// The argument with which this program plays the parent that is killed.
const DOOMED_PARENT: &str = "--doomed-parent";

fn main() -> ExitCode {
    if std::env::args().any(|argument| argument == DOOMED_PARENT) {
        doomed_parent();
        return ExitCode::SUCCESS;
    }
    let test = |name: &str, body: fn()| {
        Test::new(name, move || {
            body();
            Outcome::Passed
        })
    };
    let mut tests = vec![
        test("ranks_that_exit_are_lost", ranks_that_exit_are_lost),
        test("no_exit_handler_runs", no_exit_handler_runs),
        test("long_results_come_back", long_results_come_back),
        test("panics_say_why", panics_say_why),
        test("grandchildren_delay_nobody", grandchildren_delay_nobody),
        test("ranks_die_with_their_parent", ranks_die_with_their_parent),
        test("no_descriptor_leaks", no_descriptor_leaks),
        test("worlds_of_any_size", worlds_of_any_size),
        test("worlds_nest", worlds_nest),
    ];
    tests.extend(namespaces::tests());
    // The same conformance cases with memory that has a name for a moment.
    let named = harness::conformance_tests(&NAMED).into_iter();
    tests.extend(named.filter(|test| {
        let name = test.name();
        name.starts_with("segments") || name.starts_with("losses::a_rank_is_killed")
    }));
    tests.push(test("no_name_is_left", || {
        assert_eq!(names_in_shared_memory(), Vec::<String>::new());
    }));
    harness::main(tests)
}

/// A panic that prints nothing: it is part of the test.
fn panic_quietly(message: String) -> ! {
    std::panic::resume_unwind(Box::new(message))
}

fn lost(rank: u32, reason: Loss) -> String {
    let rank = Rank(rank);
    TransportError::PeerLost { rank, reason }.to_string()
}

fn ranks_that_exit_are_lost() {
    let results = processes::run(3, |transport| {
        if transport.rank() == Rank(2) {
            std::process::exit(7);
        }
        let error = transport.barrier().expect_err("rank 2 is gone");
        error.to_string().into_bytes()
    });
    let reason = Loss::Exited { status: 7 };
    for result in &results[..2] {
        let text = result.clone().expect("this rank ends well");
        assert_eq!(String::from_utf8_lossy(&text), lost(2, reason));
    }
    let failure = results[2].clone().expect_err("it exited");
    assert_eq!((failure.rank, failure.reason), (Rank(2), reason));
}

fn no_exit_handler_runs() {
    let marks = processes_launcher::count_exit_handlers(|| {
        let results = processes::run(3, |transport| {
            transport.barrier().expect("all are there");
            Vec::new()
        });
        assert!(results.iter().all(Result::is_ok));
        let results = processes::run(1, |_| panic_quietly("on purpose".to_owned()));
        assert!(results[0].is_err());
    });
    assert_eq!(marks, 0, "exit handlers of the parent ran in children");
}

fn long_results_come_back() {
    const BYTES: usize = 5 << 20;
    let results = processes::run(3, |transport| vec![transport.rank().0 as u8; BYTES]);
    for (rank, result) in results.into_iter().enumerate() {
        assert!(result == Ok(vec![rank as u8; BYTES]), "rank {rank}");
    }
}

fn panics_say_why() {
    let results = processes::run(1, |_| panic_quietly(format!("the reason is {}", 42)));
    let failure = results[0].clone().expect_err("it panicked");
    assert_eq!(failure.reason, Loss::Panicked);
    assert_eq!(failure.message, "the reason is 42");
}

/// A process that a rank leaves behind keeps the rank's pipe open.
fn grandchildren_delay_nobody() {
    const NAP: Duration = Duration::from_secs(10);
    let start = Instant::now();
    let results = processes::run(2, |transport| {
        if transport.rank() == Rank(0) {
            fork_a_sleeper(NAP);
            std::process::exit(1);
        }
        let error = transport.receive(Rank(0), Tag(0));
        error.expect_err("rank 0 is gone").to_string().into_bytes()
    });
    assert!(start.elapsed() < NAP / 2, "it took {:?}", start.elapsed());
    assert!(results[0].is_err());
    assert!(results[1].is_ok());
}

fn doomed_parent() {
    processes::run(2, |transport| {
        println!("{}", std::process::id());
        let _ = transport.receive(Rank(1 - transport.rank().0), Tag(0));
        Vec::new()
    });
}

fn ranks_die_with_their_parent() {
    let program = std::env::current_exe().expect("the path of this program");
    let mut parent = Command::new(program)
        .arg(DOOMED_PARENT)
        .stdout(Stdio::piped())
        .spawn()
        .expect("this program starts");
    let output = parent.stdout.take().expect("it was piped");
    let ranks = BufReader::new(output)
        .lines()
        .take(2)
        .collect::<Result<Vec<_>, _>>()
        .expect("two ranks print their numbers");
    parent.kill().expect("it can be killed");
    parent.wait().expect("it was started here");
    let deadline = Instant::now() + Duration::from_secs(10);
    for rank in ranks {
        while is_running(&rank) {
            assert!(Instant::now() < deadline, "process {rank} lives on");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Whether a process exists and is more than its own remains: who adopts
/// orphans may never look after them.
fn is_running(process: &str) -> bool {
    let status = fs::read_to_string(format!("/proc/{process}/status"));
    status.is_ok_and(|status| !status.contains("State:\tZ"))
}

fn open_descriptors() -> usize {
    let entries = fs::read_dir("/proc/self/fd").expect("/proc is mounted");
    entries.count()
}

fn no_descriptor_leaks() {
    let before = open_descriptors();
    for _ in 0..10 {
        let results = processes::run(3, |transport| {
            let before = open_descriptors();
            for bytes in [100, 200, 300] {
                let segment = transport.segment(bytes).expect("no rank is lost");
                assert!(segment.is_some());
            }
            assert_eq!(open_descriptors(), before);
            Vec::new()
        });
        assert!(results.iter().all(Result::is_ok), "{results:?}");
    }
    assert_eq!(open_descriptors(), before);
}

fn worlds_of_any_size() {
    assert!(World::new(0).run(|_| Vec::new()).is_empty());
    let results = World::new(40).run(|transport| {
        let me = transport.rank().0.to_le_bytes();
        let all = transport.all_gather(&me).expect("all are there");
        transport.barrier().expect("all are there");
        all.concat()
    });
    let expected = (0..40_u32).flat_map(u32::to_le_bytes).collect::<Vec<_>>();
    assert!(
        results
            .into_iter()
            .all(|result| result == Ok(expected.clone()))
    );
}

/// A rank may be the parent of a world of its own.
fn worlds_nest() {
    let results = processes::run(2, |outer| {
        let inner = processes::run(2, |inner| {
            inner.barrier().expect("both are there");
            vec![inner.rank().0 as u8]
        });
        outer.barrier().expect("both are there");
        inner.into_iter().flatten().flatten().collect()
    });
    assert_eq!(results, vec![Ok(vec![0, 1]), Ok(vec![0, 1])]);
}
