//! The limits on a terminal.

use std::collections::BTreeSet;
use std::io::{self, Write};

use super::Limits;
use super::contenders::State;
use super::session::Row;
use crate::bench::report::table::{Align, Table};
use crate::bench::timing::Doubt;

/// Pieces up to this size are told the time of each.
const SMALL_PIECE: usize = 4 << 10;

/// Prints the machine, a table, and what the columns mean.
pub(super) fn write(limits: &Limits, out: &mut impl Write) -> io::Result<()> {
    writeln!(
        out,
        "one file of {} MiB in {} ({}), best of {}",
        limits.size >> 20,
        limits.folder.display(),
        limits.file_system,
        limits.repeats
    )?;
    for (name, value) in &limits.machine.facts {
        writeln!(out, "{name}: {value}")?;
    }
    let mut table = Table::new([
        ("", Align::Left),
        ("", Align::Left),
        ("fresh MB/s", Align::Right),
        ("of pwrite", Align::Right),
        ("existing MB/s", Align::Right),
        ("of pwrite", Align::Right),
        ("", Align::Left),
    ]);
    let mut kind = "";
    for row in &limits.rows {
        let name = row.contender.kind.name();
        let shown = if name == kind { "" } else { name };
        kind = name;
        let [fresh, fresh_ratio] = limits.cells(row, State::Fresh);
        let [existing, existing_ratio] = limits.cells(row, State::Existing);
        table.push([
            shown.to_owned(),
            row.contender.name.to_owned(),
            fresh,
            fresh_ratio,
            existing,
            existing_ratio,
            limits.remark(row),
        ]);
    }
    writeln!(out)?;
    table.print(out)?;
    writeln!(
        out,
        "\nfresh: a new file; existing: written or read again, its pages in the cache; of pwrite: \
         over one writer in large calls;\nholes: pieces of 256 bytes, every second one; every \
         contender's bytes were checked once"
    )?;
    limits.advise(out)
}

impl Limits {
    /// Speed, and speed over that of the first contender.
    fn cells(&self, row: &Row, state: State) -> [String; 2] {
        let Some(speed) = self.megabytes_per_second(row, state) else {
            return ["-".to_owned(), "-".to_owned()];
        };
        let mark = row.samples(state).doubt().map_or(' ', Doubt::mark);
        let ratio = self.of_pwrite(row, state);
        [
            format!("{speed:.0}{mark}"),
            ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}x")),
        ]
    }

    /// Why there are no numbers, or what they do not say.
    fn remark(&self, row: &Row) -> String {
        if let Some(reason) = &row.refused {
            return format!("not here: {reason}");
        }
        let mut remarks: Vec<_> = row.note.clone().into_iter().collect();
        if row.contender.pattern.piece() <= SMALL_PIECE {
            let times = [State::Fresh, State::Existing];
            let times = times
                .iter()
                .filter_map(|state| self.nanoseconds_a_piece(row, *state))
                .map(|time| format!("{time:.0}"));
            let times: Vec<_> = times.collect();
            remarks.push(format!("{} ns a piece", times.join(" and ")));
        }
        remarks.join(", ")
    }

    /// What the marks behind numbers mean.
    fn advise(&self, out: &mut impl Write) -> io::Result<()> {
        let samples = self.rows.iter().flat_map(|row| [&row.fresh, &row.existing]);
        let doubts: BTreeSet<_> = samples.filter_map(|it| it.doubt()).collect();
        for doubt in doubts {
            let advice = match doubt {
                Doubt::Spread => "the repeats differ widely: quiet the machine or raise --repeats",
                Doubt::Short => "too short to time well: raise --size",
            };
            writeln!(out, "{} {advice}", doubt.mark())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::limits;

    #[test]
    fn rows_have_speeds_or_reasons() {
        let mut text = Vec::new();
        super::write(&limits(), &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        let row = |name: &str| {
            let found = text.lines().find(|line| line.contains(name));
            let words = found.unwrap().split_whitespace();
            words.collect::<Vec<_>>().join(" ")
        };
        assert!(text.starts_with("one file of 8 MiB in /data (tmpfs), best of 1\nKernel: Linux\n"));
        assert_eq!(
            row("one writer "),
            "write pwrite, one writer 4 1.00x 8 1.00x"
        );
        assert_eq!(
            row("4 KiB"),
            "pwrite, calls of 4 KiB 1 0.25x 4 0.50x 3906250 and 976562 ns a piece"
        );
        assert_eq!(
            row("O_DIRECT"),
            "pwrite, O_DIRECT - - - - not here: the file system has no \"O_DIRECT\""
        );
    }
}
