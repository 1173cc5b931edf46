//! Sources of hints other than the call: the environment and files.

use std::borrow::Cow;
use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// The variable whose hints override the call's: `key=value` pairs
/// separated by `;`, or the name of a file.
const PARIO_VARIABLE: &str = "PARIO_HINTS";
/// ROMIO's variable: the name of a file.
const ROMIO_VARIABLE: &str = "ROMIO_HINTS";
/// ROMIO's variable that names the driver of all files.
const ROMIO_DRIVER_VARIABLE: &str = "ROMIO_FSTYPE_FORCE";
/// The file that ROMIO reads if its variable is not set.
const ROMIO_FILE: &str = "/etc/romio-hints";
/// A larger file is not a hints file; perhaps it is the data file.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Where the value of a hint came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// It was not set.
    Default,
    /// The file named by `ROMIO_HINTS`, or `/etc/romio-hints`.
    HintsFile,
    /// The info argument of a call.
    Call,
    /// `PARIO_HINTS`, or the file named by it.
    Environment,
    /// pario measured it.
    Measured,
    /// pario itself changed it.
    Adjusted(Cow<'static, str>),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Default => f.write_str("default"),
            Source::HintsFile => f.write_str("hints file"),
            Source::Call => f.write_str("call"),
            Source::Environment => f.write_str("environment"),
            Source::Measured => f.write_str("measured"),
            Source::Adjusted(reason) => write!(f, "adjusted: {reason}"),
        }
    }
}

/// A value that was ignored, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// The hint, by the name that the user gave, or the environment
    /// variable at fault.
    pub hint: String,
    /// The value that the user gave.
    pub value: String,
    /// What is allowed.
    pub allowed: String,
    /// Where it came from.
    pub source: Source,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Warning {
            hint,
            value,
            allowed,
            source,
        } = self;
        write!(
            f,
            "`{value}` for `{hint}` (from: {source}) is ignored; allowed: {allowed}"
        )
    }
}

/// As in ROMIO, a process looks for the file once.
fn has_romio_file() -> bool {
    static EXISTS: LazyLock<bool> = LazyLock::new(|| Path::new(ROMIO_FILE).exists());
    *EXISTS
}

/// Hints from outside the call.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    pub(crate) file: Vec<(String, String)>,
    pub(crate) environment: Vec<(String, String)>,
    pub(crate) warnings: Vec<Warning>,
}

impl Sources {
    /// Only the call's hints.
    pub fn none() -> Sources {
        Sources::default()
    }

    /// The hints of `PARIO_HINTS`, `ROMIO_HINTS` and `ROMIO_FSTYPE_FORCE` of
    /// this process.
    pub fn from_environment() -> Sources {
        Sources::from_variables(|name| std::env::var_os(name))
    }

    /// Like [`Sources::from_environment`], from any set of variables.
    pub fn from_variables(variable: impl Fn(&str) -> Option<OsString>) -> Sources {
        let mut sources = Sources::none();
        match variable(ROMIO_VARIABLE) {
            Some(path) if !path.is_empty() => {
                sources.read_file(Path::new(&path), ROMIO_VARIABLE, Source::HintsFile);
            }
            Some(_) => {}
            None if has_romio_file() => {
                sources.read_file(Path::new(ROMIO_FILE), ROMIO_FILE, Source::HintsFile);
            }
            None => {}
        }
        // Before PARIO_HINTS, which overrides it.
        if let Some(forced) = variable(ROMIO_DRIVER_VARIABLE)
            && let Some(name) = forced.to_str()
        {
            let name = name.trim().trim_end_matches(':').to_owned();
            sources.environment.push(("pario_driver".to_owned(), name));
        }
        if let Some(value) = variable(PARIO_VARIABLE) {
            sources.read_pario_variable(value);
        }
        sources
    }

    fn read_pario_variable(&mut self, value: OsString) {
        match value.to_str().map(str::trim) {
            Some("") => {}
            Some(text) if text.contains('=') => {
                let entries = text
                    .split(';')
                    .map(str::trim)
                    .filter(|entry| !entry.is_empty());
                self.add_entries(entries, PARIO_VARIABLE, &Source::Environment);
            }
            _ => self.read_file(&PathBuf::from(value), PARIO_VARIABLE, Source::Environment),
        }
    }

    fn read_file(&mut self, path: &Path, variable: &str, source: Source) {
        match read_bounded(path) {
            Ok(text) => {
                let lines = text
                    .lines()
                    .map(without_comment)
                    .filter(|line| !line.is_empty());
                self.add_entries(lines, variable, &source);
            }
            Err(error) => self.warnings.push(Warning {
                hint: variable.to_owned(),
                value: path.display().to_string(),
                allowed: format!("a readable text file ({error})"),
                source,
            }),
        }
    }

    fn add_entries<'a>(
        &mut self,
        entries: impl Iterator<Item = &'a str>,
        variable: &str,
        source: &Source,
    ) {
        for entry in entries {
            match split_entry(entry) {
                Some((key, value)) => {
                    let list = match source {
                        Source::Environment => &mut self.environment,
                        _ => &mut self.file,
                    };
                    list.push((key.to_owned(), value.to_owned()));
                }
                None => self.warnings.push(Warning {
                    hint: variable.to_owned(),
                    value: entry.to_owned(),
                    allowed: "a key and a value, separated by a space or `=`".to_owned(),
                    source: source.clone(),
                }),
            }
        }
    }
}

fn read_bounded(path: &Path) -> io::Result<String> {
    use io::Read;
    let mut text = String::new();
    let read = std::fs::File::open(path)?
        .take(FILE_BYTES_MAX + 1)
        .read_to_string(&mut text)?;
    if read as u64 > FILE_BYTES_MAX {
        return Err(io::Error::other(format!(
            "it is longer than {FILE_BYTES_MAX} bytes"
        )));
    }
    Ok(text)
}

fn without_comment(line: &str) -> &str {
    line.split('#').next().unwrap_or("").trim()
}

/// Splits at the first `=` or space, whichever comes first.
fn split_entry(entry: &str) -> Option<(&str, &str)> {
    let end = entry.find(|c: char| c == '=' || c.is_whitespace())?;
    let (key, rest) = entry.split_at(end);
    let rest = rest.trim_start();
    let value = rest.strip_prefix('=').unwrap_or(rest).trim();
    (!key.is_empty() && !value.is_empty()).then_some((key, value))
}
