//! Commands with a time limit, whose output is kept.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use crate::place::{Ground, Place};
use crate::run::TestResult;

/// How many bytes of a failed command's output are shown, of each stream.
const SHOWN: usize = 6000;

/// Between the request to end and the end by force.
const GRACE: Duration = Duration::from_secs(5);

/// What coreutils' timeout exits with when the time was up.
const TIMED_OUT: i32 = 124;

/// A command as words, with variables for it.
#[derive(Clone, Default)]
pub(crate) struct Line {
    pub(crate) words: Vec<OsString>,
    pub(crate) variables: Vec<(String, OsString)>,
}

impl Line {
    pub(crate) fn new(program: impl AsRef<OsStr>) -> Self {
        Line::default().word(program)
    }

    pub(crate) fn word(mut self, word: impl AsRef<OsStr>) -> Self {
        self.words.push(word.as_ref().to_owned());
        self
    }

    pub(crate) fn words(mut self, words: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        let words = words.into_iter().map(|word| word.as_ref().to_owned());
        self.words.extend(words);
        self
    }

    pub(crate) fn variable(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.variables
            .push((name.into(), value.as_ref().to_owned()));
        self
    }

    /// As one would type it.
    fn text(&self) -> String {
        let words = self.words.iter().map(|word| word.to_string_lossy());
        words.collect::<Vec<_>>().join(" ")
    }
}

/// How a command ended.
pub(crate) struct Ended {
    line: String,
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs a command. It is ended when the time is up, which shows in its status.
pub(crate) fn run(line: &Line, limit: Duration) -> TestResult<Ended> {
    // Files rather than pipes: a process that is left behind could keep a pipe open for ever.
    let logs = Place::new(Ground::Disk)?;
    let [stdout, stderr] = ["stdout", "stderr"].map(|name| logs.path().join(name));
    let create = |path| File::create(path).map_err(|error| format!("no log: {error}"));
    let status = Command::new("timeout")
        .arg(format!("--kill-after={}", GRACE.as_secs()))
        .arg(limit.as_secs().to_string())
        .args(&line.words)
        .envs(line.variables.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .stdout(create(&stdout)?)
        .stderr(create(&stderr)?)
        .status()
        .map_err(|error| format!("cannot start `{}`: {error}", line.text()))?;
    let read = |path| fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    Ok(Ended {
        line: line.text(),
        status,
        stdout: read(&stdout).map_err(|error| error.to_string())?,
        stderr: read(&stderr).map_err(|error| error.to_string())?,
    })
}

impl Ended {
    /// Fails unless the command succeeded.
    pub(crate) fn success(self) -> TestResult<Self> {
        if self.status.success() {
            return Ok(self);
        }
        let reason = if self.has_timed_out() {
            "it did not end in time".into()
        } else {
            format!("it failed ({})", self.status)
        };
        Err(self.complaint(&reason))
    }

    pub(crate) fn has_timed_out(&self) -> bool {
        self.status.code() == Some(TIMED_OUT)
    }

    /// Whether any line on either stream contains this text.
    pub(crate) fn says(&self, text: &str) -> bool {
        self.stdout.contains(text) || self.stderr.contains(text)
    }

    /// A reason with the command and the end of what it printed.
    pub(crate) fn complaint(&self, reason: &str) -> String {
        let (stdout, stderr) = (excerpt(&self.stdout), excerpt(&self.stderr));
        format!(
            "{reason}\n$ {}\n--- stdout\n{stdout}\n--- stderr\n{stderr}",
            self.line
        )
    }
}

/// The beginning and the end of a text: the first complaint and the last.
fn excerpt(text: &str) -> String {
    let text = text.trim_end();
    if text.len() <= SHOWN {
        return text.to_owned();
    }
    let (mut head, mut tail) = (SHOWN / 2, text.len() - SHOWN / 2);
    while !text.is_char_boundary(head) {
        head -= 1;
    }
    while !text.is_char_boundary(tail) {
        tail += 1;
    }
    let left_out = tail - head;
    format!(
        "{}\n[... {left_out} bytes ...]\n{}",
        &text[..head],
        &text[tail..]
    )
}
