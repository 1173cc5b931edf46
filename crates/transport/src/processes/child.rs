//! The life of a forked rank, and what it reports.

use std::io::{self, PipeReader, PipeWriter, Write};
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;

use super::fork::{self, Child};
use crate::fabric::{Endpoint, Kind, World};
use crate::threads::panic_message;
use crate::{Loss, Rank, Transport};

/// What a rank needs to live.
pub(super) struct ChildSetup<'a, F> {
    pub(super) world: World,
    pub(super) rank: Rank,
    pub(super) kind: Arc<Kind>,
    pub(super) f: &'a F,
}

/// What a rank writes into its pipe: whether it returned, a length, and bytes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Report {
    Returned(Vec<u8>),
    Panicked(String),
}

const RETURNED: u8 = 1;
const PANICKED: u8 = 2;

impl Report {
    fn encode(self) -> Vec<u8> {
        let (what, bytes) = match self {
            Report::Returned(bytes) => (RETURNED, bytes),
            Report::Panicked(message) => (PANICKED, message.into_bytes()),
        };
        let mut report = vec![what];
        report.extend((bytes.len() as u64).to_le_bytes());
        report.extend(bytes);
        report
    }

    /// `None` if the report is not complete.
    pub(super) fn decode(report: &[u8]) -> Option<Self> {
        let (what, rest) = report.split_first()?;
        let (length, bytes) = rest.split_first_chunk::<8>()?;
        if u64::from_le_bytes(*length) != bytes.len() as u64 {
            return None;
        }
        match *what {
            RETURNED => Some(Report::Returned(bytes.to_vec())),
            PANICKED => Some(Report::Panicked(
                String::from_utf8_lossy(bytes).into_owned(),
            )),
            _ => None,
        }
    }
}

/// Forks a rank; its report arrives in the pipe. (The child also inherits the
/// reading ends of its older siblings' pipes. They do no harm: it is the
/// writing ends that tell the end of a rank.)
pub(super) fn start<F>(setup: ChildSetup<'_, F>) -> io::Result<(Child, PipeReader)>
where
    F: Fn(Arc<dyn Transport>) -> Vec<u8>,
{
    let (reader, writer) = io::pipe()?;
    let child = fork::fork(|| live(setup, writer))?;
    Ok((child, reader))
}

fn live<F>(setup: ChildSetup<'_, F>, mut writer: PipeWriter) -> i32
where
    F: Fn(Arc<dyn Transport>) -> Vec<u8>,
{
    let endpoint = Arc::new(Endpoint::join(setup.world.clone(), setup.rank, setup.kind));
    // Nothing that `f` may have left half changed is looked at after a panic.
    let result = panic::catch_unwind(AssertUnwindSafe(|| (setup.f)(endpoint)));
    let (loss, report) = match result {
        Ok(bytes) => (Loss::Returned, Report::Returned(bytes)),
        Err(payload) => {
            let message = panic_message(payload.as_ref());
            (Loss::Panicked, Report::Panicked(message))
        }
    };
    setup.world.leave(setup.rank, loss);
    // If this fails, the supervisor is gone or sees an incomplete report.
    let sent = writer.write_all(&report.encode());
    let _ = io::stdout().flush();
    i32::from(sent.is_err())
}
