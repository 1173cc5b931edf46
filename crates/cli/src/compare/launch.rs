//! Starts workers.

use std::env;
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::protocol::Line;
use crate::child::Running;
use crate::measure::Scratch;
use crate::run::program_directories;

/// Time limit of a rank that describes its MPI.
pub(crate) const DESCRIBE_TIME_MAX: Duration = Duration::from_secs(60);

/// Lets Open MPI run as root: it only touches files in our own directory.
const AS_ROOT: [(&str, &str); 2] = [
    ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
    ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
];

/// Lets Open MPI 4 and 5 start more ranks than there are processors.
const OVERSUBSCRIBED: [(&str, &str); 2] = [
    ("OMPI_MCA_rmaps_base_oversubscribe", "1"),
    ("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe"),
];

/// One run of workers.
pub(crate) struct Launch<'a> {
    pub(crate) launcher: &'a Path,
    pub(crate) ranks: u32,
    /// The subcommand of `pario bench` that ranks run, and its arguments.
    pub(crate) worker: &'static str,
    pub(crate) arguments: Vec<OsString>,
    pub(crate) time_max: Duration,
    /// The directory of the files: the launcher is terminated if we are.
    pub(crate) scratch: Option<&'a Scratch>,
}

impl Launch<'_> {
    /// Runs to completion and passes on every line of a worker; fails with the reason if the
    /// launcher fails or takes too long.
    pub(crate) fn run(&self, each: &mut dyn FnMut(Line)) -> Result<(), String> {
        let guard = |pid| self.scratch.inspect(|it| it.set_launcher(pid));
        let running = Running::start(&mut self.command()?)?;
        guard(Some(running.id()));
        let outcome = running.finish(self.time_max, &mut |text| {
            if let Some(line) = Line::parse(text) {
                each(line);
            }
        });
        guard(None);
        outcome
    }

    fn command(&self) -> Result<Command, String> {
        let program = env::current_exe().map_err(|error| error.to_string())?;
        let mut command = Command::new(self.launcher);
        command
            .arg("-n")
            .arg(self.ranks.to_string())
            .arg(program)
            .args(["bench", self.worker])
            .args(&self.arguments);
        let as_root = match rustix::process::geteuid().is_root() {
            true => &AS_ROOT[..],
            false => &[],
        };
        for (name, value) in as_root.iter().chain(&OVERSUBSCRIBED) {
            if env::var_os(name).is_none() {
                command.env(name, value);
            }
        }
        // Some launchers are scripts that start other programs of their MPI by name.
        let own = self.launcher.parent().map(Path::to_owned);
        let directories = own.into_iter().chain(program_directories());
        if let Ok(path) = env::join_paths(directories) {
            command.env("PATH", path);
        }
        Ok(command)
    }
}
