//! A hint never turns a correct program into an error: whatever value is given in any
//! of them, alone and in company, the same program moves the same bytes.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod common;
#[path = "common/seeds.rs"]
mod seeds;

use std::sync::{Arc, Mutex, PoisonError};

use common::{NEW, byte, directory};
use pario::{Datatype, File, Info, Mode, Result, View, set_warning_handler};
use pario_hints::{Hints, Sources};
use pario_transport::threads;

/// Values that some hint or other might choke on. Each is given to every hint.
const HOSTILE: &[&str] = &[
    "",
    " ",
    "0",
    "1",
    "2",
    "7",
    "-1",
    "1.5",
    "000",
    "777",
    "100",
    "200",
    "100000",
    "4294967295",
    "4294967296",
    "68719476736",
    "9223372036854775808",
    "18446744073709551616",
    "1000000000000000000000000",
    "true",
    "false",
    "enable",
    "disable",
    "automatic",
    "never",
    "locked",
    "memory",
    "file",
    "uring",
    "pool",
    "direct",
    "list",
    "sieve",
    "*",
    "*:0",
    "*:1",
    "*:99",
    "*:*",
    "99:1",
    "0:1,1:1",
    "1,1",
    "1:1",
    "3:4294967295",
    "4096,4294967295",
    "65536:2",
    "mem",
    "testfs",
    "posix",
    "mapped",
    "nfs",
    "lustre",
    "floppy",
    "ufs:",
    "shared",
    "direct-messages",
    "alltoall",
    "two-layer",
    "even",
    "balanced",
    "by-server",
    "persistent-aligned",
    "file-layout",
    "individual",
    "private-sieve",
    "two-phase",
    "static-segmentation",
    "dynamic-segmentation",
    "one-per-server",
    "resonant",
    "resonant-prefetch",
    "resonant-timed",
    "resonant-agents",
    "distributed",
    "central",
    "kernel",
    "process",
    "read_once,random",
    "reverse_sequential",
    "nonsense",
    "\u{fffd}",
    "a=b;c=d",
    "../../etc/passwd",
];

/// Two ranks on one node; four on two.
const PLACEMENTS: [&[u32]; 2] = [&[0, 0], &[0, 0, 1, 1]];

/// Bytes of a rank in a piece, and of all pieces.
const PIECE: usize = 48;
const MINE: usize = 4 * PIECE;

/// Every kind of access once, with looks at what it did.
fn program(
    comm: &Arc<dyn pario_transport::Transport>,
    path: &std::path::Path,
    hints: &Info,
) -> Result<()> {
    let (rank, ranks) = (comm.rank().0 as usize, comm.size() as usize);
    let file = File::open(comm, path, NEW, hints)?;
    let piece = Datatype::contiguous(PIECE as u64, &byte())?;
    let tile = Datatype::resized(&piece, 0, (PIECE * ranks) as i64)?;
    file.set_view_with(&View::new((PIECE * rank) as u64, &byte(), &tile), hints)?;
    let mine: Vec<u8> = (0..MINE).map(|at| (at * 7 + rank * 31) as u8 | 1).collect();
    assert_eq!(file.write_at_all(0, &mine)?.bytes(), MINE as u64);
    let mut back = vec![0; MINE];
    assert_eq!(file.read_at_all(0, &mut back)?.bytes(), MINE as u64);
    assert_eq!(back, mine);
    file.write_at(MINE as u64, &mine)?;
    file.iwrite_at(2 * MINE as u64, mine.clone())?.wait()?;
    file.iwrite_at_all(3 * MINE as u64, mine.clone())?.wait()?;
    file.write_at_all_begin(4 * MINE as u64, mine.clone())?
        .end()?;
    file.sync()?;
    comm.barrier()?;
    let (status, back) = file.iread_at(0, vec![0; 5 * MINE])?.wait()?;
    assert_eq!(status.bytes(), 5 * MINE as u64);
    assert_eq!(back, mine.repeat(5));
    file.set_view(&View::bytes())?;
    file.write_shared(&mine[..PIECE])?;
    file.write_ordered(&mine[..PIECE])?;
    assert_eq!(file.position_shared()?, (2 * ranks * PIECE) as u64);
    file.set_size(10)?;
    file.close()
}

/// Runs the program under hints, and returns the warnings.
fn run(pairs: &[(&str, &str)], warnings: &Mutex<Vec<String>>) -> Vec<String> {
    let directory = directory();
    let Ok(hints) = Info::from_pairs(pairs.iter().copied()) else {
        return Vec::new();
    };
    for (number, nodes) in PLACEMENTS.iter().enumerate() {
        let path = directory.path().join(number.to_string());
        let threads = threads::World::new(nodes.len() as u32).nodes(nodes);
        for (rank, result) in threads
            .run(|comm| program(&comm, &path, &hints))
            .into_iter()
            .enumerate()
        {
            let result = result
                .unwrap_or_else(|panic| panic!("{pairs:?}: rank {rank} of {nodes:?}: {panic:?}"));
            result.unwrap_or_else(|error| panic!("{pairs:?}: rank {rank} of {nodes:?}: {error}"));
        }
    }
    std::mem::take(&mut *warnings.lock().unwrap())
}

