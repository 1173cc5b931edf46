//! A comparison for tests.

use std::time::Duration;

use super::super::method::Method;
use super::super::row::{Comparison, Row, Side};

/// A tenth of the time is for open and close.
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

/// Raw POSIX, a slower method whose writes are doubtful, one that only reads, and one that
/// cannot be used.
pub(crate) fn comparison() -> Comparison {
    let row = |method: Method, write: &[u64], read: &[u64]| Row {
        write: side(write),
        read: side(read),
        ..Row::new(method)
    };
    let mut list = row(Method::parse("list").unwrap(), &[20, 40], &[40]);
    list.write.transfer_share = Some(0.25);
    let mut reader = row(Method::parse("private-sieve").unwrap(), &[], &[20]);
    reader.write.missing = Some("it only reads".to_owned());
    let mut absent = row(Method::parse("resonant").unwrap(), &[], &[]);
    absent.write.missing = Some("no servers".to_owned());
    absent.read.missing = Some("no servers".to_owned());
    Comparison {
        workload: "strided",
        choices: String::new(),
        swept: Some(("record".to_owned(), "4K".to_owned())),
        sizes: "records".to_owned(),
        ranks: 2,
        calls: 1,
        bytes: 10_000_000,
        rows: vec![row(Method::raw(), &[10, 11], &[10]), list, reader, absent],
    }
}
