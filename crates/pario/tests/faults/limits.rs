//! Faults of a real kernel: a limit on the size of files, and a full disk.
//!
//! Each happens to a child, this program again under a shell that prepares
//! what the child is to meet: nothing of it touches other tests.

use std::{
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::Arc,
};

use pario::{Basic, Datatype, ErrorKind, File, Info, Mode, Result, View};
use pario_transport::{Rank, Transport, threads};

use crate::ground::directory;

/// Prefixes of file names: each driver of the kernel's files.
const DRIVERS: [&str; 3] = ["ufs:", "uring:", "mapped:"];
const NEW: Mode = Mode::CREATE.union(Mode::READ_WRITE);
/// Where the child finds its directory; it is set in children only.
const DIRECTORY: &str = "PARIO_TEST_CHILD_DIRECTORY";

/// Runs a test of this program as a child of a shell script, which gets the
/// directory as `$DIRECTORY`.
fn child(test: &str, script: &str, directory: &Path) -> Output {
    Command::new("sh")
        .args(["-c", &format!("{script} exec \"$0\" \"$@\"")])
        .arg(std::env::current_exe().unwrap())
        .args([
            "--exact",
            test,
            "--ignored",
            "--nocapture",
            "--test-threads=1",
        ])
        .env(DIRECTORY, directory)
        .output()
        .unwrap()
}

fn assert_passed(output: &Output) {
    let (out, err) = (&output.stdout, &output.stderr);
    let text = String::from_utf8_lossy(out).into_owned() + &String::from_utf8_lossy(err);
    assert!(output.status.success(), "{}: {text}", output.status);
    assert!(text.contains("1 passed"), "the child ran no test: {text}");
}

fn child_directory() -> Option<PathBuf> {
    std::env::var_os(DIRECTORY).map(PathBuf::from)
}

/// Runs ranks that must all succeed.
fn on_ranks(ranks: u32, work: impl Fn(&Arc<dyn Transport>) -> Result<()> + Sync) {
    for result in threads::run(ranks, |comm| work(&comm)) {
        result.unwrap().unwrap();
    }
}

#[test]
fn a_limit_on_the_size_of_files_is_no_space_and_says_what_was_written() {
    let directory = directory();
    // The signal that would end the program is ignored, as programs that want
    // to hear of the limit do.
    let output = child(
        "limits::under_a_size_limit",
        "trap '' XFSZ; ulimit -f 16;",
        directory.path(),
    );
    assert_passed(&output);
}

/// The limit that the shell has set, in bytes.
fn size_limit() -> u64 {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap();
    let line = limits
        .lines()
        .find(|line| line.starts_with("Max file size"));
    let words = line.unwrap().split_whitespace();
    words.clone().nth(3).unwrap().parse().unwrap()
}

#[test]
#[ignore = "started by another test, with a limit on the size of files"]
fn under_a_size_limit() {
    let Some(directory) = child_directory() else {
        return;
    };
    let limit = size_limit();
    for prefix in DRIVERS {
        let path = directory.join(prefix.trim_end_matches(':'));
        let name = format!("{prefix}{}", path.display());
        on_ranks(3, |comm| past_the_limit(comm, &name, limit));
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!(bytes.len() as u64, limit);
        assert_eq!(bytes[limit as usize - 1000..], [7; 1000]);
    }
}

fn past_the_limit(comm: &Arc<dyn Transport>, name: &str, limit: u64) -> Result<()> {
    let file = File::open(comm, name, NEW, &Info::new())?;
    let root = comm.rank() == Rank(0);
    // Half of each access is within the limit.
    if root {
        let error = file.write_at(limit - 1000, &[7u8; 2000]).unwrap_err();
        assert_eq!(
            (error.kind(), error.transferred()),
            (ErrorKind::NoSpace, 1000)
        );
        let request = file.iwrite_at(limit - 500, vec![7u8; 1000])?;
        let error = request.wait().unwrap_err();
        assert_eq!(
            (error.kind(), error.transferred()),
            (ErrorKind::NoSpace, 500)
        );
    }
    let all = file.write_at_all(limit - 500, &vec![7u8; if root { 900 } else { 0 }]);
    let error = all.unwrap_err();
    // Whichever rank it was that wrote for all.
    assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
    assert_eq!(error.transferred(), if root { 500 } else { 0 });
    for error in [
        file.set_size(limit + 1).unwrap_err(),
        file.preallocate(limit + 1).unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
    }
    assert_eq!(file.size()?, limit);
    // Pieces of 4 bytes every 8: the one that would begin at the limit fails.
    let int = Datatype::basic(Basic::Int32);
    let every_other = Datatype::resized(&int, 0, 8)?;
    file.set_view(&View::new(limit - 80, &int, &every_other))?;
    if root {
        let error = file.write_at(0, &[0x0707_0707i32; 20]).unwrap_err();
        assert_eq!(
            (error.kind(), error.transferred()),
            (ErrorKind::NoSpace, 40)
        );
        assert_eq!(error.offset(), Some(limit));
    }
    file.close()
}

