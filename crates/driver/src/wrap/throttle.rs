//! Simulates a slow file system with a given latency and bandwidth.

use std::{
    io,
    num::NonZeroU64,
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant},
};

use super::{Call, Wrapped, Wrapper};
use crate::{Batch, Completion, Handle, Latency, Outcome, background, closing::lock};

/// Upper limit of a single delay, so that adding times cannot overflow.
const TIME_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// Delays each operation: by its own latency, and by its share of a limited
/// bandwidth that all files share.
///
/// Background transfers wait on I/O threads, so at most
/// [`THREADS_MAX`](crate::THREADS_MAX) latencies overlap.
#[derive(Clone, Debug)]
pub struct Throttle {
    latency: Duration,
    bytes_per_second: Option<NonZeroU64>,
    /// When the bandwidth is next available.
    free: Arc<Mutex<Instant>>,
}

impl Throttle {
    /// A throttle with this latency per operation and unlimited bandwidth.
    pub fn new(latency: Duration) -> Self {
        Throttle {
            latency: latency.min(TIME_MAX),
            bytes_per_second: None,
            free: Arc::new(Mutex::new(Instant::now())),
        }
    }

    /// Limits the bandwidth.
    #[must_use]
    pub fn bandwidth(self, bytes_per_second: NonZeroU64) -> Self {
        Throttle {
            bytes_per_second: Some(bytes_per_second),
            ..self
        }
    }

    /// Reserves bandwidth and returns when the operation ends.
    fn reserve(&self, bytes: u64) -> Instant {
        let now = Instant::now();
        let Some(bandwidth) = self.bytes_per_second else {
            return now + self.latency;
        };
        let seconds = bytes as f64 / bandwidth.get() as f64;
        let time = Duration::try_from_secs_f64(seconds).map_or(TIME_MAX, |time| time.min(TIME_MAX));
        let mut free = lock(&self.free);
        *free = now.max(*free) + time;
        *free + self.latency
    }

    /// Runs an operation that moves this many bytes.
    fn run<T>(&self, bytes: u64, make: impl FnOnce() -> T) -> T {
        let over = self.reserve(bytes);
        let result = make();
        thread::sleep(over.saturating_duration_since(Instant::now()));
        result
    }
}

impl Wrapper for Throttle {
    const NAME: &'static str = "throttle";

    fn call<T>(&self, _: &Call<'_>, make: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        self.run(0, make)
    }

    fn transfer(&self, file: &Wrapped<dyn Handle>, batch: &Batch<'_>) -> Outcome {
        self.run(batch.bytes(), || file.inner.transfer(batch))
    }

    fn latency(&self, _inner: Latency) -> Latency {
        Latency::Unknown
    }

    fn submit(&self, file: &Wrapped<dyn Handle>, batch: Batch<'static>, done: Completion) {
        let over = self.reserve(batch.bytes());
        let slowly = move |outcome| {
            background::spawn(Box::new(move || {
                thread::sleep(over.saturating_duration_since(Instant::now()));
                done(outcome);
            }));
        };
        file.inner.submit(batch, Box::new(slowly));
    }
}
