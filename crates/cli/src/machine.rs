//! This machine: what it is, and what is free. Its host name is omitted, because pages are
//! published.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::StatVfs;
use serde::Serialize;

use crate::failure::Failure;
use crate::output::as_map;

/// The machine that figures come from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Machine {
    /// Today, in UTC.
    pub(crate) date: String,
    /// The version of this command.
    pub(crate) pario: &'static str,
    /// Names and values.
    #[serde(rename = "machine", serialize_with = "as_map")]
    pub(crate) facts: Vec<(&'static str, String)>,
}

impl Machine {
    /// This machine, now.
    pub(crate) fn this() -> Machine {
        let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let processors = thread::available_parallelism().map_or(1, usize::from);
        let model = field(&text("/proc/cpuinfo"), "model name", ':');
        let model = model.unwrap_or_else(|| std::env::consts::ARCH.to_owned());
        let mut facts = vec![("Processors", format!("{processors} of {model}"))];
        let gibibytes = total_memory() as f64 / f64::from(1 << 30);
        facts.push(("Memory", format!("{gibibytes:.1} GiB")));
        if let Some(system) = field(&text("/etc/os-release"), "PRETTY_NAME", '=') {
            facts.push(("System", system.trim_matches('"').to_owned()));
        }
        let kernel = text("/proc/sys/kernel/osrelease");
        facts.push(("Kernel", format!("Linux {}", kernel.trim())));
        Machine {
            date: today(),
            pario: env!("CARGO_PKG_VERSION"),
            facts,
        }
    }
}

/// The value of the first line with this name.
fn field(text: &str, name: &str, separator: char) -> Option<String> {
    let mut lines = text.lines().filter_map(|line| line.split_once(separator));
    let (_, value) = lines.find(|(key, _)| key.trim() == name)?;
    Some(value.trim().to_owned())
}

/// Bytes of memory that the kernel manages.
fn total_memory() -> u64 {
    let found = rustix::system::sysinfo();
    found.totalram.saturating_mul(u64::from(found.mem_unit))
}

/// Free bytes in a directory; `None` if the file system does not report them.
pub(crate) fn free_space(directory: &Path) -> Result<Option<u64>, Failure> {
    let found = rustix::fs::statvfs(directory);
    let failed = Failure::storage("determine the free space of", directory);
    Ok(available(&found.map_err(|errno| failed(errno.into()))?))
}

/// Free bytes of a file system; `None` if it does not report them.
pub(crate) fn available(found: &StatVfs) -> Option<u64> {
    // A tmpfs without a limit has no blocks at all.
    (found.f_blocks > 0).then(|| found.f_bavail.saturating_mul(found.f_frsize))
}

fn today() -> String {
    const DAY: u64 = 24 * 60 * 60;
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    date(now.map_or(0, |since| since.as_secs() / DAY))
}

/// The Gregorian date of a day since 1970. Years begin in March, so that a leap day comes last.
fn date(day: u64) -> String {
    const DAYS_TO_1970: u64 = 719_468;
    const DAYS_OF_400_YEARS: u64 = 146_097;
    let day = day + DAYS_TO_1970;
    let (era, day) = (day / DAYS_OF_400_YEARS, day % DAYS_OF_400_YEARS);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, carry) = match month {
        0..10 => (month + 3, 0),
        _ => (month - 9, 1),
    };
    format!("{}-{month:02}-{day:02}", era * 400 + year + carry)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (day, expected) in [
            (0, "1970-01-01"),
            (58, "1970-02-28"),
            (59, "1970-03-01"),
            (11_016, "2000-02-29"),
            (11_017, "2000-03-01"),
            (19_722, "2023-12-31"),
            (19_723, "2024-01-01"),
            (47_540, "2100-02-28"),
            (47_541, "2100-03-01"),
        ] {
            assert_eq!(date(day), expected, "day {day}");
        }
    }

    #[test]
    fn fields_are_found() {
        let text = "processor\t: 0\nmodel name\t: Some CPU: fast\n";
        let model = field(text, "model name", ':');
        assert_eq!(model.as_deref(), Some("Some CPU: fast"));
        assert_eq!(field(text, "flags", ':'), None);
        let facts = Machine::this().facts;
        assert!(facts.iter().any(|(name, _)| *name == "Kernel"), "{facts:?}");
    }

    #[test]
    fn free_memory_and_space_are_reported() {
        let free = pario_transport::available_memory().unwrap();
        assert!((1..total_memory()).contains(&free), "{free} bytes");
        let directory = tempfile::tempdir().unwrap();
        assert!(free_space(directory.path()).unwrap() != Some(0));
        assert!(free_space(&directory.path().join("missing")).is_err());
    }
}
