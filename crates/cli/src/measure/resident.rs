//! How much memory this process has in use beyond a baseline: the peak of RssAnon + RssShmem,
//! sampled by a thread. Pages of mapped files and the page cache do not count.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Time between samples.
const INTERVAL: Duration = Duration::from_millis(2);

/// The counters that are added up, in KiB.
const FIELDS: [&str; 2] = ["RssAnon:", "RssShmem:"];

/// Samples resident memory until it is dropped.
#[derive(Debug)]
pub(crate) struct ResidentPeak {
    shared: Arc<Shared>,
    baseline: u64,
    sampler: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    status: File,
    peak: AtomicU64,
    /// Processor time that the sampler has used.
    cpu_ns: AtomicU64,
    is_over: AtomicBool,
}

impl ResidentPeak {
    /// The memory in use now is the baseline.
    pub(crate) fn start() -> io::Result<ResidentPeak> {
        let shared = Arc::new(Shared {
            status: File::open("/proc/self/status")?,
            peak: AtomicU64::new(0),
            cpu_ns: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
        });
        let baseline = shared.sample()?;
        let own = Arc::clone(&shared);
        let sampler = thread::Builder::new().name("resident".to_owned());
        let sampler = sampler.spawn(move || own.sample_until_over())?;
        Ok(ResidentPeak {
            shared,
            baseline,
            sampler: Some(sampler),
        })
    }

    /// Bytes above the baseline at the peak so far.
    pub(crate) fn growth(&self) -> u64 {
        // One more sample, in case that nothing was sampled since the last allocation.
        let _ = self.shared.sample();
        let peak = self.shared.peak.load(Ordering::Relaxed);
        peak.saturating_sub(self.baseline)
    }

    /// Processor time that sampling has taken, to be subtracted from the process's.
    pub(crate) fn cpu(&self) -> Duration {
        Duration::from_nanos(self.shared.cpu_ns.load(Ordering::Relaxed))
    }
}

impl Drop for ResidentPeak {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        if let Some(sampler) = self.sampler.take() {
            // It cannot panic, and nothing depends on it any more.
            let _ = sampler.join();
        }
    }
}

impl Shared {
    fn sample_until_over(&self) {
        while !self.is_over.load(Ordering::Relaxed) && self.sample().is_ok() {
            let time = clock_gettime(ClockId::ThreadCPUTime);
            let ns = time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64;
            self.cpu_ns.store(ns, Ordering::Relaxed);
            thread::sleep(INTERVAL);
        }
    }

    /// Reads the counters and remembers their peak.
    fn sample(&self) -> io::Result<u64> {
        let mut text = [0; 4096];
        let length = self.status.read_at(&mut text, 0)?;
        let bytes = resident(&String::from_utf8_lossy(&text[..length]));
        self.peak.fetch_max(bytes, Ordering::Relaxed);
        Ok(bytes)
    }
}

/// Bytes of anonymous and shared memory in the text of `/proc/self/status`.
fn resident(status: &str) -> u64 {
    let kib = |field: &str| -> Option<u64> {
        let line = status.lines().find(|line| line.starts_with(field))?;
        line.split_whitespace().nth(1)?.parse().ok()
    };
    FIELDS.into_iter().filter_map(kib).sum::<u64>() << 10
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_swap_do_not_count() {
        let status = "VmRSS:\t  900 kB\nRssAnon:\t 500 kB\nRssFile:\t 300 kB\nRssShmem:\t 100 kB\n";
        assert_eq!(resident(status), 600 << 10);
        assert_eq!(resident(""), 0);
    }

    #[test]
    fn memory_that_is_touched_counts_even_after_it_is_released() {
        const BYTES: usize = 64 << 20;
        let peak = ResidentPeak::start().unwrap();
        let memory = std::hint::black_box(vec![1_u8; BYTES]);
        let growth = peak.growth();
        drop(memory);
        // Other tests release memory of the baseline at the same time.
        assert!(growth >= BYTES as u64 / 2, "{growth}");
        assert!(peak.growth() >= growth);
    }
}
