//! What machine figures are from. Its name is left out: pages are published.

use std::fs;
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

/// What is known of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Machine {
    /// Today, in UTC.
    pub(crate) date: String,
    /// Names and values.
    pub(crate) facts: Vec<(&'static str, String)>,
}

impl Machine {
    /// This one, now.
    pub(crate) fn this() -> Machine {
        let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let processors = thread::available_parallelism().map_or(1, usize::from);
        let model = field(&text("/proc/cpuinfo"), "model name", ':');
        let model = model.unwrap_or_else(|| std::env::consts::ARCH.to_owned());
        let mut facts = vec![("Processors", format!("{processors} of {model}"))];
        if let Some(memory) = field(&text("/proc/meminfo"), "MemTotal", ':') {
            facts.push(("Memory", gigabytes(&memory).unwrap_or(memory)));
        }
        if let Some(system) = field(&text("/etc/os-release"), "PRETTY_NAME", '=') {
            facts.push(("System", system.trim_matches('"').to_owned()));
        }
        let kernel = text("/proc/sys/kernel/osrelease");
        facts.push(("Kernel", format!("Linux {}", kernel.trim())));
        Machine {
            date: today(),
            facts,
        }
    }
}

/// The value of the first line that has a name.
pub(crate) fn field(text: &str, name: &str, separator: char) -> Option<String> {
    let mut lines = text.lines().filter_map(|line| line.split_once(separator));
    let (_, value) = lines.find(|(key, _)| key.trim() == name)?;
    Some(value.trim().to_owned())
}

/// `24610840 kB` in larger units.
fn gigabytes(memory: &str) -> Option<String> {
    let kibibytes: f64 = memory.strip_suffix("kB")?.trim().parse().ok()?;
    Some(format!("{:.1} GiB", kibibytes / f64::from(1 << 20)))
}

fn today() -> String {
    const DAY: u64 = 24 * 60 * 60;
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    date(now.map_or(0, |since| since.as_secs() / DAY))
}

/// The date of a day since 1970, of the Gregorian calendar: years from March on, so that the day
/// of a leap year comes last.
fn date(day: u64) -> String {
    const DAYS_TO_1970: u64 = 719_468;
    const DAYS_OF_400_YEARS: u64 = 146_097;
    let day = day + DAYS_TO_1970;
    let (era, day) = (day / DAYS_OF_400_YEARS, day % DAYS_OF_400_YEARS);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, carry) = if month < 10 {
        (month + 3, 0)
    } else {
        (month - 9, 1)
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
    fn fields_are_found_and_sizes_are_readable() {
        let text = "processor\t: 0\nmodel name\t: Some CPU: fast\n";
        assert_eq!(
            field(text, "model name", ':').as_deref(),
            Some("Some CPU: fast")
        );
        assert_eq!(field(text, "flags", ':'), None);
        assert_eq!(gigabytes("24610840 kB").as_deref(), Some("23.5 GiB"));
        let facts = Machine::this().facts;
        assert!(facts.iter().any(|(name, _)| *name == "Kernel"), "{facts:?}");
    }
}
