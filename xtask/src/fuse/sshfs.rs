//! sshfs without a server for SSH: each mount runs its own server for SFTP on this machine.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::mount::{Mount, make};
use crate::shell::{Outcome, program};

const SERVER: &str = "/usr/lib/openssh/sftp-server";

/// Mounts a directory twice.
pub(super) fn mount_twice(directory: &Path) -> Outcome<[Mount; 2]> {
    let served = directory.join("served");
    make(&served)?;
    // sshfs passes the host and the name of the subsystem, which are not needed.
    let command = directory.join("ssh");
    let script = format!("#!/bin/sh\nexec {SERVER}\n");
    let written = fs::write(&command, script)
        .and_then(|()| fs::set_permissions(&command, fs::Permissions::from_mode(0o755)));
    written.map_err(|error| format!("cannot write {}: {error}", command.display()))?;
    let mount = |name: &str| {
        let mut client = program("sshfs", &["-f", "-o"]);
        client.arg(format!("ssh_command={}", command.display()));
        client.arg(format!("localhost:{}", served.display()));
        let point = directory.join(name);
        client.arg(&point);
        Mount::start(&point, client)
    };
    Ok([mount("a")?, mount("b")?])
}
