//! The commands that README.md shows, so that what it promises is what runs.

/// Lines a reader would type: those behind `$ ` in the `console` blocks.
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
