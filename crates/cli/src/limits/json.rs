//! The limits for programs.

use std::io::{self, Write};

use super::Limits;
use super::contenders::State;
use super::session::Row;
use crate::bench::timing::Doubt;
use crate::json::quoted;

/// One JSON object.
pub(super) fn write(limits: &Limits, out: &mut impl Write) -> io::Result<()> {
    let facts = limits.machine.facts.iter();
    let facts = facts.map(|(name, value)| format!("{}: {}", quoted(name), quoted(value)));
    let contenders = limits.rows.iter().map(|row| contender(limits, row));
    writeln!(
        out,
        "{{\"date\": {}, \"pario\": {}, \"folder\": {}, \"file_system\": {}, \"size\": {}, \
         \"repeats\": {},\n\"machine\": {{{}}},\n\"contenders\": [\n{}]}}",
        quoted(&limits.machine.date),
        quoted(env!("CARGO_PKG_VERSION")),
        quoted(&limits.folder.to_string_lossy()),
        quoted(&limits.file_system),
        limits.size,
        limits.repeats,
        facts.collect::<Vec<_>>().join(", "),
        contenders.collect::<Vec<_>>().join(",\n")
    )
}

fn contender(limits: &Limits, row: &Row) -> String {
    let pattern = row.contender.pattern;
    format!(
        "  {{\"kind\": {}, \"name\": {}, \"piece_bytes\": {}, \"pieces\": {}, \"bytes\": {}, \
         \"fresh\": {}, \"existing\": {}, \"refused\": {}, \"note\": {}}}",
        quoted(row.contender.kind.name()),
        quoted(row.contender.name),
        pattern.piece(),
        pattern.count(limits.size),
        pattern.bytes(limits.size),
        side(limits, row, State::Fresh),
        side(limits, row, State::Existing),
        or_null(row.refused.as_deref().map(quoted)),
        or_null(row.note.as_deref().map(quoted)),
    )
}

fn side(limits: &Limits, row: &Row, state: State) -> String {
    let samples = row.samples(state);
    let Some(speed) = limits.megabytes_per_second(row, state) else {
        return or_null(None);
    };
    let number = |it: Option<f64>| or_null(it.map(|it| format!("{it:.3}")));
    let seconds = samples
        .all()
        .iter()
        .map(|it| format!("{:.9}", it.as_secs_f64()));
    format!(
        "{{\"megabytes_per_second\": {speed:.3}, \"of_pwrite\": {}, \"nanoseconds_a_piece\": {}, \
         \"doubt\": {}, \"seconds\": [{}]}}",
        number(limits.of_pwrite(row, state)),
        number(limits.nanoseconds_a_piece(row, state)),
        or_null(samples.doubt().map(Doubt::name).map(quoted)),
        seconds.collect::<Vec<_>>().join(", ")
    )
}

fn or_null(text: Option<String>) -> String {
    text.unwrap_or_else(|| "null".to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::tests::limits;

    #[test]
    fn every_contender_is_there() {
        let mut text = Vec::new();
        super::write(&limits(), &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert!(
            text.contains(
                "\"name\": \"pwrite, calls of 4 KiB\", \"piece_bytes\": 4096, \"pieces\": 2048, \
                 \"bytes\": 8388608, \"fresh\": {\"megabytes_per_second\": 1.049, \
                 \"of_pwrite\": 0.250, \"nanoseconds_a_piece\": 3906250.000, \"doubt\": null, \
                 \"seconds\": [8.000000000]}"
            ),
            "{text}"
        );
        assert!(
            text.contains(
                "\"fresh\": null, \"existing\": null, \
                 \"refused\": \"the file system has no \\\"O_DIRECT\\\"\", \"note\": null}"
            ),
            "{text}"
        );
        let braces = |open, close| text.matches(open).count() == text.matches(close).count();
        assert!(braces('{', '}') && braces('[', ']'), "{text}");
    }
}
