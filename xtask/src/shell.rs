//! Running other programs.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

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
pub(crate) fn run_inspected(mut command: Command, mut inspect: impl FnMut(&str)) -> Outcome {
    let text = describe(&command);
    println!("$ {text}");
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("cannot start `{text}`: {error}"))?;
    let stdout = child.stdout.take().expect("stdout is piped");
    for line in BufReader::new(stdout).split(b'\n') {
        let line = line.map_err(|error| format!("cannot read the output of `{text}`: {error}"))?;
        let line = String::from_utf8_lossy(&line);
        println!("{line}");
        inspect(&line);
    }
    let status = child
        .wait()
        .map_err(|error| format!("cannot wait for `{text}`: {error}"))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("`{text}` failed ({status})"))
    }
}

/// A port that nobody listens to now.
pub(crate) fn free_port() -> Outcome<u16> {
    let listener = TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr());
    listener
        .map(|address| address.port())
        .map_err(|error| format!("cannot find a free port: {error}"))
}
