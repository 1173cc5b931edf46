//! A GlusterFS volume of two bricks on the loopback interface, without its management daemon.

use std::fmt::Write as _;
use std::fs;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::mount::{Mount, make};
use crate::shell::{Outcome, free_port, program};

const BRICKS: usize = 2;
const START_MAX: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(20);

/// What the kernel does with written data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cache {
    WriteThrough,
    WriteBack,
}

impl Cache {
    pub(super) const ALL: [Cache; 2] = [Cache::WriteThrough, Cache::WriteBack];
}

/// A running volume with two mounts; unmounted and stopped when dropped.
pub(super) struct Volume {
    // Dropped first.
    mounts: [Mount; 2],
    _bricks: Bricks,
}

/// Server processes, killed when dropped.
struct Bricks(Vec<Child>);

impl Drop for Bricks {
    fn drop(&mut self) {
        for brick in &mut self.0 {
            let _ = brick.kill();
            let _ = brick.wait();
        }
    }
}

impl Volume {
    pub(super) fn start(directory: &Path, cache: Cache) -> Outcome<Volume> {
        make(directory)?;
        let mut bricks = Bricks(Vec::new());
        let mut client = String::new();
        for number in 0..BRICKS {
            let port = free_port()?;
            let brick = directory.join(format!("brick{number}"));
            make(&brick)?;
            let description = write(&brick.with_extension("vol"), &server(&brick, port))?;
            let mut server = program("glusterfsd", &["--no-daemon", "--log-level", "ERROR", "-f"]);
            server.arg(description).arg("--log-file");
            server.arg(brick.with_extension("log"));
            server.stdin(Stdio::null()).stdout(Stdio::null());
            let started = server.spawn();
            bricks
                .0
                .push(started.map_err(|error| format!("cannot start glusterfsd: {error}"))?);
            wait_for(port)?;
            client.push_str(&remote(number, &brick, port));
        }
        client.push_str("volume files\n  type cluster/distribute\n  subvolumes");
        for number in 0..BRICKS {
            let _ = write!(client, " remote{number}");
        }
        client.push_str("\nend-volume\n");
        let description = write(&directory.join("client.vol"), &client)?;
        let mount = |name: &str| mount(&directory.join(name), &description, cache);
        Ok(Volume {
            mounts: [mount("a")?, mount("b")?],
            _bricks: bricks,
        })
    }

    pub(super) fn mounts(&self) -> &[Mount; 2] {
        &self.mounts
    }
}

fn mount(point: &Path, description: &Path, cache: Cache) -> Outcome<Mount> {
    let writes_back = match cache {
        Cache::WriteThrough => "no",
        Cache::WriteBack => "yes",
    };
    let mut client = program("glusterfs", &["--no-daemon", "--direct-io-mode=disable"]);
    client.arg(format!("--kernel-writeback-cache={writes_back}"));
    client
        .arg("--log-file")
        .arg(point.with_extension("gluster"));
    client.arg("-f").arg(description).arg(point);
    Mount::start(point, client)
}

fn server(brick: &Path, port: u16) -> String {
    let brick = brick.display();
    format!(
        "volume storage\n  type storage/posix\n  option directory {brick}\nend-volume\n\
         volume {brick}\n  type features/locks\n  subvolumes storage\nend-volume\n\
         volume server\n  type protocol/server\n  option transport-type tcp\n\
         \x20 option transport.socket.bind-address 127.0.0.1\n\
         \x20 option transport.socket.listen-port {port}\n\
         \x20 option auth.addr.{brick}.allow *\n  subvolumes {brick}\nend-volume\n"
    )
}

fn remote(number: usize, brick: &Path, port: u16) -> String {
    format!(
        "volume remote{number}\n  type protocol/client\n  option transport-type tcp\n\
         \x20 option remote-host 127.0.0.1\n  option remote-port {port}\n\
         \x20 option remote-subvolume {}\nend-volume\n",
        brick.display()
    )
}

fn write(path: &Path, text: &str) -> Outcome<PathBuf> {
    let written = fs::write(path, text);
    written.map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    Ok(path.to_owned())
}

/// Waits until a server listens.
fn wait_for(port: u16) -> Outcome {
    let started = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        if started.elapsed() > START_MAX {
            return Err(format!("glusterfsd does not listen to port {port}"));
        }
        thread::sleep(POLL);
    }
    Ok(())
}
