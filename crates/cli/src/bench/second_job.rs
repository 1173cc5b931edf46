//! A second job as interference (Zhang 2009, section 4.3): mpi-io-test on a separate file, with a
//! pause between calls that controls how much it interferes.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use pario::{File, Info, Mode};
use pario_transport::threads;

use crate::failure::Failure;

/// Bytes per rank, per call, as in the paper.
const SEGMENT: usize = 64 << 10;

/// Calls before it starts over at the file's beginning.
const CALLS: u64 = 64;

/// The options of the second job.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Arguments {
    /// Directory for the file
    #[arg(long)]
    dir: PathBuf,
    /// Number of ranks
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=i64::from(threads::World::RANKS_MAX)))]
    ranks: u32,
    /// Milliseconds between calls
    #[arg(long)]
    pause: u64,
}

/// A second job that is running.
#[derive(Debug)]
pub(crate) struct SecondJob {
    child: Child,
}

impl SecondJob {
    /// Starts it as a separate program.
    pub(crate) fn start(directory: &Path, ranks: u32, pause_ms: u64) -> Result<Self, Failure> {
        let started = std::env::current_exe().and_then(|program| {
            Command::new(program)
                .args(["bench", "second-job", "--ranks", &ranks.to_string()])
                .args(["--pause", &pause_ms.to_string(), "--dir"])
                .arg(directory)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
        });
        let child = started.map_err(failed)?;
        Ok(SecondJob { child })
    }

    /// Stops it and returns its report.
    pub(crate) fn stop(mut self) -> Result<String, Failure> {
        drop(self.child.stdin.take());
        let mut report = String::new();
        if let Some(mut out) = self.child.stdout.take() {
            out.read_to_string(&mut report).map_err(failed)?;
        }
        match self.child.wait().map_err(failed)? {
            status if status.success() => Ok(report.trim_end().to_owned()),
            status => Err(failed(io::Error::other(format!("ended with {status}")))),
        }
    }
}

impl Drop for SecondJob {
    /// Ends it if the measurement failed.
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

fn failed(error: io::Error) -> Failure {
    Failure::Method {
        method: "the second job".to_owned(),
        reason: error.to_string(),
    }
}

/// Writes and reads until standard input ends.
pub(crate) fn run(arguments: &Arguments, out: &mut impl Write) -> Result<(), Failure> {
    let over = Arc::new(AtomicBool::new(false));
    let watcher = Arc::clone(&over);
    thread::spawn(move || {
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        watcher.store(true, Ordering::Relaxed);
    });
    let path = arguments.dir.join("beside");
    let (start, mut calls) = (Instant::now(), 0u64);
    while !over.load(Ordering::Relaxed) {
        let first = calls % CALLS;
        let ran = threads::run(arguments.ranks, |comm| -> pario::Result<()> {
            let mode = Mode::CREATE | Mode::READ_WRITE;
            let file = File::open(&comm, &path, mode, &Info::new())?;
            let row = u64::from(arguments.ranks) * SEGMENT as u64;
            let offset = first * row + u64::from(comm.rank().0) * SEGMENT as u64;
            let mut segment = vec![comm.rank().0 as u8; SEGMENT];
            file.write_at_all(offset, segment.as_slice())?;
            file.read_at_all(offset, segment.as_mut_slice())?;
            file.close()
        });
        for rank in ran {
            let done = rank.map_err(io::Error::other).map_err(failed)?;
            done.map_err(|error| failed(io::Error::other(error.to_string())))?;
        }
        calls += 1;
        thread::sleep(Duration::from_millis(arguments.pause));
    }
    let bytes = calls as f64 * 2.0 * f64::from(arguments.ranks) * SEGMENT as f64;
    writeln!(
        out,
        "second job: {} ranks wrote and read segments of 64 KiB, {} ms apart: {:.0} MB/s",
        arguments.ranks,
        arguments.pause,
        bytes / start.elapsed().as_secs_f64() / 1e6
    )
    .map_err(Failure::Output)
}
