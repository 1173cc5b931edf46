//! Child programs: their output is read, and they are terminated if they take too long.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// How long a program may take to exit after SIGTERM: launchers terminate their ranks first.
const GRACE: Duration = Duration::from_secs(5);

/// How often a terminating program is checked.
const POLL: Duration = Duration::from_millis(20);

/// Lines of standard error that are kept.
const ERROR_LINES: usize = 40;

/// A line of output.
enum Line {
    Output(String),
    Error(String),
}

/// A program that is running.
pub(crate) struct Running {
    child: Child,
    lines: mpsc::Receiver<Line>,
}

impl Running {
    /// Starts a program whose output is read.
    pub(crate) fn start(command: &mut Command) -> Result<Running, String> {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| {
                let program = command.get_program().display();
                format!("cannot start {program}: {error}")
            })?;
        let (sender, lines) = mpsc::channel();
        listen(child.stdout.take(), Line::Output, sender.clone());
        listen(child.stderr.take(), Line::Error, sender);
        Ok(Running { child, lines })
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Passes on every line of output until the program exits. Fails with the reason if the program
    /// fails or takes too long; it has exited in either case.
    pub(crate) fn finish(
        mut self,
        time_max: Duration,
        each: &mut dyn FnMut(&str),
    ) -> Result<(), String> {
        let deadline = Instant::now() + time_max;
        let mut errors = VecDeque::new();
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(Line::Output(line)) => each(&line),
                Ok(Line::Error(line)) => {
                    errors.push_back(line);
                    if errors.len() > ERROR_LINES {
                        errors.pop_front();
                    }
                }
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    terminate(&mut self.child);
                    return Err(format!("took longer than {} s", time_max.as_secs()));
                }
            }
        }
        let status = self.child.wait().map_err(|error| error.to_string())?;
        match status.success() {
            true => Ok(()),
            false => Err(reason(&errors, status)),
        }
    }
}

/// Forwards every line of a pipe, until it ends or the receiver is dropped.
fn listen(pipe: Option<impl Read + Send + 'static>, kind: fn(String) -> Line, to: Sender<Line>) {
    let Some(pipe) = pipe else { return };
    thread::spawn(move || {
        for line in BufReader::new(pipe).split(b'\n') {
            let Ok(line) = line else { return };
            let text = String::from_utf8_lossy(&line).into_owned();
            if to.send(kind(text)).is_err() {
                return;
            }
        }
    });
}

/// Terminates a program: by SIGTERM, so that a launcher terminates its ranks, then by SIGKILL.
fn terminate(child: &mut Child) {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    if let Some(pid) = pid {
        // It may just have exited by itself.
        let _ = kill_process(pid, Signal::TERM);
    }
    let asked = Instant::now();
    while asked.elapsed() < GRACE {
        if matches!(child.try_wait(), Ok(Some(_))) {
            return;
        }
        thread::sleep(POLL);
    }
    let _ = child.kill();
    let _ = child.wait();
}

/// What this command printed to standard error, or the last line that anything printed there.
fn reason(errors: &VecDeque<String>, status: ExitStatus) -> String {
    let own = errors.iter().find_map(|line| line.strip_prefix("pario: "));
    let last = || {
        let mut lines = errors.iter().rev().map(|line| line.trim());
        lines.find(|line| line.chars().any(char::is_alphanumeric))
    };
    match own.or_else(last) {
        Some(words) => format!("{status}: {words}"),
        None => status.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    #[test]
    fn our_own_messages_come_first() {
        let message = |lines: &[&str]| {
            let lines = lines.iter().map(|line| (*line).to_owned()).collect();
            reason(&lines, ExitStatus::from_raw(256))
        };
        assert_eq!(message(&[]), "exit status: 1");
        assert_eq!(message(&["noise", "-----"]), "exit status: 1: noise");
        assert_eq!(
            message(&["pario: no space", "noise"]),
            "exit status: 1: no space"
        );
    }

    #[test]
    fn a_program_that_hangs_is_ended() {
        let running = Running::start(Command::new("sleep").arg("100")).unwrap();
        let started = Instant::now();
        let error = running.finish(Duration::from_millis(100), &mut |_| ());
        let error = error.unwrap_err();
        assert!(error.contains("took longer"), "{error}");
        assert!(started.elapsed() < GRACE);
    }

    #[test]
    fn lines_are_passed_on() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo one; echo two"]);
        let mut lines = Vec::new();
        let running = Running::start(&mut command).unwrap();
        let each = &mut |line: &str| lines.push(line.to_owned());
        running.finish(Duration::from_secs(20), each).unwrap();
        assert_eq!(lines, ["one", "two"]);
    }
}
