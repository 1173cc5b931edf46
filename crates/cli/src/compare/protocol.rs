//! What workers tell, a line each, among whatever else launchers and MPIs print.

use std::fmt;

/// Where each line starts.
const MARK: &str = "pario-compare";

/// Between the fields of a line.
const SEPARATOR: char = '\t';

/// Which way the data goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// From memory to the file.
    Write,
    /// From the file to memory.
    Read,
}

impl Direction {
    /// Both, in the order in which they are measured.
    pub(crate) const ALL: [Direction; 2] = [Direction::Write, Direction::Read];

    /// Its name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Direction::Write => "write",
            Direction::Read => "read",
        }
    }
}

/// One measurement of one worker run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Figure {
    /// The pattern's name.
    pub(crate) pattern: String,
    /// Which way the data went.
    pub(crate) direction: Direction,
    /// Bytes of all ranks.
    pub(crate) bytes: u64,
    /// Pieces of the rank that has most.
    pub(crate) pieces: u64,
    /// From before open until every rank has closed.
    pub(crate) seconds: f64,
    /// The same for plain POSIX calls that move as many bytes.
    pub(crate) raw_seconds: f64,
    /// What is wrong with the bytes.
    pub(crate) fault: Option<String>,
}

/// Which MPI a worker runs under.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Described {
    /// The binary interface.
    pub(crate) flavour: String,
    /// The library's file.
    pub(crate) library: String,
    /// What it says of itself, in one line.
    pub(crate) version: String,
}

/// A line.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Line {
    /// Which MPI it is.
    Mpi(Described),
    /// A measurement.
    Figure(Figure),
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fields = match self {
            Line::Mpi(it) => vec![
                "mpi".to_owned(),
                it.flavour.clone(),
                it.library.clone(),
                it.version.clone(),
            ],
            Line::Figure(it) => vec![
                it.direction.name().to_owned(),
                it.pattern.clone(),
                it.bytes.to_string(),
                it.pieces.to_string(),
                it.seconds.to_string(),
                it.raw_seconds.to_string(),
                it.fault.clone().unwrap_or_default(),
            ],
        };
        f.write_str(MARK)?;
        for field in fields {
            // A separator or a line's end within a field would end it.
            let field = field.replace(char::is_control, " ");
            write!(f, "{SEPARATOR}{field}")?;
        }
        Ok(())
    }
}

impl Line {
    /// The line of a text; `None` for what others print.
    pub(crate) fn parse(text: &str) -> Option<Line> {
        // Launchers may put a rank's output behind somebody's unfinished line.
        let text = &text[text.find(MARK)?..];
        let fields: Vec<&str> = text.split(SEPARATOR).collect();
        let text = |index: usize| fields.get(index).map(|field| (*field).to_owned());
        let direction = match *fields.get(1)? {
            "mpi" => {
                return Some(Line::Mpi(Described {
                    flavour: text(2)?,
                    library: text(3)?,
                    version: text(4)?,
                }));
            }
            word => Direction::ALL.into_iter().find(|it| it.name() == word)?,
        };
        Some(Line::Figure(Figure {
            pattern: text(2)?,
            direction,
            bytes: fields.get(3)?.parse().ok()?,
            pieces: fields.get(4)?.parse().ok()?,
            seconds: fields.get(5)?.parse().ok()?,
            raw_seconds: fields.get(6)?.parse().ok()?,
            fault: text(7).filter(|fault| !fault.is_empty()),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_survive_the_way() {
        let figure = |fault: Option<&str>| {
            Line::Figure(Figure {
                pattern: "tile".to_owned(),
                direction: Direction::Read,
                bytes: 1 << 40,
                pieces: 17,
                seconds: 0.1 + 0.2,
                raw_seconds: 1e-7,
                fault: fault.map(str::to_owned),
            })
        };
        let mpi = Line::Mpi(Described {
            flavour: "MPICH".to_owned(),
            library: "/lib/libmpi.so.12".to_owned(),
            version: "MPICH Version: 4.0.2".to_owned(),
        });
        for line in [figure(None), figure(Some("byte 3 is 4")), mpi] {
            let text = line.to_string();
            assert_eq!(Line::parse(&text), Some(line.clone()));
            assert_eq!(Line::parse(&format!("[warn] odd {text}")), Some(line));
        }
        for noise in [
            "",
            "workload,op",
            "pario-compare",
            "pario-compare\tread\ttile",
        ] {
            assert_eq!(Line::parse(noise), None, "{noise}");
        }
    }

    #[test]
    fn ends_of_lines_within_fields_are_lost() {
        let line = Line::Mpi(Described {
            flavour: "a\tb".to_owned(),
            library: String::new(),
            version: "two\nlines".to_owned(),
        });
        let Some(Line::Mpi(parsed)) = Line::parse(&line.to_string()) else {
            panic!("{line}");
        };
        assert_eq!(
            (parsed.flavour.as_str(), parsed.version.as_str()),
            ("a b", "two lines")
        );
    }
}
