//! Lists whose runs are on several servers: those of different servers move at
//! the same time, those of one server in the order of the list, as it was
//! planned.

use std::thread;

use crate::{Batch, Outcome, Placement, Storage, posix::sys};

/// Maximum number of threads that move a list.
const QUEUES_MAX: usize = 8;

/// Shorter lists are moved by the calling thread alone: to start another one
/// takes longer than a copy to the client's cache.
const PARALLEL_RUNS_MIN: usize = 8;
const PARALLEL_BYTES_MIN: u64 = 128 << 10;

/// Moves a batch; `in_order` moves one run after another.
pub(crate) fn transfer(
    placement: &Placement,
    batch: &Batch<'_>,
    in_order: impl Fn(&Batch<'_>) -> Outcome + Sync,
) -> Outcome {
    let runs = runs(batch);
    let is_long = runs.len() >= PARALLEL_RUNS_MIN || batch.bytes() >= PARALLEL_BYTES_MIN;
    match is_long && runs.len() > 1 {
        true => {
            let queues = queues(placement, &runs);
            merge(&runs, move_queues(&runs, &queues, in_order))
        }
        false => in_order(batch),
    }
}

/// The batch divided into runs that are contiguous in the file.
fn runs<'a>(batch: &Batch<'a>) -> Vec<Batch<'a>> {
    let pieces = batch.pieces();
    let mut runs = Vec::new();
    let mut first = 0;
    for next in 1..=pieces.len() {
        let is_joined = pieces.get(next).is_some_and(|piece| {
            let before = pieces[next - 1];
            before.offset.checked_add(before.len as u64) == Some(piece.offset)
        });
        if !is_joined {
            runs.push(batch.subset(first..next));
            first = next;
        }
    }
    runs
}

/// The indices of runs by the server of their first byte, in the order of the
/// list, with at most one queue per thread.
fn queues(placement: &Placement, runs: &[Batch<'_>]) -> Vec<Vec<usize>> {
    let mut servers: Vec<u64> = Vec::new();
    let mut queues: Vec<Vec<usize>> = Vec::new();
    for (index, run) in runs.iter().enumerate() {
        let server = server_of(placement, run.pieces()[0].offset);
        let known = servers.iter().position(|it| *it == server);
        let place = known.unwrap_or_else(|| {
            servers.push(server);
            servers.len() - 1
        });
        let place = place % QUEUES_MAX;
        if place == queues.len() {
            queues.push(Vec::new());
        }
        queues[place].push(index);
    }
    queues
}

/// A number of the server; beyond what is known, that of the stripe in its set.
fn server_of(placement: &Placement, offset: u64) -> u64 {
    let components = placement.components();
    let at = components.partition_point(|it| it.file.end <= offset);
    let Some(component) = components.get(at) else {
        return 0;
    };
    let stripe = component.striping.server_of(offset);
    match &component.storage {
        Storage::Servers(servers) => servers[stripe as usize].into(),
        Storage::Metadata | Storage::Unallocated | Storage::Unknown => stripe,
    }
}

/// Moves the runs of each queue on a thread of its own, the first queue on this
/// one. After a failure, the rest of its queue is not moved. Returns the outcome of
/// the runs that were.
fn move_queues(
    runs: &[Batch<'_>],
    queues: &[Vec<usize>],
    in_order: impl Fn(&Batch<'_>) -> Outcome + Sync,
) -> Vec<(usize, Outcome)> {
    let move_queue = |queue: &[usize]| {
        let mut outcomes = Vec::with_capacity(queue.len());
        for &index in queue {
            let outcome = in_order(&runs[index]);
            let has_failed = outcome.error.is_some();
            outcomes.push((index, outcome));
            if has_failed {
                break;
            }
        }
        outcomes
    };
    let Some((own, others)) = queues.split_first() else {
        return Vec::new();
    };
    thread::scope(|scope| {
        let mut started = Vec::new();
        let mut left = Vec::new();
        for queue in others {
            // Signal handlers should run on the program's own threads.
            let _blocked = sys::SignalsBlocked::new();
            let spawned = thread::Builder::new().spawn_scoped(scope, || move_queue(queue));
            match spawned {
                Ok(thread) => started.push(thread),
                Err(_) => left.push(queue),
            }
        }
        let mut outcomes = move_queue(own);
        left.into_iter()
            .for_each(|queue| outcomes.extend(move_queue(queue)));
        for thread in started {
            outcomes.extend(thread.join().expect("moving a queue does not panic"));
        }
        outcomes
    })
}

/// The outcome of the whole list: the longest prefix that was moved. A run without an
/// outcome comes after one of its queue that failed.
fn merge(runs: &[Batch<'_>], mut outcomes: Vec<(usize, Outcome)>) -> Outcome {
    outcomes.sort_by_key(|(index, _)| *index);
    let mut bytes = 0;
    for (index, outcome) in outcomes {
        bytes += outcome.bytes;
        match outcome.error {
            Some(error) => return Outcome::failed(bytes, error),
            None if outcome.bytes < runs[index].bytes() => break,
            None => {}
        }
    }
    Outcome::moved(bytes)
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;
    use crate::{Component, Direction, Striping};

    fn placement() -> Placement {
        let striping = Striping { unit: 10, count: 2 };
        let component = |file, storage| Component {
            file,
            striping,
            storage,
        };
        Placement::new(vec![
            component(0..40, Storage::Servers(vec![7, 3])),
            component(40..80, Storage::Servers(vec![3, 5])),
            component(80..u64::MAX, Storage::Unknown),
        ])
        .unwrap()
    }

    #[test]
    fn lists_are_divided_by_server() {
        let mut memory = [0; 100];
        let places = [
            (0, 0, 5),
            (5, 5, 5),
            (12, 10, 3),
            (41, 13, 2),
            (55, 15, 1),
            (83, 16, 1),
            (20, 17, 2),
        ];
        let batch = Batch::gather(Direction::Write, &mut memory, &places);
        let runs = runs(&batch);
        let lens: Vec<_> = runs.iter().map(Batch::bytes).collect();
        assert_eq!(lens, [10, 3, 2, 1, 1, 2]);
        // Servers 7, 3, 5, and the first of an unknown set.
        let expected = [vec![0, 5], vec![1, 2], vec![3], vec![4]];
        assert_eq!(queues(&placement(), &runs), expected);
    }

    #[test]
    fn a_prefix_ends_at_the_first_failure_or_end_of_file() {
        let mut memory = [0; 100];
        let places = [(0, 0, 10), (20, 10, 10), (40, 20, 10), (60, 30, 10)];
        let batch = Batch::gather(Direction::Read, &mut memory, &places);
        let runs = runs(&batch);
        let full = || Outcome::moved(10);
        let failed = || Outcome::failed(4, io::ErrorKind::TimedOut.into());
        let merged = |outcomes| merge(&runs, outcomes);
        let outcome = merged(vec![(0, full()), (2, failed()), (1, full()), (3, full())]);
        assert_eq!((outcome.bytes, outcome.error.is_some()), (24, true));
        let outcome = merged(vec![(1, Outcome::moved(3)), (0, full()), (2, failed())]);
        assert_eq!((outcome.bytes, outcome.error.is_some()), (13, false));
        // The second queue failed at once, so that its rest was skipped.
        let outcome = merged(vec![(0, full()), (2, full()), (1, failed())]);
        assert_eq!((outcome.bytes, outcome.error.is_some()), (14, true));
    }
}
