//! An NFS server and its clients in a virtual machine.

use std::time::Duration;

use crate::machine::{Guest, Machine};
use crate::shell::Outcome;

const PACKAGES: [&str; 3] = ["nfs-kernel-server", "nfs-common", "rpcbind"];

const SETUP: &str = include_str!("../../vm/nfs.sh");

/// A server, its clients, and what to run on them.
pub(super) struct Nodes<'a> {
    /// `3`, `4.2`.
    pub(super) version: &'a str,
    /// The exported file system: `tmpfs`, `ext4`.
    pub(super) export: &'a str,
    /// Further mount options, each after a comma.
    pub(super) mount_options: &'a str,
    /// Names of the nodes, separated by blanks.
    pub(super) names: &'a str,
    /// A script for bash.
    pub(super) script: &'a str,
    pub(super) time_limit: Duration,
}

/// The error says why there can be no machine here.
pub(super) fn prepare() -> Outcome<Machine> {
    Machine::prepare(&PACKAGES)
}

impl Nodes<'_> {
    /// Runs the script and returns what it printed.
    pub(super) fn run(&self, machine: &Machine) -> Outcome<String> {
        machine.run(&Guest {
            settings: &[
                ("VERSION", self.version),
                ("EXPORT", self.export),
                ("MOUNT_OPTIONS", self.mount_options),
                ("NODES", self.names),
            ],
            setup: SETUP,
            devices: &[],
            script: self.script,
            time_limit: self.time_limit,
        })
    }
}
