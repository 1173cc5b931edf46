//! Output files. They are checked before a run, which may take long.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::json;
use crate::failure::Failure;

/// Stands for standard output.
const STANDARD_OUTPUT: &str = "-";

/// Where JSON goes, if requested.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct JsonOption {
    /// Print JSON instead of tables; with FILE, print tables and write JSON to that file
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = STANDARD_OUTPUT)]
    json: Option<PathBuf>,
}

impl JsonOption {
    /// Whether JSON is printed.
    pub(crate) fn is_printed(&self) -> bool {
        self.json.as_deref() == Some(Path::new(STANDARD_OUTPUT))
    }

    fn file(&self) -> Option<&Path> {
        self.json.as_deref().filter(|_| !self.is_printed())
    }

    /// Fails if the file cannot be written.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        self.file().map_or(Ok(()), check_file)
    }

    /// Writes the file, if one is named.
    pub(crate) fn save(&self, value: &impl Serialize) -> Result<(), Failure> {
        let Some(path) = self.file() else {
            return Ok(());
        };
        let mut text = Vec::new();
        json(value, &mut text).map_err(Failure::file("write", path))?;
        save(path, &text)
    }
}

/// Fails if a file cannot be written; its directory is created, and the file left unchanged.
pub(crate) fn check_file(path: &Path) -> Result<(), Failure> {
    let try_to_open = || {
        if let Some(directory) = path.parent() {
            fs::create_dir_all(directory)?;
        }
        let existed = path.exists();
        OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)?;
        match existed {
            true => Ok(()),
            false => fs::remove_file(path),
        }
    };
    try_to_open().map_err(Failure::file("write", path))
}

/// Fails if files of these names cannot be written to a directory, which is created.
pub(crate) fn check_directory(directory: &Path, names: &[String]) -> Result<(), Failure> {
    fs::create_dir_all(directory).map_err(Failure::file("create", directory))?;
    names
        .iter()
        .try_for_each(|name| check_file(&directory.join(name)))
}

/// Writes a file.
pub(crate) fn save(path: &Path, text: &[u8]) -> Result<(), Failure> {
    let write = || -> io::Result<()> {
        if let Some(directory) = path.parent() {
            fs::create_dir_all(directory)?;
        }
        fs::write(path, text)
    };
    write().map_err(Failure::file("write", path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_leave_no_file_and_change_none() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("new/figures.json");
        check_file(&path).unwrap();
        assert!(!path.exists());
        save(&path, b"[]").unwrap();
        check_file(&path).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"[]");
        let below = path.join("below");
        let failure = check_file(&below).unwrap_err().to_string();
        assert!(failure.starts_with("cannot write /"), "{failure}");
        let long = "x".repeat(300);
        assert!(check_directory(directory.path(), &[long]).is_err());
    }
}
