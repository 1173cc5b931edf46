//! Mount points of FUSE file systems, whose clients are children of this process.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::shell::{self, Outcome};

const MOUNT_MAX: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(20);

/// A mounted file system; unmounted when dropped.
pub(crate) struct Mount {
    point: PathBuf,
    client: Child,
}

impl Mount {
    /// Starts a client, which stays in the foreground, and waits until it has mounted. Its messages go to a file next to
    /// the mount point.
    pub(crate) fn start(point: &Path, mut client: Command) -> Outcome<Mount> {
        make(point)?;
        let log = point.with_extension("log");
        let file = File::create(&log);
        let file = file.map_err(|error| format!("cannot create {}: {error}", log.display()))?;
        client
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(file);
        let name = shell::describe(&client);
        let client = client
            .spawn()
            .map_err(|error| format!("cannot start {name}: {error}"))?;
        let mut mount = Mount {
            point: point.to_owned(),
            client,
        };
        let started = Instant::now();
        while !is_mounted(point)? {
            let has_ended = mount.client.try_wait().is_ok_and(|status| status.is_some());
            if has_ended || started.elapsed() > MOUNT_MAX {
                let log = fs::read_to_string(log).unwrap_or_default();
                return Err(format!("{name} does not mount: {}", log.trim()));
            }
            thread::sleep(POLL);
        }
        Ok(mount)
    }

    pub(crate) fn point(&self) -> &Path {
        &self.point
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let mut unmount = Command::new("umount");
        unmount.arg("--lazy").arg(&self.point);
        if is_mounted(&self.point).unwrap_or(false) && !shell::succeeds(unmount) {
            eprintln!("cannot unmount {}", self.point.display());
        }
        let _ = self.client.kill();
        let _ = self.client.wait();
    }
}

fn is_mounted(point: &Path) -> Outcome<bool> {
    let table = fs::read_to_string("/proc/self/mountinfo");
    let table = table.map_err(|error| format!("cannot read the mount table: {error}"))?;
    let point = point.to_string_lossy();
    Ok(table
        .lines()
        .any(|line| line.split(' ').nth(4) == Some(&point)))
}

pub(crate) fn make(directory: &Path) -> Outcome {
    fs::create_dir_all(directory)
        .map_err(|error| format!("cannot make {}: {error}", directory.display()))
}