#[test]
fn a_full_disk_is_no_space_and_changes_nothing_else() {
    let directory = directory();
    let mount = "mount -t tmpfs -o size=256k none \"$PARIO_TEST_CHILD_DIRECTORY\"";
    let possible = Command::new("unshare")
        .args(["-m", "sh", "-c", mount])
        .env(DIRECTORY, directory.path())
        .output();
    match possible {
        Ok(output) if output.status.success() => {}
        Ok(output) => {
            let why = String::from_utf8_lossy(&output.stderr);
            return println!("skipped: a file system cannot be mounted here: {why}");
        }
        Err(error) => return println!("skipped: there is no unshare command: {error}"),
    }
    // The mount is in a namespace of the child and goes with it.
    let script = format!(
        "[ -n \"$INSIDE\" ] || exec env INSIDE=1 unshare -m sh -c '{mount} && exec \"$0\" \"$@\"' \"$0\" \"$@\";"
    );
    assert_passed(&child("limits::on_a_full_disk", &script, directory.path()));
}

#[test]
#[ignore = "started by another test, on a small file system"]
fn on_a_full_disk() {
    let Some(directory) = child_directory() else {
        return;
    };
    let path = directory.join("file");
    for prefix in DRIVERS {
        let name = format!("{prefix}{}", path.display());
        on_ranks(3, |comm| fill_the_disk(comm, &name));
        File::delete(&name, &Info::new()).unwrap();
        on_ranks(1, |comm| scatter_until_full(comm, &name));
        File::delete(&name, &Info::new()).unwrap();
        assert_eq!(
            std::fs::read_dir(&directory).unwrap().count(),
            0,
            "leftovers"
        );
    }
}

/// Each rank writes blocks of its own until there is no space, then checks
/// what it was told against what is there, and goes on in space set free.
fn fill_the_disk(comm: &Arc<dyn Transport>, name: &str) -> Result<()> {
    const BLOCK: usize = 10_000;
    const REGION: u64 = 1 << 20;
    let file = File::open(comm, name, NEW, &Info::new())?;
    let base = u64::from(comm.rank().0) * REGION;
    let value = |index: usize| (index % 251) as u8 + 1;
    let mut written = 0;
    let error = loop {
        let block: Vec<u8> = (written..written + BLOCK).map(value).collect();
        let result = match written / BLOCK % 2 {
            0 => file.write_at(base + written as u64, &block),
            _ => file
                .iwrite_at(base + written as u64, block)?
                .wait()
                .map(|(status, _)| status),
        };
        match result {
            Ok(status) => written += status.bytes() as usize,
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
    written += error.transferred() as usize;
    comm.barrier()?;
    let mut found = vec![0; written];
    assert_eq!(file.read_at(base, &mut found)?.bytes(), written as u64);
    assert!(
        found
            .iter()
            .enumerate()
            .all(|(index, byte)| *byte == value(index))
    );
    assert_eq!(
        file.preallocate(4 * REGION).unwrap_err().kind(),
        ErrorKind::NoSpace
    );
    let error = file
        .write_at_all(3 * REGION + base, &vec![1u8; 300_000])
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
    file.set_size(0)?;
    file.write_at_all(base, &[9u8; 1000])?;
    file.close()
}

/// Every other eight bytes, many times more than there is space for: what was
/// told to be written is there, and what lies between was never touched.
fn scatter_until_full(comm: &Arc<dyn Transport>, name: &str) -> Result<()> {
    let file = File::open(comm, name, NEW, &Info::new())?;
    let long = Datatype::basic(Basic::Int64);
    file.set_view(&View::new(0, &long, &Datatype::resized(&long, 0, 16)?))?;
    let numbers: Vec<i64> = (1..=200_000).collect();
    let error = file.write_at(0, &numbers).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
    let written = error.transferred() as usize / 8;
    assert!((1000..numbers.len()).contains(&written), "{written}");
    let mut found = vec![0; written];
    file.read_at(0, &mut found)?;
    assert_eq!(found, numbers[..written]);
    file.set_view(&View::new(8, &long, &Datatype::resized(&long, 0, 16)?))?;
    file.read_at(0, &mut found)?;
    assert!(found[..written - 1].iter().all(|between| *between == 0));
    file.close()
}
