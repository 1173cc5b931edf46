//! Running other programs.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// A test program that prints nothing for this long is taken to hang.
const SILENCE_MAX: Duration = Duration::from_secs(12 * 60);

/// The outcome of a task; the error is a sentence for the user.
pub(crate) type Outcome<T = ()> = Result<T, String>;

/// The root of the workspace.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("xtask is a directory of the workspace")
}

/// Cargo's target directory.
pub(crate) fn target_directory() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| root().join("target"), |directory| root().join(directory))
}

/// The cargo that started us, run at the root of the workspace.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.args(arguments).current_dir(root());
    command
}

/// A program by name, run at the root of the workspace.
pub(crate) fn program(name: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(name);
    command.args(arguments).current_dir(root());
    command
}

/// The command as typed.
pub(crate) fn describe(command: &Command) -> String {
    let name = Path::new(command.get_program())
        .file_name()
        .unwrap_or(command.get_program())
        .to_string_lossy()
        .into_owned();
    command.get_args().fold(name, |text, argument| {
        let argument = argument.to_string_lossy();
        if argument.contains(' ') {
            format!("{text} '{argument}'")
        } else {
            format!("{text} {argument}")
        }
    })
}

/// Runs a command and shows its output; fails unless it succeeds.
pub(crate) fn run(mut command: Command) -> Outcome {
    let text = describe(&command);
    println!("$ {text}");
    let status = command
        .status()
        .map_err(|error| format!("cannot start `{text}`: {error}"))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("`{text}` failed ({status})"))
    }
}

/// Whether a command succeeds; its output is discarded.
pub(crate) fn succeeds(mut command: Command) -> bool {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// The output of a command; fails unless it succeeds.
pub(crate) fn output(mut command: Command) -> Outcome<String> {
    let text = describe(&command);
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("cannot start `{text}`: {error}"))?;
    if !output.status.success() {
        return Err(format!("`{text}` failed ({})", output.status));
    }
    String::from_utf8(output.stdout).map_err(|_| format!("the output of `{text}` is not UTF-8"))
}

/// The output of a command if it can be started and succeeds; its errors are discarded.
pub(crate) fn quiet_output(mut command: Command) -> Option<String> {
    let output = command.stdin(Stdio::null()).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then_some(text)
}

/// Runs a command, passing on its standard output line by line and showing each line to `inspect`.
/// What it has started is killed when nothing was printed for a long time, so that a test that
/// hangs is a failure with a name.
pub(crate) fn run_inspected(command: Command, inspect: impl FnMut(&str)) -> Outcome {
    run_watched(command, SILENCE_MAX, inspect)
}

/// As [`run_inspected`], for programs that may print nothing for `silence_max`.
pub(crate) fn run_watched(
    mut command: Command,
    silence_max: Duration,
    mut inspect: impl FnMut(&str),
) -> Outcome {
    let text = describe(&command);
    println!("$ {text}");
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("cannot start `{text}`: {error}"))?;
    let stdout = child.stdout.take().expect("stdout is piped");
    let (sender, lines) = mpsc::channel();
    thread::spawn(move || {
        let mut lines = BufReader::new(stdout).split(b'\n');
        // Nobody listens any more after an error.
        lines.try_for_each(|line| sender.send(line))
    });
    let mut has_hung = false;
    let mut was_killed = false;
    let mut last = String::new();
    loop {
        match lines.recv_timeout(silence_max) {
            Ok(line) => {
                let line =
                    line.map_err(|error| format!("cannot read the output of `{text}`: {error}"))?;
                was_killed = false;
                last = String::from_utf8_lossy(&line).into_owned();
                println!("{last}");
                inspect(&last);
            }
            // What is left has other parents, and keeps standard output open.
            Err(RecvTimeoutError::Timeout) if was_killed => {
                kill(&[child.id().to_string()]);
                break;
            }
            Err(RecvTimeoutError::Timeout) => {
                let minutes = silence_max.as_secs() / 60;
                println!("killed: no line for {minutes} minutes after `{last}`");
                (has_hung, was_killed) = (true, true);
                kill_descendants(child.id());
            }
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    let status = child
        .wait()
        .map_err(|error| format!("cannot wait for `{text}`: {error}"))?;
    match status.success() && !has_hung {
        true => Ok(()),
        false => Err(format!("`{text}` failed ({status})")),
    }
}

/// Kills the processes that this one has started, and those that they have started; itself if there
/// are none. Otherwise it goes on: `cargo test` runs the next test program.
fn kill_descendants(process: u32) {
    let mut all = vec![process.to_string()];
    let mut next = 0;
    while let Some(parent) = all.get(next) {
        let tasks = fs::read_dir(format!("/proc/{parent}/task"));
        let tasks = tasks.into_iter().flatten().flatten();
        let children =
            tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
        let children: Vec<String> = children
            .flat_map(|list| {
                list.split_whitespace()
                    .map(str::to_owned)
                    .collect::<Vec<_>>()
            })
            .collect();
        all.extend(children);
        next += 1;
    }
    kill(if all.len() > 1 { &all[1..] } else { &all });
}

/// Kills these processes. Those that have ended in the meantime are of no interest.
fn kill(processes: &[String]) {
    let signal = format!("kill -KILL {}", processes.join(" "));
    succeeds(program("sh", &["-c", &signal]));
}

/// A port that nobody listens to now.
pub(crate) fn free_port() -> Outcome<u16> {
    let listener = TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr());
    listener
        .map(|address| address.port())
        .map_err(|error| format!("cannot find a free port: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_process_has_started_is_killed_and_it_goes_on() {
        let mut command = program("sh", &["-c", "(sleep 600; true); echo went on"]);
        let child = command.stdout(Stdio::piped()).spawn().unwrap();
        let first_child = |process: &str| {
            let children = fs::read_to_string(format!("/proc/{process}/task/{process}/children"));
            children
                .unwrap_or_default()
                .split_whitespace()
                .next()
                .map(str::to_owned)
        };
        let sleeps = || first_child(&child.id().to_string()).and_then(|it| first_child(&it));
        while sleeps().is_none() {
            thread::sleep(Duration::from_millis(1));
        }
        kill_descendants(child.id());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.stdout, b"went on\n");
    }
}