fn is_rejected(hint: &str, value: &str) -> bool {
    let Ok(info) = Info::from_pairs([(hint, value)]) else {
        return true;
    };
    let resolved = Hints::resolve(&info, &Sources::from_environment());
    !resolved.warnings.is_empty()
}

/// Warnings are the process's: one test after the other.
static TURN: Mutex<()> = Mutex::new(());

fn gather_warnings() -> Arc<Mutex<Vec<String>>> {
    let warnings = Arc::new(Mutex::new(Vec::new()));
    let seen = warnings.clone();
    set_warning_handler(move |warning| seen.lock().unwrap().push(warning.to_owned()));
    warnings
}

/// Writes and reads pieces with gaps, under hints that only the last rank has.
fn run_with_hints_of_one_rank(pair: (&str, &str), mode: Mode, nodes: &[u32]) {
    let directory = directory();
    let path = directory.path().join("file");
    let hints = Info::from_pairs([pair]).unwrap();
    let ranks = nodes.len();
    let gaps = |comm: Arc<dyn pario_transport::Transport>| -> Result<()> {
        let rank = comm.rank().0 as usize;
        let own = match rank + 1 == ranks {
            true => &hints,
            false => &Info::new(),
        };
        let file = File::open(&comm, &path, mode, own)?;
        for extent in [2 * PIECE, 40_000] {
            let piece = Datatype::contiguous(PIECE as u64, &byte())?;
            let tile = Datatype::resized(&piece, 0, (extent * ranks) as i64)?;
            file.set_view_with(&View::new((extent * rank) as u64, &byte(), &tile), own)?;
            let mine = vec![rank as u8 + 1; 20 * PIECE];
            file.write_at_all(0, &mine)?;
            let mut back = vec![0; mine.len()];
            file.read_at_all(0, &mut back)?;
            assert_eq!(back, mine);
        }
        file.close()
    };
    for result in threads::World::new(ranks as u32).nodes(nodes).run(gaps) {
        let result = result.unwrap_or_else(|panic| panic!("{pair:?} on {nodes:?}: {panic:?}"));
        result.unwrap_or_else(|error| panic!("{pair:?} on {nodes:?}: {error}"));
    }
}

/// Ranks that have different hints still make the same plan.
#[test]
fn hints_of_one_rank_hang_no_other() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let warnings = gather_warnings();
    for hint in Hints::DEFINITIONS {
        let _watchdog = common::watchdog();
        for value in HOSTILE {
            if !is_rejected(hint.name, value) {
                for nodes in PLACEMENTS {
                    for mode in [NEW, NEW | Mode::UNIQUE_OPEN] {
                        run_with_hints_of_one_rank((hint.name, value), mode, nodes);
                    }
                }
            }
        }
    }
    let told = warnings.lock().unwrap();
    assert!(told.iter().any(|it| it.contains("differs between ranks")));
}

#[test]
fn whatever_hints_say_the_program_works() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let warnings = gather_warnings();
    for hint in Hints::DEFINITIONS {
        // Values that are rejected are all the same; one is enough.
        let (rejected, taken): (Vec<&str>, Vec<&str>) = HOSTILE
            .iter()
            .partition(|value| is_rejected(hint.name, value));
        for value in taken.into_iter().chain(rejected.into_iter().take(1)) {
            run(&[(hint.name, value)], &warnings);
        }
    }
    for seed in seeds::seeds(200) {
        let mut rng = fastrand::Rng::with_seed(seed);
        let pairs: Vec<(&str, &str)> = (0..4)
            .map(|_| {
                (
                    rng.choice(Hints::DEFINITIONS).unwrap().name,
                    *rng.choice(HOSTILE).unwrap(),
                )
            })
            .collect();
        run(&pairs, &warnings);
    }
    // What cannot be followed is told, by one rank.
    let told = |pair: (&str, &str)| {
        let mut told = run(&[pair], &warnings);
        told.retain(|warning| warning.contains("is ignored") || warning.contains("asks for"));
        told
    };
    let drivers = told(("pario_driver", "floppy"));
    assert_eq!(
        drivers.len(),
        PLACEMENTS.len(),
        "once per file: {drivers:?}"
    );
    assert!(drivers[0].contains("floppy") && drivers[0].contains("ufs"));
    let pointers = told(("pario_shared_pointer", "memory"));
    assert_eq!(pointers.len(), 1, "two nodes share no memory: {pointers:?}");
}
