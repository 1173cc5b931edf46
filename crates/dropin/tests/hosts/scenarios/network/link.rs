//! Links that are slower than the memory of this machine.

use super::{HOSTS, Network, QUICK};
use crate::job::{self, Line};
use crate::run::TestResult;

/// How fast a link between two hosts is.
#[derive(Clone, Copy)]
pub(super) enum Link {
    /// As fast as the machine copies.
    Fast,
    /// With a latency and a bandwidth, or the bandwidth alone if the kernel has no netem.
    Slow,
}

/// The slow link: a data message of a megabyte takes twenty milliseconds.
const RATE: &str = "400mbit";
const LATENCY: &str = "2ms";

/// Queueing disciplines that make it, the best first. Without a queue of their own they would drop
/// what exceeds the rate.
const DISCIPLINES: [&[&str]; 2] = [
    &["netem", "delay", LATENCY, "rate", RATE, "limit", "10000"],
    &["tbf", "rate", RATE, "burst", "256kb", "latency", "100ms"],
];

impl Network {
    /// Makes the link as slow as requested, in both directions.
    pub(super) fn set_link(&self, link: Link) -> TestResult {
        match link {
            Link::Fast => Ok(()),
            Link::Slow => (0..HOSTS).try_for_each(|index| self.slow_down(index)),
        }
    }

    /// Limits what one host sends.
    fn slow_down(&self, index: usize) -> TestResult {
        let mut reasons = Vec::new();
        for discipline in DISCIPLINES {
            let line = Line::new("tc")
                .words(["qdisc", "replace", "dev", "eth0", "root"])
                .words(discipline);
            match job::run(&self.inside(index, line), QUICK)?.success() {
                Ok(_) => return Ok(()),
                Err(reason) => reasons.push(reason),
            }
        }
        Err(format!(
            "the link cannot be limited: {}",
            reasons.join("; ")
        ))
    }
}
