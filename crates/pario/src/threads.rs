//! Ranks that are threads of this process.

use crate::{Comm, Error, ErrorKind, Result};

/// Runs `work` as each of so many ranks, every one on a thread of its own, and returns the
/// ranks' results, by rank.
///
/// If ranks fail, the error is that of the lowest one, leaving aside those that failed only
/// because another rank did.
///
/// ```
/// let squares = pario::threads::run(3, |comm| Ok(comm.rank() * comm.rank()))?;
/// assert_eq!(squares, [0, 1, 4]);
/// # Ok::<(), pario::Error>(())
/// ```
///
/// # Panics
/// If a rank panics.
pub fn run<T: Send>(ranks: u32, work: impl Fn(Comm) -> Result<T> + Sync) -> Result<Vec<T>> {
    let results = pario_transport::threads::run(ranks, |transport| work(Comm::from(transport)));
    let results = results
        .into_iter()
        .map(|result| result.unwrap_or_else(|panic| panic!("{panic}")));
    all_or_cause(results)
}

/// All results, or the error that caused the others.
pub(crate) fn all_or_cause<T>(results: impl Iterator<Item = Result<T>>) -> Result<Vec<T>> {
    let mut values = Vec::new();
    let mut cause: Option<Error> = None;
    let is_consequence = |error: &Error| error.kind() == ErrorKind::PeerLost;
    for result in results {
        match (result, &cause) {
            (Ok(value), _) => values.push(value),
            (Err(error), None) => cause = Some(error),
            (Err(error), Some(earlier)) => {
                if is_consequence(earlier) && !is_consequence(&error) {
                    cause = Some(error);
                }
            }
        }
    }
    cause.map_or(Ok(values), Err)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cause_is_reported_not_its_consequences() {
        let result = run(3, |comm| match comm.rank() {
            2 => Err(Error::new(ErrorKind::NoSpace, "full")),
            _ => comm.barrier(),
        });
        assert_eq!(result.unwrap_err().kind(), ErrorKind::NoSpace);
    }

    #[test]
    #[should_panic(expected = "rank 1 panicked: on purpose")]
    fn a_panic_goes_on_in_the_caller() {
        let _ = run(2, |comm| match comm.rank() {
            1 => panic!("on purpose"),
            _ => comm.barrier(),
        });
    }
}
