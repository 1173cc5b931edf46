//! What the process uses between two points in time.

use std::time::{Duration, Instant};

use pario_types::Direction;
use rustix::time::{ClockId, clock_gettime};

use super::row::{Repeat, Side};
use crate::measure::allocations::Allocations;

/// Measures one repeat after the other, and keeps the results.
pub(super) struct Meter {
    started: Mark,
    pub(super) write: Side,
    pub(super) read: Side,
    /// The peak of resident memory, above the baseline.
    pub(super) memory_bytes: u64,
}

/// A point in time.
struct Mark {
    time: Instant,
    /// Processor time of the process, without that of sampling.
    cpu: Duration,
    allocations: Allocations,
}

impl Mark {
    fn now(sampling: Duration) -> Mark {
        Mark {
            time: Instant::now(),
            cpu: process_cpu().saturating_sub(sampling),
            allocations: Allocations::now(),
        }
    }
}

impl Meter {
    pub(super) fn new() -> Meter {
        Meter {
            started: Mark::now(Duration::ZERO),
            write: Side::default(),
            read: Side::default(),
            memory_bytes: 0,
        }
    }

    /// Starts a repeat; `sampling` is the processor time of threads that measure.
    pub(super) fn start(&mut self, sampling: Duration) {
        self.started = Mark::now(sampling);
    }

    /// The costs since the start. Messages are counted by the ranks.
    pub(super) fn stop(&self, sampling: Duration) -> Repeat {
        let now = Mark::now(sampling);
        let allocations = now.allocations - self.started.allocations;
        Repeat {
            seconds: (now.time - self.started.time).as_secs_f64(),
            cpu_seconds: now.cpu.saturating_sub(self.started.cpu).as_secs_f64(),
            allocations: allocations.count,
            allocated_bytes: allocations.bytes,
            ..Repeat::default()
        }
    }

    /// Keeps a repeat, and how its calls were carried out.
    pub(super) fn keep(&mut self, direction: Direction, repeat: Repeat, plan: Option<String>) {
        let side = match direction {
            Direction::Write => &mut self.write,
            Direction::Read => &mut self.read,
        };
        side.plan = plan.unwrap_or_default();
        side.repeats.push(repeat);
    }
}

/// Processor time that all threads of this process have used.
fn process_cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
}
