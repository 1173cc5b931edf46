//! README.md: its program and commands are tested.

use std::fs;

use crate::shell::{Outcome, root};

/// The program that README.md shows.
const EXAMPLE: &str = "crates/pario/examples/matrix.rs";

/// The text of README.md.
pub(crate) fn read() -> Outcome<String> {
    fs::read_to_string(root().join("README.md"))
        .map_err(|error| format!("cannot read README.md: {error}"))
}

/// Fails unless README.md shows the current example.
pub(crate) fn check_example() -> Outcome {
    let example = fs::read_to_string(root().join(EXAMPLE))
        .map_err(|error| format!("cannot read {EXAMPLE}: {error}"))?;
    if read()?.contains(&format!("```rust\n{example}```")) {
        println!("README.md shows the current {EXAMPLE}");
        Ok(())
    } else {
        Err(format!(
            "README.md does not show the current {EXAMPLE}: copy it there"
        ))
    }
}

/// The commands that a reader would type: lines after `$ ` in `console` blocks.
pub(crate) fn commands(readme: &str) -> Vec<&str> {
    let mut commands = Vec::new();
    let mut in_console = false;
    for line in readme.lines() {
        if let Some(language) = line.strip_prefix("```") {
            in_console = !in_console && language.trim() == "console";
        } else if in_console && let Some(command) = line.strip_prefix("$ ") {
            commands.push(command.trim());
        }
    }
    commands
}

#[cfg(test)]
mod tests {
    use super::commands;

    #[test]
    fn only_console_blocks_count() {
        let readme =
            "$ no\n```rust\n$ no\n```\n```console\n$ cargo run\noutput\n$ ls -l\n```\n$ no\n";
        assert_eq!(commands(readme), ["cargo run", "ls -l"]);
    }
}
