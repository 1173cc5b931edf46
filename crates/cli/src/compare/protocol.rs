//! What workers report: lines of JSON after a marker, among the output of launchers and MPIs.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::measure::Direction;

/// The marker at the start of each line.
const MARK: &str = "pario-compare ";

/// One measurement of one worker run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Figure {
    pub(crate) pattern: String,
    #[serde(with = "crate::measure::direction")]
    pub(crate) direction: Direction,
    /// Bytes of all ranks.
    pub(crate) bytes: u64,
    /// Pieces of the rank that has the most.
    pub(crate) pieces: u64,
    /// From before open until every rank has closed.
    pub(crate) seconds: f64,
    /// The same for plain POSIX calls that move the same amount.
    pub(crate) raw_seconds: f64,
    /// What is wrong with the bytes.
    pub(crate) fault: Option<String>,
}

/// One call of `pario bench latency`, timed in one worker run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Latency {
    pub(crate) call: String,
    /// Per rank, per call.
    pub(crate) bytes: u64,
    /// Requests in flight at a time.
    pub(crate) in_flight: usize,
    /// Per call.
    pub(crate) seconds: f64,
    /// Why this is not the time of the intended call.
    pub(crate) fault: Option<String>,
}

/// The MPI that a worker runs under.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Described {
    /// The binary interface.
    pub(crate) flavour: String,
    pub(crate) library: String,
    /// Its version string, in one line.
    pub(crate) version: String,
}

/// A line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Line {
    Mpi(Described),
    Figure(Figure),
    Latency(Latency),
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let json = serde_json::to_string(self).map_err(|_| fmt::Error)?;
        write!(f, "{MARK}{json}")
    }
}

impl Line {
    /// The line in a text; `None` for other output.
    pub(crate) fn parse(text: &str) -> Option<Line> {
        // Launchers may append a rank's output to an unfinished line.
        let (_, json) = text.split_once(MARK)?;
        serde_json::from_str(json).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_as_they_were_written() {
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
            version: "two\nlines\t".to_owned(),
        });
        let latency = Line::Latency(Latency {
            call: "iwrite_at".to_owned(),
            bytes: 8,
            in_flight: 16,
            seconds: 1.5e-8,
            fault: None,
        });
        for line in [figure(None), figure(Some("byte 3 is 4")), mpi, latency] {
            let text = line.to_string();
            assert!(!text.contains('\n'), "{text}");
            assert_eq!(Line::parse(&text), Some(line.clone()));
            assert_eq!(Line::parse(&format!("[warn] odd {text}")), Some(line));
        }
        for noise in [
            "",
            "workload,op",
            "pario-compare",
            "pario-compare {\"read\"}",
        ] {
            assert_eq!(Line::parse(noise), None, "{noise}");
        }
    }
}
