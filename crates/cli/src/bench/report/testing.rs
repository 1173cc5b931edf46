//! A comparison for tests.

use std::time::Duration;

use super::super::method::Method;
use super::super::options::Target;
use super::super::row::{Comparison, Row, Side};
use crate::measure::{DIRECTIONS, Direction};
use crate::workload::{self, Setting};

/// Open and close take a tenth of the time.
fn side(millis: &[u64]) -> Side {
    let mut side = Side::default();
    for millis in millis {
        let took = Duration::from_millis(*millis);
        side.samples.push(took);
        side.calls.push(took - took / 10);
        side.open_close.push(took / 10);
    }
    side
}

fn row(method: Method, write: &[u64], read: &[u64]) -> Row {
    let mut row = Row::new(method);
    *row.side_mut(Direction::Write) = side(write);
    *row.side_mut(Direction::Read) = side(read);
    row
}

/// Raw POSIX, a slower method whose writes are doubtful, one that only reads, and one that cannot
/// be used.
pub(crate) fn comparison() -> Comparison {
    let mut list = row(Method::parse("list").unwrap(), &[20, 40], &[40]);
    list.side_mut(Direction::Write).transfer_share = Some(0.25);
    let mut reader = row(Method::parse("private-sieve").unwrap(), &[], &[20]);
    reader.side_mut(Direction::Write).unavailable = Some("it only reads".to_owned());
    let mut absent = row(Method::parse("resonant").unwrap(), &[], &[]);
    for direction in DIRECTIONS {
        absent.side_mut(direction).unavailable = Some("no servers".to_owned());
    }
    let (workload, parameters) = workload::parse("strided").unwrap();
    Comparison {
        target: Target {
            workload,
            choices: String::new(),
            setting: Setting {
                ranks: 2,
                scale: 1.0,
                parameters,
            },
            swept: Some(("record".to_owned(), "4K".to_owned())),
        },
        sizes: "records".to_owned(),
        calls: 1,
        bytes: 10_000_000,
        rows: vec![row(Method::raw(), &[10, 11], &[10]), list, reader, absent],
    }
}
