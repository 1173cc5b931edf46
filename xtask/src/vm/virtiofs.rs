//! Servers of virtiofs on this machine, one per device of the virtual machine.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::shell::{Outcome, program};
use crate::tools;

/// The names of the devices.
const TAGS: [&str; 2] = ["a", "b"];

/// The virtio id of file systems.
const FILE_SYSTEM: u32 = 26;

const START_MAX: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(20);

/// Two servers of one directory; killed when dropped.
pub(super) struct Servers {
    directory: PathBuf,
    servers: Vec<Child>,
}

impl Servers {
    /// Starts the servers with their files in a new directory.
    pub(super) fn start(directory: &Path, cache: &str) -> Outcome<Servers> {
        let command = tools::virtiofsd()?;
        let mut all = Servers {
            directory: directory.to_owned(),
            servers: Vec::new(),
        };
        let shared = directory.join("shared");
        fs::create_dir_all(&shared)
            .map_err(|error| format!("cannot make {}: {error}", shared.display()))?;
        for tag in TAGS {
            let socket = all.socket(tag);
            let log = File::create(socket.with_extension("log"))
                .map_err(|error| format!("cannot create a log: {error}"))?;
            let mut server = program(&command.display().to_string(), &["--tag", tag]);
            server.args(["--sandbox=none", "--seccomp=none", "--cache", cache]);
            server.arg("--socket-path").arg(&socket);
            server.arg("--shared-dir").arg(&shared);
            server.stdin(Stdio::null()).stdout(Stdio::null());
            let started = server.stderr(log).spawn();
            all.servers
                .push(started.map_err(|error| format!("cannot start virtiofsd: {error}"))?);
            wait_for(&socket)?;
        }
        Ok(all)
    }

    fn socket(&self, tag: &str) -> PathBuf {
        self.directory.join(format!("{tag}.socket"))
    }

    /// Arguments of the kernel that make the devices.
    pub(super) fn devices(&self) -> Vec<String> {
        let device = |tag: &&str| {
            let socket = self.socket(tag);
            format!("virtio_uml.device={}:{FILE_SYSTEM}", socket.display())
        };
        TAGS.iter().map(device).collect()
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        for server in &mut self.servers {
            // It has ended if the machine has connected.
            let _ = server.kill();
            let _ = server.wait();
        }
        if let Err(error) = fs::remove_dir_all(&self.directory) {
            eprintln!("cannot remove {}: {error}", self.directory.display());
        }
    }
}

fn wait_for(socket: &Path) -> Outcome {
    let started = Instant::now();
    while !socket.exists() {
        if started.elapsed() > START_MAX {
            let log = fs::read_to_string(socket.with_extension("log")).unwrap_or_default();
            return Err(format!("virtiofsd does not start: {}", log.trim()));
        }
        thread::sleep(POLL);
    }
    Ok(())
}
