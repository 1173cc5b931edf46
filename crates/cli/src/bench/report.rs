//! What the user sees: what is measured, the table, and what to make of doubtful numbers.

use std::collections::BTreeSet;
use std::io::{self, Write};

use super::table::{Align, Table};
use super::timing::{Doubt, Samples};

/// One method's results.
#[derive(Debug)]
pub(crate) struct Row {
    /// The method.
    pub(crate) method: &'static str,
    /// The driver it used.
    pub(crate) driver: &'static str,
    /// How the data lay in memory.
    pub(crate) memory: &'static str,
    /// Times of its writes.
    pub(crate) write: Samples,
    /// Times of its reads.
    pub(crate) read: Samples,
    /// Why it cannot be used here.
    pub(crate) missing: Option<String>,
}

impl Row {
    /// A method that has not run yet.
    pub(crate) fn new(method: &'static str, driver: &'static str, memory: &'static str) -> Self {
        Row {
            method,
            driver,
            memory,
            write: Samples::default(),
            read: Samples::default(),
            missing: None,
        }
    }
}

/// Prints the table of all rows, each of which moved `bytes` bytes, next to the first, the raw one.
pub(crate) fn print(rows: &[Row], bytes: u64, out: &mut impl Write) -> io::Result<()> {
    let Some(raw) = rows.first() else {
        return Ok(());
    };
    let mut table = Table::new([
        ("method", Align::Left),
        ("driver", Align::Left),
        ("memory", Align::Left),
        ("write MB/s", Align::Right),
        ("of raw", Align::Right),
        ("read MB/s", Align::Right),
        ("of raw", Align::Right),
        ("verified", Align::Left),
    ]);
    let mut doubts = BTreeSet::new();
    for row in rows {
        let mut speed = |samples: &Samples, raw: &Samples| {
            doubts.extend(samples.doubt());
            (speed(samples, bytes), fraction(samples, raw))
        };
        let (write, write_fraction) = speed(&row.write, &raw.write);
        let (read, read_fraction) = speed(&row.read, &raw.read);
        let verified = match &row.missing {
            None => "every byte".to_owned(),
            Some(reason) => format!("not available here: {reason}"),
        };
        table.push([
            row.method.to_owned(),
            row.driver.to_owned(),
            row.memory.to_owned(),
            write,
            write_fraction,
            read,
            read_fraction,
            verified,
        ]);
    }
    table.print(out)?;
    for doubt in doubts {
        writeln!(out, "{}", doubt.advice())?;
    }
    Ok(())
}

/// The speed, and a mark if it is doubtful; a blank otherwise, so that the digits align.
fn speed(samples: &Samples, bytes: u64) -> String {
    match samples.megabytes_per_second(bytes) {
        None => "-".to_owned(),
        Some(speed) => format!("{speed:.0}{}", samples.doubt().map_or(' ', Doubt::mark)),
    }
}

fn fraction(samples: &Samples, raw: &Samples) -> String {
    match (samples.best(), raw.best()) {
        (Some(took), Some(raw)) if !took.is_zero() => {
            format!("{:.2}", raw.as_secs_f64() / took.as_secs_f64())
        }
        _ => "-".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn row(method: &'static str, write_ms: &[u64], read_ms: &[u64]) -> Row {
        let mut row = Row::new(method, "posix", "dense");
        for millis in write_ms {
            row.write.push(Duration::from_millis(*millis));
        }
        for millis in read_ms {
            row.read.push(Duration::from_millis(*millis));
        }
        row
    }

    #[test]
    fn speeds_stand_next_to_raw() {
        let mut absent = row("other", &[], &[]);
        absent.missing = Some("no such driver".to_owned());
        let rows = [
            row("raw", &[10, 11], &[10]),
            row("list", &[20, 40], &[40]),
            absent,
        ];
        let mut text = Vec::new();
        print(&rows, 10_000_000, &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        let lines: Vec<_> = text.lines().collect();
        let words = |line: usize| lines[line].split_whitespace().collect::<Vec<_>>();
        assert_eq!(words(1)[3..7], ["1000", "1.00", "1000", "1.00"], "{text}");
        assert_eq!(words(2)[3..7], ["500~", "0.50", "250", "0.25"], "{text}");
        assert_eq!(words(3)[3..7], ["-", "-", "-", "-"], "{text}");
        assert!(
            lines[3].ends_with("not available here: no such driver"),
            "{text}"
        );
        assert!(lines[4].starts_with("~ "), "{text}");
        assert_eq!(lines.len(), 5);
    }
}
