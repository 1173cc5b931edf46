//! File systems that exist for one job only, in a mount namespace of its own.

use std::fs;
use std::path::Path;

use crate::job::Line;
use crate::program::{Need, Program};
use crate::run::TestResult;

/// Puts the file systems that a program needs around the command that runs it.
pub(crate) fn around(line: Line, program: &Program, place: &Path) -> TestResult<Line> {
    let mut mounts = Mounts::default();
    if program.needs(Need::FullFileSystem) {
        let directory = mounts.directory(place, "full")?;
        mounts.say(&format!("mount -t tmpfs -o size=4m tmpfs '{directory}'"));
        mounts.export("PARIO_TEST_FULL_DIR", &directory);
    }
    if program.needs(Need::ReadOnlyFileSystem) {
        let directory = mounts.directory(place, "readonly")?;
        mounts.say(&format!("mount -t tmpfs -o size=1m tmpfs '{directory}'"));
        mounts.say(&format!("echo text > '{directory}/readable'"));
        mounts.say(&format!("mount -o remount,ro '{directory}'"));
        mounts.export("PARIO_TEST_READONLY_DIR", &directory);
    }
    Ok(mounts.around(line))
}

/// A script that mounts things and then runs a command.
#[derive(Default)]
pub(crate) struct Mounts {
    script: String,
}

impl Mounts {
    /// A new directory to mount something on.
    fn directory(&mut self, place: &Path, name: &str) -> TestResult<String> {
        let directory = place.join(name);
        fs::create_dir(&directory).map_err(|error| error.to_string())?;
        Ok(directory.to_string_lossy().into_owned())
    }

    /// Adds a command; all that follows is given up when it fails.
    pub(crate) fn say(&mut self, command: &str) {
        self.script.push_str(command);
        self.script.push_str(" && ");
    }

    fn export(&mut self, name: &str, value: &str) {
        self.say(&format!("export {name}='{value}'"));
    }

    /// The command in a namespace with these mounts; as it was if there are none.
    pub(crate) fn around(self, line: Line) -> Line {
        if self.script.is_empty() {
            return line;
        }
        let script = format!("{}exec \"$@\"", self.script);
        let mut around = Line::new("unshare")
            .words(["--mount", "--propagation", "private", "sh", "-c"])
            .words([script.as_str(), "sh"])
            .words(&line.words);
        around.variables = line.variables;
        around
    }
}
