//! Removes the files of an interrupted run.
//!
//! A shell waits on a pipe that is closed when this process and all ranks forked from it have
//! exited, for whatever reason: SIGINT, SIGTERM, SIGKILL or SIGBUS. It then terminates the launcher
//! that was running, if any, and removes the directory. It has its own process group, so that
//! Ctrl-C does not reach it.

use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Ranks that are about to exit may still create files: removal is retried.
const SCRIPT: &str = r#"
while read -r line; do launcher=$line; done
[ -n "$launcher" ] && kill "$launcher"
for attempt in 1 2 3 4 5 6 7 8 9; do rm -rf -- "$1" && break; sleep 1; done
"#;

/// A guarded directory.
#[derive(Debug)]
pub(super) struct Guard(Child);

impl Guard {
    pub(super) fn start(directory: &Path) -> io::Result<Guard> {
        let shell = Command::new("sh")
            .args(["-c", SCRIPT, "sh"])
            .arg(directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()?;
        Ok(Guard(shell))
    }

    /// The launcher to terminate from now on; `None` once it has exited.
    pub(super) fn set_launcher(&self, pid: Option<u32>) {
        if let Some(mut pipe) = self.0.stdin.as_ref() {
            // A run works without its guard, too.
            let _ = writeln!(
                pipe,
                "{}",
                pid.map_or_else(String::new, |it| it.to_string())
            );
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}
