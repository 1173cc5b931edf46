//! Prefetch (Zhang 2009, section 3.3): agents request their servers' data in ascending order,
//! the ranks synchronise once all requests are under way, and every rank then reads its own
//! data, which the requests of the agents have brought into the servers' caches.

use std::sync::mpsc;

use super::{PlanResult, Work, window_io::WindowIo};
use crate::{Result, Status, access::WindowBuffer};

/// Reads this rank's data, after its agent's requests if it is one.
pub(super) fn run(work: &Work<'_>) -> Result<Status> {
    let me = work.comm.rank().0;
    let scheduled: Vec<_> = work
        .rounds
        .schedule(work.accesses)
        .filter(|item| work.rounds.aggregators[item.aggregator].rank == me)
        .collect();
    std::thread::scope(|scope| {
        let (started, first_request) = mpsc::channel();
        scope.spawn(move || {
            let io = WindowIo::new(work);
            let mut buffer = Vec::new();
            let mut signal = Some(started);
            for item in &scheduled {
                buffer.resize(item.window.bytes() as usize, 0);
                work.await_start(item.aggregator);
                // Closing the channel signals that the request follows.
                signal.take();
                let members = work.members(item.aggregator);
                // Whoever needs the data runs into the same error.
                let mut ignored = PlanResult::default();
                io.read(
                    &item.window,
                    members,
                    WindowBuffer::new(&mut buffer),
                    &mut ignored,
                );
            }
        });
        let _: std::result::Result<(), _> = first_request.recv();
        work.comm.barrier()?;
        work.operation.run()
    })
}
